"""COSMA: what each rule of a program should store, and how its output tokens are computed.

Fabret, Regnier and Simon, section 5.3. Rules are annotated from those that go first to those that
go last; the changes that a rule must follow are the labels of its arcs in the simplified influence
graph.

    R1  If OT(r, l) is not autonomous, storing its maximal profitable relations is useful.
    R2  If r is instance-oriented, storing OT(r, l) is useful for every l.

Proposition 5.1: if OT(r, l) of a set-oriented rule is autonomous with respect to all changes of the
predicates in r, it is computed once; if that holds for every l, r fires at most once. The paper
says "the changes to P", which is too little: another predicate of r may gain rows.

What is stored is kept up to date under all labels, also those that priorities make irrelevant. With
the relevant ones alone, as definition 5.4 is printed, it would be out of date when a rule of lower
priority has fired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harken.calculus.autonomy import Change, changes_into, is_autonomous
from harken.calculus.influence import InfluenceGraph, influence_graph, simplified
from harken.calculus.profitable_relations import (
    Profitable,
    Selectivity,
    maximal_profitable_relations,
)
from harken.calculus.rule_formulas import Bases, RuleFormulas, TokenFormula
from harken.ir.productions import Firing


@dataclass(frozen=True, slots=True)
class EffectAnnotation:
    """How OT(r, l) is found: from which stored relation, whether it is stored itself, and whether
    it is computed only once."""

    token: TokenFormula
    reads: tuple[int, ...]
    """The positions in Subexp of the relations that it is computed from."""
    materialise: bool
    autonomous: bool

    @property
    def once(self) -> bool:
        """Proposition 5.1."""
        return self.autonomous and not self.materialise


@dataclass(frozen=True, slots=True)
class RuleAnnotation:
    """Subexp and Effect of one alternative of a rule."""

    formulas: RuleFormulas
    changes: tuple[Change, ...]
    """The changes that are relevant for what is worth storing."""
    all_changes: tuple[Change, ...]
    """The changes that what is stored has to follow."""
    subexpressions: tuple[Profitable, ...]
    effects: tuple[EffectAnnotation, ...]

    @property
    def name(self) -> str:
        return self.formulas.rule.name

    @property
    def fires_once(self) -> bool:
        """Proposition 5.1, for the whole rule."""
        return bool(self.effects) and all(each.once for each in self.effects)


@dataclass(frozen=True, slots=True)
class AnnotatedProgram:
    complete: InfluenceGraph
    relevant: InfluenceGraph
    rules: tuple[RuleAnnotation, ...]

    def of(self, name: str) -> tuple[RuleAnnotation, ...]:
        return tuple(each for each in self.rules if each.name == name)


def annotate_program(
    rules: Sequence[RuleFormulas],
    above: Mapping[str, frozenset[str]],
    bases: Bases,
    selectivity: Selectivity = lambda _: 0.0,
    outside: tuple[Change, ...] = (),
) -> AnnotatedProgram:
    """The COSMA algorithm. `outside` are changes that no rule of the program makes."""
    complete = influence_graph(rules, bases)
    relevant = simplified(complete, above)
    order = sorted(rules, key=lambda each: len(above.get(each.rule.name, ())))
    annotated = []
    for each in order:
        name = each.rule.name
        changes = (*changes_into(name, relevant, rules), *outside)
        following = (*changes_into(name, complete, rules), *outside)
        annotated.append(annotate_rule(each, changes, following, bases, selectivity))
    by_place = sorted(annotated, key=lambda each: each.formulas.rule.number)
    return AnnotatedProgram(complete, relevant, tuple(by_place))


def annotate_rule(
    formulas: RuleFormulas,
    changes: tuple[Change, ...],
    all_changes: tuple[Change, ...],
    bases: Bases,
    selectivity: Selectivity = lambda _: 0.0,
) -> RuleAnnotation:
    """Annotate_Rule: step 2 finds the output tokens that are not autonomous, step 3 their maximal
    profitable relations (R1), step 4 the expressions of all output tokens (R2)."""
    autonomous = [is_autonomous(each.formula, changes, bases) for each in formulas.tokens]
    left = [each.formula for each, is_ in zip(formulas.tokens, autonomous, strict=True) if not is_]
    found: tuple[Profitable, ...] = ()
    if left:
        wanted = left[0] if len(left) == 1 else formulas.body
        found = maximal_profitable_relations(wanted, changes, bases, selectivity)
    by_instance = formulas.rule.firing is Firing.INSTANCE
    effects = tuple(
        EffectAnnotation(
            token,
            tuple(i for i, each in enumerate(found) if _is_part(each, token)),
            by_instance,
            is_,
        )
        for token, is_ in zip(formulas.tokens, autonomous, strict=True)
    )
    return RuleAnnotation(formulas, changes, all_changes, found, effects)


def _is_part(each: Profitable, token: TokenFormula) -> bool:
    """The producer's literals are all in the formula; a filter that is not is a flag unread."""
    inside = set(token.formula.literals)
    return all(literal in inside for literal in each.producer.literals)
