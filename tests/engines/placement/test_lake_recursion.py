"""Recursive views over relations in the lake: what a change brings here, and who answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import harken
from harken.engines import fetch_limits as limits
from harken.engines.protocol import TooManyRows
from harken.engines.tally import Tally
from harken.maintenance.recursive_nodes import RecursiveNode
from tests.harness import lakes
from tests.propagation.test_external_views import rows_by_table

REACHED = """
.decl edge(x: number, y: number)
.decl root(x: number)
.decl reached(x: number)
root(0).
reached(x) :- root(x).
reached(y) :- reached(x), edge(x, y).
"""
PATH = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
STRATEGIES = ("external", "materialized", "naive", "auto")
TREE = [((i - 1) // 2, i) for i in range(1, 4_095)]


def no_spark() -> Any:
    """Relations may be too large for one process, but who needs Spark fails."""
    pytest.fail("Spark was asked")


def seek(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rows a relation has, and however often they are sought, it is by key."""
    monkeypatch.setattr(limits, "SMALL", -1)
    monkeypatch.setattr(limits, "SEEK", 0)


def opened(program: str, edges: list[tuple[int, int]], spark: Any = None) -> harken.Database:
    """A database whose facts are in the lake, with nothing at hand."""
    db = harken.connect(engine="lake", spark=spark)
    db.datalog(program + "\n".join(f"edge({x}, {y})." for x, y in edges))
    db.flush()
    lakes.let_go(db)
    return db


def changed(db: harken.Database, monitor: Any, script: str) -> tuple[set[Any], set[Any], Tally]:
    """What a transaction adds to a view and takes from it, and what that took of the lake."""
    tally = db.internals.engine.tally
    before = tally.copy()
    db.datalog(script)
    changes = monitor.changes()
    plus = {row for each in changes for row in each.plus}
    minus = {row for each in changes for row in each.minus}
    return plus, minus, tally.since(before)


def views_stored(db: harken.Database) -> dict[str, int]:
    """The tables that have rows and are neither facts nor what is at hand of them."""
    facts = ("edge(", "root(", "present edge(", "present root(", "harken_")
    return {
        name: rows
        for name, rows in rows_by_table(db).items()
        if rows and name.startswith("temp.") and not name.removeprefix("temp.").startswith(facts)
    }


def test_a_change_fetches_the_keys_on_its_way_and_stores_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One edge of a tree of 4,094; the way to the root has 11."""
    seek(monkeypatch)
    with opened(REACHED, TREE, no_spark) as db:
        monitor = db.monitor("reached", strategy="external")
        plus, minus, tally = changed(db, monitor, "-edge(1500, 3001).")
        assert (plus, minus) == (set(), {(3001,)})
        assert 10 <= tally.rows <= 30
        plus, minus, tally = changed(db, monitor, "+edge(1500, 3001).\n-edge(1000, 2001).")
        assert (plus, minus) == ({(3001,)}, {(2001,), (4003,), (4004,)})
        assert tally.rows <= 30
        assert views_stored(db) == {}


def test_a_stored_copy_is_followed_by_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    seek(monkeypatch)
    with opened(PATH, TREE) as db:
        monitor = db.monitor("path", strategy="materialized")
        changed(db, monitor, "-edge(2046, 4093).")
        lakes.let_go(db)
        plus, minus, tally = changed(db, monitor, "+edge(2046, 4093).\n-edge(1500, 3001).")
        assert len(plus) == len(minus) == 11
        assert tally.rows <= 10
        assert sum(views_stored(db).values()) > len(TREE)


def test_a_query_with_a_constant_fetches_what_it_leads_to(monkeypatch: pytest.MonkeyPatch) -> None:
    seek(monkeypatch)
    with opened(PATH, TREE, no_spark) as db:
        before = db.internals.engine.tally.copy()
        below = [(2001,), (2002,), (4003,), (4004,), (4005,), (4006,)]
        assert sorted(db.datalog("?- path(1000, x).").rows) == below
        assert sorted(db.datalog("?- path(x, 6).").rows) == [(0,), (2,)]
        assert db.internals.engine.tally.since(before).rows <= 20


def test_it_is_explained_how_a_recursion_reaches_the_lake(monkeypatch: pytest.MonkeyPatch) -> None:
    query = (
        "EXPLAIN WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge UNION "
        "SELECT r.x, e.y FROM r JOIN edge e ON e.x = r.y) SELECT y FROM r"
    )
    with harken.connect() as db:
        db.sql("CREATE TABLE edge (x INT, y INT, PRIMARY KEY (x, y)) USING lake")
        rounds = "fetched by what each round of the recursion finds"
        for small, where, told in (
            (-1, " WHERE x = 1", rounds),
            (-1, "", "all of them are needed, and brought here"),
            (10, " WHERE x = 1", "brought here as a whole, because they are few"),
        ):
            monkeypatch.setattr(limits, "SMALL", small)
            lines = [line for (line,) in db.sql(f"{query}{where}").rows]
            assert any(line.startswith("edge") and line.endswith(told) for line in lines)


def test_a_relation_that_is_sought_again_and_again_is_brought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A chain is as many rounds as it has rows."""
    seek(monkeypatch)
    monkeypatch.setattr(limits, "SEEK", 100)
    with opened(REACHED, [(i, i + 1) for i in range(1_000)], no_spark) as db:
        monitor = db.monitor("reached", strategy="external")
        plus, minus, tally = changed(db, monitor, "-edge(500, 501).\n+edge(500, 502).")
        assert (plus, minus) == (set(), {(501,)})
        assert tally.seeks < 30


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_would_bring_too_much_is_found_from_scratch(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The children of 100 are more than the keys that a rule may need."""
    seek(monkeypatch)
    monkeypatch.setattr(limits, "MOST_KEYS", 10)
    fan = [(0, 1), *((100, i) for i in range(101, 131)), (130, 131)]
    with opened(REACHED, fan, no_spark) as db:
        monitor = db.monitor("reached", strategy=strategy)
        gained = {(i,) for i in range(100, 132)}
        assert changed(db, monitor, "+edge(1, 100).")[:2] == (gained, set())
        assert changed(db, monitor, "-edge(0, 1).")[:2] == (set(), gained | {(1,)})
        assert changed(db, monitor, "+edge(0, 130).")[:2] == ({(130,), (131,)}, set())
        if strategy == "external":
            assert views_stored(db) == {}


def test_it_is_compared_where_it_lies_if_even_that_is_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_much(*_: Any) -> None:
        raise TooManyRows

    for way in ("rederive", "maintain", "recompute"):
        monkeypatch.setattr(RecursiveNode, way, too_much)
    for strategy in STRATEGIES:
        with opened(REACHED, [(0, 1), (1, 2), (2, 0)]) as db:
            monitor = db.monitor("reached", strategy=strategy)
            plus, minus, _ = changed(db, monitor, "-edge(1, 2).\n+edge(1, 3).")
            assert (plus, minus) == ({(3,)}, {(2,)})


def test_spark_tells_what_is_too_much_to_come_here(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seek(monkeypatch)
    monkeypatch.setattr(limits, "MOST_KEYS", 3)
    monkeypatch.setattr(limits, "MOST_ROWS", 5)
    with opened(REACHED, [(0, 1), *((5, i) for i in range(6, 12))], spark) as db:
        monitor = db.monitor("reached", strategy="external")
        plus, minus, tally = changed(db, monitor, "+edge(1, 5).")
        assert (plus, minus) == ({(i,) for i in range(5, 12)}, set())
        assert tally.queries == 2  # the rows before, and the rows now
        assert views_stored(db) == {}


def test_the_first_copy_may_be_made_by_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two relations that depend on each other; of the second change nothing is for Spark."""
    seek(monkeypatch)
    monkeypatch.setattr(limits, "MOST_ROWS", 5)
    program = """
    .decl edge(x: number, y: number)
    .decl root(x: number)
    .decl even(x: number)
    .decl odd(x: number)
    root(0).
    even(x) :- root(x).
    odd(y) :- even(x), edge(x, y).
    even(y) :- odd(x), edge(x, y).
    """
    with opened(program, [(0, 1), (1, 2), *((7, i) for i in range(8, 12))], spark) as db:
        monitor = db.monitor("even", strategy="materialized")
        plus, minus, tally = changed(db, monitor, "+edge(1, 4).")
        assert (plus, minus) == ({(4,)}, set())
        assert tally.queries == 1  # for the rows of both
        plus, minus, tally = changed(db, monitor, "-edge(0, 1).\n+edge(0, 7).")
        assert (plus, minus) == ({(i,) for i in range(8, 12)}, {(2,), (4,)})
        assert tally.queries == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_step_is_followed(strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state before is the version that was read, and the state after it the one that is."""
    seek(monkeypatch)
    monkeypatch.chdir(tmp_path)
    edges = [(i, i + 1) for i in range(10)]
    with harken.connect("graph.db") as db:
        write(edges)
        db.lake("edge", "edges", key=["x"], unique=False)
        db.amosql("""
            create function reach(integer x) -> integer y as
                select y where y = edge(x) or y = edge(reach(x));
            commit;
        """)
        monitor = db.monitor("reach", strategy=strategy)
        known = closure(edges)
        for rows in ([*edges, (20, 8)], [*edges[:5], *edges[6:]], [*edges, (3, 7), (3, 7)]):
            write(rows)
            db.step()
            (change,) = monitor.changes()
            now = closure(rows)
            assert (set(change.plus), set(change.minus)) == (now - known, known - now)
            known = now


def test_a_step_too_large_to_be_held_is_followed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seek(monkeypatch)
    monkeypatch.setattr(limits, "MOST_HELD", 2)
    monkeypatch.chdir(tmp_path)
    edges = [(0, 1), (1, 2)]
    with harken.connect("graph.db", spark=spark) as db:
        write(edges)
        db.lake("edge", "edges", key=["x"], unique=False)
        db.amosql("""
            create function reach(integer x) -> integer y as
                select y where y = edge(x) or y = edge(reach(x));
            commit;
        """)
        monitor = db.monitor("reach", strategy="external")
        known, now = closure(edges), closure([(0, 2), (2, 3), (3, 4)])
        write([(0, 2), (2, 3), (3, 4)])
        db.step()
        (change,) = monitor.changes()
        assert (set(change.plus), set(change.minus)) == (now - known, known - now)


def write(edges: list[tuple[int, int]]) -> None:
    table = pa.table({"x": [x for x, _ in edges], "y": [y for _, y in edges]})
    write_deltalake("edges", table, mode="overwrite")


def closure(edges: list[tuple[int, int]]) -> set[tuple[int, int]]:
    found = set(edges)
    while more := {(x, z) for x, y in found for v, z in edges if v == y} - found:
        found |= more
    return found
