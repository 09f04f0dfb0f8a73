"""Which relations are evaluated only for what is asked, and by which of their columns.

One that needs values that the rest of a body brings, or that may fail for values that nobody asks
about, is joined with the distinct keys of the body so far (a magic set); all others are evaluated
as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harken.engines.spark.body import Body
from harken.ir.clauses import Atom, Clause, Computation, Definition, atoms
from harken.ir.operations import OPERATIONS
from harken.ir.relations import Kind, Relation
from harken.ir.safety import Needs
from harken.ir.strata import reachable
from harken.ir.terms import Variable


@dataclass(slots=True)
class MagicKeys:
    """Relations in `tables` already have their rows and never get magic keys."""

    definitions: Mapping[str, Definition]
    needs: Needs
    tables: Mapping[str, str]
    _fallible: dict[str, bool] = field(default_factory=dict)

    def is_asked(self, atom: Atom) -> bool:
        """Is the relation of a negated or aggregated atom evaluated for magic keys only?"""
        return bool(self._open_inputs(atom)) or self.is_fallible(atom.relation)

    def is_asked_in(self, atom: Atom, body: Body) -> bool:
        """Is the relation evaluated for the body's keys only? A fallible one is, in a body that
        has magic keys itself: otherwise it could fail for rows nobody wants."""
        return bool(self._open_inputs(atom)) or (body.asked and self.is_fallible(atom.relation))

    def keys(self, atom: Atom, body: Body) -> set[int]:
        """The columns of a positive atom that get their values from the body so far."""
        if atom.relation.kind is Kind.FOREIGN:
            return set(range(atom.relation.inputs))
        bound = {i for i, term in enumerate(atom.terms) if term in body.environment}
        keys = bound if body.asked and self.is_fallible(atom.relation) else self._open_inputs(atom)
        return keys | fixed(atom)

    def is_fallible(self, relation: Relation) -> bool:
        """Can computing the rows of a relation fail for some that are not wanted?"""
        if relation.id in self.tables:
            return False
        if relation.id not in self._fallible:
            below = reachable(relation, self.definitions)
            self._fallible[relation.id] = any(
                _can_fail(clause) for d in below.values() for clause in d.clauses
            )
        return self._fallible[relation.id]

    def _open_inputs(self, atom: Atom) -> set[int]:
        """The inputs whose values the rest of the body brings."""
        if atom.relation.kind is Kind.FOREIGN:
            return set(range(atom.relation.inputs)) or {0}
        needed = self.needs.get(atom.relation.id, frozenset())
        if atom.relation.id in self.tables:
            return set()
        return {i for i in needed if isinstance(atom.terms[i], Variable)}


def fixed(atom: Atom) -> set[int]:
    """The columns whose values stand in the atom itself."""
    return {i for i, term in enumerate(atom.terms) if not isinstance(term, Variable)}


def _can_fail(clause: Clause) -> bool:
    return any(
        isinstance(literal, Computation) and OPERATIONS[literal.operation].fallible
        for literal in clause.body
    ) or any(atom.relation.kind is Kind.FOREIGN for atom in atoms(clause.body))
