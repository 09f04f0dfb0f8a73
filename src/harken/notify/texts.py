"""The words of a message for people: subject, text, and HTML with a table of what changed.

These are the texts for messages without a template of their own; they need no package.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harken.database.messages import Message

MOST_ROWS = 100
"""Rows of each kind that a text shows; then it says how many more there are."""
LONGEST_VALUE = 500
"""Characters of a value that a text shows."""
LONGEST_SUBJECT = 200
_SPACES = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class Rendered:
    subject: str
    text: str
    html: str


def one_line(text: str, longest: int = LONGEST_SUBJECT) -> str:
    """A text for a header: without line breaks and control characters, and not too long.

    >>> one_line("low stock\\r\\nBcc: all@example.org")
    'low stock Bcc: all@example.org'
    """
    found = _SPACES.sub(" ", text).strip()
    return found if len(found) <= longest else found[: longest - 3] + "..."


def built_in(message: Message, link: str = "", unsubscribe: str = "") -> Rendered:
    """The texts of a message without a template."""
    subject = one_line(_subject(message))
    said = str(message.payload.get("text", ""))
    text, pages = [said] if said else [], [f"<p>{html.escape(said)}</p>"] if said else []
    for heading, payload in _parts(message.payload):
        if heading:
            text.append(heading)
            pages.append(f"<h2>{html.escape(heading)}</h2>")
        for title, rows, total in _tables(payload):
            text.append(_as_text(title, rows, total))
            pages.append(_as_html(title, rows, total, link))
        if "link" in payload and heading:
            text.append(f"All of it: {payload['link']}")
            pages.append(_anchor(str(payload["link"]), "All of it"))
    if link:
        text.append(f"All of it: {link}")
        pages.append(_anchor(link, "All of it"))
    text.append(_footer(message))
    pages.append(f"<p><small>{html.escape(_footer(message))}</small></p>")
    if unsubscribe:
        text.append(f"Unsubscribe: {unsubscribe}")
        pages.append(_anchor(unsubscribe, "Unsubscribe"))
    body = "\n".join(pages)
    page = (
        f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"></head><body>\n{body}\n</body></html>'
    )
    return Rendered(subject, "\n\n".join(text) + "\n", page)


def _subject(message: Message) -> str:
    name, payload = message.query or "Harken", message.payload
    match message.kind:
        case "results" if isinstance(payload.get("parts"), Sequence):
            names = [str(part.get("query", "")) for part in payload["parts"]]
            return f"{len(names)} queries: {', '.join(names)}"
        case "results":
            return f"{name}: {_counted(payload)}"
        case "stopped":
            return f"{name} has stopped"
        case "error":
            return f"{name} fails"
        case "operator_error":
            return f"Harken: {name} fails and needs its operator"
        case "recovered":
            return f"{name} works again"
        case "sample":
            return f"{name}: a sample message"
    said = str(payload.get("subject") or payload.get("text", ""))
    return said.partition("\n")[0] or "An announcement"


def _parts(payload: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """What a message is about: its own rows, or those of several queries, each under its name."""
    parts = payload.get("parts")
    if not isinstance(parts, Sequence):
        yield "", payload
        return
    for part in parts:
        if isinstance(part, Mapping):
            yield one_line(f"{part.get('query', '')}: {_counted(part)}"), part
    more = (payload.get("left_out") or {}).get("parts", 0)
    if more:
        yield f"and {more:,} more queries", {}


def _counted(payload: Mapping[str, Any]) -> str:
    words = {"inserted": "new", "deleted": "gone", "changed": "changed", "rows": "in all"}
    found = [
        f"{count_of(payload, field):,} {word}"
        for field, word in words.items()
        if payload.get(field)
    ]
    if found:
        return ", ".join(found)
    count = payload.get("count")
    return f"{count:,} rows" if isinstance(count, int) else "no change"


def count_of(payload: Mapping[str, Any], field: str) -> int:
    """How many rows there are, those included that a limit left out."""
    left_out = payload.get("left_out") or {}
    return len(payload.get(field) or ()) + int(left_out.get(field, 0))


def _tables(
    payload: Mapping[str, Any], most: int = MOST_ROWS
) -> Iterable[tuple[str, list[dict[str, str]], int]]:
    titles = {"inserted": "New", "deleted": "Gone", "changed": "Changed", "rows": "All rows"}
    for field, title in titles.items():
        rows = payload.get(field)
        if isinstance(rows, Sequence) and rows:
            shown = [_cells(row) for row in rows[:most]]
            yield title, shown, count_of(payload, field)


def _cells(row: Any) -> dict[str, str]:
    """A row by column; a changed value shows what it was before."""
    if not isinstance(row, Mapping):
        return {"value": shown(row)}
    if row.keys() == {"old", "new"} and isinstance(row["new"], Mapping):
        old = row["old"] if isinstance(row["old"], Mapping) else {}
        return {
            name: shown(value)
            if name not in old or old[name] == value
            else f"{shown(old[name])} -> {shown(value)}"
            for name, value in row["new"].items()
        }
    return {str(name): shown(value) for name, value in row.items()}


def shown(value: Any) -> str:
    """A value as people read it, in one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return one_line(str(value), LONGEST_VALUE)


def _columns(rows: Sequence[Mapping[str, str]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _as_text(title: str, rows: list[dict[str, str]], total: int) -> str:
    lines = ["  " + ", ".join(f"{name}: {value}" for name, value in row.items()) for row in rows]
    more = [f"  and {total - len(rows):,} more"] if total > len(rows) else []
    return "\n".join([f"{title}:", *lines, *more])


def _anchor(link: str, text: str) -> str:
    return (
        f'<p><a href="{html.escape(link)}">{html.escape(text)}</a></p>'
        if link
        else f"<p>{text}</p>"
    )


def tables_html(payload: Mapping[str, Any], most: int = MOST_ROWS) -> str:
    """The rows of a message or of an execution, as tables of HTML."""
    return "\n".join(_as_html(*each) for each in _tables(payload, most))


def _as_html(title: str, rows: list[dict[str, str]], total: int, link: str = "") -> str:
    columns = _columns(rows)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{html.escape(row.get(name, ''))}</td>" for name in columns) + "</tr>"
        for row in rows
    )
    left = total - len(rows)
    more = "\n" + _anchor(link, f"and {left:,} more") if left > 0 else ""
    return (
        f'<h3>{title}</h3>\n<table border="1" cellpadding="4" cellspacing="0">\n'
        f"<tr>{head}</tr>\n{body}\n</table>{more}"
    )


def _footer(message: Message) -> str:
    at = message.at.strftime("%Y-%m-%d %H:%M:%S %Z").strip()
    about = f"{message.query}, execution {message.execution}, " if message.query else ""
    return f"{about}{at}"
