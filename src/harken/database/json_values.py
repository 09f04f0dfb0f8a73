"""Values of JSON as values of Python, by the types of their columns.

A date is its ISO text, a timestamp too, with a space; a decimal is a number with all its digits; an
object is `#[type number]`, as it is printed.

Law: what is read with the types of the columns is what was written.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable, Sequence
from typing import Any

from harken.database.objects import Object
from harken.errors import ValueFault
from harken.ir.types import DATE, NUMBER, TIMESTAMP, Type, is_decimal, literal_type_named

Row = tuple[Any, ...]
_OBJECT = re.compile(r"#\[(\w+) (\d+)\]")


def column_type(name: str, nullable: bool) -> Type:
    return (literal_type_named(name) or Type(name)).or_null(nullable)


def row_reader(types: Sequence[Type]) -> Callable[[Sequence[Any]], Row]:
    """Turns a row of JSON into one of Python values."""
    readers = [reader(type_) for type_ in types]

    def read(row: Sequence[Any]) -> Row:
        return tuple(turn(value) for turn, value in zip(readers, row, strict=True))

    return read


def reader(type_: Type) -> Callable[[Any], Any]:
    """
    >>> reader(DATE)("2026-01-31"), reader(Type("item"))("#[item 7]")
    (datetime.date(2026, 1, 31), #[item 7])
    """

    def read(value: Any) -> Any:
        if value is None:
            return None
        try:
            return _read(value, type_)
        except (ValueError, decimal.InvalidOperation):
            raise ValueFault(
                f"{value!r} is not of type {type_}", code="bad-value", hint=_written(type_)
            ) from None

    return read


def _read(value: Any, type_: Type) -> Any:
    if type_.surrogate and isinstance(value, str):
        found = _OBJECT.fullmatch(value)
        if found is None:
            raise ValueError
        return Object(int(found[2]), found[1])
    if type_ == DATE and isinstance(value, str):
        return datetime.date.fromisoformat(value)
    if type_ == TIMESTAMP and isinstance(value, str):
        moment = datetime.datetime.fromisoformat(value)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
    if is_decimal(type_) and not isinstance(value, bool):
        return decimal.Decimal(value if isinstance(value, str) else str(value))
    if type_ == NUMBER and isinstance(value, int | decimal.Decimal) and not isinstance(value, bool):
        return float(value)
    return value


def _written(type_: Type) -> str | None:
    if type_.surrogate:
        return f'an object is written as it is printed: "#[{type_.name} 7]"'
    return {DATE: 'as "2026-01-31"', TIMESTAMP: 'as "2026-01-31 12:00:00"'}.get(type_)
