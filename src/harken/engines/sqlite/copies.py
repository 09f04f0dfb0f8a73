"""Stored copies in temporary tables: of a relation as it was, and of the totals of its groups.

A copy belongs to the session and follows its transactions; what says that it is valid is a row of a
temporary table, so a rollback takes that back as well. When another process has committed, the copy
missed it, and is not valid any more.
"""

from __future__ import annotations

from harken.calculus.states import copy_of
from harken.engines.protocol import Connection, Query
from harken.engines.sqlite import layout
from harken.engines.sqlite.events import DeltaSet
from harken.engines.sqlite.expressions import quote
from harken.engines.sqlite.selectable import selectable
from harken.ir.relations import Relation

VALID = "harken_copies"
CREATE_VALID = (
    f"CREATE TEMP TABLE IF NOT EXISTS {VALID} "
    "(name TEXT PRIMARY KEY, data_version INTEGER NOT NULL) WITHOUT ROWID"
)


class Validity:
    """Whether what is kept under a name still fits the tables."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name

    def holds(self) -> bool:
        self._connection.run(CREATE_VALID)
        known = self._connection.value(
            f"SELECT data_version FROM temp.{VALID} WHERE name = ?", (self._name,)
        )
        return known is not None and known == self._connection.data_version()

    def declare(self) -> None:
        version = self._connection.data_version()
        self._connection.run(
            f"INSERT OR REPLACE INTO temp.{VALID} VALUES (?, ?)", (self._name, version)
        )

    def revoke(self) -> None:
        self._connection.run(CREATE_VALID)
        self._connection.run(f"DELETE FROM temp.{VALID} WHERE name = ?", (self._name,))


class Copy:
    """A copy of a derived relation as it was after the last propagation."""

    def __init__(self, connection: Connection, relation: Relation) -> None:
        self._connection = connection
        self._relation = relation
        self._table = f"temp.{quote(copy_of(relation).id)}"
        self._columns = ", ".join(f"c{i}" for i in range(relation.arity))
        self.validity = Validity(connection, relation.id)

    def take(self, query: Query) -> None:
        """Let the rows of the query be the copy."""
        self.drop()
        columns = layout.typed_columns(self._relation)
        keyed = columns and not layout.may_be_null(self._relation)
        key = f", PRIMARY KEY ({self._columns})) WITHOUT ROWID" if keyed else ")"
        self._connection.run(f"CREATE TEMP TABLE {self._table} ({columns or 'c0'}{key}")
        selectable(query).run_into(f"INSERT INTO {self._table}", "" if self._columns else ", 1")
        self.validity.declare()

    def follow(self, delta: DeltaSet) -> None:
        """Bring the copy up to date with what the relation has gained and lost."""
        matches = " AND ".join(f"c{i} IS {self._table}.c{i}" for i in range(self._relation.arity))
        self._connection.run(
            f"DELETE FROM {self._table} WHERE EXISTS "
            f"(SELECT 1 FROM {delta.table} AS d WHERE {matches or 1} AND d.{delta.weight} < 0)"
        )
        self._connection.run(
            f"INSERT INTO {self._table} SELECT {self._columns or 1} FROM {delta.table} "
            f"WHERE {delta.weight} > 0"
        )

    def drop(self) -> None:
        self.validity.revoke()
        self._connection.run(f"DROP TABLE IF EXISTS {self._table}")

    def size(self) -> int:
        return int(self._connection.value(f"SELECT count(*) FROM {self._table}"))
