"""Conditions of WHERE, ON and HAVING into literals: a row passes where the condition is true.

A conjunction becomes several literals, which join and filter. Other conditions are computed as
values and tested.
"""

from __future__ import annotations

from sqlglot import exp

from harken.ir.clauses import Comparison
from harken.ir.operations import NEGATED_COMPARISON
from harken.ir.terms import Constant, Term
from harken.lang.sql.comparisons import COMPARED, boolean, operand_of_is
from harken.lang.sql.conversions import to_same_type
from harken.lang.sql.program_draft import FALSE, Body
from harken.lang.sql.scope import Scope
from harken.lang.sql.subqueries import require_in, require_no_row, require_not_in, require_row
from harken.lang.sql.translation import Translation


def require_condition(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> None:
    """Add literals to the body that hold where the condition is true."""
    match node:
        case exp.Paren():
            require_condition(translation, node.this, scope, body)
        case exp.And():
            require_condition(translation, node.left, scope, body)
            require_condition(translation, node.right, scope, body)
        case exp.Not():
            _require_false(translation, node.this, node, scope, body)
        case exp.Or() if common := _in_all(node):
            for each in common:
                require_condition(translation, each, scope, body)
            body.require(boolean(translation, node, scope, body))
        case exp.Exists():
            require_row(translation, node.this, scope, body)
        case exp.In() if node.args.get("query") is not None:
            require_in(translation, node.this, node.args["query"].unnest(), scope, body)
        case exp.Is(expression=exp.Null()):
            given = operand_of_is(translation, node, scope, body)
            body.add(Comparison("=", given, Constant(None, given.type.or_null())))
        case exp.Between():
            low = exp.GTE(this=node.this.copy(), expression=node.args["low"])
            high = exp.LTE(this=node.this.copy(), expression=node.args["high"])
            require_condition(translation, low, scope, body)
            require_condition(translation, high, scope, body)
        case _ if type(node) in COMPARED and not _is_quantified(node):
            _require_compared(translation, COMPARED[type(node)], node, scope, body)
        case _:
            body.require(boolean(translation, node, scope, body))


def _require_false(
    translation: Translation, node: exp.Expr, whole: exp.Expr, scope: Scope, body: Body
) -> None:
    """Add literals to the body that hold where the condition is false, which excludes NULL."""
    match node:
        case exp.Paren():
            _require_false(translation, node.this, whole, scope, body)
        case exp.Not():
            require_condition(translation, node.this, scope, body)
        case exp.Or():
            _require_false(translation, node.left, whole, scope, body)
            _require_false(translation, node.right, whole, scope, body)
        case exp.Exists():
            require_no_row(translation, node.this, scope, body)
        case exp.In() if node.args.get("query") is not None:
            require_not_in(translation, node.this, node.args["query"].unnest(), scope, body)
        case exp.Is(expression=exp.Null()):
            body.not_null(operand_of_is(translation, node, scope, body))
        case _ if type(node) in COMPARED and not _is_quantified(node):
            operator = NEGATED_COMPARISON[COMPARED[type(node)]]
            _require_compared(translation, operator, node, scope, body)
        case _:
            value = boolean(translation, node, scope, body)
            body.add(Comparison("=", value, FALSE))


def _require_compared(
    translation: Translation, operator: str, node: exp.Expr, scope: Scope, body: Body
) -> None:
    left = translation.value(node.this, scope, body)
    right = translation.value(node.expression, scope, body)
    left, right = to_same_type(translation.draft, left, right, body, node)
    require_comparison(operator, left, right, body)


def _is_quantified(node: exp.Expr) -> bool:
    return isinstance(node.expression, exp.Any | exp.All)


def _in_all(node: exp.Or) -> list[exp.Expr]:
    """The conditions that stand in every alternative. They hold wherever one of those does, and as
    literals of their own they can join."""
    first, *rest = (_parts(each, exp.And) for each in _parts(node, exp.Or))
    return [
        each
        for each in dict.fromkeys(first)
        if each.find(exp.Query) is None and all(each in other for other in rest)
    ]


def _parts(node: exp.Expr, connector: type[exp.Connector]) -> list[exp.Expr]:
    node = node.unnest()
    if not isinstance(node, connector):
        return [node]
    return [*_parts(node.left, connector), *_parts(node.right, connector)]


def require_comparison(operator: str, left: Term, right: Term, body: Body) -> None:
    """A comparison of SQL, which holds for no NULL."""
    body.add(Comparison(operator, left, right))
    if operator == "=":
        nullable = [each for each in (left, right) if each.type.nullable]
        if len(nullable) == 2:
            body.not_null(left)
    elif operator == "!=":
        body.not_null(left)
        body.not_null(right)
