"""Relations that the compiler makes up for one statement.

Law: an auxiliary relation is evaluated as it stands; SQLite never merges it into its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harken.ir.clauses import Atom, Clause, Definition, Literal
from harken.ir.relations import Column, Kind, Relation, Role, Semantics
from harken.ir.terms import Variable


@dataclass(slots=True)
class Auxiliaries:
    """The auxiliary relations of one statement, by id."""

    made: dict[str, Definition] = field(default_factory=dict)

    def define(
        self,
        kind: str,
        key: tuple[Variable, ...],
        values: tuple[Variable, ...],
        body: tuple[Literal, ...],
    ) -> Atom:
        """An atom of a new relation with this body: a set if it has a key, otherwise a bag."""
        terms = (*key, *values)
        relation = Relation(
            name=f"{kind} {len(self.made)}",
            columns=tuple(Column(f"c{i}", term.type) for i, term in enumerate(terms)),
            inputs=0,
            kind=Kind.DERIVED,
            semantics=Semantics.SET if key else Semantics.BAG,
            key=tuple(range(len(key))) if key else None,
            role=Role.AUXILIARY,
        )
        atom = Atom(relation, terms)
        self.made[relation.id] = Definition(relation, (Clause(atom, body),))
        return atom
