"""Constants lifted out of a clause, so that clauses that differ in constants alone are one clause.

    q(X, Y) ← v(X, Y) ∧ X = "Oslo" ∧ Y > 5
    q(X, Y) ← v(X, Y) ∧ X = C1 ∧ Y > C2        with ("Oslo", 5)

NULL and the truth values stay where they are: they decide which rows a clause can have at all.
So do constants of the head, and those in relations that the clause mentions.

Law: the lifted clause with its constants put back is the clause.
"""

from __future__ import annotations

from collections.abc import Callable

from harken.ir.clauses import Clause, Comparison, with_terms
from harken.ir.terms import Constant, Term, Variable
from harken.values.types import BOOLEAN, Type

Placeholder = Callable[[int, Type], Term]
"""What stands for the constant with this number (from 0) and of this type."""


def lift_constants(clause: Clause, placeholder: Placeholder) -> tuple[Clause, tuple[Constant, ...]]:
    """The clause with placeholders for its constants, and the constants in their order."""
    found: list[Constant] = []

    def lifted(term: Term) -> Term:
        if not isinstance(term, Constant) or term.value is None or term.type == BOOLEAN:
            return term
        found.append(term)
        return placeholder(len(found) - 1, term.type.or_null(False))

    body = tuple(with_terms(each, lifted) for each in clause.body)
    return Clause(clause.head, body), tuple(found)


def compared_with(clause: Clause) -> frozenset[Variable]:
    """The variables that the clause compares with something: an index on them is of use."""
    return frozenset(
        term
        for each in clause.body
        if isinstance(each, Comparison)
        for term in (each.left, each.right)
        if isinstance(term, Variable)
    )
