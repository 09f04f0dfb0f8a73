"""Solve the equations of a clause: `X = Y` becomes one variable, `X = 5` becomes 5.

Law: the clause has the same answers, and no equation is left whose side is a variable that can be
replaced. Of two variables the one the user named stays; of two named ones the one with the
narrower type.
"""

from __future__ import annotations

from collections.abc import Sequence

from harken.ir.clauses import Comparison, Literal, substitute, substitute_term
from harken.ir.terms import Term, Variable, is_generated
from harken.values.types import Hierarchy

Substitution = dict[Variable, Term]


def unify(
    body: Sequence[Literal], hierarchy: Hierarchy
) -> tuple[tuple[Literal, ...], Substitution]:
    """The body without its solved equations, and what stands for each variable that is gone."""
    literals = list(body)
    solved: Substitution = {}
    while (found := _solvable(literals, hierarchy)) is not None:
        position, gone, stays = found
        del literals[position]
        step: Substitution = {gone: stays}
        literals = [substitute(literal, step) for literal in literals]
        solved = {known: substitute_term(term, step) for known, term in solved.items()}
        solved[gone] = stays
    return tuple(literals), solved


def _solvable(literals: list[Literal], hierarchy: Hierarchy) -> tuple[int, Variable, Term] | None:
    for position, literal in enumerate(literals):
        if not isinstance(literal, Comparison) or literal.operator != "=":
            continue
        pair = _choose(literal.left, literal.right, hierarchy)
        if pair is not None:
            return position, *pair
    return None


def _choose(left: Term, right: Term, hierarchy: Hierarchy) -> tuple[Variable, Term] | None:
    """Which side goes, and which stays in its place."""
    if left.type != right.type and not (left.type.surrogate and right.type.surrogate):
        return None
    if isinstance(left, Variable) and isinstance(right, Variable):
        return _choose_variable(left, right, hierarchy)
    if isinstance(left, Variable):
        return left, right
    if isinstance(right, Variable):
        return right, left
    return None


def _choose_variable(
    left: Variable, right: Variable, hierarchy: Hierarchy
) -> tuple[Variable, Term] | None:
    if left == right:
        return None
    if is_generated(left) != is_generated(right):
        return (left, right) if is_generated(left) else (right, left)
    if hierarchy.is_subtype(right.type, left.type) and left.type != right.type:
        return left, right
    return right, left
