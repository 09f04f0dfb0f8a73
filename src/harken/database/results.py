"""What a statement gives back, as Python values, as lines of text, and as JSON.

A row prints as `<"AMOS">` or `<:toys, 10500>`: an object by the interface variable that holds it,
else as `#[item 42]`.
"""

from __future__ import annotations

import datetime
import decimal
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harken.database.objects import Object
from harken.engines.builtin import show_number, show_timestamp

NameObject = Callable[[Object], str]


@dataclass(frozen=True, slots=True)
class Result:
    """`kind` is `rows` (a query) or `print`; the values of a print are its one row."""

    kind: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    _name: NameObject = field(compare=False, repr=False, default=repr)

    def lines(self) -> list[str]:
        if self.kind == "print":
            return [" ".join(self._plain(value) for value in row) for row in self.rows]
        return [f"<{row}>" for row in self.quoted_rows()]

    def quoted_rows(self) -> list[str]:
        return [", ".join(self._quoted(value) for value in row) for row in self.rows]

    def json_lines(self) -> list[str]:
        if self.kind == "print":
            return [
                to_json({"kind": "print", "values": [self._json(value) for value in row]})
                for row in self.rows
            ]
        columns = list(self.columns)
        return [to_json({"kind": "rows", "columns": columns, "rows": self.json_rows()})]

    def json_rows(self) -> list[list[Any]]:
        return [[self._json(value) for value in row] for row in self.rows]

    def _plain(self, value: Any) -> str:
        return value if isinstance(value, str) else self._quoted(value)

    def _quoted(self, value: Any) -> str:
        match value:
            case None:
                return "NULL"
            case Object():
                return self._name(value)
            case str():
                return quoted(value)
            case bool():
                return "true" if value else "false"
            case float():
                return show_number(value)
            case decimal.Decimal():
                return f"{value:f}"
            case datetime.datetime():
                return f"|{show_timestamp(value).replace(' ', '/')}|"
            case datetime.date():
                return f"|{value.isoformat()}|"
        return str(value)

    def _json(self, value: Any) -> Any:
        match value:
            case Object():
                return self._name(value)
            case decimal.Decimal():
                return f"{EXACT}{value:f}"
            case float():
                return int(value) if value.is_integer() and abs(value) < 2**53 else value
            case datetime.datetime():
                return show_timestamp(value)
            case datetime.date():
                return value.isoformat()
        return value


class Results(list[Result]):
    """The results of a text, in order; `rows` are those of its last query."""

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return self._last().rows

    @property
    def columns(self) -> tuple[str, ...]:
        return self._last().columns

    def _last(self) -> Result:
        for result in reversed(self):
            if result.kind == "rows":
                return result
        return Result("rows", (), [])


def quoted(text: str) -> str:
    """Text as a literal of the language.

    >>> print(quoted('say "hi"'))
    "say \\"hi\\""
    """
    replaced = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{replaced}"'


EXACT = "\0exactly "
"""Before the digits of a number that JSON is to have as they are; no text holds a NUL."""
_EXACT = re.compile(r'"\\u0000exactly ([-0-9.]+)"')


def to_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _EXACT.sub(r"\1", text)


def rows_as_values(rows: Iterable[Sequence[Any]]) -> list[Any]:
    """Rows of one column as plain values, others as tuples."""
    return [row[0] if len(row) == 1 else tuple(row) for row in rows]
