"""The values of Arrow that a function can have.

Law: a row without a representable value in each of its columns is not in a function. NULL is none,
nor is a number that is not finite, nor a decimal that has more than 64 bits in units of its last
digit, which is how decimals are stored.
"""

from __future__ import annotations

import decimal

import pyarrow as pa
import pyarrow.compute as pc

from harken.values.encoding import LARGEST, SMALLEST, WIDE

WIDE_DECIMAL = 19
"""A decimal of this many digits may have more than 64 bits."""


def has_value(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_floating(column.type):
        return pc.fill_null(pc.is_finite(column), False)
    if pa.types.is_decimal(column.type) and column.type.precision >= WIDE_DECIMAL:
        return pc.fill_null(fits(column), False)
    return pc.is_valid(column)


def fits(decimals: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which decimals have 64 bits at most; NULL for NULL."""
    type_ = pa.decimal128(WIDE_DECIMAL, decimals.type.scale)
    least, most = (
        pa.scalar(decimal.Decimal(each).scaleb(-decimals.type.scale, WIDE), type_)
        for each in (SMALLEST, LARGEST)
    )
    return pc.and_(pc.greater_equal(decimals, least), pc.less_equal(decimals, most))


def with_values(table: pa.Table) -> pa.Table:
    """The rows that a function can have."""
    for name in table.column_names:
        table = table.filter(has_value(table[name]))
    return table
