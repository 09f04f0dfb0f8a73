"""Conditions of WHERE, ON and HAVING into literals: a row passes where the condition is true.

What is a conjunction becomes several literals, which join and filter; the rest is computed as a
value and tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from harken.ir.clauses import Comparison
from harken.ir.operations import NEGATED_COMPARISON
from harken.ir.terms import Constant, Term
from harken.lang.sql.draft import FALSE, Body
from harken.lang.sql.expressions import COMPARED, Expressions
from harken.lang.sql.scope import Scope

if TYPE_CHECKING:
    from harken.lang.sql.queries import Queries


class Conditions:
    def __init__(self, expressions: Expressions, queries: Queries) -> None:
        self._expressions = expressions
        self._queries = queries

    def hold(self, node: exp.Expr, scope: Scope, body: Body) -> None:
        """Let the body hold only where the condition is true."""
        match node:
            case exp.Paren():
                self.hold(node.this, scope, body)
            case exp.And():
                self.hold(node.left, scope, body)
                self.hold(node.right, scope, body)
            case exp.Not():
                self._fail(node.this, node, scope, body)
            case exp.Or() if common := _in_all(node):
                for each in common:
                    self.hold(each, scope, body)
                body.require(self._expressions.boolean(node, scope, body))
            case exp.Exists():
                self._queries.require_row(node.this, scope, body)
            case exp.In() if node.args.get("query") is not None:
                self._queries.require_in(node.this, node.args["query"].unnest(), scope, body)
            case exp.Is(expression=exp.Null()):
                given = self._expressions.tested(node, scope, body)
                body.add(Comparison("=", given, Constant(None, given.type.or_null())))
            case exp.Between():
                low = exp.GTE(this=node.this.copy(), expression=node.args["low"])
                high = exp.LTE(this=node.this.copy(), expression=node.args["high"])
                self.hold(low, scope, body)
                self.hold(high, scope, body)
            case _ if type(node) in COMPARED and not _is_quantified(node):
                self._compare(COMPARED[type(node)], node, scope, body)
            case _:
                body.require(self._expressions.boolean(node, scope, body))

    def _fail(self, node: exp.Expr, whole: exp.Expr, scope: Scope, body: Body) -> None:
        """Let the body hold only where the condition is false: NULL is not."""
        match node:
            case exp.Paren():
                self._fail(node.this, whole, scope, body)
            case exp.Not():
                self.hold(node.this, scope, body)
            case exp.Or():
                self._fail(node.left, whole, scope, body)
                self._fail(node.right, whole, scope, body)
            case exp.Exists():
                self._queries.require_no_row(node.this, scope, body)
            case exp.In() if node.args.get("query") is not None:
                self._queries.require_not_in(node.this, node.args["query"].unnest(), scope, body)
            case exp.Is(expression=exp.Null()):
                body.not_null(self._expressions.tested(node, scope, body))
            case _ if type(node) in COMPARED and not _is_quantified(node):
                operator = NEGATED_COMPARISON[COMPARED[type(node)]]
                self._compare(operator, node, scope, body)
            case _:
                value = self._expressions.boolean(node, scope, body)
                body.add(Comparison("=", value, FALSE))

    def _compare(self, operator: str, node: exp.Expr, scope: Scope, body: Body) -> None:
        left = self._expressions.value(node.this, scope, body)
        right = self._expressions.value(node.expression, scope, body)
        left, right = self._expressions.alike(left, right, body, node)
        compare(operator, left, right, body)


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


def compare(operator: str, left: Term, right: Term, body: Body) -> None:
    """A comparison of SQL, which holds for no NULL."""
    body.add(Comparison(operator, left, right))
    if operator == "=":
        nullable = [each for each in (left, right) if each.type.nullable]
        if len(nullable) == 2:
            body.not_null(left)
    elif operator == "!=":
        body.not_null(left)
        body.not_null(right)
