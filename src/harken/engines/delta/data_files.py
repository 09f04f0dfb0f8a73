"""The Parquet files of a lake table: how they are written, and what the log says of each.

A file is sorted by the key, in row groups with minimum, maximum and a Bloom filter of each key
column, so that a reader with a key opens few row groups. The statistics of the whole file go into
Delta's log; a bound may be wider than the values, never narrower.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROWS_PER_GROUP = 8_192
FALSE_POSITIVES = 0.01
LONGEST_TEXT = 32
ABOVE_ALL_TEXT = "\U0010ffff"
MILLISECOND = datetime.timedelta(milliseconds=1)


@dataclass(frozen=True)
class Written:
    """A file that no version holds yet."""

    path: str
    size: int
    statistics: str


def write_file(storage: Any, path: str, rows: pa.Table, key: Sequence[str]) -> Written:
    rows = rows.combine_chunks()
    bloom = {"ndv": max(1, min(rows.num_rows, ROWS_PER_GROUP)), "fpp": FALSE_POSITIVES}
    filtered = [name for name in key if not pa.types.is_boolean(rows.schema.field(name).type)]
    with storage.open_output_stream(path) as sink:
        pq.write_table(
            rows,
            sink,
            row_group_size=ROWS_PER_GROUP,
            compression="snappy",
            use_dictionary=[f.name for f in rows.schema if is_text(f.type) and f.name not in key],
            write_page_index=True,
            sorting_columns=[pq.SortingColumn(rows.schema.get_field_index(n)) for n in key],
            bloom_filter_options=dict.fromkeys(filtered, bloom),
            store_schema=False,
        )
        size = sink.tell()
    return Written(path, size, statistics(rows))


def read_file(storage: Any, path: str, schema: pa.Schema) -> pa.Table:
    with storage.open_input_file(path) as source:
        return pq.ParquetFile(source).read(columns=schema.names).cast(schema)


def read_matching(
    storage: Any,
    path: str,
    schema: pa.Schema,
    keys: pa.Table,
    find: Callable[[pa.Table], pa.Array] | None = None,
) -> tuple[pa.Table, int]:
    """The row groups that may hold one of the keys, by the bounds of their first column, and their
    number. `keys` is sorted by that column.

    Where the file is not sorted, bounds say little: then `find`, which gives the positions of
    matching rows, first reads the key columns alone.
    """
    first = keys.column_names[0]
    values = keys[first].combine_chunks().drop_null()
    with storage.open_input_file(path) as source:
        file = pq.ParquetFile(source)
        place = file.schema_arrow.get_field_index(first)
        groups = [
            group
            for group in range(file.num_row_groups)
            if _may_hold(file.metadata.row_group(group).column(place).statistics, values, keys)
        ]
        if find is not None and groups:
            wanted = pa.schema([schema.field(name) for name in keys.column_names])
            looked_at = file.read_row_groups(groups, columns=wanted.names).cast(wanted)
            groups = _groups_at(file.metadata, groups, find(looked_at))
        return file.read_row_groups(groups, columns=schema.names).cast(schema), len(groups)


def _groups_at(metadata: Any, groups: Sequence[int], positions: pa.Array) -> list[int]:
    """The row groups that contain these rows; rows are numbered through all groups."""
    ends = np.cumsum([metadata.row_group(group).num_rows for group in groups])
    hit = np.unique(np.searchsorted(ends, positions.to_numpy(zero_copy_only=False), side="right"))
    return [groups[i] for i in hit]


def _may_hold(statistics: Any, values: pa.Array, keys: pa.Table) -> bool:
    if statistics is None or not statistics.has_min_max or len(values) < keys.num_rows:
        return True
    try:
        low, high = (pa.scalar(end, values.type) for end in (statistics.min, statistics.max))
        inside = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
    except (pa.ArrowException, OverflowError):
        return True
    return bool(pc.any(inside).as_py())


def is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def statistics(rows: pa.Table) -> str:
    """Delta's statistics of a file, as the log holds them.

    >>> statistics(pa.table({"k": [3, 1, None]}))
    '{"numRecords":3,"minValues":{"k":1},"maxValues":{"k":3},"nullCount":{"k":1}}'
    """
    lowest, highest, nulls = [], [], []
    for name in rows.column_names:
        column, label = rows[name], json.dumps(name)
        nulls.append(f"{label}:{column.null_count}")
        ends = bounds(column)
        if ends is not None:
            lowest.append(f"{label}:{ends[0]}")
            highest.append(f"{label}:{ends[1]}")
    return (
        f'{{"numRecords":{rows.num_rows},"minValues":{{{",".join(lowest)}}},'
        f'"maxValues":{{{",".join(highest)}}},"nullCount":{{{",".join(nulls)}}}}}'
    )


def bounds(column: pa.ChunkedArray) -> tuple[str, str] | None:
    """A lower and an upper bound of the column, as JSON; None where Delta has none."""
    type_ = column.type
    if not (
        pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_decimal(type_)
        or pa.types.is_date(type_)
        or pa.types.is_timestamp(type_)
        or is_text(type_)
    ):
        return None
    ends = pc.min_max(column).as_py()
    if ends["min"] is None:
        return None
    if isinstance(ends["min"], float) and not all(map(math.isfinite, ends.values())):
        return None
    return _json(ends["min"], upper=False), _json(ends["max"], upper=True)


def _json(value: Any, *, upper: bool) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")  # a detour through float would lose digits
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            value = value[:LONGEST_TEXT] + (ABOVE_ALL_TEXT if upper else "")
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, datetime.datetime):
        return f'"{_milliseconds(value, upper=upper)}"'
    if isinstance(value, datetime.date):
        return f'"{value.isoformat()}"'
    return json.dumps(value)


def _milliseconds(value: datetime.datetime, *, upper: bool) -> str:
    """Delta keeps milliseconds here and Harken microseconds: round away from the values."""
    zone = "" if value.tzinfo is None else "Z"
    value = value.replace(tzinfo=None)
    rest = datetime.timedelta(microseconds=value.microsecond % 1000)
    if upper and rest:
        if value > datetime.datetime.max - MILLISECOND:
            return value.isoformat() + zone
        rest -= MILLISECOND
    return (value - rest).isoformat(timespec="milliseconds") + zone
