"""SHOW TABLES, SHOW VIEWS and DESCRIBE; checks for REFRESH; and CREATE INDEX, which does nothing,
because Harken creates indexes by itself."""

from __future__ import annotations

from sqlglot import exp

from harken.database.function_tables import SqlTables
from harken.database.runtime import Runtime
from harken.errors import NameFault, nearest
from harken.ir.schema import Function
from harken.lang.sql.parser import Statement
from harken.lang.sql.program_draft import unknown_table
from harken.lang.sql.type_names import type_name
from harken.statements.sql.lifted_queries import Found
from harken.statements.sql.reading import Reading
from harken.statements.sql.table_descriptions import kind_of_table
from harken.statements.sql.view_clauses import is_view
from harken.values.types import TEXT


def answer(runtime: Runtime, reading: Reading, statement: Statement) -> None:
    node, tables = statement.node, SqlTables(runtime.catalog)
    if isinstance(node, exp.Show):
        _show(runtime, reading, only_views=node.name == "VIEWS")
        return
    if tables.function(node.this.name) is None:
        raise unknown_table(tables, node.this.name, statement.place(node.this))
    table = tables.table(node.this.name)
    assert table is not None
    rows = [
        (column.name, type_name(column.type), "yes" if column.type.nullable else "no")
        for column in table.columns
    ]
    reading.emit(Found(("col_name", "data_type", "may_be_null"), (TEXT,) * 3, rows))


def _show(runtime: Runtime, reading: Reading, *, only_views: bool) -> None:
    tables, may_see = SqlTables(runtime.catalog), runtime.permissions.may_see
    found = [(name, tables.function(name)) for name in sorted(tables.table_names())]
    rows = [
        (name, kind_of_table(function))
        for name, function in found
        if function is not None and (is_view(function) or not only_views) and may_see(function)
    ]
    reading.emit(Found(("name", "kind"), (TEXT, TEXT), list(rows)))


def is_index(node: exp.Expr) -> bool:
    return str(node.args.get("kind", "")).upper() == "INDEX"


def check_index(runtime: Runtime, statement: Statement) -> None:
    """Harken creates indexes where a query needs them; CREATE INDEX must merely be valid."""
    index = statement.node.this
    if not isinstance(index, exp.Index):  # DROP INDEX
        return
    tables, named = SqlTables(runtime.catalog), index.args["table"]
    table = tables.table(named.name)
    if table is None:
        raise unknown_table(tables, named.name, statement.place(named))
    known = [column.name for column in table.columns]
    for column in index.find_all(exp.Column):
        if column.name.lower() not in known:
            near = nearest(column.name.lower(), known)
            raise NameFault(
                f"there is no column {column.name} in {table.name}",
                code="unknown-column",
                span=statement.place(column),
                hint=f"did you mean {near}?" if near else None,
            )


def refreshed_view(runtime: Runtime, statement: Statement) -> Function:
    """The materialized view that REFRESH names."""
    tables, named = SqlTables(runtime.catalog), statement.node.this
    function = tables.function(named.name)
    if function is None:
        raise unknown_table(tables, named.name, statement.place(named))
    if not function.materialized:
        raise NameFault(
            f"{function.name} is a {kind_of_table(function)}, not a materialized view",
            code="type-mismatch",
            span=statement.place(named),
        )
    return function
