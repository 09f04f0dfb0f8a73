"""Lateral column aliases: a name of the select list in what is selected after it.

    SELECT a + 1 AS x, x * 2 AS y          SELECT a + 1 AS x, (a + 1) * 2 AS y

A column of FROM is meant before such a name, and such a name before a column of a query around. As
in Spark it is not known inside of aggregates and subqueries; by a window rows may be parted and
ordered by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from harken.lang.sql.normalization import replace_columns
from harken.lang.sql.select_list import name_of

WITHOUT_ALIASES = (exp.AggFunc, exp.Query)


def mentions_aliases(selected: Sequence[exp.Expr]) -> bool:
    """Can a column be the name of what is selected before it?"""
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
    """The select list with such names replaced by what they stand for."""
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
