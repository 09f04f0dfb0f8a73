"""Which relations of a program are computed once: those that would be written out again."""

from __future__ import annotations

from harken.ir.clauses import Atom, Clause, Definition, Program
from harken.ir.relations import Column, Kind, Relation
from harken.ir.terms import Variable
from harken.planner.prepare import prepare
from harken.planner.tabulate import tabulate
from harken.values.types import INTEGER, Hierarchy

ROW = (Variable("X", INTEGER),)
BASE = Relation("base", (Column("x", INTEGER),), 0, Kind.STORED)


def derived(name: str) -> Relation:
    return Relation(name, (Column("x", INTEGER),), 0, Kind.DERIVED)


def tower(height: int, mentions: int, tabled: bool = True) -> Program:
    """Each relation mentions the one below so many times; the lowest the stored one."""
    below, definitions = BASE, {}
    for level in range(height):
        relation = derived(f"r{level}")
        clauses = tuple(
            Clause(Atom(relation, ROW), (Atom(below, ROW),) * 3) for _ in range(mentions)
        )
        definitions[relation.id] = Definition(relation, clauses, tabled=tabled)
        below = relation
    return Program(below, definitions)


def test_a_short_program_is_left_as_it_is() -> None:
    assert tabulate(tower(2, 2), ()) == frozenset()


def test_what_a_long_program_mentions_repeatedly_is_computed_once() -> None:
    program = tower(8, 2)
    assert tabulate(program, ()) == {f"r{level}()" for level in range(7)}
    plan = prepare(program, Hierarchy({}))
    assert [stratum.names for stratum in plan.computed] == [{f"r{level}()"} for level in range(7)]
    assert plan.recursive == ()


def test_only_what_is_tabled_and_needs_no_arguments() -> None:
    assert tabulate(tower(8, 2, tabled=False), ()) == frozenset()
    assert "r3()" not in tabulate(tower(8, 2), {"r3()"})


def test_what_is_wanted_beside_the_goal_is_a_table() -> None:
    plan = prepare(tower(2, 1), Hierarchy({}), wanted=["r0()"])
    assert [stratum.names for stratum in plan.computed] == [{"r0()"}]
