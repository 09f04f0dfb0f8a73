"""Views with ORDER BY and LIMIT: the rows that come after those shown are kept, and take the place
of those that leave."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import harken
from harken.engines.sqlite import kept_first_rows

ORDERS = (
    "a, b, c",
    "a DESC, b, c",
    "a DESC NULLS FIRST, c, b DESC",
    "b NULLS LAST, a DESC, c",
    "c, a, b",
)
GONE = ("a = 1", "a = 2", "a > 3", "a IS NULL", "b = 'x'", "c < 3", "c IS NULL AND a > 1")


@pytest.fixture
def few_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few are kept that they run out, and are dropped, all the time."""
    monkeypatch.setattr(kept_first_rows, "AHEAD", 4)
    monkeypatch.setattr(kept_first_rows, "TIMES", 2)


def _row(random: Random) -> str:
    number = [None, 1, 2, 3, 4, 5]
    values = (random.choice(number), random.choice([None, "x", "y"]), random.choice(number))
    return ", ".join("NULL" if each is None else repr(each) for each in values)


def _change(db: harken.Database, random: Random) -> None:
    with db.transaction():
        for _ in range(random.choice([1, 2, 6])):
            if random.random() < 0.6:
                db.sql(f"INSERT INTO t VALUES ({_row(random)})")
            else:
                db.sql(f"DELETE FROM t WHERE {random.choice(GONE)} AND c IS DISTINCT FROM 4")


def _bag(rows: Any) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, rows))


@pytest.mark.usefixtures("few_ahead")
@pytest.mark.parametrize("seed", range(20))
def test_first_rows_follow_every_change(seed: int) -> None:
    random = Random(seed)
    order, limit = random.choice(ORDERS), random.choice((1, 2, 3))
    query = f"SELECT a, b FROM t ORDER BY {order} LIMIT {limit} OFFSET {random.choice((0, 0, 1))}"
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT, b VARCHAR(5), c INT)")
        for _ in range(random.choice((0, 10, 30))):
            db.sql(f"INSERT INTO t VALUES ({_row(random)})")
        db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
        db.sql(f"CREATE VIEW shown AS {query}")
        told = _bag(db.sql("SELECT * FROM shown").rows)
        changes = db.monitor("shown")
        for _ in range(25):
            _change(db, random)
            rows = _bag(db.sql(query).rows)
            assert _bag(db.sql("SELECT * FROM v").rows) == rows
            for change in changes.changes():
                told += _bag(change.plus)
                told -= _bag(change.minus)
            assert told == rows


def test_a_row_after_all_that_are_kept_does_not_matter() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT NOT NULL)")
        db.load("t", [(i,) for i in range(5 * kept_first_rows.AHEAD)])
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM t ORDER BY a LIMIT 3")
        db.sql("INSERT INTO t VALUES (1000000)")
        db.sql("DELETE FROM t WHERE a < 2")
        assert list(db.sql("SELECT a FROM v ORDER BY a").rows) == [(2,), (3,), (4,)]
        kept = next(
            each
            for each in db.internals.network.graph.derived.values()
            if each.id.startswith("first")
        )
        assert kept.table.size() == kept_first_rows.AHEAD - 3


@pytest.mark.usefixtures("few_ahead")
def test_a_rollback_takes_the_kept_rows_back() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT NOT NULL)")
        db.load("t", [(i,) for i in range(20)])
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM t ORDER BY a DESC LIMIT 2")
        db.sql("CREATE TABLE u (a INT NOT NULL PRIMARY KEY)")
        db.sql("BEGIN")
        db.sql("DELETE FROM t WHERE a > 5")
        db.sql("ROLLBACK")
        db.sql("DELETE FROM t WHERE a = 19")
        assert list(db.sql("SELECT a FROM v ORDER BY a").rows) == [(17,), (18,)]


@pytest.mark.parametrize("order", ["a", "a DESC", "b", "b DESC, a"])
def test_a_query_and_a_view_take_the_same_of_rows_that_the_order_leaves_open(order: str) -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT, b STRING)")
        db.load("t", [(1, "y"), (1, "x"), (None, "y"), (1, "x"), (None, None), (2, "x"), (1, None)])
        query = f"SELECT a, b FROM t ORDER BY {order} LIMIT 3 OFFSET 1"
        db.sql(f"CREATE VIEW v AS {query}")
        assert _bag(db.sql(query).rows) == _bag(db.sql("SELECT * FROM v").rows)
