"""Keys as a condition in Spark's SQL that Spark pushes down to the Parquet reader.

    condition(keys) holds for a row  ⟺  the row's key is among keys; NULL is a key like any other

One column becomes `k IN (…)`, which tests a row quickly. Beyond ten values Parquet's reader uses of
an IN only its two ends and, value by value, the Bloom filter, which says yes to one in a hundred;
so ranges that cover the values are added: equalities, as long as there are few. From these it
prunes row groups and, in them, pages.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MOST_EQUALITIES = 32
MOST_RANGES = 16
"""Each becomes part of a method that Spark generates. With 64 ranges a seek of 200 keys took twice
as long as with none, although it read less; with 16 or 32 it did not. The likely cause, not
verified: Java leaves methods of more than 8,000 bytes uncompiled."""
ENOUGH_FOR_IN = 10
"""Up to here Spark itself makes equalities of an IN."""


def condition(keys: pa.Table) -> str:
    """
    >>> condition(pa.table({"k": pa.array([7, None], pa.int64())}))
    '(`k` = 7L OR `k` IS NULL)'
    >>> condition(pa.table({"a": [1, 2], "b": ["x", "y"]}).cast(
    ...     pa.schema([("a", pa.int32()), ("b", pa.string())])))
    "(`a` = 1 AND `b` = CAST(X'78' AS STRING)) OR (`a` = 2 AND `b` = CAST(X'79' AS STRING))"
    """
    keys = distinct(keys)
    if not keys.num_rows:
        return "FALSE"
    if keys.num_columns == 1:
        return _of_column(keys.column_names[0], keys.column(0))
    if keys.num_rows <= ENOUGH_FOR_IN:
        return " OR ".join(_equal(keys, row) for row in range(keys.num_rows))
    each = [_of_column(name, keys[name].unique()) for name in keys.column_names]
    return " AND ".join([*each, _tuples(keys)])


def covering(keys: pa.Table) -> str:
    """A condition that holds for the keys and for others: a few ranges of the first column."""
    name = keys.column_names[0]
    column = _whole(keys[name].unique())
    ranges = _ranges(name, column.drop_null())
    return f"({_or_null(ranges, name, column)})"


def distinct(keys: pa.Table) -> pa.Table:
    if keys.num_rows < 2:
        return keys
    return keys.group_by(keys.column_names, use_threads=False).aggregate([])


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def literal(value: Any, type_: pa.DataType) -> str:
    """A constant that has exactly the column's type: a cast of the column is never pushed down.

    >>> literal(Decimal("1.5"), pa.decimal128(10, 2)), literal(-(2**63), pa.int64())
    ("CAST('1.5' AS DECIMAL(10,2))", '-9223372036854775808L')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return f"{value}{_SUFFIXES[type_.bit_width]}"
    if isinstance(value, float):
        name = "FLOAT" if type_.bit_width == 32 else "DOUBLE"
        return f"CAST('{value!r}' AS {name})"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS DECIMAL({type_.precision},{type_.scale}))"
    if isinstance(value, datetime.datetime):
        kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP_LTZ"
        zone = "" if value.tzinfo is None else "Z"
        plain = value if value.tzinfo is None else value.astimezone(datetime.UTC)
        return f"{kind} '{plain.replace(tzinfo=None).isoformat(' ', 'microseconds')}{zone}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    # What a backslash in a text constant means is a setting of the session; bytes are bytes.
    return f"CAST(X'{value.encode().hex()}' AS STRING)"


_SUFFIXES = {8: "Y", 16: "S", 32: "", 64: "L"}


def _of_column(name: str, column: pa.ChunkedArray | pa.Array) -> str:
    array = _whole(column)
    values = array.drop_null()
    if len(values) == 1:
        inner = _comparison(name, "=", values[0])
    elif len(values) <= ENOUGH_FOR_IN:
        inner = _in(name, values) if len(values) else ""
    else:
        inner = f"{_in(name, values)} AND ({_ranges(name, values)})"
    return f"({_or_null(inner, name, array)})"


def _or_null(inner: str, name: str, column: pa.Array) -> str:
    if not column.null_count:
        return inner
    return " OR ".join(part for part in (inner, f"{quoted(name)} IS NULL") if part)


def _in(name: str, values: pa.Array) -> str:
    shown = ",".join(literal(value, values.type) for value in values.to_pylist())
    return f"{quoted(name)} IN ({shown})"


def _comparison(name: str, operator: str, value: pa.Scalar) -> str:
    return f"{quoted(name)} {operator} {literal(value.as_py(), value.type)}"


def _ranges(name: str, values: pa.Array) -> str:
    """The values, none of them NULL, covered by ranges with the widest gaps between them."""
    values = values.take(pc.array_sort_indices(values))
    starts = [0, *_cuts(values)]
    ends = [*(start - 1 for start in starts[1:]), len(values) - 1]
    pairs = zip(starts, ends, strict=True)
    return " OR ".join(_range(name, values[start], values[end]) for start, end in pairs)


def _range(name: str, low: pa.Scalar, high: pa.Scalar) -> str:
    if low.equals(high):
        return _comparison(name, "=", low)
    return f"({_comparison(name, '>=', low)} AND {_comparison(name, '<=', high)})"


def _cuts(values: pa.Array) -> list[int]:
    count = len(values)
    if count <= MOST_EQUALITIES:
        return list(range(1, count))
    positions = _positions(values)
    if positions is None:  # without distances, ranges of equally many values
        cuts = np.linspace(0, count, MOST_RANGES + 1)[1:-1].astype(int)
    else:
        gaps = np.diff(positions)
        cuts = np.argpartition(gaps, -(MOST_RANGES - 1))[-(MOST_RANGES - 1) :] + 1
    return sorted(set(cuts.tolist()))


def _positions(values: pa.Array) -> Any:
    type_ = values.type
    if pa.types.is_date32(type_):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(type_):
        values = values.cast(pa.int64())
    elif not (
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    ):
        return None
    found = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found if np.isfinite(found).all() else None


def _equal(keys: pa.Table, row: int) -> str:
    parts = []
    for name in keys.column_names:
        value = keys[name][row]
        parts.append(_comparison(name, "=", value) if value.is_valid else f"{quoted(name)} IS NULL")
    return "(" + " AND ".join(parts) + ")"


def _tuples(keys: pa.Table) -> str:
    """Structures are equal if their fields are, and there NULL equals NULL."""
    columns = [
        [_typed(value, column.type) for value in column.to_pylist()] for column in keys.columns
    ]
    rows = ",".join(f"struct({','.join(row)})" for row in zip(*columns, strict=True))
    return f"struct({','.join(map(quoted, keys.column_names))}) IN ({rows})"


def _typed(value: Any, type_: pa.DataType) -> str:
    """All structures must be of one type, also those with a NULL."""
    return f"CAST(NULL AS {_sql_type(type_)})" if value is None else literal(value, type_)


def _sql_type(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_):
        return "TIMESTAMP_NTZ" if type_.tz is None else "TIMESTAMP_LTZ"
    return _SQL_TYPES[type_]


_SQL_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
}


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
