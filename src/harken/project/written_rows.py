"""Rows written by people, in YAML, CSV or lines of JSON, as values of the columns of a table."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence
from typing import Any

from harken.errors import HarkenError, ValueFault
from harken.ir.relations import Column
from harken.values.parsing import parse_boolean, parse_date, parse_timestamp
from harken.values.types import BOOLEAN, DATE, INTEGER, NUMBER, TEXT, TIMESTAMP, Type, is_decimal


def typed_row(values: Sequence[Any], columns: Sequence[Column]) -> tuple[Any, ...]:
    return tuple(typed(v, c.type, c.name) for v, c in zip(values, columns, strict=True))


def typed(value: Any, type_: Type, column: str) -> Any:
    """Converts a value to a type: texts are parsed, whole numbers widened."""
    if value is None:
        return None
    try:
        return _read(value, type_)
    except (ValueError, decimal.InvalidOperation, HarkenError):
        raise ValueFault(
            f"{value!r} is no {type_} for the column {column}", code="bad-value"
        ) from None


def _read(value: Any, type_: Type) -> Any:
    if type_ == TEXT:
        return str(value)
    if type_ == BOOLEAN:
        return value if isinstance(value, bool) else bool(parse_boolean(str(value)))
    if isinstance(value, bool):
        raise ValueError(value)
    if type_ == INTEGER:
        return int(value) if int(value) == decimal.Decimal(value) else int("no whole number")
    if type_ == NUMBER:
        return float(value)
    if is_decimal(type_):
        return decimal.Decimal(value)
    if type_ == DATE:
        return value if isinstance(value, datetime.date) else parse_date(str(value))
    if type_ == TIMESTAMP:
        return value if isinstance(value, datetime.datetime) else parse_timestamp(str(value))
    raise ValueError(value)
