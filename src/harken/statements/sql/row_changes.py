"""The rows that statements change: found by a query, converted, checked, deleted and inserted. Rows
are in stored form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import repeat
from typing import Any

from sqlglot import exp

from harken.database.function_tables import SqlTables
from harken.database.language_names import DATALOG, SQL
from harken.database.runtime import Runtime
from harken.errors import IntegrityError, LanguageError, TypeFault, counted, number_given
from harken.ir.relations import Column, Kind
from harken.lang.sql.parser import Statement, statements
from harken.lang.sql.program_draft import Table, unknown_column, unknown_table
from harken.lang.sql.random_calls import has_random_call
from harken.statements.language_registry import check_rows
from harken.statements.records import refuse_deletion, refuse_rows
from harken.statements.sql.lifted_queries import Found
from harken.statements.sql.reading import Reading
from harken.statements.sql.storing import converter
from harken.values.rows import Row
from harken.values.types import Type

Chosen = tuple[Row, tuple[Any, ...]]
"""A row, and values computed for it."""


class RowChanges:
    def __init__(self, runtime: Runtime, reading: Reading) -> None:
        self._runtime = runtime
        self._reading = reading

    def _target(self, node: exp.Expr, statement: Statement) -> Table:
        tables = SqlTables(self._runtime.catalog)
        name = node.name
        table = tables.table(name)
        if table is None:
            raise unknown_table(tables, name, statement.place(node), "table")
        function = tables.function(name)
        if table.relation.kind is not Kind.STORED or (function and function.materialized):
            raise TypeFault(
                f"{name} is a view, and only tables can be changed",
                code="not-updatable",
                span=statement.place(node),
                hint="change the tables that it is defined over",
            )
        return table

    def _with_defaults(self, table: Table, names: Sequence[str], node: exp.Expr) -> exp.Expr:
        """VALUES with each DEFAULT replaced by its value."""
        node = node.copy()
        for row in node.expressions:
            for name, value in zip(names, row.expressions, strict=False):
                if _is_default(value):
                    value.replace(self._default(table, name))
        return node

    def _placed(
        self, table: Table, names: list[str] | None, found: Found, statement: Statement
    ) -> list[Row]:
        """Rows of a query as rows of the table: columns by name, in the order of the relation."""
        given = [column.name for column in table.columns] if names is None else names
        known = {column.name: i for i, column in enumerate(table.columns)}
        for name in given:
            if name not in known:
                raise unknown_column(table.name, name, known, statement.span)
        if len(set(given)) < len(given):
            raise TypeFault("a column is named twice", code="exists", span=statement.span)
        if len(given) != len(found.names):
            raise TypeFault(
                f"{table.name} takes {counted(len(given), 'value')}, and "
                f"{number_given(len(found.names))}",
                code="arity",
                span=statement.span,
                hint=f"{'the value is' if len(given) == 1 else 'the values are'} for "
                + ", ".join(given),
            )
        is_whole = len(given) == len(table.columns)
        defaults = {} if is_whole else self._defaults(table, len(found.rows))
        makers: list[tuple[int, int | None, Any]] = []
        for column, position in zip(table.columns, table.positions, strict=True):
            if column.name in given:
                at = given.index(column.name)
                makers.append((position, at, converter(found.types[at], column, statement)))
            else:
                makers.append((position, None, defaults.get(column.name, repeat(None))))
        rows = []
        for row in found.rows:
            made: list[Any] = [None] * len(table.columns)
            for position, place, how in makers:
                made[position] = next(how) if place is None else how(row[place])
            rows.append(tuple(made))
        self._check_values(table, rows)
        return rows

    def _defaults(self, table: Table, rows: int) -> dict[str, Iterator[Any]]:
        """The values of columns that are not given; NULL without a default."""
        created = self._created(table)
        return {} if created is None else defaults(self._reading, created, table.columns, rows)

    def _created(self, table: Table) -> Statement | None:
        """The CREATE TABLE of a table that SQL created."""
        function = SqlTables(self._runtime.catalog).function(table.name)
        if function is None or function.language != SQL:
            return None
        (created,) = statements(function.text)
        return created

    def _default(self, table: Table, name: str) -> exp.Expr:
        created = self._created(table)
        columns = created.node.find_all(exp.ColumnDef) if created is not None else ()
        for each in columns:
            default = each.find(exp.DefaultColumnConstraint)
            if each.name.lower() == name and default is not None:
                return exp.Paren(this=default.this.copy())
        return exp.null()

    def assignments(
        self, table: Table, nodes: Sequence[exp.Expr], statement: Statement
    ) -> tuple[list[str], list[exp.Expr]]:
        nodes = [part for each in nodes for part in _single(each)]
        if any(not isinstance(each, exp.EQ) for each in nodes):
            raise LanguageError(
                "SET * is not supported here",
                code="unsupported",
                span=statement.span,
                hint="name the columns",
            )
        names = [each.this.name.lower() for each in nodes]
        if len(set(names)) < len(names):
            raise TypeFault("a column is set twice", code="exists", span=statement.span)
        known = [column.name for column in table.columns]
        for name, each in zip(names, nodes, strict=True):
            if name not in known:
                raise unknown_column(table.name, name, known, statement.place(each))
        return names, [
            self._default(table, name) if _is_default(each.expression) else each.expression
            for name, each in zip(names, nodes, strict=True)
        ]

    def choosing(
        self, table: Table, target: exp.Expr, where: exp.Expr | None, values: Sequence[exp.Expr]
    ) -> exp.Select:
        """The query for the rows that a condition selects, with values computed for each."""
        alias = target.alias_or_name
        columns = [exp.column(column.name, table=alias) for column in table.columns]
        query = exp.select(*columns, *(each.copy() for each in values)).from_(target.copy())
        return query if where is None else query.where(where.this.copy())

    def _chosen(
        self, table: Table, query: exp.Expr, statement: Statement
    ) -> tuple[list[Chosen], tuple[Type, ...]]:
        """The rows of such a query in stored form, with their values, and the types of those."""
        found = self._reading.rows(statement, query)
        width = len(table.columns)
        chosen = [(self._stored(table, row[:width]), row[width:]) for row in found.rows]
        return chosen, found.types[width:]

    def _stored(self, table: Table, row: Sequence[Any]) -> Row:
        made: list[Any] = [None] * len(row)
        for position, value in zip(table.positions, row, strict=True):
            made[position] = value
        return tuple(made)

    def _converters(
        self, table: Table, names: Sequence[str], types: Sequence[Type], statement: Statement
    ) -> list[Any]:
        """For each assigned column, its position and the conversion to its type."""
        places = []
        for name, type_ in zip(names, types, strict=True):
            at = next(i for i, column in enumerate(table.columns) if column.name == name)
            convert = converter(type_, table.columns[at], statement)
            places.append((table.positions[at], convert))
        return places

    def _check_matches(
        self,
        table: Table,
        taken: Counter[Row],
        statement: Statement,
        what: str = "MERGE",
        once: bool = False,
    ) -> None:
        """Check that each row is taken as often as it occurs and no more; or once, all copies
        together."""
        there = Counter(taken.keys()) if once else self._times(table, taken)
        if any(count > there[row] for row, count in taken.items()):
            raise IntegrityError(
                f"{what}: a row of {table.name} is matched by several rows of the source",
                code="not-unique",
                span=statement.span,
                hint="make sure that the source has one row for each row of the table",
            )

    def _times(self, table: Table, rows: Collection[Row]) -> Counter[Row]:
        """The number of copies of each of these rows, all of which exist. Only a table without a
        key can have duplicates, and must be searched."""
        is_read = rows and not table.relation.is_set
        return Counter(self._all(table) if is_read else dict.fromkeys(rows, 1))

    def _all(self, table: Table) -> list[Row]:
        return self._runtime.engine.matching(table.relation, {})

    def _check_values(self, table: Table, rows: Sequence[Row]) -> None:
        for column, position in zip(table.columns, table.positions, strict=True):
            if not column.type.nullable and any(row[position] is None for row in rows):
                raise IntegrityError(
                    f"{table.name}.{column.name} cannot be NULL",
                    code="null",
                    hint="give it a value, or declare the column without NOT NULL",
                )
        function = SqlTables(self._runtime.catalog).function(table.name)
        if rows:
            refuse_rows(function)
        check_rows(function, rows)

    def _count(self, changed: int) -> None:
        self._runtime.statement_counts.changed += changed

    def _apply(self, table: Table, gone: Sequence[Row], come: Sequence[Row]) -> None:
        refuse_deletion(SqlTables(self._runtime.catalog).function(table.name))
        engine, relation = self._runtime.engine, table.relation
        left = Counter(come)
        left.subtract(gone)  # a row that is deleted and inserted again is no change
        engine.expect(relation, list(left))
        old = [row for row, count in left.items() for _ in range(-count)]
        engine.remove_many(relation, old)
        new = [row for row, count in left.items() for _ in range(count)]
        if self._is_relation(table):
            engine.add_many(relation, new)
            return
        self._check_unique(table, new)
        engine.insert_many(relation, new)

    def _is_relation(self, table: Table) -> bool:
        """Whether Datalog created it. Inserting a row that such a set already has is no error."""
        function = SqlTables(self._runtime.catalog).function(table.name)
        return function is not None and function.language == DATALOG

    def _check_unique(self, table: Table, rows: Sequence[Row]) -> None:
        key = table.relation.key
        if key is None:
            return
        seen: set[Row] = set()
        for row in rows:
            value = tuple(row[i] for i in key)
            if value in seen or self._runtime.engine.matching(
                table.relation, dict(zip(key, value, strict=True))
            ):
                names = ", ".join(table.relation.columns[i].name for i in key)
                shown_key = ", ".join(map(repr, value))
                raise IntegrityError(
                    f"{table.name} already has a row with {names} = {shown_key}",
                    code="row-exists",
                    hint="UPDATE it, or use MERGE",
                )
            seen.add(value)


def defaults(
    reading: Reading, created: Statement, columns: Sequence[Column], rows: int
) -> dict[str, Iterator[Any]]:
    """The stored defaults of a CREATE TABLE for a number of rows; a default of another type than
    its column is rejected."""
    found: dict[str, Iterator[Any]] = {}
    for each in created.node.find_all(exp.ColumnDef):
        default = each.find(exp.DefaultColumnConstraint)
        if default is None:
            continue
        column = next(c for c in columns if c.name == each.name.lower())
        query = exp.select(default.this.copy())
        is_drawn = has_random_call(default)
        value = reading.rows(created, query.from_(f"range({rows})") if is_drawn else query)
        convert = converter(value.types[0], column, created)
        values = [convert(each) for (each,) in value.rows]
        found[column.name] = iter(values) if is_drawn else repeat(values[0])
    return found


def _is_default(node: exp.Expr) -> bool:
    if isinstance(node, exp.Column):
        return not node.table and not node.this.quoted and node.name.upper() == "DEFAULT"
    return isinstance(node, exp.Var) and node.name.upper() == "DEFAULT"


def _single(node: exp.Expr) -> list[exp.Expr]:
    """Splits SET (a, b) = (1, 2), which sqlglot reads as a condition, into assignments."""
    while isinstance(node, exp.Paren):
        node = node.this
    return list(node.flatten()) if isinstance(node, exp.And) else [node]
