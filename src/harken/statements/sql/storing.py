"""Converts values for a column of another type, where SQL allows it."""

from __future__ import annotations

from typing import Any

from harken.errors import TypeFault
from harken.ir.relations import Column
from harken.lang.sql.parser import Statement
from harken.lang.sql.type_names import is_numeric, type_name
from harken.values.builtin_functions import FUNCTIONS
from harken.values.encoding import decoder, encoder
from harken.values.types import (
    DATE,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Type,
    decimal_digits,
    is_decimal,
)


def converter(given: Type, column: Column, statement: Statement) -> Any:
    """A function that converts stored values of a type to that of a column."""
    wanted = column.type
    if given == wanted:
        return _same
    if given == TEXT and wanted in (DATE, TIMESTAMP):
        name = "spark_date" if wanted == DATE else "spark_timestamp"
        parsed = FUNCTIONS[name][0]
        return lambda value: None if value is None else parsed(value)
    if wanted == TEXT:
        text = _text_of(given)
        return lambda value: None if value is None else text(value)
    if is_numeric(given) and is_numeric(wanted):
        decode, encode = decoder(given.or_null(False)) or _same, encoder(wanted.or_null(False))
        if wanted == INTEGER:
            return lambda value: None if value is None else encode(int(decode(value)))
        return lambda value: None if value is None else encode(decode(value))

    def only_null(value: Any) -> None:
        if value is not None:
            raise TypeFault(
                f"column {column.name}: {type_name(given)} cannot be stored as {type_name(wanted)}",
                code="type-mismatch",
                span=statement.span,
                hint=f"convert it: CAST(... AS {type_name(wanted)})",
            )

    return only_null


def _text_of(given: Type) -> Any:
    if is_decimal(given):
        scale = decimal_digits(given)[1]
        return lambda value: FUNCTIONS["to_string_decimal"][0](value, scale)
    return FUNCTIONS["spark_text" if given == NUMBER else f"to_string_{given.name}"][0]


def _same(value: Any) -> Any:
    return value
