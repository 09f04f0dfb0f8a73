"""The text of CREATE CONTINUAL QUERY and the fields of its form: two views of one statement.

Law: the fields of a text, written as a text again, are the same statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harken.api.database import Database
from harken.api.statement_previews import parts_of_statement
from harken.console.rendering import sql_name
from harken.continual.clause_texts import NAMES
from harken.continual.installed_queries import InstalledQuery
from harken.continual.query_clauses import recipient_text
from harken.continual.words import quoted
from harken.errors import HarkenError

FIELDS = ("query", "trigger", "stop", "deliver", "notify", "zone")
"""The clauses with a field of their own; others share one."""
START = "CREATE CONTINUAL QUERY"
TRIGGERS = (
    ("EVERY 20 MINUTES", "*/20 * * * *"),
    ("EVERY HOUR", "0 * * * *"),
    ("EVERY DAY AT '08:00'", "0 8 * * *"),
    ("EVERY WEEKDAY AT '08:00'", "0 8 * * 1-5"),
    ("EVERY MONDAY AT '08:00'", "0 8 * * 1"),
    ("EVERY FIRST DAY OF MONTH AT '08:00'", "0 8 1 * *"),
    ("CRON '0 0 1,15 * 1-5'", "0 0 1,15 * 1-5"),
    ("CRON '0,30 * * * 6,0'", "0,30 * * * 6,0"),
)
"""Templates, and what they are in the five fields."""
FIVE_FIELDS = (
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day", "1-31"),
    ("month", "1-12"),
    ("weekday", "0-6, Sunday is 0"),
)
STOPS = ("AFTER 2 WEEKS", "AFTER 6 MONTHS", "AFTER 10 EXECUTIONS", "NEVER")
DELIVERIES = ("INSERTED", "CHANGED", "DELETED", "COMPLETE", "COUNT", "INSERTED AS LINK")


@dataclass(frozen=True, slots=True)
class Fields:
    """What the form shows. `rest` has the clauses without a field of their own."""

    name: str = ""
    query: str = ""
    trigger: str = ""
    stop: str = ""
    deliver: str = ""
    notify: str = ""
    """A recipient on each line."""
    zone: str = ""
    rest: str = ""

    def as_json(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in ("name", *FIELDS, "rest")}


def fields_of(text: str) -> Fields:
    name, parts = parts_of_statement(text)
    found: dict[str, str] = {}
    rest = []
    for part in parts:
        key = part.name.lower()
        if key not in FIELDS:
            rest.append(f"{part.name} {part.text}")
        elif key == "notify" and key in found:
            found[key] += f"\n{part.text}"
        else:
            found[key] = _unquoted(part.text) if key == "zone" else part.text
    return Fields(name=name or "", rest="\n".join(rest), **found)


def document_of(text: str) -> tuple[str, dict[str, Any]]:
    """The name, and the clauses as `db.continual_queries.install_all` takes them."""
    name, parts = parts_of_statement(text)
    found: dict[str, Any] = {}
    for part in parts:
        match part.name:
            case "NOTIFY":
                found.setdefault("notify", []).append(part.text)
            case "ZONE" | "OWNER":
                found[part.name.lower()] = _unquoted(part.text)
            case "PRIORITY":
                is_number = part.text.removeprefix("-").strip().isdigit()
                found["priority"] = int(part.text.replace(" ", "")) if is_number else part.text
            case _:
                found[part.name.lower()] = part.text
    return name or "", found


def text_of(query: InstalledQuery, zone: str) -> str:
    """The statement that installs a query; its zone is left out where it is the usual one."""
    lines = [f"{START} {sql_name(query.name)} AS", query.clauses.query]
    for name, text in query.clauses.texts().items():
        if name == "NOTIFY":
            lines += [f"NOTIFY {recipient_text(each)}" for each in query.clauses.notify]
        elif name != "ZONE":
            lines.append(f"{name} {text}")
    if query.zone_name != zone:
        lines.append(f"ZONE {quoted(query.zone_name)}")
    return "\n".join(lines)


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'") if len(text) > 1 and text[0] in "'\"" else text


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong with a statement, and in which field of its form."""

    message: str
    hint: str = ""
    field: str = ""
    line: int | None = None

    @classmethod
    def of(cls, error: HarkenError, text: str) -> Wrong:
        return cls(error.message, error.hint or "", _field_at(error, text), error.line)

    def as_json(self) -> dict[str, Any]:
        shown = {"message": self.message, "hint": self.hint, "field": self.field}
        return {**shown, "line": self.line}


def _field_at(error: HarkenError, text: str) -> str:
    if error.code == "exists":
        return "name"
    if error.span is None:
        return ""
    try:
        _, parts = parts_of_statement(text)
    except HarkenError:
        return ""
    before = [part for part in parts if part.base <= error.span.start]
    if not before:
        return "name"
    name = before[-1].name.lower()
    return name if name in FIELDS else "rest" if name.upper() in NAMES else ""


def relations_of(db: Database) -> list[dict[str, Any]]:
    """What a query can be written over: SQL's relations with their columns, for the pickers."""
    return [
        {"name": sql_name(each.name), "columns": [sql_name(column.name) for column in each.columns]}
        for each in sorted(db.views(), key=lambda each: each.name)
        if "." not in each.name
    ]
