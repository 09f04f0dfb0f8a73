"""Which keys of a negated or aggregated relation can a change affect?

An auxiliary relation A(G, V) under `not` or an aggregate is not differentiated: it is looked at
again, in both states, for the groups G that a change reaches. Those are the heads of A's own
partial differentials, without their check and without what cannot be evaluated yet:

    K(G) ← ΔQ(X, +1) ∧ the rest of A's body in the new state
    K(G) ← ΔQ(X, −1) ∧ the rest of A's body in the old state

Law: if A gives different rows for G in the two states, then K holds for the columns of G that K
has. K may hold for more. A K without columns means that every group may be affected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from harken.calculus.states import added, literal_in_old, removed
from harken.errors import SafetyFault
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Definition,
    Literal,
    Program,
    literal_variables,
)
from harken.ir.relations import Column, Kind, Relation
from harken.ir.safety import Needs, order
from harken.ir.terms import Variable


@dataclass(frozen=True, slots=True)
class Keys:
    """The affected keys of a relation, and which of its columns they are."""

    definition: Definition
    columns: tuple[int, ...]

    def atom(self, looked_at: Atom) -> Atom:
        """K applied to the terms of an atom over the relation."""
        terms = tuple(looked_at.terms[position] for position in self.columns)
        return Atom(self.definition.relation, terms, span=looked_at.span)


@dataclass(frozen=True, slots=True)
class Affected:
    """Finds affected keys in one program, for one set of changed relations."""

    program: Program
    changed: Collection[str]
    affected: Collection[str]
    needs: Needs

    def keys(self, relation: Relation, allowed: Collection[int]) -> Keys:
        """The affected keys of an auxiliary relation, among the columns that its user binds."""
        definition = self.program.definitions[relation.id]
        bodies = [
            (clause, body) for clause in definition.clauses for body in self._bodies(clause)
        ]
        columns = tuple(
            position
            for position in sorted(allowed)
            if all(_binds(body, clause, position) for clause, body in bodies)
        )
        found = Relation(
            name=f"affected {relation.id} {','.join(map(str, columns))}",
            columns=tuple(Column(f"k{i}", relation.columns[i].type) for i in columns),
            inputs=len(columns),
            kind=Kind.DERIVED,
        )
        clauses = tuple(
            Clause(Atom(found, tuple(clause.head.terms[i] for i in columns)), body)
            for clause, body in bodies
        )
        return Keys(Definition(found, clauses), columns)

    def _bodies(self, clause: Clause) -> Iterator[tuple[Literal, ...]]:
        """One body for each literal of the clause that changed, and each sign of the change."""
        for position, literal in enumerate(clause.body):
            others = clause.body[:position] + clause.body[position + 1 :]
            before = tuple(literal_in_old(other, self.affected) for other in others)
            for reached in self._reached(literal, added):
                yield self._evaluable((*reached, *others))
            for reached in self._reached(literal, removed):
                yield self._evaluable((*reached, *before))

    def _reached(self, literal: Literal, signed: object) -> Iterator[tuple[Literal, ...]]:
        match literal:
            case Atom() if literal.relation.id in self.changed:
                positive = Atom(literal.relation, literal.terms, span=literal.span)
                yield ((added if signed is added else removed)(positive),)
            case Atom() if literal.relation.id in self.affected:
                keys = self.keys(literal.relation, range(literal.relation.arity))
                yield self._inlined(keys, literal)
            case Aggregation() if literal.atom.relation.id in self.affected:
                keys = self.keys(literal.atom.relation, group_columns(literal))
                yield self._inlined(keys, literal.atom)

    def _inlined(self, keys: Keys, atom: Atom) -> tuple[Literal, ...]:
        """An inner K becomes a definition of its own, remembered beside the outer one."""
        self.program_definitions[keys.definition.relation.id] = keys.definition
        return (keys.atom(atom),)

    @property
    def program_definitions(self) -> dict[str, Definition]:
        return self.program.definitions  # type: ignore[return-value]

    def _evaluable(self, body: tuple[Literal, ...]) -> tuple[Literal, ...]:
        """As much of the body as can be evaluated from the change alone."""
        kept = list(body)
        while True:
            try:
                return order(kept, (), self.needs)
            except SafetyFault:
                kept = self._without_one(kept)

    def _without_one(self, body: list[Literal]) -> list[Literal]:
        known: set[Variable] = set()
        for literal in body:
            if isinstance(literal, Atom) and not literal.negated:
                known.update(literal_variables(literal))
        for position in range(len(body) - 1, 0, -1):
            if not set(literal_variables(body[position])) <= known:
                return body[:position] + body[position + 1 :]
        return body[:-1]


def group_columns(literal: Aggregation) -> tuple[int, ...]:
    """The columns of the aggregated atom that hold its group."""
    groups = set(literal.groups)
    return tuple(
        position
        for position, term in enumerate(literal.atom.terms)
        if not isinstance(term, Variable) or term in groups
    )


def _binds(body: tuple[Literal, ...], clause: Clause, position: int) -> bool:
    term = clause.head.terms[position]
    if not isinstance(term, Variable):
        return True
    return any(term in literal_variables(literal) for literal in body)
