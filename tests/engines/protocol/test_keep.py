"""What is kept holds while it is what building it would make now, whatever it is and whichever
engine keeps it. Each test is one sentence of the laws in `engines.protocol.keep`.

A `Case` is one kind of derived state over `edge`: its specification, how it is built, what it
follows, and how its rows are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harken.calculus.bags import differentiate_bag
from harken.calculus.counting import count_derivations
from harken.calculus.first_rows import first_rows
from harken.calculus.rounds import Rounds, rounds_of
from harken.calculus.states import copy_of
from harken.calculus.stored_recursion import maintain
from harken.calculus.totals import totals_of
from harken.engines.protocol import (
    CopiedRows,
    RecursionSource,
    RecursiveRows,
    RoundsChange,
    RoundsSource,
)
from harken.ir.clauses import Aggregation, Atom, Clause, Definition, First, Literal, Program
from harken.ir.relations import Column, Kind, Relation, Semantics
from harken.ir.terms import Variable
from harken.planner.prepare import Plan, prepare, prepare_change
from harken.values.types import INTEGER, Hierarchy
from tests.engines.conftest import WITH_FILES

COLUMNS = (Column("x", INTEGER), Column("y", INTEGER))
EDGE = Relation("edge", COLUMNS, 2, Kind.STORED, Semantics.SET, key=(0, 1))
X, Y, Z = (Variable(name, INTEGER) for name in "XYZ")
BEFORE = [(1, 2), (1, 3), (2, 3), (3, 4)]


def program(relation: Relation, *bodies: tuple[Literal, ...]) -> Program:
    terms = (X, Y)[: relation.arity]
    clauses = tuple(Clause(Atom(relation, terms), body) for body in bodies)
    return Program(relation, {relation.id: Definition(relation, clauses)})


def bag(name: str) -> Relation:
    return Relation(name, COLUMNS, 0, Kind.DERIVED, Semantics.BAG)


def closure(relation: Relation) -> Program:
    step = (Atom(relation, (X, Z)), Atom(EDGE, (Z, Y)))
    return program(relation, (Atom(EDGE, (X, Y)),), step)


def planned(wanted: Program) -> Plan:
    return prepare(wanted, Hierarchy({}))


MEMBERS = program(bag("members"), (Atom(EDGE, (X, Y)),))
REACHED = program(Relation("reached", COLUMNS[1:], 0, Kind.DERIVED), (Atom(EDGE, (Y, X)),))
CLOSURE = closure(Relation("closure", COLUMNS, 0, Kind.DERIVED))
ROUNDS = rounds_of(closure(replace(bag("paths"), in_rounds=True)))


class Case:
    """One kind of what is kept, opened in an engine. `relation` has its rows for plans to read;
    the Δ-set is that of `changing`."""

    specification: Any
    relation: Relation

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.kept = engine.keep.open(self.specification)
        self.delta = engine.capture.delta(self.changing)
        self.delta.create()

    @property
    def changing(self) -> Relation:
        return self.relation

    def build(self) -> None:
        raise NotImplementedError

    def follow(self, edge: Any) -> bool:
        """Take in the change of `edge`."""
        raise NotImplementedError

    def rows(self) -> Counter[Any]:
        terms = tuple(Variable(f"X{i}", each.type) for i, each in enumerate(self.relation.columns))
        goal = Relation("reading", self.relation.columns, 0, Kind.DERIVED, Semantics.BAG)
        clause = Clause(Atom(goal, terms), (Atom(self.relation, terms),))
        reading = planned(Program(goal, {goal.id: Definition(goal, (clause,))}))
        stored = [self.kept] if isinstance(self.specification, Rounds | RecursiveRows) else []
        return Counter(self.engine.keep.compile(reading, stored).rows(()))


class SummaryCase(Case):
    """Totals, first rows and counts are built from their members, and follow those."""

    def __init__(self, engine: Any) -> None:
        self.relation = self.specification.relation
        super().__init__(engine)

    def compile(self, wanted: Program) -> Any:
        return self.engine.compile(planned(wanted))

    def build(self) -> None:
        self.engine.keep.build([(self.kept, self.specification.members)], self.compile)

    def follow(self, edge: Any) -> bool:
        changed = differentiate_bag(self.specification.members, {EDGE.id})
        return bool(self.kept.follow([(self.compile(changed), None)], self.delta))


def totals_case(aggregate: str) -> type[Case]:
    literal = Aggregation(Z, aggregate, Y, Atom(MEMBERS.goal, (X, Y)), (X,))

    class Totals(SummaryCase):
        specification = totals_of(literal, MEMBERS, {})

    return Totals


class FirstRowsCase(SummaryCase):
    first = First(MEMBERS.goal.id, 0, ((1, True, False), (0, False, False)), 2, 1)
    specification = first_rows(Definition(bag("top"), (), first=first), MEMBERS, {})


class CountsCase(SummaryCase):
    specification = (count_derivations(REACHED, {}) or (None, None))[1]


class CopyCase(Case):
    specification = CopiedRows(EDGE)
    relation = copy_of(EDGE)

    def build(self) -> None:
        self.kept.build(self.engine.compile(planned(MEMBERS)))

    def follow(self, edge: Any) -> bool:
        return bool(self.kept.follow(None, edge))


class RoundsCase(Case):
    specification: Any = ROUNDS
    relation = ROUNDS.stored if ROUNDS else EDGE

    @property
    def changing(self) -> Relation:
        return self.specification.relation  # type: ignore[no-any-return]

    def build(self) -> None:
        self.kept.create()
        self.step = self.engine.keep.compile(planned(self.specification.step), [])
        base = self.engine.compile(planned(self.specification.base))
        self.kept.build(RoundsSource(base, self.step))

    def follow(self, edge: Any) -> bool:
        base, kept_step = (
            self.engine.keep.compile(planned(differentiate_bag(each, {EDGE.id})), [self.kept])
            for each in (self.specification.base, self.specification.kept_step)
        )
        return bool(self.kept.follow(RoundsChange(base, kept_step, self.step), self.delta))


class RecursionCase(Case):
    specification = RecursiveRows((CLOSURE.goal,), "closure")
    relation = copy_of(CLOSURE.goal)

    @property
    def changing(self) -> Relation:
        return CLOSURE.goal

    def source(self) -> RecursionSource:
        plan = prepare(CLOSURE, Hierarchy({}), wanted=[CLOSURE.goal.id])
        return RecursionSource(self.engine.compile(plan), {CLOSURE.goal.id: CLOSURE.goal})

    def build(self) -> None:
        self.kept.build(self.source())

    def follow(self, edge: Any) -> bool:
        rules = maintain(CLOSURE, {EDGE.id}, frozenset({CLOSURE.goal.id}))
        deleted, grown = rules.deleted(CLOSURE.goal).id, rules.grown(CLOSURE.goal).id
        prepared = self.kept.prepare(
            rules,
            prepare_change(rules.deletion, Hierarchy({}), [deleted]),
            prepare_change(rules.insertion, Hierarchy({}), [grown]),
        )
        return bool(self.kept.follow(prepared, self.delta))


class ComparedRecursionCase(RecursionCase):
    """The same rows, brought up to date by comparing all of them."""

    def follow(self, edge: Any) -> bool:
        self.kept.compare(self.source(), self.delta)
        return True


CASES: dict[str, tuple[type[Case], list[Any]]] = {
    "a copy": (CopyCase, BEFORE),
    "a count": (totals_case("count"), [(1, 2), (2, 1), (3, 1)]),
    "a sum": (totals_case("sum"), [(1, 5), (2, 3), (3, 4)]),
    "an average": (totals_case("avg"), [(1, 2.5), (2, 3.0), (3, 4.0)]),
    "a minimum": (totals_case("min"), [(1, 2), (2, 3), (3, 4)]),
    "a maximum": (totals_case("max"), [(1, 3), (2, 3), (3, 4)]),
    "first rows": (FirstRowsCase, [(1, 3), (2, 3)]),
    "counts": (CountsCase, [(2,), (3,), (4,)]),
    "rounds": (
        RoundsCase,
        [
            *((0, *row, 1) for row in BEFORE),
            *((1, 1, 3, 1), (1, 1, 4, 1), (1, 2, 4, 1), (2, 1, 4, 1)),
        ],
    ),
    "a recursion": (RecursionCase, [*BEFORE, (1, 4), (2, 4)]),
    "a recursion that is compared": (ComparedRecursionCase, [*BEFORE, (1, 4), (2, 4)]),
}


@dataclass
class World:
    """An engine with `edge`, whose changes are captured, and one thing that is kept."""

    engine: Any
    edge: Any
    case: Case
    wanted: Counter[Any]

    @property
    def kept(self) -> Any:
        return self.case.kept

    def change(self, plus: Any = ((4, 5), (1, 4)), minus: Any = ((2, 3),)) -> None:
        self.engine.insert_many(EDGE, list(plus))
        self.engine.remove_many(EDGE, list(minus))

    def settle(self) -> None:
        """As at the end of a wave."""
        self.engine.capture.settle([self.edge])
        self.case.delta.clear()


@pytest.fixture(params=CASES)
def world(request: pytest.FixtureRequest, engine: Any) -> World:
    return opened(engine, request.param)


def opened(engine: Any, name: str) -> World:
    engine.create(EDGE)
    engine.insert_many(EDGE, BEFORE)
    make, wanted = CASES[name]
    return World(engine, engine.capture.watch(EDGE), make(engine), Counter(wanted))


def test_nothing_holds_before_it_is_built(world: World) -> None:
    assert not world.kept.holds()
    assert world.engine.keep.built() == []
    assert world.engine.keep.total().rows == 0


def test_what_is_built_holds_and_has_the_rows(world: World) -> None:
    world.case.build()
    assert world.kept.holds()
    assert world.case.rows() == world.wanted


def test_what_follows_a_change_is_what_building_would_make(world: World) -> None:
    world.case.build()
    world.change()
    assert world.case.follow(world.edge)
    assert world.kept.holds()
    followed = world.case.rows()
    assert followed != world.wanted or isinstance(world.case, CountsCase | FirstRowsCase)
    world.case.build()
    assert world.case.rows() == followed


def test_the_delta_set_has_what_following_changed(world: World) -> None:
    """Of rounds it has what changed in all of them, and a copy follows one."""
    world.case.build()
    before = world.case.rows()
    world.change()
    world.case.follow(world.edge)
    after = world.case.rows()
    plus, minus = (world.edge if isinstance(world.case, CopyCase) else world.case.delta).rows()
    if isinstance(world.case, RoundsCase):
        before, after = (_whatever_the_round(each) for each in (before, after))
    assert (set(plus), set(minus)) == (set(after - before), set(before - after))


def _whatever_the_round(rounds: Counter[Any]) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for _, *row, times in rounds:
        found[tuple(row)] += times
    return found


def test_it_follows_change_after_change(world: World) -> None:
    """Edges lead upwards, so that paths have an end."""
    random, there = Random(7), set(BEFORE)
    world.case.build()
    for _ in range(6):
        pairs = [(x, y) for x in range(1, 6) for y in range(x + 1, 7)]
        plus = {each for each in random.sample(pairs, 2) if each not in there}
        minus = set(random.sample(sorted(there), min(2, len(there))))
        there = (there - minus) | plus
        world.change(plus, minus)
        if not world.case.follow(world.edge):  # it cannot be kept any longer
            assert not world.kept.holds()
            world.case.build()
        world.settle()
        followed = world.case.rows()
        world.case.build()
        assert world.case.rows() == followed


def test_a_rollback_takes_back_what_it_followed(world: World) -> None:
    world.case.build()
    world.engine.connection.begin()
    world.change()
    world.case.follow(world.edge)
    world.engine.connection.rollback()
    assert world.kept.holds()
    assert world.case.rows() == world.wanted


def test_a_savepoint_takes_back_what_it_followed(world: World) -> None:
    world.case.build()
    world.engine.connection.begin()
    world.engine.connection.set_savepoint("mine")
    world.change()
    world.case.follow(world.edge)
    world.engine.connection.undo_to("mine")
    assert world.kept.holds()
    assert world.case.rows() == world.wanted
    world.engine.connection.rollback()


def test_a_rollback_of_the_building_leaves_nothing_that_holds(world: World) -> None:
    world.engine.connection.begin()
    world.case.build()
    assert world.kept.holds()
    world.engine.connection.rollback()
    assert not world.kept.holds()
    assert world.engine.keep.built() == []
    world.case.build()
    assert world.case.rows() == world.wanted


def test_what_was_revoked_does_not_hold_until_it_is_built_again(world: World) -> None:
    world.case.build()
    world.kept.revoke()
    assert not world.kept.holds()
    world.change()
    world.case.build()
    assert world.kept.holds()


def test_all_that_is_built_and_holds_is_the_total(world: World) -> None:
    world.case.build()
    assert world.engine.keep.built() == [world.kept]
    assert world.engine.keep.total() == world.kept.measure()
    assert world.kept.measure().rows == world.kept.size() > 0
    assert world.kept.measure().bytes > 0
    world.kept.drop()
    assert not world.kept.holds()
    assert world.engine.keep.built() == []
    assert world.engine.keep.total().bytes == 0


def test_counts_say_how_many_derivations_all_rows_have(engine: Any) -> None:
    world = opened(engine, "counts")
    world.case.build()
    assert world.kept.total() == len(BEFORE)
    world.change(plus=[(2, 4)], minus=[(1, 3), (2, 3)])
    world.case.follow(world.edge)
    assert world.kept.total() == len(BEFORE) - 1
    assert world.case.rows() == Counter([(2,), (4,)])
    assert world.case.delta.rows() == ([], [(3,)])


@pytest.fixture(params=[(name, kind) for name in WITH_FILES for kind in CASES], ids="-".join)
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[World, Any]]:
    """A thing that is kept, and another session of its file."""
    name, kind = request.param
    make: Callable[[str], Any] = WITH_FILES[name]
    mine, other = (make(str(tmp_path / "shared.db")) for _ in range(2))
    yield opened(mine, kind), other
    mine.connection.close()
    other.connection.close()


def test_it_does_not_hold_after_a_commit_of_another_session(shared: tuple[World, Any]) -> None:
    world, other = shared
    world.case.build()
    assert world.kept.holds()
    other.insert_many(EDGE, [(8, 9)])
    assert not world.kept.holds()
    world.case.build()
    assert world.kept.holds()
