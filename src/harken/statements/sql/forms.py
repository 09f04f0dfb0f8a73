"""What a statement with lifted constants was planned to: it runs with the values that come.

Law: a form does what `SqlSession` does with the statement and the same constants, or it raises
`Misfit`, and has then changed nothing that its savepoint does not undo. Whoever runs it goes the
long way then, which also finds the right words for what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from sqlglot import exp

from harken.database.catalog import Catalog
from harken.database.evaluation import decode_rows
from harken.database.function_tables import SqlTables, is_table
from harken.database.runtime import Runtime, StatementCounts
from harken.engines.protocol import RunWith
from harken.ir.relations import Column, Kind
from harken.ir.schema import Function
from harken.ir.terms import Constant
from harken.lang.sql.conversions import literal_term
from harken.lang.sql.lifting import Lifted
from harken.lang.sql.ordering import OrderKeys
from harken.lang.sql.parser import Statement
from harken.lang.sql.program_draft import Draft, Table
from harken.lang.sql.type_names import type_name
from harken.statements.records import is_record
from harken.statements.sql.change_statements import Changes
from harken.statements.sql.lifted_queries import Found, LiftedQuery
from harken.statements.sql.reading import Reading, in_order
from harken.statements.sql.storing import converter
from harken.values.encoding import encode, encoder
from harken.values.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Type,
    is_decimal,
)

Values = tuple[Any, ...]


class Misfit(Exception):
    """The form cannot do what the statement says with these values."""


class Form(Protocol):
    def run(self, values: Values) -> Found | None:
        """The rows to show, if it has any."""

    def holds(self, catalog: Catalog) -> bool:
        """Would the statement be planned to the same now?"""


class QueryForm:
    """A SELECT. Its rows are as they are stored."""

    def __init__(self, statement: Statement, reading: Reading) -> None:
        self._keys = OrderKeys(statement.node, Draft(statement, "query"))
        self._query = reading.lifted(statement, self._keys.query)
        node = statement.node.args
        self._is_ordered = any(node.get(each) for each in ("order", "limit", "offset"))

    def run(self, values: Values) -> Found:
        found = self._query.found(values)
        return in_order(self._keys, found) if self._is_ordered else found

    def holds(self, catalog: Catalog) -> bool:
        return self._query.holds(catalog)


class ChangeForm:
    """Any change: its queries are compiled, the rest is as for a statement seen once."""

    def __init__(self, statement: Statement, changes: Changes) -> None:
        self._statement = statement
        self._changes = changes

    def run(self, values: Values) -> Found | None:
        return self._changes.run(self._statement.with_values(values))

    def holds(self, catalog: Catalog) -> bool:
        queries = self._statement.queries or {}
        return all(each.holds(catalog) for each in queries.values())


class DirectForm:
    """An UPDATE or DELETE that the engine does in one go."""

    def __init__(
        self, run: RunWith, query: LiftedQuery, table: Target, counts: StatementCounts
    ) -> None:
        self._run = run
        self._query = query
        self._table = table
        self._counts = counts

    def run(self, values: Values) -> None:
        self._counts.changed += self._run(self._query.parameters(values))

    def holds(self, catalog: Catalog) -> bool:
        return self._table.holds(catalog) and self._query.holds(catalog)


class InsertForm:
    """INSERT of rows that are written out."""

    def __init__(self, rows: list[list[Cell]], table: Target, runtime: Runtime) -> None:
        self._rows = rows
        self._table = table
        relation = table.table.relation
        nullable = [column.type.nullable for column in relation.columns]
        self._required = [i for i, each in enumerate(nullable) if not each]
        self._relation = relation
        self._counts = runtime.statement_counts
        self._engine = runtime.engine
        direct = runtime.engine.direct(relation)
        self._insert, self._raised, self._fault = direct.insert, direct.raised, direct.fault

    def run(self, values: Values) -> None:
        rows = [tuple([each(values) for each in row]) for row in self._rows]
        for row in rows:
            if None in row and any(row[i] is None for i in self._required):
                raise Misfit
        if len(rows) > 1:
            self._engine.insert_many(self._relation, rows)
        else:
            self._insert_one(rows[0])
        self._counts.changed += len(rows)

    def _insert_one(self, row: Values) -> None:
        try:
            self._insert(row)
        except self._raised as error:
            raise self._fault(error) from error

    def holds(self, catalog: Catalog) -> bool:
        return self._table.holds(catalog)


Cell = Callable[[Values], Any]


class Target:
    """The table that a statement changes."""

    def __init__(self, name: str, function: Function, table: Table) -> None:
        self.name = name
        self.function = function
        self.table = table

    def holds(self, catalog: Catalog) -> bool:
        return SqlTables(catalog).function(self.name) == self.function


# --- planning ------------------------------------------------------------------------------


def plan(statement: Statement, runtime: Runtime, reading: Reading, changes: Changes) -> Form:
    node = statement.node
    match node:
        case exp.Query() | exp.Values():
            return QueryForm(statement, reading)
        case exp.Insert():
            form = _insert(statement, node, runtime)
        case exp.Update() | exp.Delete():
            form = _direct(statement, node, runtime, reading, changes)
        case _:
            form = None
    return form or ChangeForm(statement, changes)


def _target(node: exp.Expr, runtime: Runtime) -> Target | None:
    """A table of SQL that is kept here."""
    tables = SqlTables(runtime.catalog)
    function = tables.function(node.name)
    table = tables.table(node.name)
    if function is None or table is None or not is_table(function) or is_record(function):
        return None
    relation = table.relation
    if relation.kind is not Kind.STORED or runtime.engine.is_in_lake(relation):
        return None
    if any(column.type.surrogate for column in relation.columns):
        return None
    return Target(node.name, function, table)


PLAIN = {"this", "where", "expressions"}
"""The parts of an UPDATE or DELETE that the engine may do in one go."""


def _direct(
    statement: Statement,
    node: exp.Update | exp.Delete,
    runtime: Runtime,
    reading: Reading,
    changes: Changes,
) -> Form | None:
    said = {key for key, value in node.args.items() if value not in (None, False, [])}
    target = _target(node.this, runtime) if said <= PLAIN else None
    if target is None:
        return None
    table = target.table
    names: list[str] = []
    values: list[exp.Expr] = []
    if isinstance(node, exp.Update):
        names, values = changes.assignments(table, node.expressions, statement)
    choosing = changes.choosing(table, node.this, node.args.get("where"), values)
    query = reading.lifted(statement, choosing)
    wanted = [_column_type(table, name) for name in names]
    fitted = [
        _fitted(value, type_, column)
        for value, type_, column in zip(
            values, query.types[len(table.columns) :], wanted, strict=True
        )
    ]
    if None in fitted:
        return None
    if fitted != values:
        where = node.args.get("where")
        choosing = changes.choosing(table, node.this, where, [e for e in fitted if e is not None])
        query = reading.lifted(statement, choosing)
    places = {c.name: p for c, p in zip(table.columns, table.positions, strict=True)}
    assigned = {places[name]: i for i, name in enumerate(names, start=len(table.columns))}
    engine, relation = runtime.engine, table.relation
    if assigned:
        run = engine.updating(query.plan, relation, assigned)
    else:
        run = engine.deleting(query.plan, relation)
    return None if run is None else DirectForm(run, query, target, runtime.statement_counts)


def _column_type(table: Table, name: str) -> Type:
    return next(column.type for column in table.columns if column.name == name)


def _fitted(value: exp.Expr, given: Type, wanted: Type) -> exp.Expr | None:
    """What is computed of a row as a value of its column; None if only Python can convert it."""
    if given == wanted or isinstance(value, exp.Null):
        return value
    is_exact = given == INTEGER or is_decimal(given)
    is_moment = isinstance(value, Lifted) and given == TEXT and wanted in (DATE, TIMESTAMP)
    if is_moment or (is_exact and (wanted == NUMBER or is_decimal(wanted))):
        return exp.Cast(
            this=value.copy(), to=exp.DataType.build(type_name(wanted), dialect="spark")
        )
    return None


WRITTEN_OUT = {"this", "expression"}


def _insert(statement: Statement, node: exp.Insert, runtime: Runtime) -> Form | None:
    said = {key for key, value in node.args.items() if value not in (None, False, [])}
    schema = node.this if isinstance(node.this, exp.Schema) else None
    target = _target(node.this.this if schema else node.this, runtime)
    if said != WRITTEN_OUT or target is None or not isinstance(node.expression, exp.Values):
        return None
    if any(v for k, v in node.expression.args.items() if k != "expressions"):
        return None
    table = target.table
    names = [column.name for column in table.columns]
    if schema is not None:
        given = [each.name.lower() for each in schema.expressions]
        if sorted(given) != sorted(names):
            return None  # there may be defaults
        names = given
    rows = [_items(each) for each in node.expression.expressions]
    if any(len(row) != len(names) for row in rows):
        return None
    columns: list[list[Cell]] = [[] for _ in names]
    for column, position in zip(table.columns, table.positions, strict=True):
        at = names.index(column.name)
        made = _column([row[at] for row in rows], column, statement)
        if made is None:
            return None
        columns[position] = made
    return InsertForm([list(row) for row in zip(*columns, strict=True)], target, runtime)


def _items(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _column(nodes: Sequence[exp.Expr], column: Column, statement: Statement) -> list[Cell] | None:
    """How the values of one column are made; None if they are not all of one type, or computed."""
    kinds = set()
    cells: list[Cell] = []
    for node in nodes:
        value = node.this if isinstance(node, exp.Neg) else node
        is_negative = value is not node
        if isinstance(node, exp.Null):
            cells.append(lambda values: None)
            continue
        if isinstance(value, Lifted):
            if is_negative and not _is_numeric(value.args["kind"]):
                return None
            kinds.add(value.args["kind"])
            cells.append(_cell(value, is_negative, column, statement))
            continue
        known = _constant(value, statement)
        if known is None or (is_negative and not _is_numeric(known.type)):
            return None
        kinds.add(known.type)
        stored = converter(known.type, column, statement)(_encoded(known, is_negative))
        cells.append(lambda values, stored=stored: stored)  # type: ignore[misc]
    return cells if len(kinds) <= 1 else None


def _is_numeric(given: Type) -> bool:
    return given in (INTEGER, NUMBER) or is_decimal(given)


def _constant(node: exp.Expr, statement: Statement) -> Constant | None:
    if isinstance(node, exp.Literal):
        return literal_term(Draft(statement, "query"), node)
    return Constant(bool(node.this), BOOLEAN) if isinstance(node, exp.Boolean) else None


def _encoded(constant: Constant, is_negative: bool) -> Any:
    value: Any = constant.value
    return encode(-value if is_negative else value, constant.type)


def _cell(node: Lifted, is_negative: bool, column: Column, statement: Statement) -> Cell:
    slot, kind = int(node.args["slot"]), node.args["kind"]
    encode = encoder(kind)
    convert = None if kind == column.type else converter(kind, column, statement)
    if is_negative:
        return lambda values: _converted(encode(-values[slot]), convert)
    if convert is None:
        return lambda values: encode(values[slot])
    return lambda values: _converted(encode(values[slot]), convert)


def _converted(value: Any, convert: Callable[[Any], Any] | None) -> Any:
    return value if convert is None else convert(value)


def shown(found: Found, runtime: Runtime) -> None:
    """Let whoever listens have the rows."""
    rows = decode_rows(found.rows, found.types, runtime.catalog.home)
    runtime.emit("rows", found.names, rows, found.types)
