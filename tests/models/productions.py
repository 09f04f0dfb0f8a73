"""Production rules as section 2 of Fabret, Regnier and Simon defines them, in plain Python.

A state is a set of facts `(predicate, values)`. Nothing is incremental and nothing is clever: every
definition of the section is a function of its own, written from its text. The only additions are
those of the issue: which of several candidates fires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

Fact = tuple[str, tuple[Any, ...]]
State = frozenset[Fact]
Binding = Mapping[str, Any]
Effect = frozenset[tuple[bool, Fact]]
"""Ground literals of a head; False stands before one that is negated."""


@dataclass(frozen=True)
class Var:
    name: str


@dataclass(frozen=True)
class Lit:
    """`P(t, ...)` or `¬P(t, ...)`."""

    predicate: str
    terms: tuple[Any, ...]
    positive: bool = True


@dataclass(frozen=True)
class Test:
    """A comparison, or an eq-literal: it holds of the values of its terms."""

    terms: tuple[Any, ...]
    holds: Callable[..., bool]


@dataclass(frozen=True)
class Rule:
    name: str
    body: tuple[Lit | Test, ...]
    head: tuple[Lit, ...]
    instance_oriented: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """In the order in which the body mentions them."""
        terms = (term for each in self.body for term in each.terms)
        return tuple(dict.fromkeys(term.name for term in terms if isinstance(term, Var)))


@dataclass(frozen=True)
class Program:
    """`above` holds pairs: the first has priority over the second. It is transitive."""

    rules: tuple[Rule, ...]
    above: frozenset[tuple[str, str]] = frozenset()


def value(term: Any, binding: Binding) -> Any:
    return binding[term.name] if isinstance(term, Var) else term


def ground(literal: Lit, binding: Binding) -> Fact:
    return literal.predicate, tuple(value(term, binding) for term in literal.terms)


def satisfying_instances(rule: Rule, state: State) -> list[Binding]:
    """The bindings for which each positive literal is a fact, each negative one is not, and each
    test holds. Variables get their values from positive literals."""
    found: list[dict[str, Any]] = [{}]
    for literal in rule.body:
        if isinstance(literal, Lit) and literal.positive:
            found = [
                {**binding, **more}
                for binding in found
                for more in matches(literal, binding, state)
            ]
    return [binding for binding in found if all(holds(each, binding, state) for each in rule.body)]


def matches(literal: Lit, binding: Binding, state: State) -> Iterator[dict[str, Any]]:
    for predicate, values in state:
        if predicate != literal.predicate or len(values) != len(literal.terms):
            continue
        more: dict[str, Any] = dict(binding)
        for term, given in zip(literal.terms, values, strict=True):
            if isinstance(term, Var):
                if more.setdefault(term.name, given) != given:
                    break
            elif term != given:
                break
        else:
            yield more


def holds(literal: Lit | Test, binding: Binding, state: State) -> bool:
    if isinstance(literal, Test):
        return literal.holds(*(value(term, binding) for term in literal.terms))
    return (ground(literal, binding) in state) == literal.positive


def effect_of(rule: Rule, instances: list[Binding]) -> Effect:
    """The ground literals in the heads of these instances."""
    return frozenset(
        (literal.positive, ground(literal, each)) for each in instances for literal in rule.head
    )


def is_firable(effect: Effect, state: State) -> bool:
    """Definition 2.2: there is a net change."""
    return any(
        (not positive, fact) not in effect and (fact in state) != positive
        for positive, fact in effect
    )


def after(effect: Effect, state: State) -> State:
    """The state J: what is inserted and not deleted, and what was there and is not deleted, or is
    in the effect with both signs."""
    inserted = {fact for positive, fact in effect if positive}
    deleted = {fact for positive, fact in effect if not positive}
    return frozenset(
        fact
        for fact in state | inserted
        if fact not in deleted or (fact in state and fact in inserted)
    )


Instance = tuple[Rule, tuple[Any, ...] | None]
"""A rule, with the values of its variables if it is instance-oriented."""


def conflict_set(program: Program, state: State) -> dict[Instance, Effect]:
    """Definition 2.3, and its counterpart in 2.3: the firable rules, or their firable instances."""
    found: dict[Instance, Effect] = {}
    for rule in program.rules:
        instances = satisfying_instances(rule, state)
        if not rule.instance_oriented:
            effect = effect_of(rule, instances)
            if is_firable(effect, state):
                found[rule, None] = effect
            continue
        for binding in instances:
            effect = effect_of(rule, [binding])
            if is_firable(effect, state):
                found[rule, tuple(binding[name] for name in rule.variables)] = effect
    return found


def candidates(program: Program, state: State) -> dict[Instance, Effect]:
    """What may fire: no firable rule has priority over it."""
    firable = conflict_set(program, state)
    names = {rule.name for rule, _ in firable}
    return {
        (rule, values): effect
        for (rule, values), effect in firable.items()
        if not any((other, rule.name) in program.above for other in names)
    }


def chosen(program: Program, state: State) -> tuple[Instance, Effect] | None:
    """The rule that is written first, for its greatest body tuple."""
    found = candidates(program, state)
    if not found:
        return None
    first = next(rule for rule in program.rules if any(rule == other for other, _ in found))
    of_rule = [(values, effect) for (rule, values), effect in found.items() if rule == first]
    values, effect = max(of_rule, key=lambda pair: pair[0] or ())
    return (first, values), effect


@dataclass(frozen=True)
class Outcome:
    state: State
    firings: tuple[tuple[str, tuple[Any, ...] | None], ...]
    settled: bool


def run(program: Program, state: State, limit: int = 1000) -> Outcome:
    firings: list[tuple[str, tuple[Any, ...] | None]] = []
    while (found := chosen(program, state)) is not None:
        if len(firings) == limit:
            return Outcome(state, tuple(firings), settled=False)
        (rule, values), effect = found
        firings.append((rule.name, values))
        state = after(effect, state)
    return Outcome(state, tuple(firings), settled=True)


def reachable(program: Program, state: State) -> tuple[set[State], set[State]]:
    """All states that can be reached whichever candidate is chosen, and the fixpoints."""
    seen, waiting, fixpoints = {state}, [state], set()
    while waiting:
        present = waiting.pop()
        found = candidates(program, present)
        if not found:
            fixpoints.add(present)
        for effect in found.values():
            following = after(effect, present)
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return seen, fixpoints


def closure(pairs: set[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """The transitive closure of an order."""
    found = set(pairs)
    while True:
        more = {(a, d) for (a, b), (c, d) in product(found, found) if b == c} - found
        if not more:
            return frozenset(found)
        found |= more
