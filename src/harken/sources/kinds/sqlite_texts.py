"""What a query asks of a table of SQLite, as its SQL.

SQLite keeps values of any type in any column. What is no text comes as one here (`\\x01ff` for
bytes), and SQLite orders texts by code points only in files of UTF-8.

Law: what is pushed holds for every row for which the condition holds here, and an order is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import pyarrow as pa

from harken.sources.outside import Condition, Order

LARGEST = 2**63 - 1
BYTES = "\\x"
"""How texts of bytes begin."""


@dataclass(frozen=True, slots=True)
class FileColumn:
    name: str
    type: pa.DataType | None
    is_integer: bool
    is_text: bool

    @property
    def has_integers(self) -> bool:
        return self.is_integer and self.type is not None and pa.types.is_integer(self.type)

    @property
    def has_texts(self) -> bool:
        return self.is_text and self.type is not None and pa.types.is_string(self.type)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def order_text(
    order: Sequence[Order], columns: Mapping[str, FileColumn], *, is_utf8: bool
) -> str | None:
    """None for an order that SQLite may not have."""
    keys = []
    for each in order:
        column = columns.get(each.column)
        name = quoted(each.column)
        if column is None or not (column.has_integers or (column.has_texts and is_utf8)):
            return None
        if column.has_texts:
            name = _as_here(name)
        down = "DESC" if each.descending else "ASC"
        keys.append(f"{name} {down} NULLS {'FIRST' if each.nulls_first else 'LAST'}")
    return ", ".join(keys)


def condition_text(
    condition: Condition, column: FileColumn, *, is_utf8: bool
) -> tuple[str, list[Any], str] | None:
    """As text with its values, and as text for people. Only of columns whose values SQLite compares
    as we do."""
    name, operator = quoted(column.name), condition.operator
    if operator in ("is null", "is not null"):
        text = f"{name} {operator.upper()}"
        return text, [], text
    values = list(condition.values)
    if column.has_integers:
        if not all(type(each) is int and abs(each) <= LARGEST for each in values):
            return None
    elif column.has_texts:
        is_equality = operator in ("=", "in", "<>")
        if not (is_utf8 or is_equality) or not all(map(_is_plain, values)):
            return None
        name = f"{name} COLLATE BINARY" if is_equality else _as_here(name)
    else:
        return None
    shown = [apsw.format_sql_value(each) for each in values]
    if operator == "in":
        marks = ", ".join("?" * len(values))
        return f"{name} IN ({marks})", values, f"{name} IN ({', '.join(shown)})"
    return f"{name} {operator} ?", values, f"{name} {operator} {shown[0]}"


def _as_here(name: str) -> str:
    """A text, also of bytes, which SQLite finds greater than all texts."""
    as_text = f"'{BYTES}' || lower(hex({name}))"
    return f"CASE typeof({name}) WHEN 'blob' THEN {as_text} ELSE {name} END COLLATE BINARY"


def _is_plain(text: Any) -> bool:
    return (
        isinstance(text, str)
        and not text.startswith(BYTES)
        and "\0" not in text
        and not any("\ud800" <= each <= "\udfff" for each in text)
    )
