"""Transactions that change many relations of one view: a plan for such a combination is made when
it is worth it, and until then all is evaluated again."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

import harken
from harken.maintenance import tuning
from harken.maintenance.nodes import ViewNode
from harken.maintenance.strategies import FROM_SCRATCH
from harken.maintenance.strategies.differentials import DIFFERENTIALS

QUERIES = {
    "joined": "SELECT x1, x{n} FROM {tables} WHERE {joined}",
    "distinct": "SELECT DISTINCT x1 % 3 AS a, x{n} FROM {tables} WHERE {joined}",
    "grouped": "SELECT b1 % 3 AS g, count(*) AS n, sum(x{n}) AS s FROM {tables} WHERE {joined} "
    "GROUP BY b1 % 3",
    "total": "SELECT count(*) AS n, max(x1) AS m FROM {tables} WHERE {joined}",
}


def chained(query: str, n: int) -> str:
    tables = ", ".join(f"t{i}" for i in range(1, n + 1))
    joined = " AND ".join(f"a{i} = b{i + 1}" for i in range(1, n))
    return QUERIES[query].format(n=n, tables=tables, joined=joined)


def fill(db: harken.Database, n: int) -> None:
    random = Random(n)
    for i in range(1, n + 1):
        others = random.sample(range(10), 10)
        rows = ", ".join(f"({a}, {b}, {random.randrange(9)})" for a, b in enumerate(others))
        db.sql(f"CREATE TABLE t{i} (a{i} INT PRIMARY KEY, b{i} INT, x{i} INT)")
        db.sql(f"INSERT INTO t{i} VALUES {rows}")


def change_all(db: harken.Database, n: int, random: Random) -> None:
    with db.transaction():
        for i in range(1, n + 1):
            a, b, x = (random.randrange(10) for _ in range(3))
            db.sql(f"UPDATE t{i} SET b{i} = {b}, x{i} = {x} WHERE a{i} = {a}")


@pytest.fixture
def db() -> Iterator[harken.Database]:
    with harken.connect() as db:
        yield db


def strategies(db: harken.Database) -> set[str]:
    """How the changes of the view were found, in all transactions so far."""
    (node,) = (
        node for node in db.internals.network.graph.nodes.values() if isinstance(node, ViewNode)
    )
    return {strategy for strategy, _ in (*node.plans, *node.weighted)}


@pytest.mark.parametrize("n", [4, 20])
@pytest.mark.parametrize("query", QUERIES)
def test_all_tables_of_a_join_may_change_at_once(query: str, n: int, db: harken.Database) -> None:
    """There would be 2^20 terms."""
    fill(db, n)
    db.sql(f"CREATE MATERIALIZED VIEW v AS {chained(query, n)}")
    random = Random(query)
    for _ in range(3):
        change_all(db, n, random)
        assert sorted(db.sql("SELECT * FROM v").rows) == sorted(db.sql(chained(query, n)).rows)
    assert n == 4 or strategies(db) <= set(FROM_SCRATCH)


def test_the_plan_is_made_when_going_without_has_taken_as_long(
    db: harken.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(db, 4)
    db.sql(f"CREATE MATERIALIZED VIEW v AS {chained('joined', 4)}")
    monkeypatch.setattr(tuning, "SHORT_PLANNING", 0.0)
    monkeypatch.setattr(db.internals.network.chooser, "naive_seconds", lambda node: 1.0)
    monkeypatch.setattr(
        tuning, "PLANNING_SECONDS_PER_SQUARED_LITERAL", 2.5 / node_length(db, 4) ** 2
    )
    random = Random(1)
    for number in range(4):
        change_all(db, 4, random)
        assert ("incremental" in strategies(db)) == (number >= 2)
        assert sorted(db.sql("SELECT * FROM v").rows) == sorted(db.sql(chained("joined", 4)).rows)


def node_length(db: harken.Database, n: int) -> int:
    (node,) = db.internals.network.graph.nodes.values()
    changed = frozenset(node.part.stored)
    assert len(changed) == n
    return DIFFERENTIALS.length(node, changed)


def test_what_is_asked_for_is_done_whatever_the_plan_takes(db: harken.Database) -> None:
    fill(db, 3)
    db.sql(f"CREATE VIEW v AS {chained('joined', 3)}")
    view = db.monitor("v", strategy="external")
    change_all(db, 3, Random(5))
    view.changes()
    assert strategies(db) == {"incremental"}
