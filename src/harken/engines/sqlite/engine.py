"""The resident engine: stored relations as tables, plans as statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import count
from typing import Any, TypeAlias

import apsw

from harken.engines.protocol import DirectAccess, RunWith
from harken.engines.sqlite import direct_changes, faults, foreign_functions, layout, many, race
from harken.engines.sqlite.aggregates import exact_sum
from harken.engines.sqlite.change_capture import Capture
from harken.engines.sqlite.compile import MANY_ITEMS, Compiler
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.histories import Histories
from harken.engines.sqlite.indexes import Indexes
from harken.engines.sqlite.keep import Keep
from harken.engines.sqlite.layout import table_name
from harken.engines.sqlite.race import Candidate, Rival
from harken.engines.sqlite.recursion import (
    Bind,
    Fetch,
    Fixpoint,
    Kept,
    Statement,
    Table,
    insertion,
    make_fixpoint,
    make_tables,
)
from harken.engines.sqlite.slots import Slots
from harken.engines.sqlite.sql_expressions import quote
from harken.engines.sqlite.statistics import Statistics, measure
from harken.engines.sqlite.table_names import stored_name
from harken.engines.sqlite.waves import Waves
from harken.engines.sqlite.weighing_statement import around, beside_rows, summed_by_row
from harken.engines.weighing import Weighing
from harken.ir.clauses import Atom, Clause, Definition
from harken.ir.relations import COPIES, RANGES, Kind, Relation
from harken.planner.prepare import Plan, on_demand
from harken.values.builtin_functions import values_in_range
from harken.values.encoding import Encoder, encoder
from harken.values.types import Type

_names = count(1)

Read: TypeAlias = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]
"""How a statement with its values is run."""


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A compiled plan: fixpoints to run first, lowest first, then one SELECT."""

    relation: Relation
    sql: str
    slots: tuple[tuple[int, Type], ...]
    fixpoints: tuple[Fixpoint, ...]
    connection: Connection
    tables: Mapping[str, str]
    """By the id of a relation the table that fixpoints fill."""
    order: str = ""
    """An ORDER BY that an index of such a table answers for nothing."""
    fetch: Fetch | None = field(default=None, kw_only=True)
    """Has at hand what the SELECT reads of relations elsewhere, when the fixpoints have run."""
    rival: Rival | None = field(default=None, kw_only=True)
    """Another way to the same rows."""
    binders: tuple[tuple[int, Encoder], ...] = field(init=False)
    """How the value of each slot is stored."""

    def __post_init__(self) -> None:
        binders = tuple((index, encoder(type_)) for index, type_ in self.slots)
        object.__setattr__(self, "binders", binders)

    def rows(self, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        if not self.fixpoints and self.rival is None:
            return self._rows_at_once(values)

        def bind(slots: Sequence[tuple[int, Type]]) -> tuple[Any, ...]:
            return tuple(encoder(type_)(values[index]) for index, type_ in slots)

        with self.connection.fixed_time():
            rows = self._fetch(self.connection.read, lambda each: f"{each.sql}{each.order}", bind)
        # SQL has no rows without columns: one that only says yes is an empty tuple here.
        return rows if self.relation.arity else [() for _ in rows]

    def _rows_at_once(self, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        given = tuple([encode(values[index]) for index, encode in self.binders])
        connection = self.connection
        before = connection.hold_time()
        try:
            rows = connection.read(f"{self.sql}{self.order}", given)
        finally:
            connection.let_time_pass(before)
        return rows if self.relation.arity else [() for _ in rows]

    def run_into(self, insert: str, beside: str = "") -> None:
        """A statement without parameters that inserts the rows, with the values `beside` them."""
        self.run_from(*beside_rows(self.relation, beside), insert)

    def summed(self) -> list[tuple[Any, ...]]:
        """The rows of a weighted change, each once and with the sum of its weights, the last
        column; those that come to nothing are left out."""
        return self.run_from(*summed_by_row(self.relation))

    def run_from(
        self, before: str, after: str, insert: str = "", conflict: str = ""
    ) -> list[tuple[Any, ...]]:
        """Run a query around this one, which has no parameters, and give its rows or insert
        them. Those of a query that may be broken off are read first, unless it has fixpoints,
        after each step of which it can be."""
        connection = self.connection

        def select(query: Candidate) -> str:
            return f"{before} ({query.sql}) {after}"

        with connection.fixed_time():
            if insert and (self.fixpoints or not connection.is_limited):
                return self._fetch(
                    connection.rows,
                    lambda each: f"{insert} {select(each)} {conflict}",
                    lambda _: (),
                )
            rows = self._fetch(connection.read, select, lambda _: ())
        if not insert or not rows:
            return rows
        marks = ", ".join("?" for _ in rows[0])
        connection.run_many(f"{insert} VALUES ({marks}) {conflict}", rows)
        return []

    def counted(
        self, columns: Sequence[int], values: Sequence[int], present: int | None, many: bool
    ) -> list[tuple[Any, ...]] | None:
        """Some columns of the rows, each once, with how often they occur and the sums of the values
        of others, which are exact; only of rows that have something in the column `present`. None
        says that the rows had better be counted where they are wanted, unless that is in `many`
        places."""
        if not many:
            return None
        by = ", ".join(f"c{i}" for i in columns)
        sums = [exact_sum(f"c{i}") for i in values]
        shown = ", ".join([*(f"c{i}" for i in columns), "count(*)", *sums])
        there = "1" if present is None else f"c{present} IS NOT NULL"
        groups = f"GROUP BY {by}" if by else ""
        return self.run_from(f"SELECT {shown} FROM", f"WHERE {there} {groups} HAVING count(*) > 0")

    def weighed(self, weighing: Weighing, insert: str, conflict: str) -> None:
        """Insert what the rows of a change come to."""
        self.run_from(*around(weighing), insert, conflict)

    def _fetch(
        self, read: Read, statement: Callable[[Candidate], str], bind: Bind
    ) -> list[tuple[Any, ...]]:
        if not self.fixpoints:
            return read(statement(self), bind(self.slots))
        with self.connection.snapshot():
            try:
                first = self._evaluate(bind)
                if first.fetch is not None:
                    first.fetch(bind)
                return read(statement(first), bind(first.slots))
            finally:
                self.clear()

    def _evaluate(self, bind: Bind) -> Candidate:
        """Run the fixpoints, and return the query whose tables hold rows."""
        if self.rival is not None:
            return race.evaluate(self, self.rival, bind)
        for fixpoint in self.fixpoints:
            fixpoint.run(self.connection, bind)
        return self

    def clear(self) -> None:
        """Let go of the rows of the tables."""
        for fixpoint in self.fixpoints:
            fixpoint.clear(self.connection)
        if self.rival is not None:
            self.rival.clear()

    @contextmanager
    def evaluated(self) -> Iterator[Callable[[Relation], list[tuple[Any, ...]]]]:
        """In the block, the rows of the relations that became tables on the way; it has no
        parameters."""
        with self.connection.fixed_time(), self.connection.snapshot():
            try:
                for fixpoint in self.fixpoints:
                    fixpoint.run(self.connection, lambda _: ())
                yield self.table_rows
            finally:
                self.clear()

    def table_rows(self, relation: Relation) -> list[tuple[Any, ...]]:
        columns = ", ".join(f"c{i}" for i in range(relation.arity)) or "1"
        order = layout.sorted_by_identity(relation)
        table = quote(self.tables[relation.id])
        return self.connection.read(f"SELECT {columns} FROM temp.{table}{order}")

    def release(self) -> None:
        """It will not run again: release its tables."""
        for fixpoint in self.fixpoints:
            fixpoint.drop(self.connection)
        if self.rival is not None:
            self.rival.release()


MakeFetch: TypeAlias = Callable[[Definition, Plan, Compiler], Fetch | None]
"""Makes what fetches the rows that a definition reads of relations elsewhere, beside what are
tables here. It is asked where a plan is run step by step: where it is not, nothing is a table that
the whole plan did not ask for."""


def _fetch_nothing(definition: Definition, plan: Plan, compiler: Compiler) -> Fetch | None:
    return None


class SQLiteEngine:
    def __init__(self, connection: Connection, fetching: MakeFetch = _fetch_nothing) -> None:
        self.connection = connection
        self._fetching = fetching
        self.python: dict[str, tuple[Callable[..., Any], Sequence[Callable[[Any], Any]]]] = {}
        """The Python functions behind foreign relations, by the ids of these."""
        self.indexes = Indexes(connection)
        self.statistics = Statistics(connection, self.indexes)
        self.capture = Capture(connection)
        self.histories = Histories(connection)
        self.keep = Keep(connection, self)
        self.waves = Waves(connection, Query)
        self.register_foreign(COPIES, lambda n: range(1, n + 1), [int])
        for relation in RANGES.values():
            self.register_foreign(relation, values_in_range, [lambda value: value] * 3)

    # --- stored relations ------------------------------------------------------------------

    def create(self, relation: Relation, supertypes: tuple[str, ...] = ()) -> None:
        self.connection.run(layout.create_table(relation, supertypes))
        if relation.key is None and relation.inputs:
            self.indexes.ensure([(relation, tuple(range(relation.inputs)))])

    def drop(self, relation: Relation) -> None:
        self.connection.run(f"DROP TABLE {quote(table_name(relation))}")
        self.indexes.reload()

    def exists(self, relation: Relation) -> bool:
        return self.connection.has_table(stored_name(table_name(relation)))

    def create_temporary(self, relation: Relation) -> None:
        self._drop_temporary(relation)
        self.connection.run(layout.create_table(relation, temporary=True))
        self.indexes.temporary.add(relation.id)

    def drop_temporary(self, relation: Relation) -> None:
        self._drop_temporary(relation)
        self.indexes.temporary.discard(relation.id)
        self.indexes.reload()

    def _drop_temporary(self, relation: Relation) -> None:
        self.connection.run(f"DROP TABLE IF EXISTS temp.{quote(table_name(relation))}")

    def exists_temporary(self, relation: Relation) -> bool:
        return self.connection.has_table(stored_name(table_name(relation)), "temp")

    def direct(self, relation: Relation) -> DirectAccess:
        statements, execute = layout_changes(relation), self.connection.execute
        return DirectAccess(
            partial(execute, statements.set),
            partial(execute, statements.get),
            partial(execute, statements.insert),
            faults.RAISED,
            faults.fault,
        )

    def measure(self) -> None:
        measure(self.connection)

    def count(self, relation: Relation) -> int:
        return int(self.connection.value(f"SELECT count(*) FROM {quote(table_name(relation))}"))

    def rows(self, relation: Relation) -> list[tuple[Any, ...]]:
        """All rows of a relation; of one without columns, a 1 for each."""
        columns = ", ".join(f"c{i}" for i in range(relation.arity)) or "1"
        return self.connection.rows(f"SELECT {columns} FROM {quote(table_name(relation))}")

    def is_empty(self, relation: Relation) -> bool:
        table = quote(table_name(relation))
        return not self.connection.value(f"SELECT EXISTS (SELECT 1 FROM {table})")

    def insert_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        many.insert(self.connection, relation, rows)

    def add_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        """Insert those that are not there yet; all columns of the relation are its key."""
        many.add(self.connection, relation, rows)

    def insert_column(self, relation: Relation, first: int, column: Sequence[Any]) -> None:
        """The rows (first, column[0]), (first + 1, column[1]), ...; of an extent only the first
        parts. The column is an array of numbers or a tuple of texts: SQLite walks it by itself."""
        if column:
            values = "?1 + rowid - 1, value" if relation.arity == 2 else "?1 + rowid - 1"
            sql = f"INSERT INTO {quote(table_name(relation))} SELECT {values} FROM carray(?2)"
            with faults.translated():
                self.connection.raw.execute(sql, (first, apsw.carray(column)))

    def set_row(self, relation: Relation, row: Sequence[Any]) -> None:
        self.connection.run(layout_changes(relation).set, row)

    def remove_row(self, relation: Relation, row: Sequence[Any]) -> None:
        self.connection.run(layout_changes(relation).remove, row)

    def remove_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        many.remove(self.connection, relation, rows)

    def clear(self, relation: Relation, arguments: Sequence[Any]) -> None:
        self.connection.run(layout_changes(relation).clear, arguments)

    def contains(self, relation: Relation, row: Sequence[Any]) -> bool:
        return self.connection.value(layout_changes(relation).exists, row) is not None

    def matching(self, relation: Relation, known: Mapping[int, Any]) -> list[tuple[Any, ...]]:
        """The rows that have these values in these columns."""
        self.indexes.ensure([(relation, tuple(known))])
        columns = ", ".join(f"c{i}" for i in range(relation.arity))
        where = " AND ".join(f"c{position} IS ?" for position in known) or "1"
        sql = f"SELECT {columns} FROM {quote(table_name(relation))} WHERE {where}"
        return self.connection.rows(sql, tuple(known.values()))

    def results(self, relation: Relation, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self.connection.rows(layout_changes(relation).get, arguments)

    # --- queries ---------------------------------------------------------------------------

    def compile(self, plan: Plan, short: bool = False) -> Query:
        """A `short` statement has at most this many items in FROM."""
        plan = on_demand(plan)
        rival = Rival(partial(self.compile, plan.otherwise, short)) if plan.otherwise else None
        query, compiler = self._compile(plan, {}, {}, MANY_ITEMS if short else None)
        wanted = self.indexes.wanted_by(query.sql, len(query.slots), compiler.aliases)
        self.indexes.ensure([*compiler.lookups, *wanted])
        return query if rival is None else replace(query, rival=rival)

    def updating(
        self, plan: Plan, relation: Relation, assigned: Mapping[int, int]
    ) -> RunWith | None:
        return direct_changes.updating(self.connection, plan, relation, assigned)

    def deleting(self, plan: Plan, relation: Relation) -> RunWith | None:
        return direct_changes.deleting(self.connection, plan, relation)

    def compile_into(self, plan: Plan, kept: Kept, known: Kept) -> Query:
        """Compile a plan whose fixpoints fill tables that are `kept`, and read those that are
        `known`."""
        return self._compile(plan, kept, known)[0]

    def compile_reading(self, plan: Plan, known: Kept) -> Query:
        """Compile a plan that reads tables that are `known`; where it looks their rows up, and
        those of others, there are indexes."""
        query, compiler = self._compile(plan, {}, known)
        wanted = self.indexes.wanted_by(query.sql, len(query.slots), compiler.aliases)
        for relation, columns in (*compiler.lookups, *wanted):
            table = known.get(relation.id)
            if table is None:
                self.indexes.ensure([(relation, columns)])
            elif columns and not _is_served(relation, columns):
                self.connection.run(Table(table, "", "", kept=True).index(columns))
        return query

    def _compile(
        self, plan: Plan, kept: Kept, known: Kept, most: int | None = None
    ) -> tuple[Query, Compiler]:
        self.histories.ensure(plan.program)
        plan = on_demand(plan)
        tables: dict[str, str] = dict(known)
        compiler = Compiler(plan.program.definitions, plan.needs, tables=tables)
        fixpoints = self._fixpoints(plan, compiler, tables, kept)
        compiler.slots = Slots()
        goal = plan.program.goal
        definition = plan.program.definition(goal)
        if definition is None or goal.id in tables:
            columns = ", ".join(f"c{i}" for i in range(goal.arity)) or "1"
            sql = f"SELECT {columns} FROM {compiler.table(goal)}"
        else:
            sql = compiler.goal(definition, most)
        slots = compiler.slots.bound_in(sql)
        order = _free_order(definition, tables, plan)
        fetch = None
        if definition is not None and goal.id not in tables and (plan.layers or known):
            fetch = self._fetching(definition, plan, compiler)
        query = Query(goal, sql, slots, fixpoints, self.connection, tables, order, fetch=fetch)
        return query, compiler

    def _fixpoints(
        self, plan: Plan, compiler: Compiler, tables: dict[str, str], kept: Kept
    ) -> tuple[Fixpoint, ...]:
        by_name: dict[str, Table] = {}
        is_stepwise = bool(plan.layers or tables)

        def compiled(clause: Clause, table: Table) -> Statement:
            """The statement, with indexes where it looks rows up."""
            start = len(compiler.lookups)
            added = insertion(compiler, clause, table)
            looked_up = self.indexes.looked_up(added.sql, len(added.slots), compiler.aliases)
            for relation, columns in (*looked_up, *compiler.lookups[start:]):
                name = tables.get(relation.id)
                if name is None and relation.kind is Kind.STORED:
                    self.indexes.ensure([(relation, columns)])
                elif name is not None and columns and not _is_served(relation, columns):
                    source = by_name.get(name) or Table(name, "", "", kept=True)
                    source.lookups.add(columns)
                    self.connection.run(source.index(columns))
            rule = Definition(clause.head.relation, (clause,))
            fetch = self._fetching(rule, plan, compiler) if is_stepwise else None
            return added if fetch is None else replace(added, fetch=fetch)

        fixpoints = []
        for stratum in plan.computed:
            prefix = f"recursion {next(_names)}"
            made = make_tables(stratum, tables, compiler.numbers, prefix, kept)
            by_name.update({each.name: each for each in made})
            asked = {
                name: (tables[name], relation, is_full)
                for name, (relation, is_full) in plan.questions.items()
                if name in tables
            }
            fixpoints.append(make_fixpoint(stratum, made, plan.layers, compiled, asked))
        for fixpoint in fixpoints:
            fixpoint.create(self.connection)
        return tuple(fixpoints)

    def explain_sql(self, plan: Plan) -> str:
        return self._compile(plan, {}, {})[0].sql

    # --- foreign relations -----------------------------------------------------------------

    def register_foreign(
        self,
        relation: Relation,
        function: Callable[..., Any],
        decode: Sequence[Callable[[Any], Any]],
    ) -> None:
        """Make a Python function callable from SQL; registering it again replaces it."""
        if relation.kind is not Kind.FOREIGN:
            raise ValueError(f"{relation.id} is not foreign")
        foreign_functions.register(self.connection, relation, function, decode)
        self.python[relation.id] = (function, decode)


def _free_order(definition: Definition | None, tables: Mapping[str, str], plan: Plan) -> str:
    """The order of the rows, if they are those of one table that a fixpoint has filled."""
    if definition is None or len(definition.clauses) != 1:
        return ""
    head, body = definition.clauses[0].head, definition.clauses[0].body
    if len(body) != 1 or not isinstance(body[0], Atom) or body[0].negated:
        return ""
    relation = body[0].relation
    computed = {name for stratum in plan.computed for name in stratum.names}
    if relation.id not in tables or relation.id not in computed or body[0].terms != head.terms:
        return ""
    return layout.sorted_by_identity(relation)


def _is_served(relation: Relation, columns: tuple[int, ...]) -> bool:
    """Are these the first columns of a table, by which its rows are kept apart? One that may be
    NULL is not in that index as it is."""
    first = range(len(set(columns)))
    return set(columns) == set(first) and not relation.columns[0].type.nullable


def layout_changes(relation: Relation) -> layout.Changes:
    """Relations are equal whether or not their columns may be NULL; their statements are not."""
    return _layout_changes(relation, tuple(column.type.nullable for column in relation.columns))


@lru_cache(maxsize=4096)
def _layout_changes(relation: Relation, _nullable: tuple[bool, ...]) -> layout.Changes:
    return layout.changes(relation)
