"""Event detection: what a transaction changes in a stored relation, as it happens.

While something depends on the changes of a relation, three triggers on its table keep its Δ-set: a
temporary table of the changed rows with their weights. Weights add up, so what was done and
undone weighs nothing. Triggers and Δ-sets belong to the session and take part in its
transactions: a rollback, also of a single statement, takes its events back.

Law: the rows with a weight are exactly the difference between the table now and when the Δ-set was
last cleared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from harken.engines import protocol
from harken.engines.protocol import LargeChange, Row
from harken.engines.sqlite import many
from harken.engines.sqlite.compile import Compiler
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.deltas import DeltaSet
from harken.engines.sqlite.layout import table_name
from harken.engines.sqlite.sql_expressions import Sql, literal_text, quote
from harken.engines.sqlite.table_names import stored_name
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


class CapturedDelta(DeltaSet):
    """The Δ-set of a stored relation, kept by triggers on its table.

    Rows that fail the row tests of the screener are left out. A mark says that the relation has
    changed, and whether a change has passed the moment tests as well.
    """

    def __init__(
        self,
        connection: Connection,
        relation: Relation,
        reported: bool = False,
        schema: str = "main",
        change: Relation | None = None,
    ) -> None:
        """Of a relation that is `reported`, the changes come by `note`, and there are no triggers.
        `schema` is where the table is.

        There may be ten thousand of those, and for each that is announced, SQLite reads all it
        knows of this kind again.
        """
        super().__init__(connection, relation, announced=not reported, change=change)
        self.is_reported = reported
        self._schema = schema
        self.elsewhere = 0
        """The size of a change that is not held here."""
        self._noticed = NOTICED if schema == "temp" else ""
        self.screener = Screener(relation, None, None, 1.0)

    def capture(self) -> None:
        """From now on, keep the changes."""
        self.connection.run(CREATE_MARKS)
        self.create()
        triggers = self._triggers()
        if triggers and self._has_triggers():
            self._drop_triggers()  # SQLite may not see those that it has
        for sql in triggers.values():
            self.connection.run(sql)

    def note(self, rows: Sequence[Row] | LargeChange) -> None:
        """Rows have come and gone, the weight of each is its last value; or so many that they are
        not held here."""
        if isinstance(rows, LargeChange):
            self.elsewhere = rows.size
        elif rows:
            self.add(rows)
        else:
            return
        for sql in self._marks([]):
            self.connection.run(sql)

    def add(self, rows: Sequence[Row]) -> None:
        """The same without a mark: whoever propagates them knows of them."""
        arity, total = self.relation.arity, self.weight
        values = ", ".join(f"?{i + 1}" for i in range(arity + 1))
        self.connection.run_many(
            f"INSERT INTO {self.table} ({self.columns}, {total}) VALUES ({values}) "
            f"ON CONFLICT ({self.key}) DO UPDATE SET {total} = {total} + ?{arity + 1}",
            rows,
        )

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
                self.connection.run(f"DROP TRIGGER IF EXISTS temp.{self._trigger(event)}")
                self.connection.run(sql)

    def _drop_triggers(self) -> None:
        for event in EVENTS:
            self.connection.run(f"DROP TRIGGER IF EXISTS temp.{self._trigger(event)}")
        if self._has_triggers():
            self._drop_orphans()

    def unwatch(self) -> None:
        self._drop_triggers()
        self.drop()

    def _has_triggers(self) -> bool:
        """Does SQLite have triggers of these names, whether it sees them or not?"""
        found = f"SELECT EXISTS (SELECT 1 FROM temp.sqlite_schema WHERE {OF_TRIGGERS})"
        return bool(self.connection.value(found, self._trigger_names()))

    def _drop_orphans(self) -> None:
        """If another process dropped the table, SQLite hides its triggers from us. They would come
        back to life with a table of the same name, perhaps of other columns; and where they were
        made a second time, SQLite takes its temporary schema for damaged."""
        delete = f"DELETE FROM temp.sqlite_schema WHERE {OF_TRIGGERS}"
        with self.connection.watch.shielded():
            self.connection.run("PRAGMA writable_schema = ON")
            try:
                self.connection.run(delete, self._trigger_names())
            finally:
                self.connection.run("PRAGMA writable_schema = OFF")

    def _trigger_names(self) -> tuple[str, ...]:
        table = stored_name(table_name(self.relation))
        return tuple(f"{event} {table}" for event in EVENTS)

    def _triggers(self) -> dict[str, str]:
        if self.is_reported:
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
        total = self.weight
        return (
            f"INSERT INTO {quote(self.name)} ({self.columns}, {total}) "
            f"SELECT {values}, {weight} WHERE {passes or 1} "
            f"ON CONFLICT ({self.key}) DO UPDATE SET {total} = {total} + ({weight});"
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
        return self.trigger_name(event, table_name(self.relation))

    @staticmethod
    def trigger_name(event: str, table: str) -> str:
        return quote(f"{event} {table}")


class Capture:
    """The captured changes of a connection."""

    def __init__(
        self,
        connection: Connection,
        is_elsewhere: Callable[[Relation], bool] = lambda _: False,
        forget_elsewhere: Callable[[str | None], None] = lambda _: None,
    ) -> None:
        """The rows of a relation that `is_elsewhere` are in a temporary table as far as they are
        here. `forget_elsewhere` drops the change of a relation, or of all, that is not."""
        self._connection = connection
        self._is_elsewhere = is_elsewhere
        self._forget_elsewhere = forget_elsewhere
        self._has_watched = False

    def delta(self, relation: Relation) -> DeltaSet:
        return DeltaSet(self._connection, relation)

    def watch(self, relation: Relation, *, reported: bool = False) -> CapturedDelta:
        schema = "temp" if self._is_elsewhere(relation) else "main"
        watched = CapturedDelta(self._connection, relation, reported, schema)
        watched.capture()
        self._has_watched = True
        return watched

    def pending(self) -> dict[str, bool]:
        if not self._has_watched:
            return {}
        return {str(name): bool(passed) for name, passed in self._connection.rows(READ_MARKS)}

    def settle(self, changes: Iterable[protocol.CapturedDelta]) -> None:
        for change in changes:
            change.clear()
            self._forget_elsewhere(change.relation.id)
        self._connection.run(CLEAR_MARKS)

    def forget_large(self, changes: Iterable[protocol.CapturedDelta]) -> None:
        self._forget_elsewhere(None)
        for change in changes:
            cast(CapturedDelta, change).elsewhere = 0

    def can_take_back(self, relation: Relation) -> bool:
        """Not where objects are: SQLite takes what refers to an object along with it. And what has
        no columns, as whether a rule is active, may have no table."""
        if relation.role is Role.BEFORE:
            return False
        has_objects = any(column.type.surrogate for column in relation.columns)
        return relation.arity > 0 and not has_objects and not self._is_elsewhere(relation)

    @contextmanager
    def before(self, changes: Iterable[protocol.CapturedDelta]) -> Iterator[None]:
        """A statement that reads the old state of a table writes it out, as what is there without
        what came and with what went, at each mention. That can be too much for SQLite, or for
        anyone's patience: here the change itself is taken back, and is there again afterwards."""
        with self._connection.undone():
            for change in changes:
                plus, minus = cast(CapturedDelta, change).copies()
                many.remove(self._connection, change.relation, plus)
                # Of a row that was changed, only the side that passed its screener may be in the
                # Δ-set: one that comes back takes the place of another with its key.
                many.add(self._connection, change.relation, minus)
            yield

    def explain_screener(self, alternatives: tuple[Alternative, ...] | None) -> str:
        return passing(alternatives, "NEW")


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
