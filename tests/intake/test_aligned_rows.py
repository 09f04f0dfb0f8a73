"""What two bags of rows have in common in the same order is left out of both."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from harken.intake.aligned_rows import unaligned
from harken.intake.row_differences import difference

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("x", pa.float64())])
ROW = st.tuples(
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, "p", "q"]),
    st.sampled_from([None, 0.0, -0.0, 1.5]),
)


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    return pa.table(
        [pa.array(each, field.type) for each, field in zip(columns, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


def bag(given: pa.Table) -> Counter[Any]:
    return Counter(zip(*(each.to_pylist() for each in given.columns), strict=True))


@given(st.lists(ROW, max_size=30), st.lists(st.tuples(st.integers(0, 30), ROW | st.none())))
def test_the_difference_is_that_of_the_whole(rows: list[Any], edits: list[tuple[int, Any]]) -> None:
    """Some rows went, and some came, at any places."""
    changed = list(rows)
    for place, row in edits:
        if row is not None:
            changed.insert(place, row)
        elif place < len(changed):
            del changed[place]
    before, after = table(rows), table(changed)
    old, new = unaligned(before, after)
    minus, plus = bag(before) - bag(after), bag(after) - bag(before)
    assert (bag(old) - bag(new), bag(new) - bag(old)) == (minus, plus)
    gone, come = difference(before, after)
    assert (bag(gone), bag(come)) == (minus, plus)


def test_few_rows_remain_of_many() -> None:
    before = pa.table({"id": range(50_000), "n": [each % 7 for each in range(50_000)]})
    moved = [each for each in range(50_000) if each % 1_000]
    after = before.take(pa.array([*moved, *range(0, 50_000, 1_000)]))
    old, new = unaligned(before, after)
    assert (old.num_rows, new.num_rows) == (50, 50)
