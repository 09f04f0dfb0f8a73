"""The select list of a query: its columns with their names, `*` spelled out."""

from __future__ import annotations

from sqlglot import exp

from harken.errors import NameFault, nearest
from harken.lang.sql.aggregate_calls import written
from harken.lang.sql.expression_text import as_written
from harken.lang.sql.normalization import normalized
from harken.lang.sql.program_draft import Draft
from harken.lang.sql.scope import Scope


def expand_stars(draft: Draft, node: exp.Select, scope: Scope) -> list[tuple[exp.Expr, str]]:
    """The select list with its names, `*` spelled out."""
    found: list[tuple[exp.Expr, str]] = []
    for each in node.expressions:
        table, star = None, each.this if isinstance(each, exp.Column) else each
        if isinstance(each, exp.Column) and isinstance(each.this, exp.Star):
            table = each.table.lower()
            if table not in [source.alias for source in scope.sources]:
                raise scope.unknown_source(table, draft.place(each))
        elif not isinstance(each, exp.Star):
            found.append((each, name_of(each, len(found))))
            continue
        columns = [
            (exp.column(one.key or one.name, table=source.alias), one.name)
            for source in scope.sources
            if table is None or source.alias == table
            for one in source.fields
            if table is not None or one.name not in source.merged
        ]
        found += _except_and_replace(draft, star, columns)
    return found


def _except_and_replace(
    draft: Draft, star: exp.Expr, columns: list[tuple[exp.Column, str]]
) -> list[tuple[exp.Expr, str]]:
    """The columns of `*` without those of EXCEPT, and those of REPLACE with other values."""
    dropped = {_named(each): each for each in star.args.get("except_") or []}
    replaced = {(None, e.alias.lower()): e for e in star.args.get("replace") or []}
    known = {way for column, name in columns for way in ((None, name), (column.table, name))}
    for way, each in (dropped | replaced).items():
        if way not in known:
            near = nearest(way[1], {name for _, name in columns})
            raise NameFault(
                f"there is no column {way[1]} in *",
                code="unknown-column",
                span=draft.place(each),
                hint=f"did you mean {near}?" if near and near != way[1] else None,
            )
    left = [
        (replaced.get((None, name), column), name)
        for column, name in columns
        if (None, name) not in dropped and (column.table, name) not in dropped
    ]
    if not left:
        raise draft.unsupported(star, "EXCEPT leaves no column" if columns else "* without FROM")
    return left


def expand_count(draft: Draft, node: exp.Expr, scope: Scope) -> exp.Expr:
    """count(DISTINCT *) and count(t.*), with the columns that they mean."""
    if isinstance(node, exp.Filter):
        return exp.Filter(this=expand_count(draft, node.this, scope), expression=node.expression)
    if not isinstance(node, exp.Count):
        return node
    distinct = isinstance(node.this, exp.Distinct)
    given = node.this.expressions if distinct else [node.this]
    if None in given or not given:
        raise draft.unsupported(node, "count takes * or a value")
    given = [each.unnest() for each in given]
    if not any(_is_star(each, distinct) for each in given):
        return node
    columns = [each for each, _ in expand_stars(draft, exp.Select(expressions=given), scope)]
    if distinct:
        return exp.Count(this=exp.Distinct(expressions=columns))
    return normalized(exp.Count(this=columns[0], expressions=columns[1:]))


def _is_star(node: exp.Expr, distinct: bool) -> bool:
    """count(*) counts rows; count(t.*) those in which no column is NULL."""
    return node.is_star and (distinct or isinstance(node, exp.Column))


def name_of(node: exp.Expr, position: int) -> str:
    """The name of a column: its alias, the column that it is, or its text."""
    plain = isinstance(node, exp.Alias | exp.Column | exp.Literal | exp.Subquery)
    said = (plain and node.alias_or_name) or written(node) or as_written(node).lower()
    return said or f"col{position + 1}"


def _named(column: exp.Expr) -> tuple[str | None, str]:
    """The table of a column, if stated, and its name."""
    table = column.args.get("table")
    return (table.name.lower() if table is not None else None), column.name.lower()
