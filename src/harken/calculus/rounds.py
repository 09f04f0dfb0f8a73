"""The change of a recursion that counts derivations (UNION ALL), of which the rounds are stored.

The rows of round k + 1 follow from those of round k, each by itself, so a step S is linear in them:
with rₖ for the rows of round k and their multiplicities, r₀ = B and rₖ₊₁ = S(rₖ),

    Δr₀ = ΔB        Δrₖ₊₁ = ΔS(rₖ@old) + S(Δrₖ)

where S is that of the new state. ΔS(rₖ@old) is the change of a bag that is not recursive, over the
stored rounds as a relation that has not changed (`bags`): of all rounds at once. Then the rounds
are gone through, each with what has come to be known of it. Nothing is derived twice, and no row is
looked for: it is counting, with the round as a part of the row, so that no row derives itself.

Law: the Δrₖ, summed over all rounds, are the multiplicities in r minus those in r@old; where both
come to an end, so do the Δrₖ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from harken.calculus.states import delta
from harken.ir.clauses import Atom, Clause, Definition, Literal, Program
from harken.ir.relations import Column, Kind, Relation, Role, Semantics
from harken.ir.strata import reachable, stratify
from harken.ir.terms import Term, Variable
from harken.values.types import INTEGER

ROUND, TIMES = Variable("ROUND#", INTEGER), Variable("TIMES#", INTEGER)


@dataclass(frozen=True, slots=True)
class Rounds:
    """`stored` has the number of a round, a row of it, and how often it is there; `moving` the
    same of what changes. `base` gives B; `step` the rows of the next round, each with the number of
    the round that it is from and how often, over what is moving, and `kept_step` over what is
    stored."""

    relation: Relation
    stored: Relation
    moving: Relation
    base: Program
    step: Program
    kept_step: Program


def rounds_of(program: Program) -> Rounds | None:
    """Those of the goal; None if other relations lie between one round and the next."""
    goal = program.goal
    cycle = next(each for each in stratify(program) if goal.id in each.names)
    if not (goal.in_rounds and cycle.recursive and len(cycle.definitions) == 1):
        return None
    clauses = program.definitions[goal.id].clauses
    first = [each for each in clauses if not _mentions(each, goal)]
    later = [each for each in clauses if _mentions(each, goal)]
    columns = (Column("round", INTEGER), *goal.columns)
    key = tuple(range(len(columns)))
    row = Relation(
        f"rounds of {goal.id}",
        columns,
        0,
        Kind.STORED,
        key=key,
        past=True,
        role=Role.KEPT,
        of=goal,
    )
    moving = delta(row)
    stored = replace(row, columns=moving.columns)
    bag = _bag(f"first of {goal.id}", goal.columns, goal)
    base = Definition(bag, tuple(Clause(replace(e.head, relation=bag), e.body) for e in first))
    others = {name: each for name, each in program.definitions.items() if name != goal.id}
    return Rounds(
        goal,
        stored,
        moving,
        Program(bag, reachable(bag, {**others, bag.id: base})),
        _step(goal, later, moving, others),
        _step(goal, later, stored, others),
    )


def _bag(name: str, columns: tuple[Column, ...], of: Relation) -> Relation:
    return Relation(
        name,
        columns,
        0,
        Kind.DERIVED,
        Semantics.BAG,
        past=True,
        role=Role.AUXILIARY,
        of=of,
    )


def _mentions(clause: Clause, relation: Relation) -> bool:
    return any(isinstance(e, Atom) and e.relation.id == relation.id for e in clause.body)


def _step(
    goal: Relation, clauses: list[Clause], source: Relation, others: dict[str, Definition]
) -> Program:
    columns = source.columns
    made = _bag(f"after {source.id}", columns, source)

    def reading(literal: Literal) -> Literal:
        if not isinstance(literal, Atom) or literal.relation.id != goal.id:
            return literal
        return Atom(source, _row(literal.terms), span=literal.span)

    definition = Definition(
        made,
        tuple(
            Clause(Atom(made, _row(each.head.terms)), tuple(map(reading, each.body)))
            for each in clauses
        ),
    )
    return Program(made, reachable(made, {**others, made.id: definition}))


def _row(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    return (ROUND, *terms, TIMES)
