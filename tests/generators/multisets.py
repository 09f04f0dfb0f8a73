"""Rows of every type the lake holds, as hypothesis draws them, and multisets of them as Arrow."""

import datetime
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from harken.engines.delta.weighted import WEIGHT

Row = tuple[Any, ...]

UTC = datetime.UTC
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "integer": (pa.int64(), st.integers(-2, 2) | st.integers(-(2**63), 2**63 - 1)),
    "small": (pa.int32(), st.integers(-3, 3)),
    "text": (pa.string(), st.sampled_from(["", "a", "b", "é", "日本", "\U0010ffff", "x" * 40])),
    "number": (pa.float64(), st.sampled_from([0.0, -0.0, 0.1, -1e300, 5e-324])),
    "truth": (pa.bool_(), st.booleans()),
    "exact": (
        pa.decimal128(38, 4),
        st.sampled_from([Decimal("0.0001"), Decimal("-1"), Decimal("9" * 34 + ".9999")]),
    ),
    "day": (pa.date32(), st.dates()),
    "moment": (pa.timestamp("us"), st.datetimes()),
    "instant": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    "bytes": (pa.binary(), st.binary(max_size=2)),
}


def rows_of(names: list[str]) -> st.SearchStrategy[Row]:
    return st.tuples(*(st.none() | COLUMNS[name][1] for name in names))


def schema_of(names: list[str]) -> pa.Schema:
    return pa.schema([(name, COLUMNS[name][0]) for name in names])


def to_arrow(rows: Iterable[Row], schema: pa.Schema) -> pa.Table:
    rows = list(rows)
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def to_counter(table: pa.Table) -> Counter[Row]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def weights(table: pa.Table) -> dict[Row, int]:
    """Row → weight; a row that comes twice or with weight 0 is no net change."""
    *columns, weight = table.select(
        [*(name for name in table.column_names if name != WEIGHT), WEIGHT]
    ).columns
    rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
    result = dict(zip(rows, weight.to_pylist(), strict=True))
    assert len(result) == len(rows)
    assert 0 not in result.values()
    return result


def difference(new: Counter[Row], old: Counter[Row]) -> dict[Row, int]:
    net = {row: new[row] - old[row] for row in {*new, *old}}
    return {row: weight for row, weight in net.items() if weight}
