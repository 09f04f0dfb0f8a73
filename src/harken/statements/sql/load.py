"""Bulk loading of a table from an Arrow table or any tuples, without a statement for each.

Values are checked by type as everywhere else. A row whose key exists already fails, and then
nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harken.database.function_tables import SqlTables
from harken.database.runtime import Runtime
from harken.errors import IntegrityError, TypeFault
from harken.ir.schema import FunctionKind
from harken.lang.sql.program_draft import Table
from harken.statements.bulk_rows import as_table, chunks, select
from harken.statements.language_registry import check_rows
from harken.statements.records import refuse_rows
from harken.values.encoding import encode_all


def table_to_load(runtime: Runtime, name: str) -> Table | None:
    """The table of this name, unless it is the name of a type of objects."""
    if runtime.catalog.type_named(name) is not None:
        return None
    tables = SqlTables(runtime.catalog)
    function = tables.function(name)
    if function is None:
        return None
    if function.kind is not FunctionKind.STORED or function.materialized:
        raise TypeFault(f"{name} is not a table", code="not-updatable")
    return tables.table(name)


def load_rows(runtime: Runtime, table: Table, rows: Any, columns: Sequence[str] | None) -> None:
    """Insert rows whose values belong to `columns`, or to all columns as declared."""
    rows = as_table(rows)
    declared = [column.name for column in table.columns]
    names = list(columns or getattr(rows, "column_names", declared))
    _check_names(table, names, declared)
    if hasattr(rows, "select"):
        rows = select(rows, names)
    function = SqlTables(runtime.catalog).function(table.name)
    refuse_rows(function)
    places = [names.index(name) if name in names else None for name in _stored_names(table)]
    for values, length in chunks(rows, len(names)):
        stored = [
            [None] * length if place is None else _encoded(values[place], table, position)
            for position, place in enumerate(places)
        ]
        made = list(zip(*stored, strict=True))
        check_rows(function, made)
        runtime.engine.expect(table.relation, made)
        runtime.engine.insert_many(table.relation, made)


def _check_names(table: Table, names: Sequence[str], declared: Sequence[str]) -> None:
    for name in names:
        if name not in declared:
            raise TypeFault(
                f"{table.name} has no column {name}",
                code="arity",
                hint="it has " + ", ".join(declared),
            )
    if len(set(names)) != len(names):
        raise TypeFault("a column is named twice", code="arity")
    for column in table.columns:
        if column.name not in names and not column.type.nullable:
            raise _missing(table, column.name)


def _stored_names(table: Table) -> Iterator[str]:
    """The columns in the order of the relation."""
    ordered = sorted(zip(table.positions, table.columns, strict=True), key=lambda each: each[0])
    return (column.name for _, column in ordered)


def _encoded(values: Sequence[Any], table: Table, position: int) -> Sequence[Any]:
    column = table.relation.columns[position]
    if not column.type.nullable and type(None) in set(map(type, values)):
        raise _missing(table, column.name)
    return encode_all(values, column.type)


def _missing(table: Table, name: str) -> IntegrityError:
    return IntegrityError(
        f"{table.name}.{name} cannot be NULL",
        code="null",
        hint="give it a value, or declare the column without NOT NULL",
    )
