"""The columns by which a row of a table or view is the same row after a change.

A table has its key. The rows of a view have those of the table that it selects from, if it shows
them all, or what it groups by.
"""

from __future__ import annotations

from sqlglot import exp

from harken.database.catalog import Catalog
from harken.database.function_tables import SqlTables, is_view_of_sql, table_of
from harken.errors import HarkenError
from harken.ir.schema import Function
from harken.lang.sql.parser import statements

DEEPEST = 20
"""Views over views that are looked through."""


def key_columns(function: Function, catalog: Catalog, depth: int = 0) -> tuple[str, ...] | None:
    """The names of the key columns; None if nothing tells the rows apart."""
    relation = function.relation
    assert relation is not None
    if relation.key is not None and not function.materialized:
        table = table_of(function)
        names = {p: c.name.lower() for p, c in zip(table.positions, table.columns, strict=True)}
        return tuple(names[place] for place in relation.key)
    if is_view_of_sql(function) and depth < DEEPEST:
        return _key_of_view(function, catalog, depth)
    return None


def _key_of_view(function: Function, catalog: Catalog, depth: int) -> tuple[str, ...] | None:
    try:
        (statement,) = statements(function.text)
    except HarkenError:
        return None
    select = statement.node.args.get("expression")
    if not isinstance(select, exp.Select) or select.args.get("distinct"):
        return None
    columns = [each.name.lower() for each in table_of(function).columns]
    shown = _shown(select, columns)
    if shown is None:
        return None
    group = select.args.get("group")
    if group is not None:
        keys = [each.sql("spark").lower() for each in group.expressions]
        return _named(keys, shown) if not _has_sets(group) else None
    if any(isinstance(e.unalias(), exp.AggFunc) for e in select.expressions):
        return ()
    return _key_of_source(select, shown, catalog, depth)


def _has_sets(group: exp.Expr) -> bool:
    return any(group.args.get(each) for each in ("rollup", "cube", "grouping_sets", "all"))


def _shown(select: exp.Select, columns: list[str]) -> dict[str, str] | None:
    """The name of the view's column for each expression that it selects."""
    if len(select.expressions) != len(columns):
        is_star = len(select.expressions) == 1 and isinstance(select.expressions[0], exp.Star)
        return {name: name for name in columns} if is_star else None
    found: dict[str, str] = {}
    for each, name in zip(select.expressions, columns, strict=True):
        if isinstance(each, exp.Star):
            return {name: name for name in columns}
        said = each.unalias().sql("spark").lower()
        found.setdefault(said, name)
        if isinstance(each.unalias(), exp.Column):
            found.setdefault(each.unalias().name.lower(), name)
    return found


def _named(keys: list[str], shown: dict[str, str]) -> tuple[str, ...] | None:
    if not all(each in shown for each in keys):
        return None
    return tuple(dict.fromkeys(shown[each] for each in keys))


def _key_of_source(
    select: exp.Select, shown: dict[str, str], catalog: Catalog, depth: int
) -> tuple[str, ...] | None:
    start = select.args.get("from_") or select.args.get("from")
    if start is None or not isinstance(start.this, exp.Table) or select.args.get("joins"):
        return None
    function = SqlTables(catalog).function(start.this.name)
    key = None if function is None else key_columns(function, catalog, depth + 1)
    return None if key is None else _named(list(key), shown)
