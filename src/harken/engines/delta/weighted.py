"""Δ-sets as Arrow tables: the columns of a relation and an integer weight for each row.

    net(plus, minus) = Σ weights of equal rows, without the zeros

Rows are equal as SQL's DISTINCT sees them: NULL is one value, −0.0 is 0.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

WEIGHT = "_weight"


def net(plus: pa.Table, minus: pa.Table) -> pa.Table:
    """The net change of additions and removals.

    >>> net(pa.table({"x": [1, 2, 2]}), pa.table({"x": [1, 3]})).to_pylist()
    [{'x': 2, '_weight': 2}, {'x': 3, '_weight': -1}]
    """
    return consolidate(pa.concat_tables([weigh(plus, 1), weigh(minus, -1)]))


def weigh(rows: pa.Table, weight: int) -> pa.Table:
    return rows.append_column(WEIGHT, pa.array(np.full(rows.num_rows, weight, np.int64)))


def consolidate(weighted: pa.Table) -> pa.Table:
    """Each row once, with the sum of its weights; rows whose weights cancel are gone."""
    columns = columns_of(weighted)
    total = f"{WEIGHT}_sum"
    sums = weighted.group_by(columns, use_threads=False).aggregate([(WEIGHT, "sum")])
    sums = sums.select([*columns, total]).rename_columns([*columns, WEIGHT])
    return sums.filter(pc.not_equal(sums[WEIGHT], 0)).cast(weighted.schema)


def empty(schema: pa.Schema) -> pa.Table:
    return weigh(schema.empty_table(), 1)


def negate(weighted: pa.Table) -> pa.Table:
    index = weighted.schema.get_field_index(WEIGHT)
    return weighted.set_column(index, WEIGHT, pc.negate(weighted[WEIGHT]))


def project(weighted: pa.Table, columns: list[str]) -> pa.Table:
    return consolidate(weighted.select([*columns, WEIGHT]))


def plus_rows(weighted: pa.Table) -> pa.Table:
    """The rows of Δ+, each as often as its weight says."""
    return _repeat(weighted, np.maximum(weights_of(weighted), 0))


def _repeat(weighted: pa.Table, copies: Any) -> pa.Table:
    indices = np.repeat(np.arange(weighted.num_rows), copies)
    return weighted.select(columns_of(weighted)).take(pa.array(indices))


def columns_of(weighted: pa.Table) -> list[str]:
    return [name for name in weighted.column_names if name != WEIGHT]


def weights_of(weighted: pa.Table) -> Any:
    return weighted[WEIGHT].to_numpy()


def positive_zeros(rows: pa.Table) -> pa.Table:
    """−0.0 + 0.0 = 0.0: the two zeros are equal in SQL, but not in a hash table of bit patterns."""
    for index, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            zero = pa.scalar(0.0, field.type)
            rows = rows.set_column(index, field, pc.add(rows.column(index), zero))
    return rows


def row_numbers(*tables: pa.Table) -> list[Any]:
    """A number for each row of each table, the same for two rows if and only if they are equal.

    >>> rows = pa.table({"x": [7, None, 7]})
    >>> [numbers.tolist() for numbers in row_numbers(rows, rows.slice(1))]
    [[0, 1, 0], [1, 0]]
    """
    together = pa.concat_tables(tables)
    numbers = np.zeros(together.num_rows, np.int64)
    for column in together.columns:
        codes = _codes(column)
        pairs = numbers * (codes.max(initial=0) + 1) + codes
        # Renumbering the pairs keeps them below the number of rows, so that they never overflow.
        numbers = np.unique(pairs, return_inverse=True)[1].reshape(-1)
    ends = np.cumsum([table.num_rows for table in tables])
    return np.split(numbers, ends[:-1])


def _codes(column: pa.ChunkedArray) -> Any:
    encoded = pa.concat_arrays(column.chunks or [pa.array([], column.type)])
    return encoded.dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)
