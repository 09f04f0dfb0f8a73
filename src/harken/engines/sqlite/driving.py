"""Joins that start from a change.

SQLite orders the joins of a SELECT by its statistics of the tables. It has none about the rows of a
change, and among many relations it prefers to begin with one restricted by a constant: then a
change of three rows costs as much as reading all rows with that constant. So we order such joins
ourselves: first the small relations (Δ-sets and relations derived from them), then each relation
that can be looked up by the columns known so far.

Law: an order of joins never changes the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harken.calculus.states import is_old
from harken.engines.sqlite.grouping import Grouping
from harken.ir.clauses import Atom, Literal, literal_variables
from harken.ir.relations import Kind, Relation, Role
from harken.ir.safety import is_bound, ready
from harken.ir.terms import Variable

SMALL = frozenset({Role.DELTA, Role.HISTORY, Role.AFFECTED, Role.REDERIVED, Role.RECENT})
"""Roles of relations with about as many rows as a change."""


@dataclass(slots=True)
class Driving:
    """Which relations of a statement are small, and the order of the joins that begin with them."""

    grouping: Grouping
    _small: dict[str, bool] = field(default_factory=dict)

    def is_small(self, relation: Relation) -> bool:
        """Has the relation about as many rows as a change?"""
        if relation.role in SMALL:
            return True
        made = self.grouping.made.get(relation.id)
        if made is None:
            return False
        if relation.id not in self._small:
            native = self.grouping.native.grouped.get(relation.id)
            source = native.members if native is not None else made
            self._small[relation.id] = bool(source.clauses) and all(
                any(self.is_small(atom.relation) for atom in _generators(clause.body))
                for clause in source.clauses
            )
        return self._small[relation.id]

    def ordered(self, body: Sequence[Literal]) -> tuple[Literal, ...] | None:
        """The body with its atoms in join order; None if nothing in it is small.

        Tables come first, in any state, each as soon as it can be looked up; then derived
        relations, because a set may only need an existence test.
        """
        waiting = list(_generators(body))
        if len(waiting) < 2 or not any(self.is_small(atom.relation) for atom in waiting):
            return None
        rest = [each for each in body if each not in waiting]
        known: set[Variable] = set()
        found: list[Literal] = []
        while waiting:
            atom = min(waiting, key=lambda each: self._rank(each, known))
            waiting.remove(atom)
            found.append(atom)
            known.update(literal_variables(atom))
            _follow(rest, known)
        return (*found, *rest)

    def _rank(self, atom: Atom, known: set[Variable]) -> int:
        """The priority in the join order, lowest first."""
        relation = atom.relation
        bound = {i for i, term in enumerate(atom.terms) if is_bound(term, known)}
        by_join = any(isinstance(atom.terms[i], Variable) for i in bound)
        if self.is_small(relation):
            return 0 if by_join or not known else 6
        if relation.kind is not Kind.STORED and not is_old(relation):
            return 3 if by_join else 7
        if relation.key is not None and bound.issuperset(relation.key):
            return 1
        return 2 if by_join else 4 + (not bound)


def _generators(body: Iterable[Literal]) -> list[Atom]:
    return [each for each in body if isinstance(each, Atom) and not each.negated]


def _follow(rest: Sequence[Literal], known: set[Variable]) -> None:
    """Add the variables computed from known ones."""
    size = -1
    while size != len(known):
        size = len(known)
        for each in rest:
            if not isinstance(each, Atom) and ready(each, known, {}):
                known.update(literal_variables(each))
