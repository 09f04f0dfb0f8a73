"""DISTINCT ON (a): the first row, in the order of ORDER BY, for each value of a.

    SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b
    SELECT a, b FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY a, b) = 1 ORDER BY a, b

A key is read as in ORDER BY: a name or a position of the select list comes first.
"""

from __future__ import annotations

from sqlglot import exp

from harken.lang.sql.whole_numbers import whole_number


def distinct_on(node: exp.Expr) -> exp.Expr | None:
    """The expressions of DISTINCT ON in a SELECT."""
    distinct = node.args.get("distinct")
    return None if distinct is None else distinct.args.get("on")


def first_of_each(node: exp.Select, on: exp.Expr) -> exp.Select | None:
    """An equivalent query without DISTINCT ON; None if there is none."""
    if node.args.get("qualify") is not None:
        return None
    keys = on.expressions if isinstance(on, exp.Tuple) else [on.unnest()]
    order = node.args.get("order")
    ordered = order.expressions if order is not None else []
    meant = [_meant(each, node.expressions) for each in (*keys, *(each.this for each in ordered))]
    if None in meant:
        return None
    window = exp.Window(this=exp.RowNumber(), partition_by=meant[: len(keys)])
    if order is not None:
        window.set("order", order.copy())
        for each, value in zip(window.args["order"].expressions, meant[len(keys) :], strict=True):
            each.set("this", value)
    node.set("distinct", None)
    first = exp.EQ(this=window, expression=exp.Literal.number(1))
    node.set("qualify", exp.Qualify(this=first))
    return node


def _meant(key: exp.Expr, selected: list[exp.Expr]) -> exp.Expr | None:
    """What a key stands for; None for a place behind or in a *, or one that there is not, and for
    ORDER BY ALL."""
    place = whole_number(key) if isinstance(key, exp.Literal) else None
    if place is not None:
        before = selected[:place]
        if not 1 <= place <= len(selected) or any(each.is_star for each in before):
            return None
        return before[-1].unalias().copy()
    if isinstance(key, exp.Var):
        return None
    if isinstance(key, exp.Column) and not key.table:
        for each in selected:
            if isinstance(each, exp.Alias) and each.alias.lower() == key.name.lower():
                return each.unalias().copy()
    return key.copy()
