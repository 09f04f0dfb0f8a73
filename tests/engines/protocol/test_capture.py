"""Every engine captures changes by the same law: a Δ-set is the difference between the relation now
and when it was last settled."""

from __future__ import annotations

from typing import Any

import pytest

from harken.calculus.states import delta
from harken.engines.protocol import CapturedDelta, LargeChange
from harken.ir.clauses import Atom, Clause, Comparison, Definition, Program
from harken.ir.relations import Column, Kind, Relation, Semantics
from harken.ir.terms import Constant, Variable
from harken.planner.prepare import prepare
from harken.planner.screen import Alternative, Screener
from harken.values.types import INTEGER, Hierarchy

COLUMNS = (Column("x", INTEGER), Column("y", INTEGER))
EDGE = Relation("edge", COLUMNS, 2, Kind.STORED, Semantics.SET, key=(0, 1))
BAG = Relation("bag", COLUMNS, 0, Kind.STORED, Semantics.BAG)
ROW = (Variable("X", INTEGER), Variable("Y", INTEGER))


@pytest.fixture
def edge(engine: Any) -> CapturedDelta:
    engine.create(EDGE)
    engine.insert_many(EDGE, [(1, 2), (2, 3)])
    watched: CapturedDelta = engine.capture.watch(EDGE)
    return watched


def change(captured: CapturedDelta) -> tuple[set[Any], set[Any]]:
    plus, minus = captured.rows()
    return set(plus), set(minus)


def test_nothing_is_pending_before_a_change(engine: Any, edge: CapturedDelta) -> None:
    assert engine.capture.pending() == {}
    assert change(edge) == (set(), set())


def test_rows_that_come_and_go_are_the_change(engine: Any, edge: CapturedDelta) -> None:
    engine.insert_many(EDGE, [(3, 4)])
    engine.remove_many(EDGE, [(1, 2)])
    assert engine.capture.pending() == {EDGE.id: True}
    assert change(edge) == ({(3, 4)}, {(1, 2)})
    assert edge.size() == 2
    assert edge.has_lost()


def test_an_insertion_that_is_taken_back_is_no_change(engine: Any, edge: CapturedDelta) -> None:
    engine.insert_many(EDGE, [(3, 4)])
    engine.remove_many(EDGE, [(3, 4)])
    assert change(edge) == (set(), set())


def test_a_bag_changes_by_copies(engine: Any) -> None:
    engine.create(BAG)
    watched = engine.capture.watch(BAG)
    engine.insert_many(BAG, [(1, 1), (1, 1), (2, 2)])
    engine.remove_many(BAG, [(2, 2)])
    assert change(watched) == ({(1, 1)}, set())
    reading = Relation("reading", delta(BAG).columns, 0, Kind.DERIVED)
    row = (*ROW, Variable("W", INTEGER))
    clause = Clause(Atom(reading, row), (Atom(delta(BAG), row),))
    program = Program(reading, {reading.id: Definition(reading, (clause,))})
    found = engine.compile(prepare(program, Hierarchy({}))).rows(())
    assert [each for each in found if each[-1]] == [(1, 1, 2)]


def test_what_is_settled_is_no_change_any_more(engine: Any, edge: CapturedDelta) -> None:
    engine.insert_many(EDGE, [(3, 4)])
    engine.capture.settle([edge])
    assert engine.capture.pending() == {}
    assert change(edge) == (set(), set())
    engine.remove_many(EDGE, [(3, 4)])
    assert change(edge) == (set(), {(3, 4)})


def test_a_savepoint_takes_its_part_of_the_change_back(engine: Any, edge: CapturedDelta) -> None:
    engine.connection.begin()
    engine.insert_many(EDGE, [(3, 4)])
    engine.connection.set_savepoint("step")
    engine.insert_many(EDGE, [(4, 5)])
    engine.connection.undo_to("step")
    assert change(edge) == ({(3, 4)}, set())
    engine.connection.rollback()
    assert engine.capture.pending() == {}
    assert change(edge) == (set(), set())


def test_rows_that_fail_the_row_tests_are_left_out(engine: Any, edge: CapturedDelta) -> None:
    test = Comparison(">", ROW[1], Constant(5, INTEGER))
    edge.screen(Screener(EDGE, (Alternative(ROW, (test,), 1.0, 0.5),), None, 1.0))
    engine.insert_many(EDGE, [(3, 4)])
    assert engine.capture.pending() == {}
    engine.insert_many(EDGE, [(3, 6)])
    assert engine.capture.pending() == {EDGE.id: True}
    assert change(edge) == ({(3, 6)}, set())


def test_a_change_that_fails_the_moment_tests_is_kept_and_not_passed(
    engine: Any, edge: CapturedDelta
) -> None:
    test = Comparison(">", ROW[1], Constant(5, INTEGER))
    edge.screen(Screener(EDGE, None, (Alternative(ROW, (test,), 1.0, 0.5),), 1.0))
    engine.insert_many(EDGE, [(3, 4)])
    assert engine.capture.pending() == {EDGE.id: False}
    assert change(edge) == ({(3, 4)}, set())


def test_rows_can_be_noted_by_hand(engine: Any) -> None:
    engine.create(EDGE)
    told = engine.capture.watch(EDGE, reported=True)
    engine.insert_many(EDGE, [(1, 2)])
    assert engine.capture.pending() == {}
    told.note([(1, 2, 1), (2, 3, -1), (4, 4, 1), (4, 4, -1)])
    assert engine.capture.pending() == {EDGE.id: True}
    assert change(told) == ({(1, 2)}, {(2, 3)})


def test_of_a_large_change_only_its_size_is_known(engine: Any, edge: CapturedDelta) -> None:
    edge.note(LargeChange(10**6))
    assert engine.capture.pending() == {EDGE.id: True}
    assert edge.size() == 10**6
    engine.capture.forget_large([edge])
    assert edge.size() == 0


def test_for_a_while_the_old_rows_are_there(engine: Any, edge: CapturedDelta) -> None:
    engine.connection.begin()
    engine.insert_many(EDGE, [(3, 4)])
    engine.remove_many(EDGE, [(1, 2)])
    assert engine.capture.can_take_back(EDGE)
    with engine.capture.before([edge]):
        assert set(engine.rows(EDGE)) == {(1, 2), (2, 3)}
    assert set(engine.rows(EDGE)) == {(2, 3), (3, 4)}
    assert change(edge) == ({(3, 4)}, {(1, 2)})
    engine.connection.rollback()


def test_what_is_not_watched_is_not_pending(engine: Any, edge: CapturedDelta) -> None:
    edge.unwatch()
    engine.insert_many(EDGE, [(3, 4)])
    assert engine.capture.pending() == {}


def test_a_node_fills_a_change_of_its_own(engine: Any) -> None:
    engine.create(EDGE)
    engine.insert_many(EDGE, [(1, 2), (2, 3)])
    derived = Relation("derived", COLUMNS, 0, Kind.DERIVED)
    clause = Clause(Atom(derived, ROW), (Atom(EDGE, ROW),))
    program = Program(derived, {derived.id: Definition(derived, (clause,))})
    made = engine.capture.delta(derived)
    made.create()
    made.fill(engine.compile(prepare(program, Hierarchy({}))), -1)
    assert change(made) == (set(), {(1, 2), (2, 3)})
    made.clear()
    assert made.size() == 0
    made.drop()


def test_rows_of_a_wave_are_added_without_becoming_pending(engine: Any) -> None:
    engine.create(EDGE)
    told = engine.capture.watch(EDGE, reported=True)
    told.add([(1, 2, 1), (2, 3, -1)])
    assert engine.capture.pending() == {}
    assert change(told) == ({(1, 2)}, {(2, 3)})
