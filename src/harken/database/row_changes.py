"""A transaction as JSON: rows to delete, and then rows to insert, by the name of their table.

    {"insert": {"edge": [["h", "d"]]}, "delete": {"edge": [["b", "c"]]}}

A row has its columns in the order of declaration. Deleting what is not there changes nothing, and
nor does inserting what a set has already. All of it happens, or none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harken.database.database import Database
from harken.database.datalog.clauses import facts_relation
from harken.database.datalog.text import is_datalog
from harken.database.json_values import reader
from harken.database.runtime import Runtime
from harken.database.sql.tables import SqlTables, is_materialized
from harken.errors import HarkenError, IntegrityError, NameFault, TypeFault, nearest
from harken.ir.relations import Relation
from harken.ir.schema import FunctionKind
from harken.lang.sql.draft import Table

Row = tuple[Any, ...]
Rows = Mapping[str, Sequence[Sequence[Any]]]


def apply(db: Database, insert: Rows, delete: Rows) -> None:
    with db.transaction():
        for name, rows in delete.items():
            delete_rows(db, name, rows)
        for name, rows in insert.items():
            insert_rows(db, name, rows)


def delete_rows(db: Database, name: str, rows: Sequence[Sequence[Any]]) -> None:
    """A row that is there several times goes once."""
    with db._transactions.statement():
        engine = db._runtime.engine
        relation, stored = _stored(db._runtime, name, rows)
        engine.expect(relation, stored)
        for row in stored:
            engine.remove_row(relation, row)


def insert_rows(db: Database, name: str, rows: Sequence[Sequence[Any]]) -> None:
    with db._transactions.statement():
        _insert(db._runtime, *_stored(db._runtime, name, rows))


def _insert(runtime: Runtime, relation: Relation, rows: list[Row]) -> None:
    engine = runtime.engine
    if not relation.is_set:
        engine.insert_many(relation, rows)
        return
    engine.expect(relation, rows)
    for row in dict.fromkeys(rows):
        if engine.contains(relation, row):
            continue
        key = relation.key
        if key is not None and engine.matching(relation, {i: row[i] for i in key}):
            raise IntegrityError(
                f"{relation.name} already has a row with this key",
                code="row-exists",
                hint="delete that one in the same transaction",
            )
        engine.insert_many(relation, [row])


def _stored(
    runtime: Runtime, name: str, rows: Sequence[Sequence[Any]]
) -> tuple[Relation, list[Row]]:
    table = _table(runtime, name)
    readers = [reader(column.type) for column in table.columns]
    encoders = [runtime.objects.encoder(column.type) for column in table.columns]
    found = []
    for row in rows:
        if len(row) != len(table.columns):
            raise TypeFault(
                f"{name} has {len(table.columns)} columns, and a row has {len(row)} values",
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
    return table.relation, found


def _table(runtime: Runtime, name: str) -> Table:
    """The table of a name; of a relation with rules, what is stated of it."""
    tables = SqlTables(runtime.catalog)
    function = tables.function(name)
    if function is None:
        meant = nearest(name, tables.table_names())
        raise NameFault(
            f"there is no table {name}",
            code="unknown-table",
            hint=f"did you mean {meant}?" if meant else "create it first",
        )
    table = tables.table(name)
    assert table is not None
    if function.kind is FunctionKind.STORED and not is_materialized(function):
        return table
    facts = facts_relation(function.name, runtime.catalog) if is_datalog(function) else None
    if facts is None:
        raise TypeFault(
            f"{name} is derived, and only stored rows are inserted and deleted",
            code="not-updatable",
            hint="change what it is derived from",
        )
    return Table(name, facts, table.columns, table.positions)
