"""Changes to syntax before it is translated: what can be said in several ways is said in one."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp


def replace_columns(node: exp.Expr, other: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The expression with its columns replaced, but not those of aggregates and subqueries."""
    if isinstance(node, exp.AggFunc | exp.Query):
        return node.copy()
    if isinstance(node, exp.Column):
        return other(node)
    made = node.copy()
    for key, value in list(made.args.items()):
        if isinstance(value, exp.Expr):
            made.set(key, replace_columns(value, other))
        elif isinstance(value, list):
            made.set(
                key, [replace_columns(v, other) if isinstance(v, exp.Expr) else v for v in value]
            )
    return made


def normalized(node: exp.Expr) -> exp.Expr:
    """One node, as the translation wants it."""
    if node.args.get("negate"):  # NOT by a flag of the predicate, which sqlglot may set
        node.set("negate", None)
        return exp.Not(this=normalized(node.copy()))
    if isinstance(node, exp.Binary) and isinstance(node.expression, exp.Anonymous):
        node.set("expression", _quantified(node.expression))
    match node:
        case exp.EQ(expression=exp.Any()) if isinstance(node.expression.this, exp.Query):
            return exp.In(this=node.this, query=_subquery(node.expression))
        case exp.NEQ(expression=exp.All()) if isinstance(node.expression.this, exp.Query):
            return exp.Not(this=exp.In(this=node.this, query=_subquery(node.expression)))
        case exp.EQ(this=exp.Tuple(), expression=exp.Tuple()):
            return _rows_equal(node.this, node.expression)
        case exp.NEQ(this=exp.Tuple(), expression=exp.Tuple()):
            return exp.Not(this=_rows_equal(node.this, node.expression))
        case exp.In(this=exp.Tuple()) if _are_rows(node.expressions):
            equal = (_rows_equal(node.this, each) for each in node.expressions)
            return exp.Paren(this=exp.or_(*equal))
    return node


def _quantified(call: exp.Expr) -> exp.Expr:
    """ALL and SOME of a query that begins with a parenthesis, which sqlglot takes for functions."""
    kind = {"ALL": exp.All, "ANY": exp.Any, "SOME": exp.Any}.get(call.name.upper())
    match call.expressions:
        case [exp.Query() as query] if kind is not None:
            return kind(this=exp.Subquery(this=query))
    return call


def _subquery(node: exp.Expr) -> exp.Subquery:
    return exp.Subquery(this=node.this.unnest())


def _are_rows(nodes: list[exp.Expr]) -> bool:
    return bool(nodes) and all(isinstance(each, exp.Tuple) for each in nodes)


def _rows_equal(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    """(a, b) = (c, d) is a = c AND b = d; of different lengths they stay, and are refused."""
    if len(one.expressions) != len(other.expressions):
        return exp.EQ(this=one.copy(), expression=other.copy())
    pairs = zip(one.expressions, other.expressions, strict=True)
    parts = (exp.EQ(this=left.copy(), expression=right.copy()) for left, right in pairs)
    return exp.Paren(this=exp.and_(*parts))
