"""The difference between two bags of rows, computed column by column in Arrow.

Each row becomes a number, equal for equal rows; the numbers are counted.

Law: before − minus + plus = after, and no row is in both.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from harken.engines.arrow_rows import stored_schema
from harken.intake.aligned_rows import unaligned
from harken.ir.relations import Column
from harken.values.rows import Row


def difference(before: pa.Table, after: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows that went, and the rows that came, each as often as it did.

    >>> a = pa.table({"x": [1, 1, None], "y": ["p", "p", None]})
    >>> b = pa.table({"x": [1, 2], "y": ["p", None]})
    >>> [each.to_pylist() for each in difference(a, b)]
    [[{'x': 1, 'y': 'p'}, {'x': None, 'y': None}], [{'x': 2, 'y': None}]]
    """
    before, after = unaligned(before, after)
    if not before.num_rows and not after.num_rows:
        return before, after
    rows = pa.concat_tables([before, after])
    counted = pa.table(
        {
            "row": row_numbers(rows),
            "at": pa.array(range(rows.num_rows), pa.int64()),
            "weight": pa.concat_arrays(
                [
                    pa.repeat(pa.scalar(-1, pa.int64()), before.num_rows),
                    pa.repeat(pa.scalar(1, pa.int64()), after.num_rows),
                ]
            ),
        }
    ).group_by("row", use_threads=False)
    totals = counted.aggregate([("weight", "sum"), ("at", "min")])
    changed = totals.filter(pc.not_equal(totals["weight_sum"], 0)).sort_by("at_min")
    gone: list[int] = []
    come: list[int] = []
    for weight, at in zip(
        changed["weight_sum"].to_pylist(), changed["at_min"].to_pylist(), strict=True
    ):
        (come if weight > 0 else gone).extend([at] * abs(weight))
    return rows.take(pa.array(gone, pa.int64())), rows.take(pa.array(come, pa.int64()))


def row_numbers(rows: pa.Table) -> pa.Array:
    """A number for each row, equal exactly for equal rows."""
    numbers: pa.Array | None = None
    for column in rows.columns:
        codes, count = _codes(column)
        if numbers is None:
            numbers = codes
            continue
        joined = pc.add(pc.multiply(numbers, pa.scalar(count, pa.int64())), codes)
        numbers, _ = _codes(joined)
    return pa.nulls(rows.num_rows, pa.int64()).fill_null(0) if numbers is None else numbers


def _codes(values: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, int]:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.ChunkedArray):  # of no chunk
        values = pa.array([], values.type)
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)  # -0.0 is 0.0
    encoded = values.dictionary_encode(null_encoding="encode")
    return encoded.indices.cast(pa.int64()), max(len(encoded.dictionary), 1)


def first_repeated(rows: pa.Table) -> int | None:
    """Where a row is that has occurred before."""
    is_plain = rows.num_columns == 1 and not pa.types.is_floating(rows.schema.types[0])
    if is_plain and pc.count_distinct(rows.column(0), "all").as_py() == rows.num_rows:
        return None
    numbers = row_numbers(rows)
    if pc.count_distinct(numbers).as_py() == rows.num_rows:
        return None
    counts = pc.value_counts(numbers)
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")[0]
    found: int = pc.index(numbers, twice).as_py()
    return found


def as_table(rows: Sequence[Row], columns: Sequence[Column]) -> pa.Table:
    """Stored rows as Arrow."""
    schema = stored_schema(columns)
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = [pa.array(each, field.type) for each, field in zip(values, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def as_rows(table: pa.Table) -> list[Row]:
    return list(zip(*(each.to_pylist() for each in table.columns), strict=True))
