"""What the rules of a program may do to each other, told before they run.

    cycles   rules that may trigger each other without end
    dead     rules that can never fire
    order    pairs of rules whose order matters, and that no priority orders

All of it follows from who influences whom, so it holds for production rules and for active rules
alike. A cycle of rules that only insert known values, or only delete, comes to an end: there are
finitely many facts. Law: a program without findings of cycles settles from every state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from harken.calculus.influence import InfluenceGraph
from harken.calculus.output_tokens import may_meet
from harken.calculus.rule_formulas import Occurrence, RuleFormulas, TokenFormula
from harken.ir.terms import Term

MOST_FINDINGS = 1_000
"""The most findings of each kind that are listed."""


@dataclass(frozen=True, slots=True)
class Influence:
    """One rule may make another firable (`adds`), or take that away, `by` a change."""

    source: str
    target: str
    adds: bool
    by: str


@dataclass(frozen=True, slots=True)
class Writes:
    """What a rule inserts and deletes, by relation, with what the facts look like where that is
    known. `computes` says that it may insert values that no fact has."""

    inserts: Mapping[str, Sequence[tuple[Term, ...] | None]] = field(default_factory=dict)
    deletes: Mapping[str, Sequence[tuple[Term, ...] | None]] = field(default_factory=dict)
    computes: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """`kind` is cycle, dead or order."""

    kind: str
    rules: tuple[str, ...]
    message: str
    hint: str = ""


def cycles(
    rules: Sequence[str], influences: Iterable[Influence], writes: Mapping[str, Writes]
) -> list[Finding]:
    """The groups of rules that may trigger each other without end."""
    positive = sorted((each for each in influences if each.adds), key=lambda each: each.by)
    after: dict[str, dict[str, str]] = {name: {} for name in rules}
    for each in positive:
        after[each.source].setdefault(each.target, each.by)
    found = []
    for group in _components(rules, after):
        is_cycle = len(group) > 1 or group[0] in after[group[0]]
        if is_cycle and not _settles([writes[name] for name in group]):
            found.append(_cycle(group, after))
    return found[:MOST_FINDINGS]


def _settles(writes: Sequence[Writes]) -> bool:
    """Whether these rules can only insert finitely many facts, or only delete."""
    inserted = {name for each in writes for name in each.inserts}
    deleted = {name for each in writes for name in each.deletes}
    return not inserted & deleted and not any(each.computes for each in writes)


def _cycle(group: Sequence[str], after: Mapping[str, Mapping[str, str]]) -> Finding:
    inside = set(group)
    links = [
        f"{one} makes {other} firable by {by}"
        for one in group
        for other, by in after[one].items()
        if other in inside
    ]
    shown = "; ".join(links[:6]) + ("; ..." if len(links) > 6 else "")
    if len(group) == 1:
        message = f"the rule {group[0]} may trigger itself without end: {shown}"
    else:
        message = f"the rules {', '.join(group)} may trigger each other without end: {shown}"
    return Finding(
        "cycle", tuple(group), message, "make sure that one of them turns its own body false"
    )


def _components(rules: Sequence[str], after: Mapping[str, Mapping[str, str]]) -> list[list[str]]:
    """The strongly connected components, without recursion; rules in the order of the text."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    order = {name: i for i, name in enumerate(rules)}
    for start in rules:
        if start in number:
            continue
        walk = [(start, iter(after[start]))]
        number[start] = low[start] = len(number)
        stack.append(start)
        while walk:
            name, following = walk[-1]
            other = next(following, None)
            if other is None:
                walk.pop()
                if walk:
                    low[walk[-1][0]] = min(low[walk[-1][0]], low[name])
                if low[name] == number[name]:
                    place = stack.index(name)
                    found.append(sorted(stack[place:], key=order.__getitem__))
                    del stack[place:]
            elif other not in number:
                number[other] = low[other] = len(number)
                stack.append(other)
                walk.append((other, iter(after[other])))
            elif other in stack:
                low[name] = min(low[name], number[other])
    return sorted(found, key=lambda group: order[group[0]])


def unordered(
    rules: Sequence[str],
    influences: Iterable[Influence],
    writes: Mapping[str, Writes],
    above: Mapping[str, frozenset[str]],
) -> list[Finding]:
    """The pairs whose order matters: one may take away what the other would fire for, or one
    inserts what the other deletes."""
    against: dict[tuple[str, str], str] = {}
    for each in influences:
        if not each.adds and each.source != each.target:
            against.setdefault((each.source, each.target), each.by)
    found = []
    for one, other in combinations(rules, 2):
        if one in above.get(other, ()) or other in above.get(one, ()):
            continue
        reasons = [
            f"{first} may take away by {by} what {second} would fire for"
            for first, second in ((one, other), (other, one))
            if (by := against.get((first, second))) is not None
        ]
        reasons += _opposed(one, other, writes)
        if reasons:
            message = f"the order of {one} and {other} matters: {'; '.join(reasons)}"
            hint = f"say which goes first: .priority {one} > {other}"
            found.append(Finding("order", (one, other), message, hint))
            if len(found) >= MOST_FINDINGS:
                break
    return found


def _opposed(one: str, other: str, writes: Mapping[str, Writes]) -> list[str]:
    found = []
    for first, second in ((one, other), (other, one)):
        inserts, deletes = writes[first].inserts, writes[second].deletes
        for name in inserts.keys() & deletes.keys():
            if any(_meet(a, b) for a in inserts[name] for b in deletes[name]):
                shown = name.partition("(")[0]
                found.append(f"{first} inserts into {shown} and {second} deletes from it")
    return sorted(found)


def _meet(one: tuple[Term, ...] | None, other: tuple[Term, ...] | None) -> bool:
    return one is None or other is None or may_meet(one, other)


# --- production rules ------------------------------------------------------------------------


def influences_of(graph: InfluenceGraph) -> list[Influence]:
    """The labels of an influence graph, the ones with which a rule follows itself included."""
    return [
        Influence(
            *each.arc,
            each.adds,
            f"{'-' if each.source.literal.deletes else '+'}{each.source.literal.relation.name}",
        )
        for each in graph.labels
    ]


def writes_of(formulas: RuleFormulas) -> Writes:
    inserts: dict[str, list[tuple[Term, ...] | None]] = {}
    deletes: dict[str, list[tuple[Term, ...] | None]] = {}
    for head in formulas.rule.heads:
        rows = deletes if head.deletes else inserts
        rows.setdefault(head.relation.id, []).append(head.terms)
    return Writes(inserts, deletes, formulas.rule.computes)


def dead_rules(rules: Sequence[RuleFormulas], empty: Mapping[str, str]) -> list[Finding]:
    """The rules that can never fire: all that a head says is in its body already, or a relation of
    the body is `empty` (by id, with its name) and no rule that may fire inserts into it."""
    alternatives: dict[str, list[RuleFormulas]] = {}
    for each in rules:
        alternatives.setdefault(each.rule.name, []).append(each)
    found = []
    for name, formulas in alternatives.items():
        if formulas[0].rule.calls:
            continue
        if not any(_may_hold(token) for each in formulas for token in each.tokens):
            message = (
                f"the rule {name} can never fire: its head changes nothing where its body holds"
            )
            found.append(Finding("dead", (name,), message, "correct its body or its head"))
    found += _starved(alternatives, empty, {each.rules[0] for each in found})
    return found[:MOST_FINDINGS]


def _may_hold(token: TokenFormula) -> bool:
    """Whether no literal of the formula denies another one."""
    literals = token.formula.literals
    positive = {(each.relation.id, each.terms) for each in literals if not each.negated}
    denied = {
        (each.relation.id, each.terms) for each in literals if each.negated and not each.local
    }
    return not positive & denied


def _starved(
    alternatives: Mapping[str, Sequence[RuleFormulas]], empty: Mapping[str, str], dead: set[str]
) -> list[Finding]:
    """Rules that wait for a relation into which only rules insert that never fire."""
    waiting = {name: each for name, each in alternatives.items() if name not in dead}
    filled: set[str] = set()
    while True:
        ready = [
            name
            for name, formulas in waiting.items()
            if any(not _missing(each, empty, filled) for each in formulas)
        ]
        if not ready:
            break
        for name in ready:
            heads = waiting.pop(name)[0].rule.heads
            filled |= {head.relation.id for head in heads if not head.deletes}
    found = []
    for name, formulas in waiting.items():
        lacking = sorted({empty[o.relation.id] for o in _missing(formulas[0], empty, filled)})
        message = f"the rule {name} can never fire: nothing gives rows to {', '.join(lacking)}"
        found.append(Finding("dead", (name,), message, "state facts, or let a rule insert some"))
    return found


def _missing(
    formulas: RuleFormulas, empty: Mapping[str, str], filled: set[str]
) -> list[Occurrence]:
    return [
        each
        for each in formulas.body.positive
        if not each.opaque and each.relation.id in empty and each.relation.id not in filled
    ]
