"""`harken bench query`: the condition of the thesis as a query, against SQL written by hand.

Both run on the same tables of the same file. The SQL is written by someone who knows those tables
and their indexes, and does not check arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import apsw

import harken
from harken.bench import baseline, inventory
from harken.bench.figures import Figure, compare, seconds

LOW_STOCK = "select i, quantity(i) for each item i where quantity(i) < threshold(i);"

JOIN = """
SELECT q.c0, q.c1
FROM "supplies(supplier)" s
JOIN "quantity(item)" q ON q.c0 = s.c1
JOIN "consume_frequency(item)" f ON f.c0 = s.c1
JOIN "delivery_time(item,supplier)" d ON d.c0 = s.c1 AND d.c1 = s.c0
JOIN "min_stock(item)" m ON m.c0 = s.c1
"""
LOW_STOCK_SQL = f"{JOIN} WHERE q.c1 < f.c1 * d.c2 + m.c1"
FORCED_SQL = """
SELECT q.c0, q.c1
FROM "delivery_time(item,supplier)" d
CROSS JOIN "quantity(item)" q ON q.c0 = d.c0
CROSS JOIN "consume_frequency(item)" f ON f.c0 = d.c0
CROSS JOIN "min_stock(item)" m ON m.c0 = d.c0
CROSS JOIN "supplies(supplier)" s ON s.c0 = d.c1 AND s.c1 = d.c0
WHERE q.c1 < f.c1 * d.c2 + m.c1
"""
"""The same join in the best order we know, which SQLite does not find by itself."""

THRESHOLD_SQL = f"SELECT f.c1 * d.c2 + m.c1 {JOIN[JOIN.index('FROM') :]} WHERE s.c1 = ?"
POINTS = 2_000


def figures(items: int = 1_000_000, rounds: int = 7) -> Iterator[Figure]:
    params = {"items": items}
    with baseline.directory() as directory:
        path = str(directory / "inventory.db")
        with harken.connect(path) as db, closing(baseline.connect(path)) as plain:
            stock, _ = inventory.fill(db, items)
            first = seconds(partial(_low_stock_ours, db))
            yield Figure("query-join", "harken s, the first time", first, params)
            yield from _join(db, plain, params, rounds)
            every = max(1, items // POINTS)
            yield from _points(db, plain, list(stock[::every]), params, rounds)


def _join(
    db: harken.Database, plain: apsw.Connection, params: dict[str, Any], rounds: int
) -> Iterator[Figure]:
    ours = partial(_low_stock_ours, db)
    rows = sorted((item.oid, quantity) for item, quantity in ours())
    yield Figure("query-join", "rows", len(rows), params)
    for label, sql, needs in (
        ("hand-written SQL", LOW_STOCK_SQL, "<= 1.2"),
        ("SQL with its joins ordered by hand", FORCED_SQL, None),
    ):
        theirs = partial(_low_stock_sql, plain, sql)
        if rows != sorted(theirs()):
            raise AssertionError(f"harken and the {label} disagree about the low stock")
        timing = compare(ours, theirs, rounds)
        yield Figure("query-join", "harken s", timing.ours, params)
        yield Figure("query-join", f"{label} s", timing.theirs, params)
        yield Figure("query-join", f"harken/{label}", timing.ratio, params, needs)


def _low_stock_ours(db: harken.Database) -> list[tuple[harken.Object, int]]:
    return db.amosql(LOW_STOCK).rows


def _low_stock_sql(plain: apsw.Connection, sql: str) -> list[tuple[Any, ...]]:
    return plain.execute(sql).fetchall()


def _points(
    db: harken.Database,
    plain: apsw.Connection,
    items: list[harken.Object],
    params: dict[str, Any],
    rounds: int,
) -> Iterator[Figure]:
    """The threshold of one item, a derived function, through the fast path."""
    oids = [item.oid for item in items]

    def ours() -> list[int]:
        threshold = db.function("threshold")
        return [value for item in items for value in threshold(item)]

    def theirs() -> list[int]:
        return [value for oid in oids for (value,) in plain.execute(THRESHOLD_SQL, (oid,))]

    if ours() != theirs():
        raise AssertionError("the two ways disagree about the thresholds")
    timing = compare(ours, theirs, rounds)
    yield Figure("query-point", "harken µs", timing.ours / len(items) * 1e6, params)
    yield Figure("query-point", "hand-written SQL µs", timing.theirs / len(items) * 1e6, params)
    yield Figure("query-point", "harken/hand-written SQL", timing.ratio, params)
