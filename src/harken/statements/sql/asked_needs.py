"""What a statement needs of sources that are asked: columns and conditions, from its syntax.

Only what is certain is pushed: a condition `column operator constant` in the WHERE of the one
SELECT that reads the source, without outer joins, with a constant of the column's type.

Law: no row that could satisfy the statement is left out by what is pushed.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sqlglot import exp

from harken.database.dependency_order import dependents_in_order
from harken.database.function_tables import SqlTables, is_asked, table_of
from harken.database.runtime import Runtime
from harken.intake.source_needs import Need
from harken.ir.schema import Function
from harken.lang.sql.parser import Statement
from harken.sources.outside import Condition
from harken.statements.records import is_domain
from harken.statements.sql.domain_definitions import words_of_domain
from harken.statements.sql.domain_needs import need_of_member
from harken.values.types import INTEGER, NUMBER, TEXT, Type, is_decimal

_COMPARED: dict[type[exp.Expr], tuple[Any, Any]] = {
    exp.EQ: ("=", "="),
    exp.NEQ: ("<>", "<>"),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
}
"""Each operator, and what it is with its sides exchanged."""


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
    tables = SqlTables(runtime.catalog)
    read: dict[str, list[exp.Table]] = {}
    functions: dict[str, Function] = {}
    for table in statement.node.find_all(exp.Table):
        function = tables.function(table.name) if table.name else None
        if function is not None:
            read.setdefault(function.name, []).append(table)
            functions[function.name] = function
    found: dict[str, Need] = {}
    for name in _asked_by(statement.node, runtime):
        ways = _ways(statement.node, name, runtime)
        through = next(iter(ways), "")
        alone = len(ways) == 1 and len(read.get(through, ())) == 1
        found[name] = Need(may_fail=name not in ways and _is_skipped(name, ways, runtime))
        if alone and through == name:
            found[name] = _need(statement.node, read[name][0], functions[name])
        elif alone and is_domain(functions[through]):
            need = _need(statement.node, read[through][0], functions[through])
            found[name] = _of_domain(need, functions[through], name, tables)
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
    alias = table.alias_or_name.lower()
    columns = _columns(node, types)
    if select is None or not _is_plain(select):
        return Need(columns)
    alone = len(list(select.find_all(exp.Table))) == 1 and not select.args.get("joins")
    where = select.args.get("where")
    conditions = [] if where is None else list(where.this.flatten())
    if where is not None and not isinstance(where.this, exp.And):
        conditions = [where.this]
    found = [_condition(each, alias, types, alone) for each in conditions]
    return Need(columns, tuple(each for each in found if each is not None))


def _columns(node: exp.Expr, types: dict[str, Type]) -> tuple[str, ...] | None:
    """Those that the statement names anywhere; all of them with a * or a NATURAL JOIN."""
    stars = [each for each in node.find_all(exp.Star) if not isinstance(each.parent, exp.Count)]
    if stars or any(each.method for each in node.find_all(exp.Join)):
        return None
    named = {each.name.lower() for each in node.find_all(exp.Identifier)}
    return tuple(name for name in types if name in named)


def _is_plain(select: exp.Select) -> bool:
    """Are rows that fail the WHERE surely left out, whatever they are joined with?"""
    joins = select.args.get("joins") or []
    return not any(each.side or each.method for each in joins)


def _condition(node: exp.Expr, alias: str, types: dict[str, Type], alone: bool) -> Condition | None:
    node = node.unnest()
    if isinstance(node, exp.Not) and isinstance(node.this.unnest(), exp.Is):
        inner = node.this.unnest()
        column = _column(inner.this, alias, types, alone)
        is_null = isinstance(inner.expression, exp.Null)
        return Condition(column, "is not null") if column and is_null else None
    if isinstance(node, exp.Is):
        column = _column(node.this, alias, types, alone)
        is_null = isinstance(node.expression, exp.Null)
        return Condition(column, "is null") if column and is_null else None
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        column = _column(node.this, alias, types, alone)
        if column is None:
            return None
        values = [_constant(each, types[column]) for each in node.expressions]
        return None if None in values else Condition(column, "in", tuple(values))
    return _comparison(node, alias, types, alone)


def _comparison(
    node: exp.Expr, alias: str, types: dict[str, Type], alone: bool
) -> Condition | None:
    operators = _COMPARED.get(type(node))
    if operators is None:
        return None
    sides = ((node.this, node.expression, operators[0]), (node.expression, node.this, operators[1]))
    for side, other, operator in sides:
        column = _column(side, alias, types, alone)
        if column is not None:
            value = _constant(other, types[column])
            return None if value is None else Condition(column, operator, (value,))
    return None


def _column(node: exp.Expr, alias: str, types: dict[str, Type], alone: bool) -> str | None:
    if not isinstance(node, exp.Column):
        return None
    qualified = node.table.lower()
    name = node.name.lower()
    if name not in types or (qualified != alias and (qualified or not alone)):
        return None
    return name


def _constant(node: exp.Expr, type_: Type) -> Any:
    """The value, if it is one of the column's type."""
    negative = isinstance(node, exp.Neg)
    inner = node.this if negative else node
    if not isinstance(inner, exp.Literal):
        return None
    text = str(inner.this)
    if inner.is_string:
        return text if type_ == TEXT and not negative else None
    if type_ == INTEGER and text.isdigit():
        return -int(text) if negative else int(text)
    if type_ == NUMBER:
        return -float(text) if negative else float(text)
    if is_decimal(type_):
        return -Decimal(text) if negative else Decimal(text)
    return None
