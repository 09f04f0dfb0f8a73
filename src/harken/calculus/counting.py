"""Counting: the rows of a set are kept, each with the number of its derivations (Gupta, Mumick and
Subrahmanian, "Maintaining Views Incrementally", section 4).

    P(X) ← body      becomes      P(X) ← counted(X)        derivations(X) ← body, a bag

The change of the bag follows by `bags`, and with it the numbers. A row is gained when its number
comes from nothing, and lost when it comes to nothing: that it has another derivation, or had one,
need not be looked for in the other state, as `differentials` do.

Of a recursive relation the numbers would not tell: a row may derive itself. What is recursive below
is a relation like any other.

Law: the rewritten program has the same rows as the one it was made from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from harken.ir.clauses import Atom, Clause, Definition, Program, clause_variables
from harken.ir.dependencies import may_repeat
from harken.ir.relations import Kind, Relation, Role, Semantics
from harken.ir.safety import Needs
from harken.ir.strata import depends_on, reachable
from harken.ir.terms import Variable


@dataclass(frozen=True, slots=True)
class Derivations:
    """`relation` holds each row of a set that has any, `members` has each as often as it has."""

    relation: Relation
    members: Program


def count_derivations(program: Program, needs: Needs) -> tuple[Program, Derivations] | None:
    """The program reading its goal from counted derivations; None if they cannot be counted, or if
    a row is all that there is to a derivation."""
    goal, definition = program.goal, program.definitions[program.goal.id]
    chooses = definition.first or definition.numbered or definition.groups
    if not goal.is_set or chooses or needs.get(goal.id) or definition.limit is not None:
        return None
    if goal.id in depends_on(definition) or _is_plain(definition):
        return None
    bag = Relation(
        f"derivations of {goal.id}",
        goal.columns,
        0,
        Kind.DERIVED,
        Semantics.BAG,
        past=True,
        role=Role.AUXILIARY,
        of=goal,
    )
    clauses = tuple(Clause(replace(e.head, relation=bag), e.body) for e in definition.clauses)
    members = {**program.definitions, bag.id: Definition(bag, clauses)}
    counted = Relation(
        f"counted {goal.id}",
        goal.columns,
        0,
        Kind.STORED,
        key=tuple(range(goal.arity)),
        past=True,
        role=Role.KEPT,
        of=goal,
    )
    row = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(goal.columns))
    reading = Definition(goal, (Clause(Atom(goal, row), (Atom(counted, row),)),))
    return (
        Program(goal, {goal.id: reading}),
        Derivations(counted, Program(bag, reachable(bag, members))),
    )


def may_have_many(program: Program) -> bool:
    """May a row of the goal have several derivations? Otherwise there is nothing to count."""
    return may_repeat(program.definitions[program.goal.id])


def _is_plain(definition: Definition) -> bool:
    """Is the row the whole of its derivation, so that a change of one is that of the other?"""
    (first, *others) = definition.clauses or (None,)
    if first is None:
        return True
    return not others and clause_variables(first) <= set(first.head.terms)
