"""CREATE TABLE: with the columns that are named or those of a query, here or in the lake."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from sqlglot import exp

from harken.database.function_tables import declared_order
from harken.database.language_names import SQL
from harken.database.runtime import Runtime
from harken.database.schema_cache import Dependencies
from harken.database.stored_functions import store
from harken.database.system import relation_of
from harken.errors import LanguageError
from harken.ir.relations import Column
from harken.ir.schema import Function, FunctionKind
from harken.lang.sql.parser import Statement, statements, text_after
from harken.lang.sql.recursive_with import mentions
from harken.lang.sql.type_names import type_name
from harken.statements.dependents import recheck
from harken.statements.sql.column_definitions import columns_of, with_key
from harken.statements.sql.constraint_queries import compile_constraints, constraints_of
from harken.statements.sql.located import create_located
from harken.statements.sql.reading import Reading
from harken.statements.sql.row_changes import defaults
from harken.statements.sql.view_clauses import refuse_equal_names
from harken.values.rows import Row

FILE_FORMATS = frozenset({"parquet", "orc", "json", "csv", "avro", "text", "hive", "delta"})
"""Formats that Spark would keep the rows in. Harken accepts the words and keeps the rows in its own
file."""


def create_table(
    runtime: Runtime, statement: Statement, node: exp.Create, name: str, known: Function | None
) -> None:
    if node.expression is not None:
        _create_as(runtime, statement, node, name, known)
        return
    if node.find(exp.LocationProperty) is not None:
        declared, key = (
            columns_of(node.this, statement) if isinstance(node.this, exp.Schema) else ((), [])
        )
        if constraints_of(statement, runtime.catalog):
            raise LanguageError(
                "an external table cannot have constraints",
                code="unsupported",
                span=statement.span,
                hint="use KEY (...), or monitor a view of the violations",
            )
        create_located(runtime, statement, name, declared, key or list(statement.key))
        return
    function = table_function(runtime, statement)
    put_table(runtime, function, known, [], in_lake=wants_lake(node, statement))
    recheck(runtime, name, skip=function.id)


def table_function(runtime: Runtime, statement: Statement) -> Function:
    """The function that CREATE TABLE (...) makes."""
    node = statement.node
    assert isinstance(node, exp.Create)
    if not isinstance(node.this, exp.Schema):
        raise LanguageError("a table needs columns", code="syntax", span=statement.place(node.this))
    wants_lake(node, statement)
    columns, key = columns_of(node.this, statement)
    if statement.key:
        columns, key = with_key(columns, key, statement)
    arguments = tuple(column for column in columns if column.name in key)
    results = tuple(column for column in columns if column.name not in key)
    function = Function(
        name=created_name(node),
        parameters=tuple(sorted(arguments, key=lambda column: key.index(column.name))),
        results=results,
        kind=FunctionKind.STORED,
        bag=not key,
        text=f"CREATE TABLE {text_after('TABLE', statement)}",
        language=SQL,
    )
    defaults(Reading(runtime), statement, columns, 1)
    function = declared_order(function, [column.name for column in columns])
    return replace(function, relation=relation_of(function))


def put_table(
    runtime: Runtime,
    function: Function,
    known: Function | None,
    rows: list[Row],
    *,
    in_lake: bool = False,
) -> None:
    """Create a table with these rows, perhaps in place of an existing one. If the columns are the
    same, its rows change as by DELETE and INSERT, which watchers see."""
    catalog, engine = runtime.catalog, runtime.engine
    constraints = constraints_of(statements(function.text)[0], catalog)
    parents = {each.parent for each in constraints if each.parent}
    dependencies = Dependencies(frozenset(parents - {function.name}))
    if known is not None and known.relation == function.relation:
        made = catalog.add_function(function, dependencies)
        assert made.relation is not None
        before = Counter(engine.matching(made.relation, {}))
        after = Counter(rows)
        engine.remove_many(made.relation, (before - after).elements())
        engine.insert_many(made.relation, (after - before).elements())
    else:
        if known is not None:
            make_way(runtime, known)
        made = store(runtime, function, in_lake=in_lake, dependencies=dependencies)
        assert made.relation is not None
        engine.expect(made.relation, rows)
        engine.insert_many(made.relation, rows)
    compile_constraints(made, catalog)


def _create_as(
    runtime: Runtime, statement: Statement, node: exp.Create, name: str, known: Function | None
) -> None:
    """A table with the present columns and rows of a query."""
    if isinstance(node.this, exp.Schema) or node.find(exp.LocationProperty) is not None:
        raise LanguageError(
            "CREATE TABLE AS takes its columns from the query",
            code="unsupported",
            span=statement.span,
            hint="name them in the query, with AS",
        )
    refuse_self(node, name, statement)
    found = Reading(runtime).rows(statement, node.expression)
    columns = tuple(
        Column(each.lower(), type_.or_null())
        for each, type_ in zip(found.names, found.types, strict=True)
    )
    refuse_equal_names([column.name for column in columns], "table", statement)
    in_lake = wants_lake(node, statement)
    declared = ", ".join(f"`{column.name}` {type_name(column.type)}" for column in columns)
    function = Function(
        name=name,
        parameters=(),
        results=columns,
        kind=FunctionKind.STORED,
        bag=True,
        text=f"CREATE TABLE `{name}` ({declared}){' USING lake' if in_lake else ''}",
        language=SQL,
    )
    function = replace(function, relation=relation_of(function))
    put_table(runtime, function, known, found.rows, in_lake=in_lake)
    recheck(runtime, name, skip=function.id)


def refuse_self(node: exp.Create, name: str, statement: Statement) -> None:
    if node.expression is not None and mentions(node.expression, name):
        raise LanguageError(
            f"{name} is defined in terms of itself, and would be gone",
            code="unsupported",
            span=statement.span,
            hint="INSERT OVERWRITE a table, or call the new one differently",
        )


def wants_lake(node: exp.Create, statement: Statement) -> bool:
    for each in node.find_all(exp.FileFormatProperty):
        if each.name.lower() == "lake":
            return True
        if each.name.lower() in FILE_FORMATS:
            continue
        raise LanguageError(
            f"tables cannot be stored as {each.name}",
            code="unsupported",
            span=statement.place(each),
            hint="write USING lake, or leave it out",
        )
    return False


def make_way(runtime: Runtime, known: Function) -> None:
    """Remove what is being replaced."""
    runtime.rules.before_remaking(known)
    runtime.catalog.remove_function(known)


def created_name(node: exp.Create) -> str:
    named = node.find(exp.Table)
    assert named is not None
    return named.name.lower()
