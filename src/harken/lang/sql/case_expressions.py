"""Expressions that choose among values: CASE, IF, COALESCE, NULLIF, greatest and least."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from harken.ir.terms import Constant, Term
from harken.lang.sql.comparisons import boolean
from harken.lang.sql.conversions import NULL_TYPE, to_same_type, to_shared_type
from harken.lang.sql.program_draft import Body
from harken.lang.sql.scope import Scope
from harken.lang.sql.translation import Translation
from harken.values.types import BOOLEAN


def case(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    branches = node.args["ifs"]
    if node.this is not None:
        branches = [
            exp.If(this=exp.EQ(this=node.this.copy(), expression=each.this), true=each.args["true"])
            for each in branches
        ]
    return _choose(translation, node, branches, node.args.get("default"), scope, body)


def if_(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    return _choose(translation, node, [node], node.args.get("false"), scope, body)


def _choose(
    translation: Translation,
    node: exp.Expr,
    branches: Sequence[exp.Expr],
    default: exp.Expr | None,
    scope: Scope,
    body: Body,
) -> Term:
    tests = [boolean(translation, each.this, scope, body) for each in branches]
    values = [translation.value(each.args["true"], scope, body) for each in branches]
    last = Constant(None, NULL_TYPE) if default is None else translation.value(default, scope, body)
    *values, last = to_shared_type(translation.draft, [*values, last], body, node)
    for test, value in zip(reversed(tests), reversed(values), strict=True):
        last = translation.draft.compute("choose", (test, value, last), value.type, body)
    return last


def coalesce(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    given = [node.this, *node.expressions]
    values = to_shared_type(
        translation.draft, [translation.value(each, scope, body) for each in given], body, node
    )
    result = values[-1]
    for value in reversed(values[:-1]):
        result = translation.draft.compute("coalesce", (value, result), value.type, body)
    return result


def nullif(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """The first value, or NULL if it equals the second. The type is that of the first."""
    left = translation.value(node.this, scope, body)
    right = translation.value(node.expression, scope, body)
    sides = to_same_type(translation.draft, left, right, body, node)
    same = translation.draft.compute("is =", sides, BOOLEAN, body)
    nothing = Constant(None, left.type.or_null())
    return translation.draft.compute("choose", (same, nothing, left), left.type, body)


def greatest_or_least(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """The greatest or the least of several values that are there."""
    values = [translation.value(each, scope, body) for each in (node.this, *node.expressions)]
    result, *rest = to_shared_type(translation.draft, values, body, node)
    operator = "is >=" if isinstance(node, exp.Greatest) else "is <="
    compute = translation.draft.compute
    for each in rest:
        stays = compute(operator, (result, each), BOOLEAN, body)
        missing = compute("is null", (each,), BOOLEAN, body)
        stays = compute("or", (missing, stays), BOOLEAN, body)
        result = compute("choose", (stays, result, each), result.type, body)
    return result
