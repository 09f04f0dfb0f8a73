"""The change of a recursive relation of which a copy is stored: Algorithm 1 (Staudt and Jarke,
section 3), the three steps of delete and rederive.

For each clause p ← r₁ ∧ ... ∧ rₙ of the relations that depend on each other:

    (Dᵢ)  p^del ← rᵢ^del ∧ the others in the old state        what may be gone
    (N₁)  p^new ← p ∧ ¬p^del                                  what surely stays
    (R)   p^new ← p^del ∧ r₁^new ∧ ... ∧ rₙ^new               of that what has another derivation
    (Iᵢ)  p^new ← rᵢ^ins ∧ the others in the new state        what comes
    (E)   p^plus ← p^new ∧ ¬p        p^minus ← p^del ∧ ¬p^new

p and p^new are one table, the copy: (N₁) takes p^del out of it, and (R) and (I), evaluated
semi-naively, put rows in. A row that was put in goes on by (I), whichever rule it is from; so of
(R) only the first step is written down. A negated rᵢ exchanges the signs, and what an aggregate or
a negated conjunction ranges over gives the keys that are affected, as in `differentials`.

Law: p^plus = p^new − p and p^minus = p − p^new, and the copy is p^new at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from harken.calculus.affected import Affected
from harken.calculus.differentials import Differential, differentials_of
from harken.calculus.rederivation import cycle_of, marked
from harken.calculus.states import (
    affected_relations,
    copy_of,
    delta,
    old,
    old_definitions,
)
from harken.ir.clauses import Atom, Clause, Definition, Literal, Program
from harken.ir.relations import Kind, Relation, Role
from harken.ir.safety import required_inputs
from harken.ir.terms import Variable


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Two programs to be run one after the other, with (N₁) between them. The relations of the
    first are p^del; those of the second are the copies, into which its rows go."""

    relations: tuple[Relation, ...]
    """Those that depend on each other."""
    deletion: Program
    insertion: Program

    def deleted(self, relation: Relation) -> Relation:
        return marked(relation, "del")

    def grown(self, relation: Relation) -> Relation:
        return grown(relation)


def grown(relation: Relation) -> Relation:
    """The copy of a relation as it is being filled: the rows are in the table of the copy."""
    copy = copy_of(relation)
    return copy.variant(Role.AUXILIARY, f"grown {relation.name}", kind=Kind.DERIVED)


def maintain(program: Program, changed: Collection[str], nodes: Collection[str]) -> Maintenance:
    """The rules for the relations that the goal depends on and that depend on it, given which
    relations below have Δ-sets."""
    cycle = cycle_of(program)
    below = frozenset(nodes) - cycle
    affected = affected_relations(program, changed, below)
    finder = Affected(program, {*changed, *cycle}, affected, required_inputs(program))
    relations = tuple(program.definitions[name].relation for name in sorted(cycle))
    named = _Names(relations)
    deletion: list[Definition] = []
    insertion: list[Definition] = []
    for relation in relations:
        clauses = program.definitions[relation.id].clauses
        found = [each for clause in clauses for each in differentials_of(clause, finder)]
        deletion.append(_deletion(relation, found, named))
        insertion.append(_insertion(relation, clauses, found, named))
    others = {
        **{name: each for name, each in program.definitions.items() if name not in cycle},
        **{
            name: each
            for name, each in old_definitions(program, changed, below).items()
            if name not in named.old
        },
        **finder.made,
    }
    first = program.goal
    return Maintenance(
        relations,
        _reading(marked(first, "del"), deletion, others),
        _reading(grown(first), insertion, others),
    )


class _Names:
    """What the relations that depend on each other are called in each state."""

    def __init__(self, relations: Collection[Relation]) -> None:
        self.now = {each.id: each for each in relations}
        self.old = {old(each).id: each for each in relations}
        self.delta = {delta(each).id: each for each in relations}

    def stored(self, literal: Literal) -> Literal:
        """The copy in place of a relation, in whatever state it is."""
        if isinstance(literal, Atom):
            found = self.now.get(literal.relation.id) or self.old.get(literal.relation.id)
            if found is not None:
                return replace(literal, relation=copy_of(found))
        return literal

    def deleted(self, literal: Literal) -> Literal:
        if isinstance(literal, Atom) and literal.relation.id in self.delta:
            relation = marked(self.delta[literal.relation.id], "del")
            return Atom(relation, literal.terms[:-1], span=literal.span)
        return self.stored(literal)

    def growing(self, literal: Literal) -> Literal:
        if isinstance(literal, Atom) and literal.relation.id in self.now:
            return replace(literal, relation=grown(self.now[literal.relation.id]))
        return literal


def _deletion(relation: Relation, found: list[Differential], named: _Names) -> Definition:
    target = marked(relation, "del")
    clauses = tuple(
        Clause(
            Atom(target, each.clause.head.terms),
            tuple(named.deleted(literal) for literal in each.clause.body),
        )
        for each in found
        if each.sign < 0
    )
    return Definition(target, clauses)


def _insertion(
    relation: Relation, clauses: tuple[Clause, ...], found: list[Differential], named: _Names
) -> Definition:
    target, gone = grown(relation), marked(relation, "del")
    gone = replace(gone, kind=Kind.STORED)
    made = []
    for clause in clauses:
        head = Atom(target, clause.head.terms)
        body = tuple(named.stored(literal) for literal in clause.body)
        made.append(Clause(head, (Atom(gone, clause.head.terms), *body)))
        again = tuple(named.growing(literal) for literal in clause.body)
        if again != clause.body:
            made.append(Clause(head, again))
    for each in found:
        if each.sign > 0 and each.influent.id not in named.now:
            body = tuple(named.stored(literal) for literal in each.clause.body)
            made.append(Clause(Atom(target, each.clause.head.terms), body))
    return Definition(target, tuple(made))


def _reading(
    first: Relation, definitions: list[Definition], others: Mapping[str, Definition]
) -> Program:
    """A program whose goal reads one of the relations, and with it all of them."""
    goal = first.variant(Role.AUXILIARY, f"all of {first.name}", kind=Kind.DERIVED)
    row = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(first.columns))
    reading = Definition(goal, (Clause(Atom(goal, row), (Atom(first, row),)),))
    known = {each.relation.id: each for each in (reading, *definitions)}
    return Program(goal, {**others, **known})
