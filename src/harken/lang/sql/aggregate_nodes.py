"""Aggregates in expressions: which there are, whose they are, and of what.

An aggregate belongs to the query that it stands in, unless it stands in the WHERE of a subquery.
"""

from __future__ import annotations

from sqlglot import exp

from harken.lang.sql.group_aggregates import folded_values, is_fold, keys_of
from harken.lang.sql.normalization import ONE

AGGREGATED: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.LogicalAnd: "min",
    exp.LogicalOr: "max",
    exp.AnyValue: "min",  # one value is as good as another, and this one is always the same
    exp.First: "min",
    exp.Last: "max",
    exp.FirstValue: "min",
    exp.LastValue: "max",
}


def aggregates_from_around(query: exp.Expr) -> list[exp.Expr]:
    """The aggregates in a subquery that are those of a query around it: they stand in its WHERE,
    where none of its own can, and are of columns of other tables than it has."""
    own = {each.alias_or_name.lower() for each in query.find_all(exp.Table, exp.Subquery)}
    found: list[exp.Expr] = []
    for each in query.find_all(exp.AggFunc):
        tables = {column.table.lower() for column in each.find_all(exp.Column)}
        place = each.find_ancestor(exp.Where, exp.Having, exp.Query, exp.AggFunc)
        if isinstance(place, exp.Where) and tables and not tables & {"", *own}:
            found.append(each)
    return found


def aggregates_of(node: exp.Expr) -> list[exp.Expr]:
    """The aggregates of an expression, not those of subqueries in it."""
    found: list[exp.Expr] = []

    def visit(each: exp.Expr) -> None:
        if isinstance(each, exp.Query):
            found.extend(aggregates_from_around(each))
            return
        if isinstance(each, exp.AggFunc | exp.Filter):
            found.append(each)
            return
        for child in each.iter_expressions():
            visit(child)

    visit(node)
    return found


def unfiltered(node: exp.Expr) -> exp.Expr:
    """An aggregate without its FILTER: of what does not pass it takes NULL, which it ignores."""
    if not isinstance(node, exp.Filter):
        return node
    if type(node.this) not in AGGREGATED and not is_fold(node.this):
        return node
    made: exp.Expr = node.this.copy()
    condition = node.expression.this

    def kept(value: exp.Expr) -> exp.Expr:
        value = ONE if isinstance(value, exp.Star) else value
        return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])

    if is_fold(made):
        values = folded_values(made)
        for each in (*(key for key in keys_of(made) if key in values), *values):
            each.replace(kept(each))
        return made
    argument = made.this
    if isinstance(argument, exp.Distinct):
        argument.set("expressions", [kept(each) for each in argument.expressions])
    else:
        made.set("this", kept(argument))
    return made


def is_distinct(node: exp.Expr) -> bool:
    """min and max are the same of a set."""
    return isinstance(node.this, exp.Distinct) and AGGREGATED.get(type(node)) not in ("min", "max")
