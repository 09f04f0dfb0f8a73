"""Partial differentials of a set: the changes of P, from the change of one literal at a time.

For each clause of P and each literal Q in its body that has changed (thesis 5.3, table 1 of the
chapter):

    ΔP/Δ+Q ← Δ+Q ∧ the other literals in the new state
    ΔP/Δ−Q ← Δ−Q ∧ the other literals in the old state

A negated Q exchanges the signs. What an aggregate or a negated conjunction ranges over is not
differentiated through: the clause is evaluated, in both states, for the keys that it is affected
by (`affected`). Each gives candidates, perhaps too many; the exact changes are

    Δ+P = candidates in the new state − P@old        Δ−P = candidates in the old state − P

Law: Δ+P = P − P@old and Δ−P = P@old − P, for every combination of changed relations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from harken.calculus.affected import affected_keys
from harken.calculus.states import (
    added,
    affected_relations,
    literal_in_old,
    old,
    old_definitions,
    removed,
)
from harken.ir.clauses import Aggregation, Atom, Clause, Definition, Literal, Program
from harken.ir.relations import Kind, Relation


@dataclass(frozen=True, slots=True)
class Differential:
    """ΔP/Δ+Q or ΔP/Δ−Q: `influent` is the id of Q, `sign` that of the change of P."""

    influent: str
    sign: int
    clause: Clause


@dataclass(frozen=True, slots=True)
class Change:
    """Everything that computes ΔP when the relations in `changed` have changed.

    `plus` and `minus` are programs whose goals are Δ+P and Δ−P.
    """

    relation: Relation
    changed: frozenset[str]
    differentials: tuple[Differential, ...]
    plus: Program
    minus: Program


def changed_relation(relation: Relation, sign: int) -> Relation:
    """The relation Δ+P or Δ−P, with the columns of P."""
    name = f"{'plus' if sign > 0 else 'minus'} {relation.name}"
    return replace(relation, name=name, kind=Kind.DERIVED, key=None)


def differentiate(program: Program, changed: Collection[str]) -> Change:
    """The change of the goal of a program of sets, given which stored relations changed."""
    goal = program.goal
    relevant = frozenset(changed)
    before = old_definitions(program, relevant)
    found = tuple(_differentials(program, relevant))
    auxiliary = {
        definition.relation.id: definition
        for each in found
        for definition in affected_keys(program, each.clause, relevant)
    }
    known = {**program.definitions, **before, **auxiliary}
    plus = _exact(goal, 1, found, old(goal), known)
    minus = _exact(goal, -1, found, goal, known)
    return Change(goal, relevant, found, plus, minus)
