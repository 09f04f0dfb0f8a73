"""What is kept holds while it is what building it would make now.

The reference keeps nothing: it is as right, and slower.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from harken.calculus.states import copy_of
from harken.engines.protocol import CapturedDelta, CopiedRows, KeptCopy, Query
from harken.ir.clauses import Atom, Clause, Definition, Program
from harken.ir.relations import Column, Kind, Relation, Semantics
from harken.ir.terms import Variable
from harken.planner.prepare import prepare
from harken.values.types import INTEGER, Hierarchy
from tests.engines.conftest import MAKERS

COLUMNS = (Column("x", INTEGER), Column("y", INTEGER))
EDGE = Relation("edge", COLUMNS, 2, Kind.STORED, Semantics.SET, key=(0, 1))
ROW = (Variable("X", INTEGER), Variable("Y", INTEGER))


@pytest.fixture(params=[name for name in MAKERS if name != "reference"])
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = MAKERS[request.param]()
    made.create(EDGE)
    made.insert_many(EDGE, [(1, 2), (2, 3)])
    yield made
    made.connection.close()


def reading(engine: Any, relation: Relation) -> Query:
    goal = Relation("reading", COLUMNS, 0, Kind.DERIVED)
    clause = Clause(Atom(goal, ROW), (Atom(relation, ROW),))
    program = Program(goal, {goal.id: Definition(goal, (clause,))})
    found: Query = engine.compile(prepare(program, Hierarchy({})))
    return found


@pytest.fixture
def edge(engine: Any) -> CapturedDelta:
    watched: CapturedDelta = engine.capture.watch(EDGE)
    return watched


@pytest.fixture
def copy(engine: Any) -> KeptCopy:
    found: KeptCopy = engine.keep.open(CopiedRows(EDGE))
    return found


def test_nothing_holds_before_it_is_built(engine: Any, copy: KeptCopy) -> None:
    assert not copy.holds()
    assert engine.keep.built() == []
    assert engine.keep.total().rows == 0


def test_a_copy_has_the_rows_of_when_it_was_built(engine: Any, copy: KeptCopy) -> None:
    copy.build(reading(engine, EDGE))
    engine.insert_many(EDGE, [(3, 4)])
    assert copy.holds()
    assert set(copy.rows()) == {(1, 2), (2, 3)}
    assert set(reading(engine, copy_of(EDGE)).rows(())) == {(1, 2), (2, 3)}


def test_what_follows_a_change_is_what_building_would_make(
    engine: Any, edge: CapturedDelta, copy: KeptCopy
) -> None:
    copy.build(reading(engine, EDGE))
    engine.insert_many(EDGE, [(3, 4), (4, 5)])
    engine.remove_many(EDGE, [(1, 2)])
    assert copy.follow(None, edge)
    assert Counter(copy.rows()) == Counter(engine.rows(EDGE))


def test_a_rollback_takes_back_what_it_followed(
    engine: Any, edge: CapturedDelta, copy: KeptCopy
) -> None:
    copy.build(reading(engine, EDGE))
    engine.connection.begin()
    engine.insert_many(EDGE, [(3, 4)])
    copy.follow(None, edge)
    engine.connection.rollback()
    assert set(copy.rows()) == {(1, 2), (2, 3)}


def test_a_rollback_of_the_building_leaves_nothing_that_holds(engine: Any, copy: KeptCopy) -> None:
    engine.connection.begin()
    copy.build(reading(engine, EDGE))
    assert copy.holds()
    engine.connection.rollback()
    assert not copy.holds()


def test_what_was_not_brought_up_to_date_does_not_hold(engine: Any, copy: KeptCopy) -> None:
    copy.build(reading(engine, EDGE))
    copy.revoke()
    assert not copy.holds()
    copy.build(reading(engine, EDGE))
    assert copy.holds()


def test_all_that_is_kept_is_counted(engine: Any, copy: KeptCopy) -> None:
    copy.build(reading(engine, EDGE))
    assert engine.keep.built() == [copy]
    assert engine.keep.total() == copy.measure()
    assert (copy.size(), copy.measure().rows) == (2, 2)
    assert copy.measure().bytes > 0
    copy.drop()
    assert not copy.holds()
    assert engine.keep.built() == []
    assert engine.keep.total().bytes == 0
