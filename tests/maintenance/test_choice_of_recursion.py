"""Whether the rows of a recursion are stored, by what each way takes: on a clock that says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import harken
from harken.maintenance import tuning
from harken.maintenance.decisions import Decision
from harken.maintenance.recursion_history import Pick
from harken.maintenance.recursion_update import RecursionUpdate
from harken.maintenance.recursive_nodes import RecursiveNode
from harken.maintenance.strategies import Strategy

PROGRAM = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
edge(1, 2). edge(2, 3). edge(4, 5).
"""
STORING = 20.0


class Scenario:
    """A followed view, and the ways that its changes went."""

    def __init__(self, db: harken.Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.takes = {Strategy.EXTERNAL: 1.0, Strategy.MATERIALIZED: 1.0, Strategy.NAIVE: STORING}
        self.gone: list[Strategy] = []
        self._db, self._now = db, 0.0
        db.datalog(PROGRAM)
        self._view = db.monitor("path")
        (self.node,) = (
            n for n in db.internals.network.graph.derived.values() if isinstance(n, RecursiveNode)
        )
        db.internals.connection.working_time = lambda: self._now
        attempt, build, run = RecursionUpdate.attempt, RecursiveNode.build, RecursionUpdate.run

        def trying(turn: RecursionUpdate, strategy: Strategy) -> None:
            attempt(turn, strategy)
            self._now += self.takes.get(strategy, 0.0)

        def building(node: RecursiveNode, *others: object) -> None:
            self._now += STORING
            build(node, *others)  # type: ignore[arg-type]

        def running(turn: RecursionUpdate, decision: Decision) -> Decision:
            found = run(turn, decision)
            self.gone.append(found.strategy)
            return found

        monkeypatch.setattr(RecursionUpdate, "attempt", trying)
        monkeypatch.setattr(RecursiveNode, "build", building)
        monkeypatch.setattr(RecursionUpdate, "run", running)
        self._number = 0

    def change(self, times: int) -> None:
        for _ in range(times):
            sign = "-+"[self._number % 2]
            self._number += 1
            self._db.datalog(f"{sign}edge(2, 3).")
            (told,) = self._view.changes()
            rows = told.minus if sign == "-" else told.plus
            assert sorted(rows) == [(1, 3), (2, 3)]

    @property
    def is_stored(self) -> bool:
        return self.node.kept_rows.holds()


@pytest.fixture
def scenario(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scenario]:
    with harken.connect() as db:
        yield Scenario(db, monkeypatch)


def test_rows_are_stored_when_going_without_has_taken_many_times_as_long(
    scenario: Scenario,
) -> None:
    scenario.takes[Strategy.MATERIALIZED] = 0.25
    many = int(STORING / tuning.INVESTMENT)
    scenario.change(many)
    assert not scenario.is_stored
    scenario.change(2 * many)
    assert scenario.is_stored
    scenario.change(40)
    assert scenario.gone[-40:].count(Strategy.MATERIALIZED) > 35


def test_rows_that_make_changes_take_longer_are_dropped_for_long(scenario: Scenario) -> None:
    scenario.takes[Strategy.MATERIALIZED] = 9.0
    while not scenario.is_stored:
        scenario.change(1)
        assert len(scenario.gone) < 500
    scenario.takes[Strategy.EXTERNAL] = 1.5  # to bring the rows up to date takes its time as well
    while scenario.is_stored:
        scenario.change(1)
        assert len(scenario.gone) < 600
    before = len(scenario.gone)
    scenario.change(300)
    assert not scenario.is_stored
    assert set(scenario.gone[before:]) == {Strategy.EXTERNAL}


def test_what_reads_the_rows_counts_as_well(scenario: Scenario) -> None:
    """Rederivation is the faster way, but what lies above has to derive the rows again."""
    scenario.takes[Strategy.MATERIALIZED] = 2.0
    known = scenario.node.history
    for _ in range(40):
        scenario.change(1)
        known.note_reader_seconds(0.0 if scenario.is_stored else 10.0, scenario.is_stored)
    assert scenario.is_stored
    for _ in range(200):
        scenario.change(1)
        known.note_reader_seconds(0.0, scenario.is_stored)
    assert scenario.is_stored


def test_one_long_change_does_not_end_rows_that_have_saved_time(scenario: Scenario) -> None:
    scenario.takes[Strategy.MATERIALIZED] = 0.25
    while not scenario.is_stored:
        scenario.change(1)
    scenario.change(200)
    scenario.takes[Strategy.MATERIALIZED] = 2 * STORING
    scenario.change(1)
    scenario.takes[Strategy.MATERIALIZED] = 0.25
    scenario.change(1)
    assert scenario.is_stored


def test_rows_that_were_dropped_are_stored_again_when_they_are_of_use(scenario: Scenario) -> None:
    scenario.takes[Strategy.MATERIALIZED] = 9.0
    while not scenario.is_stored:
        scenario.change(1)
    while scenario.is_stored:
        scenario.change(1)
    scenario.takes[Strategy.MATERIALIZED] = 0.25
    scenario.change(1_500)
    assert scenario.is_stored
    assert scenario.gone[-40:].count(Strategy.MATERIALIZED) > 35


def test_what_a_short_way_takes_is_learnt_when_it_is_in_use(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first change of a way that was not gone for a while takes longer than the next."""
    scenario.takes |= {
        Strategy.EXTERNAL: 0.004,
        Strategy.MATERIALIZED: 0.0005,
        Strategy.NAIVE: 0.001,
    }
    takes, attempt = dict(scenario.takes), RecursionUpdate.attempt

    def trying(turn: RecursionUpdate, strategy: Strategy) -> None:
        is_cold = scenario.gone[-1:] != [strategy]
        scenario.takes[strategy] = takes[strategy] + (0.002 if is_cold else 0.0)
        attempt(turn, strategy)

    monkeypatch.setattr(RecursionUpdate, "attempt", trying)
    monkeypatch.setitem(globals(), "STORING", 0.001)
    scenario.change(600)
    assert scenario.gone[-100:].count(Strategy.MATERIALIZED) > 80


def test_where_the_way_is_settled_most_changes_are_not_chosen_for(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario.takes |= {Strategy.EXTERNAL: 8.0, Strategy.MATERIALIZED: 0.25}
    chosen, pick = 0, type(scenario.node.history).pick

    def picking(*given: Any) -> Pick:
        nonlocal chosen
        chosen += 1
        return pick(*given)

    monkeypatch.setattr(type(scenario.node.history), "pick", picking)
    scenario.change(200)
    assert scenario.is_stored
    chosen = 0
    scenario.change(80)
    assert 4 <= chosen < 20
    scenario.takes[Strategy.MATERIALIZED] = 40.0  # it is noticed all the same
    scenario.change(200)
    assert scenario.gone[-40:].count(Strategy.MATERIALIZED) < 10
