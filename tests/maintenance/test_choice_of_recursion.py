"""Whether the rows of a recursion are stored, by what each way takes: on a clock that says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import harken
from harken.maintenance import tuning
from harken.maintenance.decisions import Decision
from harken.maintenance.recursion_course import Pick
from harken.maintenance.recursive_choice import RecursionUpdate
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


class Course:
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
        attempt, build, go = RecursionUpdate._try, RecursiveNode.build, RecursionUpdate.go

        def trying(turn: RecursionUpdate, strategy: Strategy) -> None:
            attempt(turn, strategy)
            self._now += self.takes.get(strategy, 0.0)

        def building(node: RecursiveNode, *others: object) -> None:
            self._now += STORING
            build(node, *others)  # type: ignore[arg-type]

        def going(turn: RecursionUpdate, decision: Decision) -> Decision:
            found = go(turn, decision)
            self.gone.append(found.strategy)
            return found

        monkeypatch.setattr(RecursionUpdate, "_try", trying)
        monkeypatch.setattr(RecursiveNode, "build", building)
        monkeypatch.setattr(RecursionUpdate, "go", going)
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
def course(monkeypatch: pytest.MonkeyPatch) -> Iterator[Course]:
    with harken.connect() as db:
        yield Course(db, monkeypatch)


def test_rows_are_stored_when_going_without_has_taken_many_times_as_long(course: Course) -> None:
    course.takes[Strategy.MATERIALIZED] = 0.25
    many = int(STORING / tuning.RECURSION_INVESTMENT)
    course.change(many)
    assert not course.is_stored
    course.change(2 * many)
    assert course.is_stored
    course.change(40)
    assert course.gone[-40:].count(Strategy.MATERIALIZED) > 35


def test_rows_that_make_changes_take_longer_are_dropped_for_long(course: Course) -> None:
    course.takes[Strategy.MATERIALIZED] = 9.0
    while not course.is_stored:
        course.change(1)
        assert len(course.gone) < 500
    course.takes[Strategy.EXTERNAL] = 1.5  # to bring the rows up to date takes its time as well
    while course.is_stored:
        course.change(1)
        assert len(course.gone) < 600
    before = len(course.gone)
    course.change(300)
    assert not course.is_stored
    assert set(course.gone[before:]) == {Strategy.EXTERNAL}


def test_what_reads_the_rows_counts_as_well(course: Course) -> None:
    """Rederivation is the faster way, but what lies above has to derive the rows again."""
    course.takes[Strategy.MATERIALIZED] = 2.0
    known = course.node.course
    for _ in range(40):
        course.change(1)
        known.note_above(0.0 if course.is_stored else 10.0, course.is_stored)
    assert course.is_stored
    for _ in range(200):
        course.change(1)
        known.note_above(0.0, course.is_stored)
    assert course.is_stored


def test_one_long_change_does_not_end_rows_that_have_saved_time(course: Course) -> None:
    course.takes[Strategy.MATERIALIZED] = 0.25
    while not course.is_stored:
        course.change(1)
    course.change(200)
    course.takes[Strategy.MATERIALIZED] = 2 * STORING
    course.change(1)
    course.takes[Strategy.MATERIALIZED] = 0.25
    course.change(1)
    assert course.is_stored


def test_rows_that_were_dropped_are_stored_again_when_they_are_of_use(course: Course) -> None:
    course.takes[Strategy.MATERIALIZED] = 9.0
    while not course.is_stored:
        course.change(1)
    while course.is_stored:
        course.change(1)
    course.takes[Strategy.MATERIALIZED] = 0.25
    course.change(1_500)
    assert course.is_stored
    assert course.gone[-40:].count(Strategy.MATERIALIZED) > 35


def test_what_a_short_way_takes_is_learnt_when_it_is_in_use(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first change of a way that was not gone for a while takes longer than the next."""
    course.takes |= {Strategy.EXTERNAL: 0.004, Strategy.MATERIALIZED: 0.0005, Strategy.NAIVE: 0.001}
    takes, attempt = dict(course.takes), RecursionUpdate._try

    def trying(turn: RecursionUpdate, strategy: Strategy) -> None:
        is_cold = course.gone[-1:] != [strategy]
        course.takes[strategy] = takes[strategy] + (0.002 if is_cold else 0.0)
        attempt(turn, strategy)

    monkeypatch.setattr(RecursionUpdate, "_try", trying)
    monkeypatch.setitem(globals(), "STORING", 0.001)
    course.change(600)
    assert course.gone[-100:].count(Strategy.MATERIALIZED) > 80


def test_where_the_way_is_settled_most_changes_are_not_chosen_for(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    course.takes |= {Strategy.EXTERNAL: 8.0, Strategy.MATERIALIZED: 0.25}
    chosen, pick = 0, type(course.node.course).pick

    def picking(*given: Any) -> Pick:
        nonlocal chosen
        chosen += 1
        return pick(*given)

    monkeypatch.setattr(type(course.node.course), "pick", picking)
    course.change(200)
    assert course.is_stored
    chosen = 0
    course.change(80)
    assert 8 <= chosen < 40
    course.takes[Strategy.MATERIALIZED] = 40.0  # it is noticed all the same
    course.change(200)
    assert course.gone[-40:].count(Strategy.MATERIALIZED) < 10
