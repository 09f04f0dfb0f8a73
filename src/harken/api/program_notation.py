"""Formulas in the notation of the paper: σ, Π, ⋈, and ¬⋈ for a negative literal."""

from __future__ import annotations

from collections.abc import Sequence

from harken.calculus.autonomy import Change
from harken.calculus.rule_formulas import Formula, Occurrence
from harken.ir.terms import Constant, Variable


def join_text(formula: Formula) -> str:
    return joined_text([], formula.literals)


def joined_text(parts: Sequence[str], literals: Sequence[Occurrence]) -> str:
    positive = [*parts, *(atom_text(o) for o in literals if not o.negated)]
    negative = [f" ¬⋈ {atom_text(o)}" for o in literals if o.negated]
    return " ⋈ ".join(positive) + "".join(negative)


def atom_text(occurrence: Occurrence) -> str:
    """`σ[2="alpha"] A(x,_,y)`: columns are counted from 1, as in the paper."""
    constants = [
        f"{occurrence.name}.{i}={term}"
        for i, term in enumerate(occurrence.terms, start=1)
        if isinstance(term, Constant)
    ]
    terms = ",".join(
        "_" if isinstance(term, Constant) or term in occurrence.local else str(term)
        for term in occurrence.terms
    )
    selection = f"σ[{', '.join(constants)}] " if constants else ""
    return f"{selection}{occurrence.name}({terms})"


def delta_text(change: Change, occurrence: Occurrence) -> str:
    sign, written = "+" if change.inserts else "-", atom_text(occurrence)
    selection, _, atom = written.rpartition("] ")
    return f"{selection}] Δ{sign}{atom}" if selection else f"Δ{sign}{atom}"


def columns_text(formula: Formula, kept: frozenset[Variable]) -> str:
    """The variables of a formula in the order in which they are met."""
    found = dict.fromkeys(
        term for each in formula.positive for term in each.terms if isinstance(term, Variable)
    )
    return "{" + ",".join(str(each) for each in found if each in kept) + "}"
