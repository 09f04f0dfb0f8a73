"""Event detection: what a transaction changes in a stored relation, as it happens.

While something depends on the changes of a relation, three triggers on its table keep its Δ-set: a
temporary table of the changed rows with their weights. Weights add up, so what was done and
undone weighs nothing. Triggers and Δ-sets belong to the session and take part in its
transactions: a rollback, also of a single statement, takes its events back.

Law: the rows with a weight are exactly the difference between the table now and when the Δ-set was
last cleared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harken.calculus.states import delta
from harken.engines.protocol import Connection, Query
from harken.engines.sqlite import layout
from harken.engines.sqlite.compile import Compiler
from harken.engines.sqlite.expressions import Sql, literal_text, quote
from harken.engines.sqlite.layout import table_name
from harken.engines.sqlite.names import stored_name
from harken.engines.sqlite.selectable import selectable
from harken.ir.clauses import Atom, Clause, Definition
from harken.ir.relations import Column, Kind, Relation, Role
from harken.planner.screen import Alternative, Screener

MARKS = "harken_changed"
BRINGING = "harken_bringing"
CREATE_BRINGING = f"CREATE TEMP TABLE IF NOT EXISTS {BRINGING} (x)"
NOTICED = f"NOT EXISTS (SELECT 1 FROM {BRINGING})"
"""Rows brought into a temporary table from elsewhere are no events: while they come, a row here
says so. (SQLite's switch for triggers has no effect on temporary ones.)"""
CREATE_MARKS = (
    f"CREATE TEMP TABLE IF NOT EXISTS {MARKS} "
    "(name TEXT PRIMARY KEY, passed INTEGER NOT NULL) WITHOUT ROWID"
)
READ_MARKS = f"SELECT name, passed FROM temp.{MARKS}"
CLEAR_MARKS = f"DELETE FROM temp.{MARKS}"

EVENTS = ("insert", "delete", "update")
OF_TRIGGERS = "type = 'trigger' AND name IN (?, ?, ?)"

ANNOUNCED = 16
"""The rows that SQLite expects in a Δ-set: fewer than any table has, and enough that it makes an
index on what it joins them with, if there is none."""


class DeltaSet:
    """A temporary table of changed rows with their weights; its statements are made once."""

    def __init__(self, connection: Connection, relation: Relation, announced: bool = True) -> None:
        """Of a Δ-set that is `announced`, SQLite knows that it is small: whatever it is joined
        with, it comes first."""
        self.relation = relation
        self.announced = announced
        self._connection = connection
        self.table = f"temp.{quote(delta(relation).id)}"
        self._columns = ", ".join(f"c{i}" for i in range(relation.arity))
        self.weight = f"c{relation.arity}"
        self._key = layout.identity(relation)
        self._clear = f"DELETE FROM {self.table}"
        self._size = f"SELECT count(*) FROM {self.table}"
        self._changed = f"SELECT EXISTS (SELECT 1 FROM {self.table} WHERE {self.weight} <> 0)"

    def create(self) -> None:
        """Make the table if it is not there."""
        if self._connection.has_table(stored_name(delta(self.relation).id), "temp"):
            return
        key = self._columns or self.weight
        columns = f"{layout.typed_columns(self.relation)}, " if self._columns else ""
        create = f"CREATE TEMP TABLE {self.table} ({columns}{self.weight} INTEGER NOT NULL"
        if layout.may_be_null(self.relation):
            self._connection.run(f"{create})")
            self._index()
        else:
            self._connection.run(f"{create}, PRIMARY KEY ({key})) WITHOUT ROWID")
        if self.announced:
            self._announce()

    def _index(self) -> None:
        """A table without its index must not be left, by Ctrl-C: it would be taken for complete."""
        name = delta(self.relation).id
        index = f"CREATE UNIQUE INDEX temp.{quote(f'rows {name}')} ON {quote(name)} ({self._key})"
        try:
            self._connection.run(index)
        except BaseException:
            self.drop()
            raise

    def _announce(self) -> None:
        row = ", ".join(["value"] * (self.relation.arity + 1))
        values = f"SELECT 1 AS value UNION ALL SELECT value + 1 FROM v WHERE value < {ANNOUNCED}"
        self._connection.run(f"WITH v AS ({values}) INSERT INTO {self.table} SELECT {row} FROM v")
        self._connection.run(f"ANALYZE {self.table}")
        self.clear()

    def drop(self) -> None:
        self._connection.run(f"DROP TABLE IF EXISTS {self.table}")

    def fill(self, query: Query, weight: int) -> None:
        """Take in the rows of a query, each with this weight."""
        selectable(query).run_into(f"INSERT INTO {self.table}", f", {weight}")

    def fill_weighted(self, query: Query) -> None:
        """Take in the weighted rows of a query, of which the last column is the weight."""
        total = f"sum({self.weight})"
        shown = f"{self._columns}, {total}" if self._columns else total
        groups = f"GROUP BY {self._columns} " if self._columns else ""
        selectable(query).run_from(
            f"SELECT {shown} FROM", f"{groups}HAVING {total} <> 0", f"INSERT INTO {self.table}"
        )

    def has_changed(self) -> bool:
        return bool(self._connection.value(self._changed))

    def rows(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """What was added and what was removed."""
        gained, lost = (
            self._connection.rows(
                f"SELECT {self._columns or 1} FROM {self.table} WHERE {self.weight} {sign} 0"
            )
            for sign in "><"
        )
        if not self._columns:
            return [() for _ in gained], [() for _ in lost]
        return gained, lost

    def copies(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """What was added and what was removed, each row as often as that."""
        plus: list[tuple[Any, ...]] = []
        minus: list[tuple[Any, ...]] = []
        for *row, weight in self._connection.rows(f"SELECT * FROM {self.table}"):
            (plus if weight > 0 else minus).extend([tuple(row)] * abs(weight))
        return plus, minus

    def size(self) -> int:
        return int(self._connection.value(self._size))

    def clear(self) -> None:
        self._connection.run(self._clear)


class Capture(DeltaSet):
    """The Δ-set of a stored relation, kept by triggers on its table.

    Rows that fail the row tests of the screener are left out. A mark says that the relation has
    changed, and whether a change has passed the moment tests as well.
    """

    def __init__(
        self, connection: Connection, relation: Relation, told: bool = False, schema: str = "main"
    ) -> None:
        """Of a relation that is `told`, the changes come by `note`, and there are no triggers.
        `schema` is where the table is.

        There may be ten thousand of those, and for each that is announced, SQLite reads all it
        knows of this kind again.
        """
        super().__init__(connection, relation, announced=not told)
        self.is_told = told
        self._schema = schema
        self.elsewhere = 0
        """The size of a change that is not held here."""
        self._noticed = NOTICED if schema == "temp" else ""
        self.screener = Screener(relation, None, None, 1.0)

    def capture(self) -> None:
        """From now on, keep the changes."""
        self._connection.run(CREATE_MARKS)
        self.create()
        triggers = self._triggers()
        if triggers and self._has_triggers():
            self._drop_triggers()  # SQLite may not see those that it has
        for sql in triggers.values():
            self._connection.run(sql)

    def note(self, row: Sequence[Any], weight: int) -> None:
        """A row has come (+1) or gone (-1)."""
        values = ", ".join(f"?{i + 1}" for i in range(self.relation.arity))
        self._connection.run(self._counting(values, weight, ""), row)
        for sql in self._marks([]):
            self._connection.run(sql)

    def note_many(self, rows: Sequence[Sequence[Any]]) -> None:
        """Rows have come and gone; the weight of each is its last value."""
        self.add_many(rows)
        for sql in self._marks([]) if rows else ():
            self._connection.run(sql)

    def add_many(self, rows: Sequence[Sequence[Any]]) -> None:
        """The same without a mark: whoever propagates them knows of them."""
        arity, total = self.relation.arity, self.weight
        values = ", ".join(f"?{i + 1}" for i in range(arity + 1))
        self._connection.run_many(
            f"INSERT INTO {self.table} ({self._columns}, {total}) VALUES ({values}) "
            f"ON CONFLICT ({self._key}) DO UPDATE SET {total} = {total} + ?{arity + 1}",
            rows,
        )

    def note_elsewhere(self, size: int) -> None:
        """So many rows have come and gone that they are not held here."""
        self.elsewhere = size
        for sql in self._marks([]):
            self._connection.run(sql)

    def size(self) -> int:
        return self.elsewhere or super().size()

    def clear(self) -> None:
        self.elsewhere = 0
        super().clear()

    def screen(self, screener: Screener) -> None:
        """From now on, let this be the screener."""
        before, self.screener = self._triggers(), screener
        after = self._triggers()
        for event, sql in after.items():
            if before.get(event) != sql:
                self._connection.run(f"DROP TRIGGER IF EXISTS temp.{self._trigger(event)}")
                self._connection.run(sql)

    def capture_again(self) -> None:
        self._drop_triggers()
        self.capture()

    def _drop_triggers(self) -> None:
        for event in EVENTS:
            self._connection.run(f"DROP TRIGGER IF EXISTS temp.{self._trigger(event)}")
        if self._has_triggers():
            self._drop_orphans()

    def release(self) -> None:
        self._drop_triggers()
        self.drop()

    def _has_triggers(self) -> bool:
        """Does SQLite have triggers of these names, whether it sees them or not?"""
        found = f"SELECT EXISTS (SELECT 1 FROM temp.sqlite_schema WHERE {OF_TRIGGERS})"
        return bool(self._connection.value(found, self._trigger_names()))

    def _drop_orphans(self) -> None:
        """If another process dropped the table, SQLite hides its triggers from us. They would come
        back to life with a table of the same name, perhaps of other columns; and where they were
        made a second time, SQLite takes its temporary schema for damaged."""
        delete = f"DELETE FROM temp.sqlite_schema WHERE {OF_TRIGGERS}"
        with self._connection.watch.shielded():
            self._connection.run("PRAGMA writable_schema = ON")
            try:
                self._connection.run(delete, self._trigger_names())
            finally:
                self._connection.run("PRAGMA writable_schema = OFF")

    def _trigger_names(self) -> tuple[str, ...]:
        table = stored_name(table_name(self.relation))
        return tuple(f"{event} {table}" for event in EVENTS)

    def _triggers(self) -> dict[str, str]:
        if self.is_told:
            return {}
        table = f"{self._schema}.{quote(table_name(self.relation))}"
        gained, lost = ("NEW", 1), ("OLD", -1)
        sides = {"insert": [gained], "delete": [lost], "update": [lost, gained]}
        return {
            event: f"CREATE TEMP TRIGGER IF NOT EXISTS {self._trigger(event)} "
            f"AFTER {event.upper()} ON {table} {self._body(rows)}"
            for event, rows in sides.items()
        }

    def _body(self, sides: list[tuple[str, int]]) -> str:
        rows = [row for row, _ in sides]
        passes = {row: passing(self.screener.row_tests, row) for row in rows}
        passed = f"({' OR '.join(passes.values())})" if all(passes.values()) else ""
        tests = [test for test in (self._noticed, passed) if test]
        when = f"WHEN {' AND '.join(tests)} " if tests else ""
        counts = [self._count(row, weight, passes[row]) for row, weight in sides]
        return f"{when}BEGIN {' '.join([*counts, *self._marks(rows)])} END"

    def _count(self, row: str, weight: int, passes: str) -> str:
        values = ", ".join(f"{row}.c{i}" for i in range(self.relation.arity))
        return self._counting(values, weight, passes)

    def _counting(self, values: str, weight: int, passes: str) -> str:
        total = self.weight
        return (
            f"INSERT INTO {quote(delta(self.relation).id)} ({self._columns}, {total}) "
            f"SELECT {values}, {weight} WHERE {passes or 1} "
            f"ON CONFLICT ({self._key}) DO UPDATE SET {total} = {total} + ({weight});"
        )

    def _marks(self, rows: list[str]) -> list[str]:
        name = literal_text(self.relation.id)
        tests = {passing(self.screener.moment_tests, row): None for row in rows}
        if not tests or not all(tests):
            return [
                f"INSERT INTO {MARKS} VALUES ({name}, 1) "
                "ON CONFLICT DO UPDATE SET passed = 1 WHERE passed = 0;"
            ]
        return [
            f"INSERT INTO {MARKS} VALUES ({name}, 0) ON CONFLICT DO NOTHING;",
            f"UPDATE {MARKS} SET passed = 1 WHERE name = {name} AND passed = 0 "
            f"AND ({' OR '.join(tests)});",
        ]

    def _trigger(self, event: str) -> str:
        return quote(f"{event} {table_name(self.relation)}")


def marked(connection: Connection) -> dict[str, bool]:
    """The ids of the relations that have changed; true if the change passed its screener."""
    return {str(name): bool(passed) for name, passed in connection.rows(READ_MARKS)}


def unmark(connection: Connection) -> None:
    connection.run(CLEAR_MARKS)


def passing(alternatives: tuple[Alternative, ...] | None, row: str) -> str:
    """The condition that a row, `NEW` or `OLD`, passes one of the alternatives; empty if every
    row does."""
    if alternatives is None:
        return ""
    return "(" + " OR ".join(_passing(each, row) for each in alternatives) + ")"


def _passing(alternative: Alternative, row: str) -> str:
    columns = tuple(Column(f"c{i}", v.type) for i, v in enumerate(alternative.row))
    relation = Relation("screener", columns, len(columns), Kind.DERIVED, role=Role.AUXILIARY)
    clause = Clause(Atom(relation, alternative.row), alternative.tests)
    known = {i: Sql(f"{row}.c{i}", variable.type) for i, variable in enumerate(alternative.row)}
    compiler = Compiler({}, {}, lenient=True)
    ((_, select, _),) = compiler.branches(Definition(relation, (clause,)), known)
    if select.sources:
        return f"EXISTS ({select.text('1')})"
    return f"({' AND '.join(select.conditions())})"
