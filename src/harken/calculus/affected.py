"""Which keys of a negated or aggregated relation can a change affect?

An auxiliary relation A(G, V) under `not` or an aggregate is not differentiated: it is looked at
again, in both states, for the groups G that a change reaches. Those are the heads of A's own
partial differentials, without their check and without what cannot be evaluated yet:

    K(G) ← Δ+Q(X) ∧ the rest of A's body in the new state
    K(G) ← Δ−Q(X) ∧ the rest of A's body in the old state

A negated Q exchanges the signs.

Law: if A gives different rows for G in the two states, then K holds for the columns of G that K
has. K may hold for more. A K without columns means that every group may be affected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from harken.calculus.clock import moved
from harken.calculus.states import ADDED, REMOVED, added, literal_in_old, old, removed
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Definition,
    Literal,
    Program,
    atoms,
    literal_variables,
)
from harken.ir.relations import Column, Kind, Relation, Role, Semantics
from harken.ir.safety import Needs, evaluable
from harken.ir.strata import reachable, stratify
from harken.ir.terms import Variable


@dataclass(slots=True)
class Affected:
    """Finds affected keys in one program, for one set of changed relations.

    `changed` have Δ-sets; `affected` is everything that depends on them. The definitions of the
    K's collect in `made`.
    """

    program: Program
    changed: Collection[str]
    affected: Collection[str]
    needs: Needs
    made: dict[str, Definition] = field(default_factory=dict)
    recursive: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        cycles = (stratum.names for stratum in stratify(self.program) if stratum.recursive)
        self.recursive = frozenset().union(*cycles)
        # What a relation needs from its caller, its old state needs as well.
        definitions = self.program.definitions
        self.needs = {
            **self.needs,
            **{old(definitions[name].relation).id: each for name, each in self.needs.items()},
        }

    def reaches(self, literal: Literal) -> bool:
        """Is this a literal over something that is looked at again rather than differentiated?"""
        atom = looked_at(literal)
        return (
            atom is not None
            and atom.relation.id in self.affected
            and (atom.relation.id not in self.changed or isinstance(literal, Aggregation))
        )

    def keys(self, literal: Literal) -> Atom:
        """K, applied to the terms of the literal."""
        atom = looked_at(literal)
        assert atom is not None
        allowed = (
            group_columns(literal)
            if isinstance(literal, Aggregation)
            else range(atom.relation.arity)
        )
        relation, columns = self._keys_of(atom.relation, allowed)
        return Atom(relation, tuple(atom.terms[i] for i in columns), span=literal.span)

    def any_of(self, keys: Sequence[Atom]) -> Atom:
        """One K for several, over the terms that all of them have: what any of them holds for."""
        first = keys[0]
        shared = tuple(term for term in first.terms if all(term in atom.terms for atom in keys))
        unique = {
            f"{atom.relation.id} "
            f"{[shared.index(term) if term in shared else None for term in atom.terms]}": atom
            for atom in keys
        }
        if len(unique) == 1 and len(shared) == len(first.terms):
            return first
        name = " or ".join(sorted(unique))
        columns = tuple(Column(f"k{i}", term.type) for i, term in enumerate(shared))
        relation = Relation(
            name, columns, len(columns), Kind.DERIVED, past=True, role=Role.AFFECTED
        )
        clauses = tuple(
            Clause(Atom(relation, shared), (replace(atom, span=None),)) for atom in unique.values()
        )
        self.made[relation.id] = Definition(relation, clauses)
        return Atom(relation, shared, span=first.span)

    def touched(self, atom: Atom) -> Atom:
        """K for a stored relation: the rows that changed at all."""
        relation = atom.relation.variant(
            Role.AFFECTED,
            f"affected {atom.relation.name}",
            kind=Kind.DERIVED,
            semantics=Semantics.SET,
            key=None,
            past=True,
        )
        row = _any_row(atom.relation)
        clauses = tuple(
            Clause(Atom(relation, row.terms), signed(row)) for signed in (added, removed)
        )
        self.made[relation.id] = Definition(relation, clauses)
        return Atom(relation, atom.terms, span=atom.span)

    def _keys_of(
        self, relation: Relation, allowed: Collection[int]
    ) -> tuple[Relation, tuple[int, ...]]:
        """The relation K of an auxiliary relation, and which of its columns K has."""
        if relation.id in self.changed:
            return self._changed_keys(relation, tuple(sorted(allowed)))
        definition = self.program.definitions[relation.id]
        if relation.id in self.recursive or definition.first is not None:
            # Any row can change which are the first ones; an engine finds those at once.
            return self._everything(relation), ()
        bodies = [
            (clause, self._lean(body, clause, allowed))
            for clause in definition.clauses
            for body in self._bodies(clause)
        ]
        columns = tuple(
            position
            for position in sorted(allowed)
            if all(_binds(body, clause, position) for clause, body in bodies)
        )
        found = _key_relation(relation, columns)
        clauses = (
            Clause(Atom(found, tuple(clause.head.terms[i] for i in columns)), body)
            for clause, body in bodies
        )
        # Where nothing beside a literal has changed, both of its bodies are the same.
        self.made[found.id] = Definition(found, tuple(dict.fromkeys(clauses)))
        return found, columns

    def _lean(
        self, body: tuple[Literal, ...], clause: Clause, allowed: Collection[int]
    ) -> tuple[Literal, ...]:
        """The body without aggregates, if it has the same columns without them. K holds for more
        then, but an aggregate costs more to find than it spares."""
        plain = (each for each in body if not isinstance(each, Aggregation))
        lean = evaluable(plain, self.needs)
        same = all(_binds(lean, clause, i) for i in allowed if _binds(body, clause, i))
        return lean if same else body

    def _changed_keys(
        self, relation: Relation, columns: tuple[int, ...]
    ) -> tuple[Relation, tuple[int, ...]]:
        """What has a Δ-set says itself which keys have changed."""
        found = _key_relation(relation, columns)
        row = _any_row(relation)
        head = Atom(found, tuple(row.terms[i] for i in columns))
        clauses = tuple(Clause(head, signed(row)) for signed in (added, removed))
        self.made[found.id] = Definition(found, clauses)
        return found, columns

    def _everything(self, relation: Relation) -> Relation:
        """Any change below the relation may affect any of its rows."""
        name = f"affected {relation.id}"
        found = Relation(name, (), 0, Kind.DERIVED, role=Role.AFFECTED, of=relation)
        below = reachable(relation, self.program.definitions)
        touched = {
            atom.relation.id: atom.relation
            for definition in below.values()
            for clause in definition.clauses
            for atom in atoms(clause.body)
            if atom.relation.id in self.changed
        }
        clauses = [
            Clause(Atom(found, ()), signed(_any_row(each)))
            for each in touched.values()
            for signed in (added, removed)
        ]
        self.made[found.id] = Definition(found, tuple(clauses))
        return found

    def _bodies(self, clause: Clause) -> Iterator[tuple[Literal, ...]]:
        """A body for each literal of the clause that changed, and each sign of the change."""
        for position, literal in enumerate(clause.body):
            rest = clause.body[:position] + clause.body[position + 1 :]
            others = tuple(other for other in rest if not self._stays_closed(other))
            before = tuple(literal_in_old(other, self.affected) for other in others)
            if self.reaches(literal):
                keys = self.keys(literal)
                yield evaluable((keys, *others), self.needs)
                yield evaluable((keys, *before), self.needs)
            elif isinstance(literal, Atom) and literal.relation.id in self.changed:
                positive = Atom(literal.relation, literal.terms, span=literal.span)
                # What a negated literal loses, the clause gains: with the others as they are now.
                gained, lost = (removed, added) if literal.negated else (added, removed)
                for guard in moved(clause, literal, ADDED):
                    yield evaluable((*gained(positive), *guard, *others), self.needs)
                for guard in moved(clause, literal, REMOVED):
                    yield evaluable((*lost(positive), *guard, *before), self.needs)

    def _stays_closed(self, literal: Literal) -> bool:
        """Groups, first rows and numbered rows are not expanded, so if they need values, those must
        come from outside the clause; here they would come from a neighbour. K holds for more
        without them."""
        if not isinstance(literal, Atom) or literal.negated:
            return False
        found = self.program.definitions.get(literal.relation.id)
        if found is None or not self.needs.get(literal.relation.id):
            return False
        return bool(found.groups or found.first or found.numbered)


def _key_relation(relation: Relation, columns: tuple[int, ...]) -> Relation:
    return Relation(
        name=f"affected {relation.id} {','.join(map(str, columns))}",
        columns=tuple(Column(f"k{i}", relation.columns[i].type) for i in columns),
        inputs=len(columns),
        kind=Kind.DERIVED,
        past=True,
        role=Role.AFFECTED,
        of=relation,
    )


def is_keys(relation: Relation) -> bool:
    return relation.role is Role.AFFECTED


def _any_row(relation: Relation) -> Atom:
    columns = enumerate(relation.columns)
    return Atom(relation, tuple(Variable(f"X{i}", column.type) for i, column in columns))


def looked_at(literal: Literal) -> Atom | None:
    """The atom under a negation or an aggregate, or a positive one; None for the rest."""
    if isinstance(literal, Aggregation):
        return literal.atom
    return literal if isinstance(literal, Atom) else None


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
