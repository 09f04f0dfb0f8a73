"""Witnesses: the rows that a least or a greatest value comes from.

In `tallest(p, n) :- n = max h : { height(p, h) }` nothing outside of the aggregate binds p. Then p
is a witness, and the rule means

    tallest(p, n) :- n = max h1 : { height(p1, h1) }, height(p, h2), h2 = n.

Law: a body in which all variables are bound stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from harken.lang.datalog import syntax
from harken.lang.datalog.bound_variables import bound_variables
from harken.lang.datalog.normal_form import Conjunction, Literal, alternatives
from harken.lang.datalog.tree_walk import rebuild

SELECTING = ("min", "max")


def with_witnesses(heads: Iterable[syntax.Atom], conjunction: Conjunction) -> Conjunction:
    """The body with what binds the variables that only an aggregate could."""
    numbers = count(1)
    conjunction = tuple(_named(each, numbers) for each in conjunction)
    while True:
        around = [e for head in heads for e in head.arguments]
        around += [e for literal in conjunction for e in syntax.expressions(literal)]
        known = bound_variables(conjunction)
        missing = syntax.direct_variables(tuple(around)).keys() - known
        found = next(_candidates(conjunction, missing, known), None) if missing else None
        if found is None:
            return conjunction
        conjunction = _extended(conjunction, *found, known, numbers)


def _named(literal: Literal, numbers: Iterator[int]) -> Literal:
    """`_ = e` says no more than that e has a value."""
    match literal:
        case syntax.Constraint(operator="=", left=syntax.Unnamed(span=span)):
            return replace(literal, left=syntax.Named(f"_#w{next(numbers)}", span))
        case syntax.Constraint(operator="=", right=syntax.Unnamed(span=span)):
            return replace(literal, right=syntax.Named(f"_#w{next(numbers)}", span))
    return literal


def _candidates(
    conjunction: Conjunction, missing: set[str], known: set[str]
) -> Iterator[tuple[syntax.Aggregate, Conjunction, set[str]]]:
    """The aggregates that can bind what is missing, with their bodies and what they bind."""
    expressions = tuple(e for literal in conjunction for e in syntax.expressions(literal))
    for aggregate in _all_aggregates(expressions):
        bodies = alternatives(aggregate.body)
        if aggregate.name in SELECTING and len(bodies) == 1:
            found = missing & bound_variables(bodies[0], known)
            if found:
                yield aggregate, bodies[0], found


def _all_aggregates(given: tuple[syntax.Expression, ...]) -> Iterator[syntax.Aggregate]:
    for each in syntax.aggregates(given):
        yield each
        yield from _all_aggregates(syntax.inner_expressions(each))


def _extended(
    conjunction: Conjunction,
    aggregate: syntax.Aggregate,
    body: Conjunction,
    witnesses: set[str],
    known: set[str],
    numbers: Iterator[int],
) -> Conjunction:
    assert aggregate.value is not None
    number = next(numbers)
    span = aggregate.span
    result = syntax.Named(f"result#w{number}", span)
    inside = _renaming({name: f"{name}#w{number}" for name in witnesses})
    selected = rebuild(aggregate, inside)
    value = syntax.direct_variables((aggregate.value,)).keys()
    own = (syntax.deep_variables(aggregate).keys() - known | value) - witnesses
    copied = _renaming({name: f"{name}#c{number}" for name in own})
    kept = tuple(_replaced(each, aggregate, result) for each in conjunction)
    return (
        *kept,
        syntax.Constraint("=", result, selected, span),
        *(rebuild(each, copied) for each in body),
        syntax.Constraint("=", rebuild(aggregate.value, copied), result, span),
    )


def _renaming(names: Mapping[str, str]) -> Callable[[Any], Any]:
    def change(node: Any) -> Any:
        if isinstance(node, syntax.Named) and node.name in names:
            return replace(node, name=names[node.name])
        return node

    return change


def _replaced(literal: Literal, aggregate: syntax.Aggregate, result: syntax.Named) -> Any:
    return rebuild(literal, lambda node: result if node == aggregate else node)
