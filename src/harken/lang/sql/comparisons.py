"""Conditions as values: comparisons, IN, IS, LIKE, AND and OR. Each is true, false or NULL.

`conditions` turns those of WHERE into literals where it can.
"""

from __future__ import annotations

from sqlglot import exp

from harken.ir.operations import NEGATED_COMPARISON
from harken.ir.terms import Constant, Term
from harken.lang.sql.conversions import constant_as, is_null, to_same_type
from harken.lang.sql.program_draft import FALSE, TRUE, Body
from harken.lang.sql.scope import Scope
from harken.lang.sql.subqueries import compares_to_any, is_in
from harken.lang.sql.text_functions import text_value
from harken.lang.sql.translation import Translation
from harken.values.types import BOOLEAN, TEXT

COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
SHORTEST_LIST = 3
"""IN with at least this many values is one operation; with fewer, a comparison for each."""


def boolean(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """The value of an expression that is a condition."""
    return translation.draft.coerce(translation.value(node, scope, body), BOOLEAN, body, node)


def and_or(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """AND and OR."""
    sides = [boolean(translation, each, scope, body) for each in (node.this, node.expression)]
    name = "and" if isinstance(node, exp.And) else "or"
    return translation.draft.compute(name, sides, BOOLEAN, body)


def not_(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    given = boolean(translation, node.this, scope, body)
    return translation.draft.compute("not", (given,), BOOLEAN, body)


def comparison(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """A comparison with a value, or with ANY or ALL rows of a query."""
    operator = COMPARED[type(node)]
    if isinstance(node.expression, exp.Any | exp.All):
        return _quantified(translation, operator, node, scope, body)
    left = translation.value(node.this, scope, body)
    return _compared(translation, operator, left, node.expression, scope, body, node)


def between(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    given = translation.value(node.this, scope, body)
    low = _compared(translation, ">=", given, node.args["low"], scope, body, node)
    high = _compared(translation, "<=", given, node.args["high"], scope, body, node)
    return translation.draft.compute("and", (low, high), BOOLEAN, body)


def like(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    compute = translation.draft.compute
    sides = [text_value(translation, each, scope, body) for each in (node.this, node.expression)]
    found = compute("like", sides, BOOLEAN, body)
    return compute("not", (found,), BOOLEAN, body) if node.args.get("negate") else found


def operand_of_is(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """The operand of IS. That of IS UNKNOWN must be a condition."""
    translate = boolean if node.meta.get("of_condition") else Translation.value
    return translate(translation, node.this, scope, body)


def is_(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    given = operand_of_is(translation, node, scope, body)
    right = node.expression
    if isinstance(right, exp.Null):
        return translation.draft.compute("is null", (given,), BOOLEAN, body)
    if isinstance(right, exp.Boolean):  # x IS TRUE
        given = constant_as(translation.draft, given, BOOLEAN, node) or given
        wanted = TRUE if right.this else FALSE
        equal = translation.draft.compute("is =", (given, wanted), BOOLEAN, body)
        return translation.draft.compute("coalesce", (equal, FALSE), BOOLEAN, body)
    return null_safe_equal(translation, node, scope, body)


def null_safe_equal(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """IS NOT DISTINCT FROM: NULL is the same as NULL."""
    left, right = _pair(translation, node, scope, body)
    compute = translation.draft.compute
    equal = compute("is =", (left, right), BOOLEAN, body)
    if equal.type.nullable:
        nulls = [compute("is null", (each,), BOOLEAN, body) for each in (left, right)]
        both = compute("and", nulls, BOOLEAN, body)
        equal = compute("coalesce", (equal, both), BOOLEAN, body)
    if isinstance(node, exp.NullSafeNEQ):
        return compute("not", (equal,), BOOLEAN, body)
    return equal


def in_(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    query = node.args.get("query")
    if query is not None:
        return is_in(translation, node.this, query.unnest(), scope, body)
    given = translation.value(node.this, scope, body)
    values = [translation.value(each, scope, body) for each in node.expressions]
    pairs = [to_same_type(translation.draft, given, each, body, node) for each in values]
    sides = {one for one, _ in pairs}
    if len(pairs) >= SHORTEST_LIST and len(sides) == 1:
        others = [other for _, other in pairs]
        return translation.draft.compute("is among", (*sides, *others), BOOLEAN, body)
    found: Term = FALSE
    for one, other in pairs:
        equal = translation.draft.compute("is =", (one, other), BOOLEAN, body)
        alone = found is FALSE
        found = equal if alone else translation.draft.compute("or", (found, equal), BOOLEAN, body)
    return found


def _quantified(
    translation: Translation, operator: str, node: exp.Expr, scope: Scope, body: Body
) -> Term:
    """A comparison with ANY or ALL rows. It holds for ALL unless the opposite holds for ANY."""
    among = node.expression
    query = among.this.unnest()
    if not isinstance(query, exp.Query):
        raise translation.draft.unsupported(node, "ANY and ALL take a query")
    if isinstance(among, exp.Any):
        return compares_to_any(translation, operator, node.this, query, scope, body)
    opposite = NEGATED_COMPARISON[operator]
    fails = compares_to_any(translation, opposite, node.this, query, scope, body)
    return translation.draft.compute("not", (fails,), BOOLEAN, body)


def _compared(
    translation: Translation,
    operator: str,
    left: Term,
    right_node: exp.Expr,
    scope: Scope,
    body: Body,
    node: exp.Expr,
) -> Term:
    right = translation.value(right_node, scope, body)
    if TEXT in (left.type, right.type) and (is_null(left) or is_null(right)):
        return Constant(None, BOOLEAN.or_null())  # whatever the text says
    sides = to_same_type(translation.draft, left, right, body, node)
    return translation.draft.compute(f"is {operator}", sides, BOOLEAN, body)


def _pair(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> tuple[Term, Term]:
    left = translation.value(node.this, scope, body)
    right = translation.value(node.expression, scope, body)
    return to_same_type(translation.draft, left, right, body, node)
