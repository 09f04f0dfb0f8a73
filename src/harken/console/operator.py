"""The operator's page: what is stored for whom, what waits to be sent, and the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harken.api.database import Database
from harken.console.rendering import plural
from harken.settings import SETTINGS

TABS = (
    ("storage", "Storage"),
    ("messages", "Messages"),
    ("users", "Users"),
    ("grants", "Grants"),
    ("announce", "Announcements"),
    ("mail", "Mail"),
    ("backup", "Backup"),
    ("audit", "Audit"),
    ("settings", "Settings"),
)
MOST_LISTED = 200
SETTING_NAMES = tuple(each.name for each in SETTINGS)
SECRET_SETTINGS = frozenset({"smtp_password"})


@dataclass(frozen=True, slots=True)
class Kept:
    text: str
    rows: Sequence[Sequence[Any]]
    columns: Sequence[str] = ("for", "what", "rows", "bytes")
    numbers: Sequence[bool] = (False, False, True, True)


def kept(db: Database) -> Kept:
    report = db.kept()
    limit = f" of {report.limit:,}" if report.limit else ""
    rows = [(each.relation, str(each.kind), each.rows, each.bytes) for each in report.items]
    return Kept(f"{report.bytes:,}{limit} bytes in this session", rows[:MOST_LISTED])


def outboxes(db: Database) -> list[Sequence[Any]]:
    return [
        (each.name, each.view, each.changes, each.bytes, each.waiting_since, each.alarm)
        for each in db.outboxes()
    ]


def messages(db: Database) -> list[Sequence[Any]]:
    return [
        (each.number, each.state, each.channel, each.address, each.attempts, each.due, each.error)
        for each in db.notifications.list(limit=MOST_LISTED)
    ]


def actions(db: Database) -> list[Sequence[Any]]:
    return [
        (each.number, each.rule, "failed" if each.error else "waiting", each.error)
        for each in db.detached_actions()
    ]


def settings(db: Database) -> list[Sequence[Any]]:
    values = db.settings
    return [
        (each.name, _value(each.name, values[each.name]), each.unit, each.about)
        for each in SETTINGS
    ]


def mail(db: Database) -> dict[str, Any]:
    """What the form of the mail server shows. What was given at the start is not changed here."""
    settings = db.settings
    names = [name for name in SETTING_NAMES if name.startswith("smtp_")]
    given = [name for name in names if settings.is_given(name)]
    return {"given": given, **{name.removeprefix("smtp_"): settings[name] for name in names}}


def announcements(db: Database) -> list[Any]:
    """The newest ones, each once, with how many got it."""
    found: dict[tuple[Any, str], dict[str, Any]] = {}
    for each in db.notifications.list(limit=MOST_LISTED):
        if each.kind == "announcement" and each.query:
            text = str(each.payload.get("text", ""))
            one = found.setdefault((each.at, text), {"at": each.at, "text": text, "to": 0})
            one["to"] += 1
    return list(found.values())[::-1]


def grants(db: Database) -> list[Sequence[Any]]:
    return list(db.sql("SHOW GRANTS").rows)


def audit(db: Database) -> list[Sequence[Any]]:
    return [
        (each.at, each.account or "operator", each.action, each.object, each.detail)
        for each in db.users.audit(MOST_LISTED)
    ]


def _value(name: str, value: Any) -> str:
    if name in SECRET_SETTINGS and value:
        return "set"
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return f"{value:,}"
        case tuple():
            return ", ".join(value)
    return str(value)


def sentence(db: Database) -> str:
    waiting = sum(1 for each in db.notifications.list(limit=MOST_LISTED) if each.error)
    stored = f"{plural(db.kept().bytes, 'byte')} are stored for views by this session"
    failing = f"; {plural(waiting, 'message')} could not be sent yet" if waiting else ""
    return f"{stored}{failing}."
