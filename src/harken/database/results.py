"""The result of a statement, as Python values, as lines of text, and as JSON.

A row prints as `<"AMOS">` or `<:toys, 10500>`: an object by the interface variable that holds it,
otherwise as `#[item 42]`.
"""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from harken.database import frames
from harken.database.json_values import NameObject, json_value
from harken.database.objects import Object
from harken.errors import ValueFault, counted
from harken.values.builtin_functions import show_number, show_timestamp
from harken.values.rows import Row
from harken.values.types import Type


@dataclass(frozen=True, slots=True)
class Result:
    """`kind` is `rows` (a query) or `print`, whose one row holds the printed values. `types` are
    those of the columns. Iterating gives the rows."""

    kind: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    _name: NameObject = field(compare=False, repr=False, default=repr)
    types: tuple[Type, ...] = field(compare=False, repr=False, default=(), kw_only=True)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def one(self) -> Row:
        """The only row; an error unless there is exactly one."""
        if len(self.rows) != 1:
            raise ValueFault(
                f"the result has {counted(len(self.rows), 'row')}, not one",
                code="many-values" if self.rows else "no-value",
                hint="`rows` has all of them",
            )
        return self.rows[0]

    def scalar(self) -> Any:
        """The only value of the only row."""
        row = self.one()
        if len(row) != 1:
            raise ValueFault(
                f"the row has {counted(len(row), 'value')}, not one",
                code="arity",
                hint="`one()` returns the row",
            )
        return row[0]

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`."""
        return frames.to_arrow(self.columns, self.types, self.rows, self._name)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`; an integer column with NULLs has the type `Int64`."""
        frames.library("pandas")
        return frames.to_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """A `polars.DataFrame`."""
        frames.library("polars")
        return frames.to_polars(self.to_arrow())

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self, most: int = frames.SHOWN_ROWS) -> str:
        """A table with the types of the columns, at most so many rows, and their count."""
        shown = [[self._plain(value) for value in row] for row in self.rows[:most]]
        return frames.to_html(self.columns, self.types, shown, len(self.rows))

    def named(self, value: Object) -> str:
        """How an object is printed."""
        return str(self._name(value))

    def lines(self) -> list[str]:
        if self.kind == "print":
            return [" ".join(self._plain(value) for value in row) for row in self.rows]
        return [f"<{row}>" for row in self.quoted_rows()]

    def quoted_rows(self) -> list[str]:
        return [", ".join(self._quoted(value) for value in row) for row in self.rows]

    def json_lines(self) -> list[str]:
        if self.kind == "print":
            return [to_json({"kind": "print", "values": values}) for values in self.json_rows()]
        return [to_json({"kind": "rows", **self.json_columns(), "rows": self.json_rows()})]

    def json_columns(self) -> dict[str, list[str]]:
        return {"columns": list(self.columns), "types": [type_.name for type_ in self.types]}

    def json_rows(self) -> list[list[Any]]:
        return [[json_value(value, self._name) for value in row] for row in self.rows]

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


class Results(list[Result]):
    """The results of a text, in order. `rows`, `columns`, `types` and the methods refer to its last
    query."""

    changed: int = 0
    """How many rows the statements of a text of SQL inserted, deleted, or gave other values."""

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return self._last().rows

    @property
    def columns(self) -> tuple[str, ...]:
        return self._last().columns

    @property
    def types(self) -> tuple[Type, ...]:
        return self._last().types

    def one(self) -> Row:
        return self._last().one()

    def scalar(self) -> Any:
        return self._last().scalar()

    def to_arrow(self) -> Any:
        return self._last().to_arrow()

    def to_pandas(self) -> Any:
        return self._last().to_pandas()

    def to_polars(self) -> Any:
        return self._last().to_polars()

    def _repr_html_(self) -> str:
        return self._last()._repr_html_()

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


def to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def rows_as_values(rows: Iterable[Sequence[Any]]) -> list[Any]:
    """Rows of one column as plain values, others as tuples."""
    return [row[0] if len(row) == 1 else tuple(row) for row in rows]
