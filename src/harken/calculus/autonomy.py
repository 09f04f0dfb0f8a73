"""Autonomous expressions: those whose next value follows from the present one and a change alone.

Fabret, Regnier and Simon, section 4.1. For a literal P of a conjunction Φ let SV be the variables
that it shares with other literals, PV those that only it has, and RV the rest.

    1. P positive, a deletion     ΔΦ = Φ(SV,PV,RV) ⋈ ΔP(SV,PV),         Φ' = Φ - ΔΦ
    2. P negative, an insertion   the same, with ΔP what came
    3. P positive, an insertion, and Π_SV P stable
                                  ΔΦ = Π_SV,RV Φ ⋈ ΔP(SV,PV),           Φ' = Φ ∪ ΔΦ

Π_S P is stable (definition 4.3) if no change has an effect on it: every insertion has the columns S
of a fact that was there. Law: where a criterion holds, its formula gives the same relation as
computing Φ again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harken.calculus.influence import InfluenceGraph
from harken.calculus.output_tokens import may_meet
from harken.calculus.rule_formulas import Bases, Formula, Occurrence, RuleFormulas
from harken.ir.clauses import literal_variables
from harken.ir.productions import HeadLiteral
from harken.ir.terms import Constant, Term, Variable


@dataclass(frozen=True, slots=True)
class Change:
    """Insertions into a predicate or deletions from it, of facts of some form.

    `stable` are sets of columns on which an insertion repeats what a fact had.
    """

    relation: str
    inserts: bool
    terms: tuple[Term, ...] | None = None
    """What the changed facts look like; None for any facts."""
    stable: tuple[frozenset[int], ...] = ()
    name: str = ""

    def __str__(self) -> str:
        return f"{'+' if self.inserts else '-'}{self.name or self.relation}"


def changes_into(
    rule: str, graph: InfluenceGraph, rules: Iterable[RuleFormulas]
) -> tuple[Change, ...]:
    """The changes of the predicates of a rule that the labels of its arcs stand for."""
    formulas: dict[str, list[RuleFormulas]] = {}
    for each in rules:
        formulas.setdefault(each.rule.name, []).append(each)
    sources = dict.fromkeys(label.source for label in graph.into(rule))
    return tuple(change_by(each.literal, formulas[each.rule]) for each in sources)


def change_by(literal: HeadLiteral, alternatives: Iterable[RuleFormulas]) -> Change:
    """The change that a head literal makes."""
    stable: tuple[frozenset[int], ...] = ()
    if not literal.deletes:
        kept = [_stable_columns(literal, each.body) for each in alternatives]
        stable = tuple(
            each for each in (kept[0] if kept else ()) if all(_covers(k, each) for k in kept)
        )
    relation = literal.relation
    return Change(relation.id, not literal.deletes, literal.terms, stable, relation.name)


def _covers(sets: Iterable[frozenset[int]], wanted: frozenset[int]) -> bool:
    return any(wanted <= each for each in sets)


def _stable_columns(literal: HeadLiteral, body: Formula) -> tuple[frozenset[int], ...]:
    """The columns in which an inserted fact agrees with a fact of the body."""
    return tuple(
        frozenset(
            i
            for i, (new, old) in enumerate(zip(literal.terms, each.terms, strict=True))
            if new == old
        )
        for each in body.positive
        if each.relation == literal.relation and not each.opaque
    )


def changes_of(
    occurrence: Occurrence, changes: Iterable[Change], bases: Bases
) -> tuple[Change, ...]:
    """The changes that have an effect on a literal."""
    below = bases(occurrence.relation)
    return tuple(
        each
        for each in changes
        if each.relation in below
        and (occurrence.opaque or each.terms is None or may_meet(each.terms, occurrence.terms))
    )


def criterion(
    formula: Formula, occurrence: Occurrence, change: Change, changes: Iterable[Change]
) -> int | None:
    """Which criterion makes a formula autonomous for a literal with respect to a change; `changes`
    are all that happen, of which stability must hold. A relation alone is always autonomous."""
    if occurrence.opaque:
        return None
    if len(formula.literals) == 1:
        return 1 if not change.inserts else 3
    if occurrence.negated:
        return 2 if change.inserts else None
    if not change.inserts:
        return 1
    return 3 if is_stable(shared_columns(formula, occurrence), occurrence, changes) else None


def shared_columns(formula: Formula, occurrence: Occurrence) -> frozenset[int]:
    """The columns of P that hold SV, or a value that must meet a constant or a test."""
    others = frozenset[Variable]().union(
        *(each.variables for each in formula.literals if each is not occurrence),
        *(literal_variables(each) for each in formula.tests),
    )
    return frozenset(
        i
        for i, term in enumerate(occurrence.terms)
        if isinstance(term, Constant)
        or (isinstance(term, Variable) and term in others)
        or occurrence.terms.count(term) > 1
    )


def is_stable(columns: frozenset[int], occurrence: Occurrence, changes: Iterable[Change]) -> bool:
    """Definition 4.3, for changes of which the form is known."""
    return all(
        each.inserts and _covers(each.stable, columns)
        for each in changes
        if each.relation == occurrence.relation.id
        and (each.terms is None or may_meet(each.terms, occurrence.terms))
    )


def is_autonomous_for(
    formula: Formula, occurrence: Occurrence, changes: tuple[Change, ...], bases: Bases
) -> bool:
    """Definition 4.2 for one predicate."""
    own = changes_of(occurrence, changes, bases)
    return all(criterion(formula, occurrence, each, changes) is not None for each in own)


def is_autonomous(formula: Formula, changes: tuple[Change, ...], bases: Bases) -> bool:
    """Definition 4.2: for every predicate and change, the change has no effect on the predicate, or
    one of the criteria holds."""
    return all(is_autonomous_for(formula, each, changes, bases) for each in formula.literals)
