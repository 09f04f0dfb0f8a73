"""Changes to syntax before it is translated."""

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
