"""Rows in an order: the first few, or all with their numbers.

Law: restrictions of the partition columns may be applied to the rows; restrictions of other
columns only to the result, for they must not change which rows come first, or their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harken.engines.sqlite.sql_expressions import Sql, compare
from harken.ir.clauses import First, Numbered
from harken.ir.relations import Relation
from harken.values.types import INTEGER


def order_by(keys: Sequence[tuple[int, bool, bool]], source: str = "") -> str:
    return ", ".join(
        f"{source}c{i}{' DESC' if down else ''} NULLS {'FIRST' if nulls else 'LAST'}"
        for i, down, nulls in keys
    )


def counted_off(
    wanted: First | Numbered,
    source: Relation,
    rows: str,
    known: Mapping[int, Sql],
    columns: Sequence[tuple[int, str]],
) -> str:
    """The wanted columns of a relation's `rows` that agree with the `known` values. First rows
    are returned for a single value of the partition columns only."""
    found = _first(wanted, rows) if isinstance(wanted, First) else _numbered(wanted, source, rows)
    types = [*(column.type for column in source.columns), INTEGER]
    tests = [
        compare("=", Sql(f"c{i}", types[i]), value).text
        for i, value in known.items()
        if i not in wanted.apart
    ]
    shown = ", ".join(f"c{i} AS {name}" for i, name in columns) or "1 AS c0"
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    return f"SELECT {shown} FROM ({found}){where}"


def _first(first: First, rows: str) -> str:
    count = -1 if first.count is None else first.count
    order = order_by(first.order)
    return f"SELECT * FROM ({rows}) ORDER BY {order} LIMIT {count} OFFSET {first.offset}"


def _numbered(numbered: Numbered, source: Relation, rows: str) -> str:
    by = ", ".join(f"c{i}" for i in sorted(numbered.apart))
    over = f"{f'PARTITION BY {by} ' if by else ''}ORDER BY {order_by(numbered.order)}"
    return f"SELECT *, row_number() OVER ({over}) AS c{source.arity} FROM ({rows})"
