"""A strategy that runs away is broken off, also the first time and also if it was asked for. The
answer comes another way; it is remembered, in the file, until the sizes have doubled.

Law: whatever is broken off, the change is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Database
from harken.engines.protocol import BrokenOff
from harken.maintenance.decisions import Decision, DecisionReason
from harken.maintenance.nodes import TotalsNode
from harken.maintenance.recursion_update import RecursionUpdate
from harken.maintenance.strategies import Strategy
from harken.maintenance.strategies.base import Found, Job, PlannedStrategy
from harken.propagation import kept_state

PATHS = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Rederivation and stored recursions run away whenever they may be broken off."""
    found: list[str] = []
    attempt = RecursionUpdate.attempt

    def trying(update: RecursionUpdate, strategy: Strategy) -> None:
        if strategy is not Strategy.NAIVE:
            found.append(strategy)
            assert update.job.planning.engine.connection.is_limited
            raise BrokenOff
        attempt(update, strategy)

    monkeypatch.setattr(RecursionUpdate, "attempt", trying)
    return found


def opened(path: Path, strategy: str) -> tuple[Database, Any]:
    db = harken.connect(path)
    if not db.views():
        db.datalog(PATHS + "".join(f"edge({n}, {n + 1})." for n in range(10)))
    return db, db.monitor("path", strategy=strategy)


def change(db: Database, monitor: Any, text: str) -> None:
    before = set(db.sql("SELECT * FROM path").rows)
    db.datalog(text)
    now = set(db.sql("SELECT * FROM path").rows)
    told = monitor.changes()
    assert {row for each in told for row in each.plus} == now - before
    assert {row for each in told for row in each.minus} == before - now


def last(db: Database) -> Decision:
    network = db.internals.network
    (node,) = [n for n in network.graph.derived.values() if n.id.startswith("path")]
    return network.chooser.decisions(node.id)[-1].decision


@pytest.mark.parametrize("strategy", ["external", "materialized"])
def test_a_recursive_strategy_that_was_asked_for_is_broken_off(
    tmp_path: Path, attempts: list[str], strategy: str
) -> None:
    db, monitor = opened(tmp_path / "g.db", strategy)
    change(db, monitor, "-edge(4, 5).")
    assert attempts == [strategy]
    assert (last(db).strategy, last(db).reason) == (Strategy.NAIVE, DecisionReason.RAN_AWAY)
    assert "ran away" in str(db.explain("path"))
    change(db, monitor, "-edge(5, 6).")
    assert attempts == [strategy]  # not tried again for such a change
    db.close()
    db, monitor = opened(tmp_path / "g.db", strategy)
    change(db, monitor, "-edge(6, 7).")
    assert attempts == [strategy]  # nor in the next session
    for n in range(20, 60):
        db.datalog(f"+edge({n}, {n + 1}).")
    monitor.changes()
    change(db, monitor, "-edge(1, 2).")
    assert len(attempts) > 1  # the relation has doubled
    db.close()


def test_counting_that_runs_away_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    build = kept_state.build

    def building(nodes: list[TotalsNode], planning: Any) -> None:
        if nodes:
            assert planning.engine.connection.is_limited
            raise BrokenOff
        build(nodes, planning)

    monkeypatch.setattr(kept_state, "build", building)
    with harken.connect() as db:
        db.datalog(
            ".decl e(x: number, y: number)\n.decl two(x: number, z: number)\n"
            "two(x, z) :- e(x, y), e(y, z).\ne(1, 2). e(2, 3). e(2, 4)."
        )
        monitor = db.monitor("two", strategy="counting")
        db.datalog("+e(3, 5).")
        db.datalog("-e(1, 2).")
        plus, minus = zip(*((each.plus, each.minus) for each in monitor.changes()), strict=True)
        assert plus[0] == [(2, 5)]
        assert sorted(minus[1]) == [(1, 3), (1, 4)]
        assert "ran away" in str(db.explain("two"))


def test_differentials_that_run_away_at_first_are_broken_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[frozenset[str]] = []
    run: Callable[..., Found] = PlannedStrategy.run

    def running(strategy: PlannedStrategy, job: Job, queries: Any) -> Found:
        if strategy.name is Strategy.INCREMENTAL and job.planning.engine.connection.is_limited:
            tried.append(job.changed)
            raise BrokenOff
        return run(strategy, job, queries)

    monkeypatch.setattr(PlannedStrategy, "run", running)
    with harken.connect() as db:
        db.sql("CREATE TABLE sale (id INT PRIMARY KEY, amount INT NOT NULL)")
        db.load("sale", [(n, n) for n in range(100)])
        db.sql("CREATE VIEW dear AS SELECT id, amount FROM sale WHERE amount > 100")
        monitor = db.monitor("dear")
        for n in (150, 160):
            db.sql("INSERT INTO sale VALUES (?, ?)", (n, n))
        assert [each.plus for each in monitor.changes()] == [[(150, 150)], [(160, 160)]]
    assert len(tried) == 1
