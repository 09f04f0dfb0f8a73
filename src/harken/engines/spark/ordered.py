"""Rows in an order, as Spark has them: the first of them, or all with their numbers."""

from __future__ import annotations

from harken.ir.clauses import First, Numbered
from harken.ir.relations import Relation


def counted_off(wanted: First | Numbered, source: Relation, rows: str) -> str:
    """The first of the `rows` of a relation, or all with a number as last column."""
    order = ", ".join(
        f"c{i} {'DESC' if down else 'ASC'} NULLS {'FIRST' if nulls else 'LAST'}"
        for i, down, nulls in wanted.order
    )
    if isinstance(wanted, First):
        limit = f" LIMIT {wanted.count}" if wanted.count is not None else ""
        return f"SELECT * FROM {rows} ORDER BY {order}{limit} OFFSET {wanted.offset}"
    by = ", ".join(f"c{i}" for i in sorted(wanted.apart))
    over = f"{f'PARTITION BY {by} ' if by else ''}ORDER BY {order}"
    number = f"CAST(row_number() OVER ({over}) AS BIGINT)"
    return f"SELECT *, {number} AS c{source.arity} FROM {rows}"
