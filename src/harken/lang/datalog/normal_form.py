"""Bodies in normal form: a disjunction of conjunctions of atoms, negated atoms and constraints.

`!` is moved inwards to the atoms; a negated comparison is the opposite one. Law: the normal form
has the same solutions.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TypeAlias

from harken.errors import SafetyFault, Span
from harken.ir.operations import NEGATED_COMPARISON
from harken.lang.datalog import syntax

LIMIT = 256
"""The most alternatives that one rule may expand to."""

Literal: TypeAlias = syntax.Atom | syntax.Constraint | syntax.Not
Conjunction: TypeAlias = tuple[Literal, ...]


def alternatives(body: syntax.Formula | None) -> list[Conjunction]:
    """The conjunctions whose union a body is; none for `false`."""
    return [()] if body is None else _normal(body, False, body.span)


def _normal(formula: syntax.Formula, negated: bool, span: Span) -> list[Conjunction]:
    match formula:
        case syntax.Truth():
            return [()] if formula.value != negated else []
        case syntax.Atom():
            return [(syntax.Not(formula, formula.span),)] if negated else [(formula,)]
        case syntax.Constraint():
            return [(_opposite(formula),)] if negated else [(formula,)]
        case syntax.Not():
            return _normal(formula.part, not negated, span)
    parts = [_normal(part, negated, span) for part in formula.parts]
    if isinstance(formula, syntax.Or) != negated:
        found = [each for part in parts for each in part]
        size = len(found)
    else:
        size = prod(map(len, parts))
        found = []
        if size <= LIMIT:
            found = [tuple(x for each in chosen for x in each) for chosen in product(*parts)]
    if size > LIMIT:
        raise SafetyFault(
            f"this body expands to {size} alternatives, and the limit is {LIMIT}",
            code="too-complex",
            span=span,
            hint="give a part of it a relation of its own",
        )
    return found


def _opposite(formula: syntax.Constraint) -> Literal:
    if formula.operator in NEGATED_COMPARISON:
        opposite = NEGATED_COMPARISON[formula.operator]
        return syntax.Constraint(opposite, formula.left, formula.right, formula.span)
    return syntax.Not(formula, formula.span)
