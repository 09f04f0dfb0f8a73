"""The change of a recursive relation of which nothing is stored: RoD, rederivation on demand
(Staudt and Jarke, section 4).

For each clause p ← r₁ ∧ ... ∧ rₙ and each rᵢ that has changed, p itself among them:

    (Dᵢ)  p^del ← rᵢ^minus ∧ the others in the old state     (E₂)  p^minus ← p^del ∧ ¬p
    (Iᵢ)  p^ins ← rᵢ^plus  ∧ the others in the new state     (E₁)  p^plus  ← p^ins ∧ ¬p@old

A negated rᵢ exchanges the signs; what an aggregate or a negated conjunction ranges over gives the
keys that are affected, as in `differentials`. Of p and p@old nothing is there: `magic` asks for the
rows that these rules look at, in the state in which they look (the paper's rules M).

Two things differ from the paper. What is looked at in the new state is derived from the tables as
they are now, instead of from the old state with corrections (its rules N and R); the tables hold
the new state here. And a row is only followed when it is known to be gone, or to be new: in the
paper p^del goes on from rows that are derived again, which in a graph with a cycle is nearly all of
it. So the rules of one sign depend on each other with a question between, and the layers of `magic`
see to it that the question is answered first.

Law: p^plus = p − p@old and p^minus = p@old − p. A row that is gone has, of the derivations that it
had, none without a row that is gone: from an earlier one, (D) finds it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from harken.calculus.affected import Affected
from harken.calculus.differentials import Differential, differentials_of
from harken.calculus.states import ADDED, REMOVED, affected_relations, delta, old, old_definitions
from harken.ir.clauses import Atom, Clause, Definition, Literal, Program
from harken.ir.relations import Column, Kind, Relation, Role, Semantics
from harken.ir.safety import required_inputs
from harken.ir.strata import stratify
from harken.ir.terms import Variable
from harken.values.types import INTEGER


@dataclass(frozen=True, slots=True)
class Rederivation:
    """The goal of the program is the change: the columns of p and a weight. What is `driven` goes
    on by itself; all else that is recursive is to be derived on demand."""

    program: Program
    driven: frozenset[str]


def cycle_of(program: Program) -> frozenset[str]:
    """The relations that the goal depends on and that depend on it."""
    return next(each.names for each in stratify(program) if program.goal.id in each.names)


def is_rederivable(program: Program) -> str | None:
    """Why the change cannot be found so; None if it can."""
    for definition in program.definitions.values():
        if not definition.relation.is_set:
            return f"{definition.relation.name} is a bag"
        if definition.first or definition.numbered or definition.groups:
            return f"{definition.relation.name} chooses among its rows"
        if definition.limit is not None:
            return f"{definition.relation.name} has a limit"
    return None


def rederive(program: Program, changed: Collection[str], nodes: Collection[str]) -> Rederivation:
    """The change of the goal, given which relations below have Δ-sets."""
    cycle = cycle_of(program)
    below = frozenset(nodes) - cycle
    affected = affected_relations(program, changed, below)
    finder = Affected(program, {*changed, *cycle}, affected, required_inputs(program))
    relations = [program.definitions[name].relation for name in sorted(cycle)]
    own = {delta(each).id: each for each in relations}
    made: dict[str, Definition] = {}
    for relation in relations:
        clauses = program.definitions[relation.id].clauses
        found = [each for clause in clauses for each in differentials_of(clause, finder)]
        made |= {each.relation.id: each for each in _definitions(relation, found, own)}
    change = _change(program.goal)
    known = {**program.definitions, **old_definitions(program, changed, below), **finder.made}
    definitions = {change.relation.id: change, **known, **made}
    return Rederivation(Program(change.relation, definitions), frozenset(made))


def marked(relation: Relation, mark: str) -> Relation:
    """p^del, p^ins, p^plus or p^minus."""
    return relation.variant(
        Role.REDERIVED,
        f"{relation.name}^{mark}",
        kind=Kind.DERIVED,
        semantics=Semantics.SET,
        key=None,
        past=True,
    )


def is_marked(relation: Relation) -> bool:
    """Is it one of these? It has about as many rows as the change."""
    return relation.role is Role.REDERIVED


def _definitions(
    relation: Relation, found: list[Differential], own: Mapping[str, Relation]
) -> list[Definition]:
    row = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(relation.columns))
    made = []
    for sign, candidates, exact, other in (
        (1, "ins", "plus", old(relation)),
        (-1, "del", "minus", relation),
    ):
        maybe, surely = marked(relation, candidates), marked(relation, exact)
        clauses = tuple(
            Clause(
                Atom(maybe, each.clause.head.terms),
                tuple(_coming(literal, own) for literal in each.clause.body),
            )
            for each in found
            if each.sign == sign
        )
        checked = Clause(Atom(surely, row), (Atom(maybe, row), Atom(other, row, negated=True)))
        made += [Definition(maybe, clauses), Definition(surely, (checked,))]
    return made


def _coming(literal: Literal, own: Mapping[str, Relation]) -> Literal:
    """What a relation of the cycle has gained or lost is in no Δ-set: it is coming to be known."""
    if not isinstance(literal, Atom) or literal.relation.id not in own:
        return literal
    mark = "plus" if literal.terms[-1] == ADDED else "minus"
    changed = marked(own[literal.relation.id], mark)
    return Atom(changed, literal.terms[:-1], span=literal.span)


def _change(relation: Relation) -> Definition:
    goal = Relation(
        f"change of {relation.name}",
        (*relation.columns, Column("weight", INTEGER)),
        relation.inputs,
        Kind.DERIVED,
        past=True,
        role=Role.CHANGE,
        of=relation,
    )
    row = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(relation.columns))
    clauses = tuple(
        Clause(Atom(goal, (*row, weight)), (Atom(marked(relation, mark), row),))
        for mark, weight in (("plus", ADDED), ("minus", REMOVED))
    )
    return Definition(goal, clauses, exclusive=True)
