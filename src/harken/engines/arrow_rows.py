"""Rows between SQLite, which stores them, and Arrow, which the lake is made of.

Law: from_arrow(to_arrow(rows)) = rows.
"""

from __future__ import annotations

import decimal
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from harken.engines.representable import WIDE_DECIMAL, fits, with_values
from harken.errors import TypeFault
from harken.ir.relations import Column, Relation
from harken.values.encoding import decimal_too_wide, decoder, encoder
from harken.values.rows import Row
from harken.values.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Type,
    decimal_digits,
    decimal_type,
    is_decimal,
)

ARROW_TYPES = {
    INTEGER: pa.int64(),
    NUMBER: pa.float64(),
    TEXT: pa.string(),
    BOOLEAN: pa.bool_(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us"),
}
STORED_TYPES = {
    BOOLEAN: (pa.int8(), pa.int64()),
    DATE: (pa.int32(), pa.int64()),
    TIMESTAMP: (pa.int64(),),
}
"""The casts from an Arrow type to a stored integer, in order."""
MOST_DIGITS = 38
"""The most digits of a decimal in Arrow's arithmetic."""


def arrow_type(type_: Type) -> pa.DataType:
    if is_decimal(type_):
        return pa.decimal128(*decimal_digits(type_))
    return pa.int64() if type_.surrogate else ARROW_TYPES[type_]


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema(
        [
            (name, arrow_type(column.type))
            for name, column in zip(column_names(columns), columns, strict=True)
        ]
    )


def schema_of(fields: Iterable[tuple[str, pa.DataType]]) -> pa.Schema:
    return pa.schema(list(fields))


def storable(fields: Iterable[pa.Field]) -> pa.Schema:
    """Another program's columns as columns of our own table: types that Delta has and that hold
    every value."""
    return pa.schema([(field.name, _storable_type(field.type)) for field in fields])


def _storable_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", None if type_.tz is None else "UTC")
    if pa.types.is_date(type_):
        return pa.date32()
    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_unsigned_integer(type_):
        return pa.int64()
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    return type_


def own_rows(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows of another program's table that a function can have, in our types."""
    return with_values(table.cast(schema))


def column_names(columns: Sequence[Column]) -> list[str]:
    """The columns by the names the user gave; equal names are numbered."""
    names: list[str] = []
    for column in columns:
        name, number = column.name, 2
        while name.lower() in {each.lower() for each in names}:
            name, number = f"{column.name}_{number}", number + 1
        names.append(name)
    return names


def to_arrow(rows: Sequence[Row], columns: Sequence[Column], schema: pa.Schema) -> pa.Table:
    """Stored rows as an Arrow table of this schema."""
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = [
        _to_array(list(each), column.type, field.type)
        for each, column, field in zip(values, columns, schema, strict=True)
    ]
    return pa.table(arrays, schema=schema)


def _to_array(values: list[Any], type_: Type, wanted: pa.DataType) -> pa.Array:
    chain = STORED_TYPES.get(type_)
    if is_decimal(type_):
        decode = decoder(type_.or_null())
        assert decode is not None
        found = pa.array([decode(value) for value in values], arrow_type(type_))
    elif chain is None:
        found = pa.array(values, arrow_type(type_))
    else:
        found = pa.array(values, pa.int64())
        for each in (*reversed(chain[:-1]), ARROW_TYPES[type_]):
            found = found.cast(each)
    return found if found.type == wanted else found.cast(wanted)


def from_arrow(table: pa.Table, columns: Sequence[Column]) -> list[Row]:
    """The rows as SQLite stores them. A number that is not finite counts as NULL, and rows with
    a NULL in a column without NULLs are left out."""
    plain = stored_form(table, columns)
    required = [i for i, column in enumerate(columns) if not column.type.nullable]
    if any(plain.column(i).null_count for i in required):
        there = functools.reduce(pc.and_, (pc.is_valid(plain.column(i)) for i in required))
        plain = plain.filter(there)
    return list(zip(*(each.to_pylist() for each in plain.columns), strict=True))


def stored_form(table: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """The values as SQLite stores them, still in Arrow. A number that is not finite is NULL."""
    arrays = []
    for array, column in zip(table.columns, columns, strict=True):
        wanted = arrow_type(column.type)
        found = array if array.type == wanted else array.cast(wanted)
        for each in STORED_TYPES.get(column.type, ()):
            found = found.cast(each)
        if column.type == NUMBER:
            found = _finite(found)
        elif is_decimal(column.type):
            found = _scaled(found, column.type)
        arrays.append(found)
    return pa.table(arrays, schema=stored_schema(columns))


def stored_schema(columns: Sequence[Column]) -> pa.Schema:
    """Columns of stored values, called by their places."""
    return pa.schema([(f"c{i}", _stored_type(each.type)) for i, each in enumerate(columns)])


def _stored_type(type_: Type) -> pa.DataType:
    if type_ == TEXT:
        return pa.string()
    return pa.float64() if type_ == NUMBER else pa.int64()


def _finite(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    finite = pc.is_finite(numbers)
    if pc.all(finite).as_py() is not False:
        return numbers
    return pc.if_else(finite, numbers, pa.scalar(None, numbers.type))


def _scaled(decimals: pa.ChunkedArray, type_: Type) -> pa.ChunkedArray:
    """Decimals as integers in units of their last digit. A value of more than 64 bits counts as
    NULL, or is an error where NULL is a value of its own."""
    precision, scale = decimal_digits(type_)
    if precision >= WIDE_DECIMAL and not type_.nullable:
        decimals = pc.if_else(fits(decimals), decimals, pa.scalar(None, decimals.type))
    elif precision >= WIDE_DECIMAL and pc.any(pc.invert(fits(decimals))).as_py():
        wide = decimals.filter(pc.invert(fits(decimals)))[0].as_py()
        raise decimal_too_wide(wide, type_)
    if precision + scale + 2 > MOST_DIGITS:
        encode = encoder(type_.or_null())
        return pa.chunked_array([[encode(value) for value in decimals.to_pylist()]], pa.int64())
    unit = pa.scalar(decimal.Decimal(10**scale), pa.decimal128(scale + 1))
    return pc.multiply(decimals, unit).cast(pa.int64())


def home_columns(relation: Relation) -> tuple[int, ...]:
    """The columns by which rows are kept and fetched: the key, or else the arguments."""
    if relation.key:
        return relation.key
    return tuple(range(relation.inputs)) or tuple(range(relation.arity))


def type_of_column(name: str, arrow: pa.DataType) -> Type:
    """The type that holds the values of an Arrow column."""
    tests: tuple[tuple[Callable[[Any], bool], Type], ...] = (
        (t.is_boolean, BOOLEAN),
        (lambda a: t.is_integer(a) and not t.is_uint64(a), INTEGER),
        (t.is_floating, NUMBER),
        (lambda a: t.is_string(a) or t.is_large_string(a) or t.is_string_view(a), TEXT),
        (t.is_date, DATE),
        (t.is_timestamp, TIMESTAMP),
    )
    for test, type_ in tests:
        if test(arrow):
            return type_
    if t.is_decimal(arrow) and 0 <= arrow.scale <= arrow.precision <= 38:
        return decimal_type(arrow.precision, arrow.scale)
    raise TypeFault(
        f"the column {name} has the type {arrow}, which no AMOSQL type holds",
        code="type-mismatch",
        hint="leave it out: db.lake(..., columns=[...]), or cast it where it comes from; of files "
        "that do not say it, give the type: schema=pyarrow.schema([...])",
    )
