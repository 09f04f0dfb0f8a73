"""A transaction as JSON: rows to delete and rows to insert, by table.

    {"insert": {"edge": [["h", "d"]]}, "delete": {"edge": [["b", "c"]]}}

A row has its columns in the order of declaration. Deletions come first. Deleting a row that is not
there changes nothing, and neither does inserting one that a set already has. All or nothing
happens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from harken.api.database import Database
from harken.database.function_tables import SqlTables, table_of
from harken.database.json_values import reader
from harken.database.language_names import DATALOG
from harken.database.permissions import Privilege, Role
from harken.database.runtime import Runtime
from harken.database.set_rows import add_rows
from harken.errors import HarkenError, IntegrityError, TypeFault, counted
from harken.ir.relations import Relation
from harken.ir.schema import Function, FunctionKind
from harken.lang.sql.program_draft import Table, unknown_table
from harken.statements.datalog.fact_rows import add_facts, remove_facts
from harken.statements.language_registry import check_rows
from harken.statements.records import refuse_deletion, refuse_rows
from harken.values.rows import Row

Rows = Mapping[str, Sequence[Sequence[Any]]]


def apply(db: Database, insert: Rows, delete: Rows) -> None:
    """In the open block, or a transaction of its own."""
    transactions = db.internals.transactions
    if len(insert) + len(delete) == 1 and not (transactions.active or transactions.in_block):
        # One statement, which needs no savepoint beside its transaction.
        change = _insert_rows if insert else _delete_rows
        ((name, rows),) = (insert or delete).items()
        with db.session_lock:
            db.internals.check_open()
            transactions.alone(partial(change, db, name, rows))
        return
    with nullcontext() if transactions.in_block else db.transaction():
        for name, rows in delete.items():
            delete_rows(db, name, rows)
        for name, rows in insert.items():
            insert_rows(db, name, rows)


def delete_rows(db: Database, name: str, rows: Sequence[Sequence[Any]]) -> None:
    """Of equal rows one is deleted."""
    with db.internals.transactions.statement():
        _delete_rows(db, name, rows)


def insert_rows(db: Database, name: str, rows: Sequence[Sequence[Any]]) -> None:
    with db.internals.transactions.statement():
        _insert_rows(db, name, rows)


def _delete_rows(db: Database, name: str, rows: Sequence[Sequence[Any]]) -> None:
    runtime = db.internals.runtime
    function = _function(runtime, name, Privilege.DELETE)
    if function.language == DATALOG:
        delete_facts(db, function.name, rows)
    else:
        refuse_deletion(function)
        runtime.engine.remove_many(*_stored(runtime, name, function, rows))


def _insert_rows(db: Database, name: str, rows: Sequence[Sequence[Any]]) -> None:
    runtime = db.internals.runtime
    function = _function(runtime, name, Privilege.INSERT)
    if function.language == DATALOG:
        insert_facts(db, function.name, rows)
    else:
        refuse_rows(function)
        _insert(runtime, *_stored(runtime, name, function, rows))


def delete_facts(db: Database, name: str, rows: Sequence[Sequence[Any]]) -> None:
    """Delete rows of a relation; if it has rules, those among its facts."""
    with db.internals.transactions.statement():
        remove_facts(db.internals.runtime, name, rows)
        db.internals.reactions.synchronise()


def insert_facts(db: Database, name: str, rows: Sequence[Sequence[Any]]) -> None:
    with db.internals.transactions.statement():
        add_facts(db.internals.runtime, name, rows)
        # A relation with rules may have been given a place for facts.
        db.internals.reactions.synchronise()


def _insert(runtime: Runtime, relation: Relation, rows: list[Row]) -> None:
    if relation.is_set:
        add_rows(runtime.engine, relation, rows, "delete that row in the same transaction")
    else:
        runtime.engine.insert_many(relation, rows)


def _stored(
    runtime: Runtime, name: str, function: Function, rows: Sequence[Sequence[Any]]
) -> tuple[Relation, list[Row]]:
    table = _table(name, function)
    readers = [reader(column.type) for column in table.columns]
    encoders = [runtime.objects.encoder(column.type) for column in table.columns]
    found = []
    for row in rows:
        if len(row) != len(table.columns):
            raise TypeFault(
                f"{name} has {counted(len(table.columns), 'column')}, but a row has "
                f"{counted(len(row), 'value')}",
                code="arity",
                hint="it has " + ", ".join(column.name for column in table.columns),
            )
        made: list[Any] = [None] * len(row)
        for position, column, read, encode, value in zip(
            table.positions, table.columns, readers, encoders, row, strict=True
        ):
            if value is None and not column.type.nullable:
                raise IntegrityError(f"{name}.{column.name} cannot be NULL", code="null")
            try:
                made[position] = encode(read(value))
            except HarkenError as error:
                error.message = f"{name}.{column.name}: {error.message}"
                raise
        found.append(tuple(made))
    check_rows(function, found)
    return table.relation, found


def _function(runtime: Runtime, name: str, privilege: Privilege) -> Function:
    tables = SqlTables(runtime.catalog)
    function = tables.function(name)
    if function is None:
        raise unknown_table(tables, name, None, "table")
    runtime.permissions.check_role(Role.AUTHOR, "changing rows")
    runtime.permissions.check(function, privilege)
    return function


def _table(name: str, function: Function) -> Table:
    if function.kind is not FunctionKind.STORED or function.materialized:
        raise TypeFault(
            f"{name} is derived, and only stored rows can be inserted and deleted",
            code="not-updatable",
            hint="change what it is derived from",
        )
    return table_of(function)
