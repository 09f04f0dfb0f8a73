"""Event detection: what a transaction changes in a stored relation, as it happens.

While something depends on the changes of a relation, three triggers on its table keep its Δ-set: a
temporary table of the changed rows with their weights. Weights add up, so what was done and
undone weighs nothing. Triggers and Δ-sets belong to the session and take part in its
transactions: a rollback, also of a single statement, takes its events back.

Law: the rows with a weight are exactly the difference between the table now and when the Δ-set was
last cleared.
"""

from __future__ import annotations

from typing import Any

from harken.calculus.states import delta
from harken.engines.sqlite.compile import table_name
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.engine import Query
from harken.engines.sqlite.expressions import literal_text, quote
from harken.ir.relations import Relation

MARKS = "harken_changed"
CREATE_MARKS = f"CREATE TEMP TABLE IF NOT EXISTS {MARKS} (name TEXT PRIMARY KEY) WITHOUT ROWID"
READ_MARKS = f"SELECT name FROM temp.{MARKS}"
CLEAR_MARKS = f"DELETE FROM temp.{MARKS}"


class DeltaSet:
    """A temporary table of changed rows with their weights; its statements are made once."""

    def __init__(self, connection: Connection, relation: Relation) -> None:
        self.relation = relation
        self._connection = connection
        self.table = f"temp.{quote(delta(relation).id)}"
        self._columns = ", ".join(f"c{i}" for i in range(relation.arity))
        self.weight = f"c{relation.arity}"
        self._clear = f"DELETE FROM {self.table}"
        self._size = f"SELECT count(*) FROM {self.table}"
        self._changed = f"SELECT EXISTS (SELECT 1 FROM {self.table} WHERE {self.weight} <> 0)"

    def create(self) -> None:
        key = self._columns or self.weight
        columns = f"{self._columns}, " if self._columns else ""
        self._connection.run(
            f"CREATE TEMP TABLE IF NOT EXISTS {self.table} "
            f"({columns}{self.weight} INTEGER NOT NULL, PRIMARY KEY ({key})) WITHOUT ROWID"
        )

    def drop(self) -> None:
        self._connection.run(f"DROP TABLE IF EXISTS {self.table}")

    def fill(self, query: Query, weight: int) -> None:
        """Take in the rows of a query, each with this weight."""
        query.run_into(f"INSERT INTO {self.table}", f", {weight}")

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

    def size(self) -> int:
        return int(self._connection.value(self._size))

    def clear(self) -> None:
        self._connection.run(self._clear)


class Capture(DeltaSet):
    """The Δ-set of a stored relation, kept by triggers on its table."""

    def capture(self) -> None:
        """From now on, keep the changes."""
        self._connection.run(CREATE_MARKS)
        self.create()
        for sql in self._triggers():
            self._connection.run(sql)

    def release(self) -> None:
        for event in ("insert", "delete", "update"):
            self._connection.run(f"DROP TRIGGER IF EXISTS temp.{self._trigger(event)}")
        if self._has_orphans():
            self.clear()
        else:
            self.drop()

    def _has_orphans(self) -> bool:
        """If another process dropped the table, SQLite hides its triggers from us, and they come
        back to life with a table of the same name: then they must find their Δ-set."""
        found = "SELECT count(*) FROM temp.sqlite_schema WHERE type = 'trigger' AND tbl_name = ?"
        return bool(self._connection.value(found, (table_name(self.relation),)))

    def _triggers(self) -> list[str]:
        table = f"main.{quote(table_name(self.relation))}"
        name = literal_text(self.relation.id)
        mark = f"INSERT INTO {MARKS} VALUES ({name}) ON CONFLICT DO NOTHING;"
        bodies = {
            "insert": [self._count("NEW", 1), mark],
            "delete": [self._count("OLD", -1), mark],
            "update": [self._count("OLD", -1), self._count("NEW", 1), mark],
        }
        return [
            f"CREATE TEMP TRIGGER IF NOT EXISTS {self._trigger(event)} AFTER {event.upper()} "
            f"ON {table} BEGIN {' '.join(body)} END"
            for event, body in bodies.items()
        ]

    def _count(self, row: str, weight: int) -> str:
        values = ", ".join(f"{row}.c{i}" for i in range(self.relation.arity))
        total = self.weight
        return (
            f"INSERT INTO {quote(delta(self.relation).id)} ({self._columns}, {total}) "
            f"VALUES ({values}, {weight}) "
            f"ON CONFLICT ({self._columns}) DO UPDATE SET {total} = {total} + ({weight});"
        )

    def _trigger(self, event: str) -> str:
        return quote(f"{event} {table_name(self.relation)}")


def marked(connection: Connection) -> list[str]:
    """The ids of the relations with a change flag: they may have changed."""
    return [str(name) for (name,) in connection.rows(READ_MARKS)]


def unmark(connection: Connection) -> None:
    connection.run(CLEAR_MARKS)
