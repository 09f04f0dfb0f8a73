"""The schemas of Spark and of Arrow, for the types that sources have."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

CHANGE_COLUMNS = (
    pa.field("_change_type", pa.string()),
    pa.field("_commit_version", pa.int64()),
    pa.field("_commit_timestamp", pa.timestamp("us", "UTC")),
)
"""What Spark calls the columns of a feed of changes."""


def spark_of(type: pa.DataType) -> str:
    """
    >>> spark_of(pa.decimal128(8, 2)), spark_of(pa.timestamp("us")), spark_of(pa.large_string())
    ('decimal(8,2)', 'timestamp_ntz', 'string')
    """
    if pa.types.is_integer(type):
        return "bigint"
    if pa.types.is_floating(type):
        return "double"
    if pa.types.is_boolean(type):
        return "boolean"
    if pa.types.is_decimal(type):
        return f"decimal({type.precision},{type.scale})"
    if pa.types.is_date(type):
        return "date"
    if pa.types.is_timestamp(type):
        return "timestamp_ntz" if type.tz is None else "timestamp"
    return "string"


def ddl_of(schema: pa.Schema) -> str:
    """
    >>> ddl_of(pa.schema([("a `b`", pa.int64())]))
    '`a ``b``` bigint'
    """
    return ", ".join(f"`{each.name.replace('`', '``')}` {spark_of(each.type)}" for each in schema)


def arrow_of(schema: Any) -> pa.Schema:
    """Of a schema of Spark, whose types are those that `spark_of` writes, or a user's."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")
