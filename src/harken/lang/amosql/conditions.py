"""Conditions into alternatives: `and` joins, `or` makes several clauses, `not` negates.

An alternative is a list of literals that must all hold. A negated comparison is the opposite
comparison; any other negation tests an auxiliary relation of the outer bindings for which the
inner condition holds, so `not` is negation as failure.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from harken.errors import SafetyFault, Span, TypeFault, counted
from harken.ir.clauses import Aggregation, Comparison, Literal
from harken.ir.operations import COMPARISONS, NEGATED_COMPARISON
from harken.ir.terms import Constant
from harken.lang.amosql import syntax
from harken.lang.amosql.scope import Scope
from harken.lang.amosql.tree_walk import chain
from harken.values.types import BOOLEAN

if TYPE_CHECKING:
    from harken.lang.amosql.translate import Translator

Alternatives = list[list[Literal]]
MOST_ALTERNATIVES = 10_000

TRUE = Constant(True, BOOLEAN)
NEVER = Comparison("=", TRUE, Constant(False, BOOLEAN))


def translate(translator: Translator, node: syntax.Expression, scope: Scope) -> Alternatives:
    """The alternatives under which a condition holds, at least one."""
    match node:
        case syntax.Binary(operator="and"):
            parts = [translate(translator, each, scope) for each in _operands(node, "and")]
            return _all_of(parts, node.span)
        case syntax.Binary(operator="or"):
            parts = [translate(translator, each, scope) for each in _operands(node, "or")]
            return [alternative for part in parts for alternative in part]
        case syntax.Unary(operator="not"):
            return _not(translator, node.operand, scope)
        case syntax.Binary() if node.operator in COMPARISONS or node.operator == "in":
            return [_compare(translator, node, scope)]
        case syntax.Call(function="notany", arguments=(argument,)):
            some = syntax.Call("some", (argument,), span=node.span)
            return _not(translator, some, scope)
        case syntax.Literal(value=bool() as value, slot=None):
            return [[]] if value else [[NEVER]]
        case _:
            return [_boolean(translator, node, scope)]


def _operands(node: syntax.Binary, operator: str) -> list[syntax.Expression]:
    first, links = chain(node, (operator,))
    return [first, *(link.right for link in links)]


def _all_of(parts: list[Alternatives], span: Span) -> Alternatives:
    """One alternative for each way to take one of each part."""
    if math.prod(map(len, parts)) > MOST_ALTERNATIVES:
        raise SafetyFault(
            f"this has more than {MOST_ALTERNATIVES} alternatives",
            code="too-complex",
            span=span,
            hint="give the parts that are joined by `or` names, as functions of their own",
        )
    return [list(itertools.chain(*ways)) for ways in itertools.product(*parts)]


def _compare(translator: Translator, node: syntax.Binary, scope: Scope) -> list[Literal]:
    literals, left = translator.value(node.left, scope)
    more, right = translator.value(node.right, scope)
    literals = [*literals, *more]
    operator = "=" if node.operator == "in" else node.operator
    if len(left) != len(right) or (len(left) != 1 and operator != "="):
        raise TypeFault(
            f"`{node.operator}` cannot compare {counted(len(left), 'value')} with {len(right)}",
            code="arity",
            span=node.span,
            hint="several columns compare with `=` and a tuple: `f(x) = <a, b>`",
        )
    for one, other in zip(left, right, strict=True):
        one = translator.draft.coerce(one, other.type, literals, node.span)
        other = translator.draft.coerce(other, one.type, literals, node.span)
        literals.append(Comparison(operator, one, other, span=node.span))
    return literals


def _boolean(translator: Translator, node: syntax.Expression, scope: Scope) -> list[Literal]:
    literals, term = translator.single(node, scope)
    if term.type != BOOLEAN:
        raise TypeFault(
            f"a condition is true or false, but this is {term.type}",
            code="type-mismatch",
            span=node.span,
            hint="compare it with something, or ask `some(...)` whether it has a value",
        )
    return [*literals, Comparison("=", term, TRUE, span=node.span)]


def _not(translator: Translator, node: syntax.Expression, scope: Scope) -> Alternatives:
    match node:
        case syntax.Unary(operator="not"):
            return translate(translator, node.operand, scope)
        case syntax.Binary(operator="or"):
            parts = [_not(translator, each, scope) for each in _operands(node, "or")]
            return _all_of(parts, node.span)
        case syntax.Call(function="notany", arguments=(argument,)):
            return translate(translator, syntax.Call("some", (argument,), span=node.span), scope)
    alternatives = translate(translator, node, scope)
    if [] in alternatives:
        return [[NEVER]]
    match alternatives:
        case [[Comparison() as only]]:
            return [[replace(only, operator=NEGATED_COMPARISON[only.operator])]]
    alternatives = [_bare(body) for body in alternatives]
    atom, _ = translator.condition_relation(alternatives, scope, "not", node)
    return [[replace(atom, negated=True)]]


def _bare(body: list[Literal]) -> list[Literal]:
    """Under `not`, `some(q)` tests rows of q directly instead of computing a truth value."""
    bare: list[Literal] = []
    for literal in body:
        if isinstance(literal, Aggregation) and literal.aggregate == "some":
            tested = Comparison("=", literal.result, TRUE)
            if tested in body:
                bare.append(literal.atom)
                continue
        bare.append(literal)
    dropped = {
        literal.result
        for literal in body
        if isinstance(literal, Aggregation) and literal not in bare
    }
    return [
        literal
        for literal in bare
        if not (isinstance(literal, Comparison) and literal.left in dropped)
    ]
