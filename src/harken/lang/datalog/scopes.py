"""Scopes: which variables of a clause are the same.

A variable that is bound outside the braces of an aggregate is the same inside. All others are the
aggregate's own, and so are those of the aggregated value that the braces bind: two aggregates, or
an aggregate and what is around it, may use the same name for different things.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harken.lang.datalog import syntax
from harken.lang.datalog.bound_variables import outer_variables
from harken.lang.datalog.inference import Inference, Use
from harken.lang.datalog.kinds import Types
from harken.lang.datalog.known_relations import Relations
from harken.lang.datalog.normal_form import Conjunction, alternatives
from harken.lang.datalog.tokens import unsupported
from harken.lang.datalog.tree_walk import rebuild


@dataclass(frozen=True, slots=True)
class Scope:
    """The literals of a clause, or of an aggregate in one, with the kinds of what is in them.

    `names` are all variables that can be mentioned here, `own` those that are not of the scope
    around. `values` are expressions beside the literals: those of the head, or the value that is
    aggregated.
    """

    conjunction: Conjunction
    values: tuple[syntax.Expression, ...]
    names: frozenset[str]
    own: tuple[str, ...]
    inference: Inference
    inner: dict[int, Scope] = field(default_factory=dict)
    """The scopes of the aggregates in it, by the identity of their nodes."""
    outside: dict[int, frozenset[str]] = field(default_factory=dict)
    """The variables of those aggregates that are bound here or farther out."""

    @property
    def expressions(self) -> tuple[syntax.Expression, ...]:
        return (*self.values, *literal_expressions(self.conjunction))

    def injected(self, aggregate: syntax.Aggregate) -> list[str]:
        """The variables of an aggregate that are bound outside of it."""
        return sorted(self.outside[id(aggregate)])


def literal_expressions(conjunction: Conjunction) -> tuple[syntax.Expression, ...]:
    return tuple(each for literal in conjunction for each in syntax.expressions(literal))


def scope_of_clause(
    heads: tuple[syntax.Atom, ...], conjunction: Conjunction, relations: Relations, types: Types
) -> Scope:
    """The scope of a clause, checked: every kind and every subtype fits. A query has no head."""
    values = tuple(each for head in heads for each in head.arguments)
    inference = Inference(relations, types)
    scope = _scope(conjunction, values, frozenset(), inference, relations, types)
    for head in heads:
        inference.atom(head, Use.HEAD)
    inference.check()
    return scope


def _scope(
    conjunction: Conjunction,
    values: tuple[syntax.Expression, ...],
    outer: frozenset[str],
    inference: Inference,
    relations: Relations,
    types: Types,
) -> Scope:
    mentioned = syntax.direct_variables((*values, *literal_expressions(conjunction)))
    own = tuple(name for name in mentioned if name not in outer)
    inference.declare(own)
    scope = Scope(conjunction, values, outer | set(own), own, inference)
    for literal in conjunction:
        _infer(literal, inference)
    for value in values:
        inference.expression(value)
    for aggregate in syntax.aggregates(scope.expressions):
        inside = Inference(relations, types, inference)
        over = () if aggregate.value is None else (aggregate.value,)
        body = _single(aggregate)
        seen = scope.outside[id(aggregate)] = outer_variables(aggregate, conjunction, outer)
        scope.inner[id(aggregate)] = _scope(body, over, seen, inside, relations, types)
        inference.aggregated(aggregate, inside)
    return scope


def _infer(literal: syntax.Formula, inference: Inference) -> None:
    match literal:
        case syntax.Atom():
            inference.atom(literal, Use.HOLDS)
        case syntax.Constraint():
            inference.constraint(literal)
        case syntax.Not(part=syntax.Atom() as atom):
            inference.atom(atom, Use.DENIED)
        case syntax.Not(part=syntax.Constraint() as constraint):
            inference.constraint(constraint)


def _single(aggregate: syntax.Aggregate) -> Conjunction:
    """The body of an aggregate. One with `false` in it keeps its atoms, which say of which kinds
    its variables are, beside a condition that never holds."""
    found = alternatives(aggregate.body)
    if not found:
        return alternatives(rebuild(aggregate.body, _as_constraint))[0]
    if len(found) > 1:
        raise unsupported(
            "a disjunction in an aggregate",
            aggregate.span,
            "give the disjunction a relation of its own",
        )
    return found[0]


def _as_constraint(node: Any) -> Any:
    """`false` as `0 = 1`."""
    if not isinstance(node, syntax.Truth):
        return node
    zero, other = (
        syntax.Number(value, "integer", node.span) for value in (0, 0 if node.value else 1)
    )
    return syntax.Constraint("=", zero, other, node.span)
