"""Queries into relations: a query is a bag of rows, or a set where SQL removes duplicates.

    SELECT e FROM a, b WHERE c            q(E) ← a(X) ∧ b(Y) ∧ c
    a LEFT JOIN b ON c                    j(X, Y) ← a(X) ∧ b(Y) ∧ c        j(X, NULL) ← a(X) ∧ ¬m(X)
    SELECT g, sum(v) FROM … GROUP BY g    q(G, S) ← groups(G) ∧ S = sum(V : members(G, V))

A subquery is a relation of its own; the columns of the query around it that it mentions are its
first arguments.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from harken.errors import SyntaxFault, TypeFault
from harken.ir.clauses import Atom
from harken.lang.sql.aggregate_nodes import aggregates_of
from harken.lang.sql.conditions import require_condition
from harken.lang.sql.distinct_on import distinct_on
from harken.lang.sql.expressions import translate_value
from harken.lang.sql.from_clause import join_from
from harken.lang.sql.group_by import group_keys, grouped_rows, is_column
from harken.lang.sql.lateral_aliases import mentions_aliases, replace_aliases
from harken.lang.sql.normalization import replace_columns, windows_of
from harken.lang.sql.ordering import OrderKeys, first_rows
from harken.lang.sql.program_draft import Body, Draft, Tables
from harken.lang.sql.query_rows import QueryRows, define_rows
from harken.lang.sql.random_calls import draws_per_row, number_equal_rows
from harken.lang.sql.recursive_with import define_recursive, mentions, refuse_other_widths
from harken.lang.sql.scope import Field, FromItem, Scope
from harken.lang.sql.select_list import expand_stars, name_of
from harken.lang.sql.set_operations import set_operation
from harken.lang.sql.translation import Translation
from harken.lang.sql.type_names import type_name
from harken.lang.sql.values_clause import translate_values
from harken.lang.sql.window_split import WindowSplit
from harken.lang.sql.windows import Windows
from harken.values.types import BOOLEAN


def new_translation(draft: Draft, tables: Tables) -> Translation:
    """The context in which the queries of a statement are translated."""
    return Translation(draft, tables, translate_query, translate_value)


def translate_query(
    translation: Translation, node: exp.Expr, scope: Scope | None = None
) -> QueryRows:
    """The relation of a query. It may capture columns of the scope around it."""
    node = node.unnest() if isinstance(node, exp.Subquery | exp.Paren) else node
    common = node.args.get("with_") or node.args.get("with")
    if common is not None:
        translation.with_items.append({})
        for each in common.expressions:
            if each.alias.lower() in translation.with_items[-1]:
                raise TypeFault(
                    f"two items of WITH are called {each.alias}",
                    code="exists",
                    span=translation.draft.place(each),
                )
            if common.args.get("recursive") and mentions(each.this, each.alias):
                define_recursive(translation, each, scope)
                continue
            rows = translation.query(each.this, scope)
            names = tuple(c.name for c in each.args["alias"].columns) or rows.names
            refuse_other_widths(translation.draft, each, [rows], len(names))
            translation.with_items[-1][each.alias.lower()] = replace(rows, names=names)
    try:
        return _body_of(translation, node, scope)
    finally:
        if common is not None:
            translation.with_items.pop()


def _body_of(translation: Translation, node: exp.Expr, scope: Scope | None) -> QueryRows:
    if node.args.get("limit") is not None or node.args.get("offset") is not None:
        return _limited(translation, node, scope)
    match node:
        case exp.Select():
            _refuse(translation.draft, node)
            return _select(translation, node, scope)
        case exp.SetOperation():
            _refuse(translation.draft, node)
            return set_operation(translation, node, scope)
        case exp.Values():
            return translate_values(translation, node, scope)
        case exp.Table():
            star = exp.Select(expressions=[exp.Star()], from_=exp.From(this=node))
            return _select(translation, star, scope)
    raise translation.draft.unsupported(node, "this is not a query")


def _refuse(draft: Draft, node: exp.Expr) -> None:
    for name in ("laterals", "windows", "pivots", "match", "sample", "connect"):
        if node.args.get(name):
            raise draft.unsupported(node, f"{name.upper()} is not supported yet")


def _select(translation: Translation, node: exp.Select, outer: Scope | None) -> QueryRows:
    if distinct_on(node) is not None:
        what = "with QUALIFY, ORDER BY ALL, or a position outside the select list"
        raise translation.draft.unsupported(node, f"DISTINCT ON {what} is not supported yet")
    if node.args.get("qualify") is not None:
        return _qualified(translation, node, outer)
    if any(windows_of(each) for each in node.expressions):
        if mentions_aliases(node.expressions):
            named = Scope(outer)
            join_from(translation, node, named, Body())
            node = _with_aliases(translation.draft, node, named)
        return _windowed(translation, node, outer)
    scope, body = Scope(outer), Body()
    join_from(translation, node, scope, body)
    if draws_per_row(node):
        body = number_equal_rows(translation.draft, scope, body)
    node = _with_aliases(translation.draft, node, scope)
    where = node.args.get("where")
    if where is not None:
        require_condition(translation, where.this, scope, body)
    distinct = node.args.get("distinct")
    selected = expand_stars(translation.draft, node, scope)
    group = node.args.get("group")
    if group is not None and not any(group.args.values()):
        raise SyntaxFault(
            "something is missing after GROUP BY", code="syntax", span=translation.draft.place(node)
        )
    grouped = group is not None or node.args.get("having") is not None
    if grouped or any(aggregates_of(each) for each, _ in selected):
        return grouped_rows(translation, node, selected, scope, body, distinct is not None)
    terms = [translation.value(each, scope, body) for each, _ in selected]
    names = [name for _, name in selected]
    return define_rows(translation.draft, names, terms, body, scope, bag=distinct is None)


def _qualified(translation: Translation, node: exp.Select, outer: Scope | None) -> QueryRows:
    """The rows for which QUALIFY holds. Its condition is an extra column of the inner query."""
    inner = node.copy()
    condition = inner.args.pop("qualify").this
    inner.set("distinct", None)
    inner.append("expressions", exp.alias_(condition, "qualify itself", quoted=True))
    rows = translation.query(inner, outer)
    terms = [translation.draft.fresh(column.type) for column in rows.columns]
    last = terms[-1]
    if last.type != BOOLEAN:
        raise TypeFault(
            f"QUALIFY is a condition, but this is {type_name(last.type)}",
            code="type-mismatch",
            span=translation.draft.place(condition),
        )
    body = Body([Atom(rows.relation, (*rows.captured, *terms))])
    body.require(last)
    columns, bag = rows.columns[:-1], node.args.get("distinct") is None
    heads = [(terms[:-1], body.literals)]
    relation = translation.draft.define("qualified", rows.captured, columns, heads, bag=bag)
    unknown = frozenset(each for each in rows.unknown if each < len(columns))
    return QueryRows(relation, rows.captured, rows.names[:-1], unknown)


def _with_aliases(draft: Draft, node: exp.Select, scope: Scope) -> exp.Select:
    """The query with the lateral aliases of its select list spelled out."""
    if not mentions_aliases(node.expressions):
        return node

    def ambiguous(column: exp.Expr) -> TypeFault:
        return TypeFault(
            f"several columns before this one are named {column.name}",
            code="ambiguous",
            span=draft.place(column),
            hint="give them different names",
        )

    found = replace_aliases(node.expressions, lambda name: bool(scope.own(None, name)), ambiguous)
    spelled = node.copy()
    spelled.set("expressions", found)
    return spelled


def _windowed(translation: Translation, node: exp.Select, outer: Scope | None) -> QueryRows:
    """The query without its window functions first, then those over its rows."""
    if any(each.is_star for each in node.expressions):
        named = Scope(outer)
        join_from(translation, node, named, Body())
        selected = expand_stars(translation.draft, node, named)
    else:
        selected = [(each, name_of(each, i)) for i, each in enumerate(node.expressions)]
    split = WindowSplit()
    expressions = [split.outer(each.unalias()) for each, _ in selected]
    inner = node.copy()
    inner.set("distinct", None)
    columns = [exp.alias_(each, name, quoted=True) for name, each in split.columns.items()]
    inner.set("expressions", columns or [exp.Literal.number(1)])
    _resolve_names(translation, inner, node, selected)
    rows = translation.query(inner, outer)
    windows = Windows(translation.draft, rows, list(split.columns) or ["nothing"])
    scope, body = Scope(outer), Body()
    for each in rows.captured:
        scope.capture(each)
    values = {name: windows.value(each, body) for name, each in split.windows.items()}
    windows.source(body)
    fields = [Field(n, t) for n, t in zip(split.columns, windows.row, strict=False)]
    fields += [Field(name, term) for name, term in values.items()]
    scope.sources.append(FromItem("rows", fields))
    terms = [translation.value(each, scope, body) for each in expressions]
    distinct = node.args.get("distinct") is not None
    return define_rows(
        translation.draft, [name for _, name in selected], terms, body, scope, bag=not distinct
    )


def _resolve_names(
    translation: Translation,
    inner: exp.Select,
    node: exp.Select,
    selected: list[tuple[exp.Expr, str]],
) -> None:
    """What GROUP BY and HAVING say by a number or a name of the select list, which the query
    below the windows does not have."""
    if node.args.get("group") is not None:
        keys, sets = group_keys(translation, node, selected)
        given: list[exp.Expr] = [exp.Paren(this=each.copy()) for each in keys]
        if sets is not None:
            chosen = [exp.Tuple(expressions=[given[i].copy() for i in one]) for one in sets]
            given = [exp.GroupingSets(expressions=chosen)]
        inner.set("group", exp.Group(expressions=given or [exp.Tuple()]))
    having = node.args.get("having")
    if having is None:
        return
    named = {name.lower(): each for each, name in selected if isinstance(each, exp.Alias)}

    def stands_for(column: exp.Expr) -> exp.Expr:
        name = column.name.lower()
        known = column.args.get("table") or name not in named
        if known or is_column(translation, column, node):
            return column
        return exp.Paren(this=named[name].this.copy())

    inner.set("having", exp.Having(this=replace_columns(having.this, stands_for)))


def _limited(translation: Translation, node: exp.Expr, scope: Scope | None) -> QueryRows:
    """ORDER BY with LIMIT: the first rows; those that the order leaves open are told apart by
    their columns."""
    keys = OrderKeys(node, translation.draft)
    rows = translation.query(keys.query, scope)
    width = len(rows.columns) - keys.added
    order = keys.order(len(rows.columns))
    said = {place for place, _, _ in order}
    order += [(i, False, True) for i in range(width) if i not in said]
    return first_rows(translation.draft, rows, width, order, keys.count, keys.offset)
