"""The influence graph of a program: what firing one rule does to the output tokens of another.

Fabret, Regnier and Simon, section 5.2. An arc (r, r') is labelled with expressions l θ l': the
effect of r by its head literal l adds tuples to OT(r', l') (θ is +) or removes some (θ is -). It
adds some if l inserts into a predicate that the formula of OT(r', l') has positively, or deletes
from one that it has negatively; the other way round it removes some.

Table 5.1 of the paper lacks (r3,r2) D - D and ¬C - D, (r4,r1) F - C, and the labels of a rule with
itself that its own target gives: they follow from the definition, and the flags need them.

Law: a firing of r changes OT(r', l') only in ways that a label of (r, r') names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harken.calculus.output_tokens import may_meet
from harken.calculus.rule_formulas import Bases, Occurrence, RuleFormulas
from harken.ir.productions import HeadLiteral


@dataclass(frozen=True, slots=True)
class Effect:
    """A head literal of a rule: the rule, its place in the head, and the literal."""

    rule: str
    position: int
    literal: HeadLiteral

    def __str__(self) -> str:
        return f"{self.literal.sign}{self.literal.relation.name}"


@dataclass(frozen=True, slots=True)
class Label:
    """`l θ l'`"""

    source: Effect
    adds: bool
    target: Effect

    def __str__(self) -> str:
        return f"{self.source} {'+' if self.adds else '-'} {self.target}"

    @property
    def arc(self) -> tuple[str, str]:
        return self.source.rule, self.target.rule


@dataclass(frozen=True, slots=True)
class InfluenceGraph:
    rules: tuple[str, ...]
    labels: tuple[Label, ...]

    def of(self, source: str, target: str) -> tuple[Label, ...]:
        return tuple(each for each in self.labels if each.arc == (source, target))

    def into(self, target: str) -> tuple[Label, ...]:
        return tuple(each for each in self.labels if each.target.rule == target)


def influence_graph(rules: Sequence[RuleFormulas], bases: Bases) -> InfluenceGraph:
    """The complete influence graph (table 5.1). The alternatives of a rule are one vertex."""
    names = tuple(dict.fromkeys(each.rule.name for each in rules))
    effects = {
        each.rule.name: [
            Effect(each.rule.name, i, literal) for i, literal in enumerate(each.rule.heads)
        ]
        for each in rules
    }
    writers: dict[str, list[Effect]] = {}
    for found in effects.values():
        for effect in found:
            writers.setdefault(effect.literal.relation.id, []).append(effect)
    labels: dict[Label, None] = {}
    for each in rules:
        for token, target in zip(each.tokens, effects[each.rule.name], strict=True):
            for occurrence in token.formula.literals:
                for source in _writers_of(occurrence, writers, bases):
                    for adds in _directions(source.literal, occurrence):
                        labels[Label(source, adds, target)] = None
    order = {name: i for i, name in enumerate(names)}
    return InfluenceGraph(names, tuple(sorted(labels, key=lambda each: _place(each, order))))


def _place(label: Label, order: Mapping[str, int]) -> tuple[int, ...]:
    source, target = label.source, label.target
    places = (order[source.rule], order[target.rule], source.position, target.position)
    return (*places, not label.adds)


def _writers_of(
    occurrence: Occurrence, writers: Mapping[str, list[Effect]], bases: Bases
) -> Iterable[Effect]:
    for name in bases(occurrence.relation):
        for effect in writers.get(name, ()):
            if occurrence.opaque or may_meet(effect.literal.terms, occurrence.terms):
                yield effect


def _directions(literal: HeadLiteral, occurrence: Occurrence) -> tuple[bool, ...]:
    if occurrence.opaque:
        return (True, False)
    return (literal.deletes == occurrence.negated,)


def simplified(graph: InfluenceGraph, above: Mapping[str, frozenset[str]]) -> InfluenceGraph:
    """The labels that the priorities leave relevant (definition 5.4, table 5.2). Relevance is
    evaluated on the complete graph, and a rule is incomparable with itself."""
    reached = _reached_positively(graph)
    kept = tuple(each for each in graph.labels if _is_relevant(each, above, reached))
    return InfluenceGraph(graph.rules, kept)


def _is_relevant(
    label: Label, above: Mapping[str, frozenset[str]], reached: Mapping[Effect, frozenset[str]]
) -> bool:
    source, target = label.arc
    if source in above.get(target, ()):
        starts = reached.get(label.source, frozenset())
        return any(each not in above.get(target, ()) for each in starts)
    if target in above.get(source, ()):
        return label.adds
    return True


def _reached_positively(graph: InfluenceGraph) -> dict[Effect, frozenset[str]]:
    """For each head literal the rules from which a positive propagation path (definition 5.3) leads
    to it."""
    before: dict[Effect, set[Effect]] = {}
    for label in graph.labels:
        if label.adds:
            before.setdefault(label.target, set()).add(label.source)
    found = {}
    for goal in before:
        seen: set[Effect] = set()
        waiting = [goal]
        while waiting:
            fresh = before.get(waiting.pop(), set()) - seen
            seen |= fresh
            waiting += fresh
        found[goal] = frozenset(each.rule for each in seen)
    return found


def propagation_path(labels: Sequence[Label]) -> bool:
    """Definition 5.3: each expression begins with the literal that the one before ends with."""
    return bool(labels) and all(one.target == other.source for one, other in pairwise(labels))


def is_positive(labels: Sequence[Label]) -> bool:
    """Definition 5.3: every θ is +."""
    return all(each.adds for each in labels)


def is_negative(labels: Sequence[Label]) -> bool:
    """Definition 5.3: the last θ is -."""
    return not labels[-1].adds
