"""What a statement needs of sources that are asked: columns and conditions, from its syntax.

Only what is certain is asked for: the conditions of the one SELECT that reads the source, without
outer joins; the keys that a join with a stored table needs; and the LIMIT of a statement that does
nothing else.

Law: no row that could satisfy the statement is left out by what is pushed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from harken.database.dependency_order import dependents_in_order
from harken.database.function_tables import SqlTables, is_asked, table_of
from harken.database.runtime import Runtime
from harken.intake.source_needs import Need
from harken.ir.schema import Function
from harken.lang.sql.parser import Statement
from harken.statements.records import is_domain
from harken.statements.sql.asked_conditions import (
    ColumnNames,
    conditions_of,
    is_plain,
    parts_of_where,
)
from harken.statements.sql.asked_keys import KeyQuery, KeySearch
from harken.statements.sql.asked_limits import first_rows
from harken.statements.sql.domain_definitions import words_of_domain
from harken.statements.sql.domain_needs import need_of_member
from harken.values.types import Type


def ask(runtime: Runtime, function: Function) -> None:
    """Let queries read a source that has no mirror."""
    assert function.relation is not None
    name, width = function.name, len(function.results)

    def rows() -> list[Any]:
        found = runtime.asked_rows(name)
        return list(found) if width > 1 else [value for (value,) in found]

    runtime.python[function.id] = rows
    runtime.engine.register_foreign(function.relation, rows, [])


def needs_of(statement: Statement, runtime: Runtime) -> dict[str, Need]:
    """By source. Those that a view reads are asked for everything; those in a domain for what the
    domain is asked."""
    tables, node = SqlTables(runtime.catalog), statement.node
    read = _read(node, tables)
    found: dict[str, Need] = {}
    for name in _asked_by(node, runtime):
        ways = _ways(node, name, runtime)
        through = next(iter(ways), "")
        function, places = read.get(through, (None, []))
        found[name] = Need(may_fail=name not in ways and _is_skipped(name, ways, runtime))
        if function is None or len(ways) > 1 or len(places) > 1:
            continue
        if through == name:
            found[name] = _need(node, places[0], function)
        elif is_domain(function):
            found[name] = _of_domain(_need(node, places[0], function), function, name, tables)
    return found


def key_queries(statement: Statement, runtime: Runtime) -> Iterator[tuple[str, list[KeyQuery]]]:
    """The queries for the keys that joins need of sources, which nothing else reads."""
    node = statement.node
    read = _read(node, SqlTables(runtime.catalog))
    for name in _asked_by(node, runtime):
        function, places = read.get(name, (None, []))
        if function is not None and len(places) == 1 and _ways(node, name, runtime) == {name}:
            found = KeySearch(runtime, node, places[0], function).found()
            if found:
                yield name, found


def _read(node: exp.Expr, tables: SqlTables) -> dict[str, tuple[Function, list[exp.Table]]]:
    """What the statement mentions as a table, and where."""
    found: dict[str, tuple[Function, list[exp.Table]]] = {}
    for table in node.find_all(exp.Table):
        function = tables.function(table.name) if table.name else None
        if function is not None:
            found.setdefault(function.name, (function, []))[1].append(table)
    return found


def _of_domain(need: Need, domain: Function, name: str, tables: SqlTables) -> Need:
    words, function = words_of_domain(domain), tables.function(name)
    member = next((each for each in words.members if each.name == name), None)
    if member is None or function is None:
        return Need(may_fail=words.skips)  # a member of a member
    return need_of_member(need, words, member, domain, function)


def _is_skipped(name: str, ways: set[str], runtime: Runtime) -> bool:
    """Do only domains read it that go on without a member?"""
    catalog = runtime.catalog

    def is_read(each: Function) -> bool:
        above = {reader.name.lower() for reader in dependents_in_order(catalog, each.name)}
        return each.name.lower() in ways or bool(above & ways)

    readers = [each for each in catalog.dependents(name) if is_read(each)]
    return all(is_domain(each) and words_of_domain(each).skips for each in readers)


def _asked_by(node: exp.Expr, runtime: Runtime) -> list[str]:
    """The sources that are asked and that the statement reads, directly or not."""
    asked = [each.name for each in runtime.catalog.functions() if is_asked(each)]
    return [each for each in asked if _ways(node, each, runtime)]


def _ways(node: exp.Expr, name: str, runtime: Runtime) -> set[str]:
    """What the statement mentions that reads a source: itself, views, functions."""
    above = {each.name.lower() for each in dependents_in_order(runtime.catalog, name)}
    tables = {each.name.lower() for each in node.find_all(exp.Table)}
    named = {each.name.lower() for each in node.find_all(exp.Identifier)}
    called = {str(each.this).lower() for each in node.find_all(exp.Anonymous)}
    return (above & (named | called)) | ({name} & tables)


def _need(node: exp.Expr, table: exp.Table, function: Function) -> Need:
    types = {each.name: each.type for each in table_of(function).columns}
    select = table.find_ancestor(exp.Select)
    if table.alias_column_names:
        return Need()  # its columns have other names here
    columns = _columns(node, types)
    if select is None or not is_plain(select):
        return Need(columns)
    alone = len(list(select.find_all(exp.Table))) == 1 and not select.args.get("joins")
    names = ColumnNames(table.alias_or_name.lower(), types, alone)
    found = [conditions_of(each, names) for each in parts_of_where(select)]
    conditions = tuple(each for part in found for each in part or ())
    if select is not node or not alone or None in found:
        return Need(columns, conditions)
    limit, order = first_rows(select, names)
    return Need(columns, conditions, limit=limit, order=order)


def _columns(node: exp.Expr, types: dict[str, Type]) -> tuple[str, ...] | None:
    """Those that the statement names anywhere; all of them with a * or a NATURAL JOIN."""
    stars = [each for each in node.find_all(exp.Star) if not isinstance(each.parent, exp.Count)]
    if stars or any(each.method for each in node.find_all(exp.Join)):
        return None
    named = {each.name.lower() for each in node.find_all(exp.Identifier)}
    return tuple(name for name in types if name in named)
