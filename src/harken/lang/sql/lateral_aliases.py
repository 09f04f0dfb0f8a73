"""Lateral column aliases: an alias of the select list, used further on in the same list.

    SELECT a + 1 AS x, x * 2 AS y          SELECT a + 1 AS x, (a + 1) * 2 AS y

A column of FROM takes precedence over an alias, and an alias over a column of an enclosing query.
As in Spark, aliases are not visible inside aggregates and subqueries, but PARTITION BY and ORDER BY
of a window may use them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from harken.lang.sql.normalization import replace_columns
from harken.lang.sql.select_list import name_of

WITHOUT_ALIASES = (exp.AggFunc, exp.Query)


def mentions_aliases(selected: Sequence[exp.Expr]) -> bool:
    """May a column be a lateral alias?"""
    known: set[str] = set()
    for each in selected:
        if any(column.name.lower() in known for column in _columns(each)):
            return True
        if isinstance(each, exp.Alias):
            known.add(each.alias.lower())
    return False


def replace_aliases(
    selected: Sequence[exp.Expr],
    is_column: Callable[[str], bool],
    ambiguous: Callable[[exp.Expr], Exception],
) -> list[exp.Expr]:
    """The select list with lateral aliases replaced by their expressions."""
    known: dict[str, list[exp.Expr]] = {}

    def stands_for(column: exp.Expr) -> exp.Expr:
        name = column.name.lower()
        if column.args.get("table") or name not in known or is_column(name):
            return column
        if len(known[name]) > 1:
            raise ambiguous(column)
        return exp.Paren(this=known[name][0].copy())

    found: list[exp.Expr] = []
    for place, each in enumerate(selected):
        made = replace_columns(each, stands_for, WITHOUT_ALIASES)
        if made != each and not isinstance(each, exp.Alias):
            made = exp.alias_(made, name_of(each, place), quoted=True)
        found.append(made)
        if isinstance(each, exp.Alias):
            known.setdefault(each.alias.lower(), []).append(made.this)
    return found


def _columns(node: exp.Expr) -> list[exp.Column]:
    own = node.walk(prune=lambda each: isinstance(each, WITHOUT_ALIASES))
    return [each for each in own if isinstance(each, exp.Column) and not each.table]
