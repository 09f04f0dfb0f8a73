"""Two bags of rows, without what they have in common in the same order.

A source is mostly as it was, in the order in which it was: then comparing column by column finds
the few places where it is not, without looking at the rest.

Law: whatever is left out of one is left out of the other, equal row for equal row; so the
difference of what remains is the difference of the whole.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

FIRST_BLOCK = 1_024
LARGEST_BLOCK = 262_144
"""Rows that are compared at once."""
SHIFTS = ((1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 2), (3, 0), (0, 3))
"""How many rows went and came at a place, in the order in which they are tried."""
SURE = 4
"""Rows that must be equal after a shift."""
MOST_PLACES = 2_000
"""Where more places differ, the rest is compared without an order."""

Ranges = list[tuple[int, int]]


def unaligned(before: pa.Table, after: pa.Table) -> tuple[pa.Table, pa.Table]:
    """
    >>> a = pa.table({"x": [1, 2, 3, 4, 5, 6]})
    >>> b = pa.table({"x": [1, 3, 4, 5, 6, 7]})
    >>> [each["x"].to_pylist() for each in unaligned(a, b)]
    [[2], [7]]
    """
    if before.schema.names != after.schema.names or not before.num_columns:
        return before, after
    old, new = before.combine_chunks(), after.combine_chunks()
    gone: Ranges = []
    come: Ranges = []
    i = j = 0
    size = FIRST_BLOCK
    while i < old.num_rows and j < new.num_rows and len(gone) + len(come) < MOST_PLACES:
        block = min(size, old.num_rows - i, new.num_rows - j)
        same = _equal_rows(old, new, i, j, block)
        i, j = i + same, j + same
        if same == block:
            size = min(size * 4, LARGEST_BLOCK)
            continue
        size = FIRST_BLOCK
        went, came = _shift(old, new, i, j)
        gone.append((i, went))
        come.append((j, came))
        i, j = i + went, j + came
    gone.append((i, old.num_rows - i))
    come.append((j, new.num_rows - j))
    return _taken(old, gone), _taken(new, come)


def _shift(old: pa.Table, new: pa.Table, i: int, j: int) -> tuple[int, int]:
    for went, came in SHIFTS:
        block = min(SURE, old.num_rows - i - went, new.num_rows - j - came)
        if block > 0 and _equal_rows(old, new, i + went, j + came, block) == block:
            return went, came
    return 1, 1


def _equal_rows(old: pa.Table, new: pa.Table, i: int, j: int, block: int) -> int:
    """How many of the rows from there on are equal, up to the first that is not."""
    for mine, other in zip(old.columns, new.columns, strict=True):
        one, two = mine.slice(i, block), other.slice(j, block)
        if one.equals(two):
            continue
        equal = pc.fill_null(pc.equal(one, two), False)
        if mine.null_count or other.null_count:
            equal = pc.or_(equal, pc.and_(one.is_null(), two.is_null()))
        first = pc.index(equal, False).as_py()
        if first >= 0:
            block = first
    return block


def _taken(table: pa.Table, ranges: Ranges) -> pa.Table:
    parts = [table.slice(start, length) for start, length in ranges if length]
    return pa.concat_tables(parts) if parts else table.slice(0, 0)
