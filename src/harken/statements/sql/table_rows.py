"""Rows that Python code inserts into a table, puts in place of others, or deletes, without text.

Law: `insert` does what INSERT does with the same rows, `upsert` what INSERT ... ON CONFLICT (key)
DO UPDATE does with the columns that are given, and `delete` what DELETE does for each row with a
condition `column = value`, or IS NULL, for each column that is given. It is all or nothing.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harken.database.function_tables import SqlTables
from harken.database.language_names import SQL
from harken.database.runtime import Runtime
from harken.errors import HarkenError, IntegrityError, TypeFault, counted, offered
from harken.ir.schema import FunctionKind
from harken.lang.sql.parser import statements
from harken.lang.sql.program_draft import Table, unknown_table
from harken.statements.bulk_rows import as_table, chunks
from harken.statements.language_registry import check_rows
from harken.statements.records import refuse_deletion, refuse_rows
from harken.statements.sql.reading import Reading
from harken.statements.sql.row_changes import defaults
from harken.values.builtin_functions import FUNCTIONS
from harken.values.encoding import encode_all
from harken.values.rows import Row
from harken.values.types import DATE, TIMESTAMP, Type


@dataclass(frozen=True, slots=True)
class GivenRows:
    """The values of some columns of a table, as they are stored, for a number of rows."""

    names: tuple[str, ...]
    columns: Sequence[Sequence[Any]]
    count: int

    @property
    def rows(self) -> list[Row]:
        return list(zip(*self.columns, strict=True))


def table_named(runtime: Runtime, name: str) -> Table:
    """A table whose rows can be changed."""
    tables = SqlTables(runtime.catalog)
    function, table = tables.function(name), tables.table(name)
    if function is None or table is None:
        raise unknown_table(tables, name, None, "table")
    if function.kind is not FunctionKind.STORED or function.materialized:
        raise TypeFault(
            f"{name} is a view, and only tables can be changed",
            code="not-updatable",
            hint="change the tables that it is made of",
        )
    return table


def insert(runtime: Runtime, table: Table, given: Any) -> int:
    """Insert rows, and return how many."""
    refuse_rows(SqlTables(runtime.catalog).function(table.name))
    count = 0
    for part in _parts(table, given):
        rows = _whole_rows(runtime, table, part)
        _insert(runtime, table, rows)
        count += len(rows)
    return count


def upsert(runtime: Runtime, table: Table, given: Any) -> int:
    """Insert rows; where the key of one is there, its columns replace those that are there."""
    refuse_rows(SqlTables(runtime.catalog).function(table.name))
    key = _key(table)
    seen: set[Row] = set()
    count = 0
    for part in _parts(table, given):
        _check_key(table, key, part, seen)
        if len(part.names) == len(table.columns):
            rows = _whole_rows(runtime, table, part)
        else:
            rows = _merged(runtime, table, key, part)
        runtime.engine.expect(table.relation, rows)
        runtime.engine.add_many(table.relation, rows)
        count += len(rows)
    return count


def delete(runtime: Runtime, table: Table, given: Any) -> int:
    """Delete the rows that have these values, and return how many they were."""
    refuse_deletion(SqlTables(runtime.catalog).function(table.name))
    key = tuple(_names(table, table.relation.key or ()))
    count = 0
    for part in _parts(table, given, key):
        places = [_place(table, name) for name in part.names]
        found: Counter[Row] = Counter()
        for row in dict.fromkeys(part.rows):
            known = dict(zip(places, row, strict=True))
            found.update(runtime.engine.matching(table.relation, known))
            _once(found, table)
        gone = list(found.elements())
        runtime.engine.expect(table.relation, gone)
        runtime.engine.remove_many(table.relation, gone)
        count += len(gone)
    return count


def _once(found: Counter[Row], table: Table) -> None:
    """A row of a set that two of the conditions find goes once."""
    if table.relation.is_set:
        for row in found:
            found[row] = 1


# --- what was given ------------------------------------------------------------------------


def _parts(table: Table, given: Any, key: tuple[str, ...] = ()) -> Iterable[GivenRows]:
    """The rows in parts with the same columns. Tuples have all columns as declared, or those of
    the key where that is meant."""
    rows = as_table(given)
    declared = tuple(column.name for column in table.columns)
    if hasattr(rows, "column_names"):
        names = tuple(str(name).lower() for name in rows.column_names)
        return _encoded_parts(table, names, rows)
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise TypeFault(
            f"a value of type {type(given).__name__} is not rows",
            code="arity",
            hint="give a list of tuples or mappings, a data frame, or an Arrow table",
        )
    listed = list(rows)
    if listed and all(isinstance(each, Mapping) for each in listed):
        return _of_mappings(table, listed)
    if key and not any(isinstance(each, tuple | list) for each in listed):
        listed = [(each,) for each in listed]
    if listed and all(isinstance(each, tuple | list) for each in listed):
        width = len(listed[0])
        by_key = bool(key) and width == len(key) != len(declared)
        names = key if by_key or (key and width == len(key)) else declared
        wrong = next((each for each in listed if len(each) != len(names)), None)
        if wrong is not None:
            raise TypeFault(
                f"{table.name} takes {counted(len(names), 'value')}, and a row has {len(wrong)}",
                code="arity",
                hint="the values are for " + ", ".join(names) + "; give mappings for some columns",
            )
        return _encoded_parts(table, names, listed)
    if listed:
        raise _unfit(table, listed)
    return []


def _unfit(table: Table, rows: list[Any]) -> TypeFault:
    """The rows are neither all tuples nor all mappings."""
    kinds = {type(each).__name__ for each in rows if not isinstance(each, tuple | list | Mapping)}
    if not kinds:
        return TypeFault(
            f"the rows for {table.name} are tuples and mappings mixed",
            code="arity",
            hint="give all rows as tuples, or all as mappings",
        )
    return TypeFault(
        f"{table.name} takes tuples or mappings as rows, not a value of type {min(kinds)}",
        code="arity",
        hint="a row is a tuple, also where it has one value: (5,)",
    )


def _of_mappings(table: Table, rows: list[Mapping[Any, Any]]) -> Iterable[GivenRows]:
    """Neighbours with the same columns go together."""
    start = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or rows[end].keys() != rows[start].keys():
            given = list(rows[start])
            names = tuple(str(name).lower() for name in given)
            values = [tuple(row[name] for name in given) for row in rows[start:end]]
            yield from _encoded_parts(table, names, values)
            start = end


def _encoded_parts(table: Table, names: tuple[str, ...], rows: Any) -> Iterable[GivenRows]:
    known = [column.name for column in table.columns]
    for name in names:
        if name not in known:
            raise TypeFault(
                f"{table.name} has no column {name}",
                code="unknown-column",
                hint=offered(name, known, "columns"),
            )
    if len(set(names)) != len(names):
        raise TypeFault("a column is named twice", code="exists")
    if not names:
        raise TypeFault("a row has no values", code="arity", hint="name at least one column")
    columns = [table.columns[known.index(name)] for name in names]
    for values, count in chunks(rows, len(names)):
        stored = [
            _stored(table, column.name, column.type, each)
            for column, each in zip(columns, values, strict=True)
        ]
        yield GivenRows(names, stored, count)


def _stored(table: Table, name: str, type_: Type, values: Sequence[Any]) -> Sequence[Any]:
    if type_ in (DATE, TIMESTAMP) and str in set(map(type, values)):
        read = FUNCTIONS["spark_date" if type_ == DATE else "spark_timestamp"][0]
        moment = _moment(type_, read)
        values = [moment(each) if isinstance(each, str) else each for each in values]
    try:
        return encode_all(values, type_.or_null())
    except HarkenError as error:
        error.message = f"{table.name}.{name}: {error.message}"
        raise


def _moment(type_: Type, read: Callable[[str], int]) -> Callable[[str], Any]:
    """A text as the date or time that it says."""
    if type_ == DATE:
        first = datetime.date(1970, 1, 1)
        return lambda text: first + datetime.timedelta(days=read(text))
    begin = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return lambda text: begin + datetime.timedelta(microseconds=read(text))


# --- rows of the table ---------------------------------------------------------------------


def _whole_rows(runtime: Runtime, table: Table, given: GivenRows) -> list[Row]:
    """Rows with all columns in the order of the relation: what is not given has its default."""
    missing = [column.name for column in table.columns if column.name not in given.names]
    filled = _defaults(runtime, table, given.count) if missing else {}
    columns: list[Sequence[Any]] = [()] * len(table.columns)
    by_name = dict(zip(given.names, given.columns, strict=True))
    for column, position in zip(table.columns, table.positions, strict=True):
        if column.name in by_name:
            values: Sequence[Any] = by_name[column.name]
        else:
            drawn = filled.get(column.name)
            values = [None if drawn is None else next(drawn) for _ in range(given.count)]
        if not column.type.nullable and type(None) in set(map(type, values)):
            raise IntegrityError(
                f"{table.name}.{column.name} cannot be NULL",
                code="null",
                hint="give it a value, or declare the column without NOT NULL",
            )
        columns[position] = values
    rows = list(zip(*columns, strict=True))
    check_rows(SqlTables(runtime.catalog).function(table.name), rows)
    return rows


def _defaults(runtime: Runtime, table: Table, rows: int) -> dict[str, Any]:
    function = SqlTables(runtime.catalog).function(table.name)
    if function is None or function.language != SQL:
        return {}
    (created,) = statements(function.text)
    return dict(defaults(Reading(runtime), created, table.columns, rows))


def _insert(runtime: Runtime, table: Table, rows: list[Row]) -> None:
    engine, relation = runtime.engine, table.relation
    engine.expect(relation, rows)
    try:
        with engine.connection.savepoint("rows"):
            engine.insert_many(relation, rows)
    except HarkenError as error:
        raise _row_exists(runtime, table, rows) or error from error


def _row_exists(runtime: Runtime, table: Table, rows: list[Row]) -> IntegrityError | None:
    """The row whose key another one has: SQLite does not tell."""
    key = table.relation.key or ()
    seen: set[Row] = set()
    for row in rows if key else ():
        value = tuple(row[i] for i in key)
        known = dict(zip(key, value, strict=True))
        if value in seen or runtime.engine.matching(table.relation, known):
            names = ", ".join(_names(table, key))
            return IntegrityError(
                f"{table.name} already has a row with {names} = {', '.join(map(repr, value))}",
                code="row-exists",
                hint="give each key once, or use upsert",
            )
        seen.add(value)
    return None


def _key(table: Table) -> tuple[int, ...]:
    if not table.relation.key:
        raise IntegrityError(
            f"{table.name} has no PRIMARY KEY, so no row takes the place of another",
            code="not-unique",
            hint="insert the rows, or declare a PRIMARY KEY",
        )
    return table.relation.key


def _check_key(table: Table, key: tuple[int, ...], given: GivenRows, seen: set[Row]) -> None:
    names = _names(table, key)
    missing = next((name for name in names if name not in given.names), None)
    if missing is not None:
        raise TypeFault(
            f"the rows have no {missing}, which is in the key of {table.name}",
            code="arity",
            hint="give the columns of the key, and those that are to be set",
        )
    places = [given.names.index(name) for name in names]
    for row in given.rows:
        value = tuple(row[i] for i in places)
        if value in seen:
            raise IntegrityError(
                f"two of the rows have {', '.join(names)} = {', '.join(map(repr, value))}",
                code="not-unique",
                hint="a row is changed once: give the last of them",
            )
        seen.add(value)


def _merged(runtime: Runtime, table: Table, key: tuple[int, ...], given: GivenRows) -> list[Row]:
    """Rows of which some columns are given: the others are those that are there."""
    places = [_place(table, name) for name in given.names]
    rows, fresh = [], []
    for row in given.rows:
        known = dict(zip(places, row, strict=True))
        found = runtime.engine.matching(table.relation, {i: known[i] for i in key})
        if found:
            rows.append(tuple(known.get(i, old) for i, old in enumerate(found[0])))
        else:
            fresh.append(row)
    if not fresh:
        return rows
    columns = list(zip(*fresh, strict=True))
    return [*rows, *_whole_rows(runtime, table, GivenRows(given.names, columns, len(fresh)))]


def _place(table: Table, name: str) -> int:
    """Where the column is in the relation."""
    return next(
        position
        for column, position in zip(table.columns, table.positions, strict=True)
        if column.name == name
    )


def _names(table: Table, places: Sequence[int]) -> list[str]:
    by_place = {p: c.name for c, p in zip(table.columns, table.positions, strict=True)}
    return [by_place[place] for place in places]
