"""What PEP 249 asks of a module about types: constructors of values, and objects that equal the
type codes of a cursor's `description`.

>>> from harken.values.types import INTEGER, TEXT
>>> NUMBER == INTEGER, STRING == INTEGER, TEXT == STRING
(True, False, True)
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from harken.dbapi.dbapi_errors import NotSupportedError
from harken.values.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, Type, is_decimal
from harken.values.types import NUMBER as FLOATING

Date = datetime.date
Timestamp = datetime.datetime


@dataclass(frozen=True, slots=True, eq=False)
class TypeObject:
    """Equal to the type codes of a kind. `decimals` stands for all their precisions."""

    title: str
    types: frozenset[Type]
    decimals: bool = False

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Type):
            return other in self.types or (self.decimals and is_decimal(other))
        return self is other

    def __hash__(self) -> int:
        return hash(self.title)

    def __repr__(self) -> str:
        return self.title


STRING = TypeObject("STRING", frozenset({TEXT}))
NUMBER = TypeObject("NUMBER", frozenset({INTEGER, FLOATING, BOOLEAN}), decimals=True)
DATETIME = TypeObject("DATETIME", frozenset({DATE, TIMESTAMP}))
BINARY = TypeObject("BINARY", frozenset())
"""No column of Harken is binary."""
ROWID = TypeObject("ROWID", frozenset())
"""Rows have no numbers; objects have types of their own."""


def DateFromTicks(ticks: float) -> datetime.date:
    return datetime.date.fromtimestamp(ticks)


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ticks, datetime.UTC)


def Time(hour: int, minute: int, second: int) -> datetime.time:
    raise _no_time()


def TimeFromTicks(ticks: float) -> datetime.time:
    raise _no_time()


def Binary(value: bytes) -> bytes:
    raise NotSupportedError(
        "Harken has no type for bytes", code="unsupported", hint="store them as text: bytes.hex()"
    )


def _no_time() -> NotSupportedError:
    return NotSupportedError(
        "Harken has no type for a time of day",
        code="unsupported",
        hint="use a timestamp, or seconds as a number",
    )
