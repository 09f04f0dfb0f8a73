"""Δ-sets: temporary tables of changed rows with their weights.

Law: no two rows of the table are the same, and a rollback takes back what came since.
"""

from __future__ import annotations

from typing import cast

from harken.calculus.states import delta
from harken.engines import protocol
from harken.engines.protocol import Query, Row
from harken.engines.sqlite import layout
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.selectable import selectable
from harken.engines.sqlite.sql_expressions import quote
from harken.engines.sqlite.table_names import stored_name
from harken.ir.relations import Relation

ANNOUNCED = 16
"""The rows that SQLite expects in a Δ-set: fewer than any table has, and enough that it makes an
index on what it joins them with, if there is none."""


class DeltaSet:
    """A temporary table of changed rows with their weights; its statements are made once."""

    def __init__(
        self,
        connection: Connection,
        relation: Relation,
        announced: bool = True,
        change: Relation | None = None,
    ) -> None:
        """Of a Δ-set that is `announced`, SQLite knows that it is small: whatever it is joined
        with, it comes first. Plans read it as `change`, by default the Δ-set of the relation."""
        self.relation = relation
        self.announced = announced
        self.connection = connection
        self.name = (change or delta(relation)).id
        self.table = f"temp.{quote(self.name)}"
        self.columns = ", ".join(f"c{i}" for i in range(relation.arity))
        self.weight = f"c{relation.arity}"
        self.key = layout.identity(relation)
        self._clear = f"DELETE FROM {self.table}"
        self._size = f"SELECT count(*) FROM {self.table} WHERE {self.weight} <> 0"
        self._lost = f"SELECT EXISTS (SELECT 1 FROM {self.table} WHERE {self.weight} < 0)"

    def create(self) -> None:
        """Make the table if it is not there."""
        if self.connection.has_table(stored_name(self.name), "temp"):
            return
        key = self.columns or self.weight
        columns = f"{layout.typed_columns(self.relation)}, " if self.columns else ""
        create = f"CREATE TEMP TABLE {self.table} ({columns}{self.weight} INTEGER NOT NULL"
        if layout.may_be_null(self.relation):
            self.connection.run(f"{create})")
            self._index()
        else:
            self.connection.run(f"{create}, PRIMARY KEY ({key})) WITHOUT ROWID")
        if self.announced:
            self._announce()

    def _index(self) -> None:
        """A table without its index must not be left, by Ctrl-C: it would be taken for complete."""
        name = self.name
        index = f"CREATE UNIQUE INDEX temp.{quote(f'rows {name}')} ON {quote(name)} ({self.key})"
        try:
            self.connection.run(index)
        except BaseException:
            self.drop()
            raise

    def _announce(self) -> None:
        row = ", ".join(["value"] * (self.relation.arity + 1))
        values = f"SELECT 1 AS value UNION ALL SELECT value + 1 FROM v WHERE value < {ANNOUNCED}"
        self.connection.run(f"WITH v AS ({values}) INSERT INTO {self.table} SELECT {row} FROM v")
        self.connection.run(f"ANALYZE {self.table}")
        self.clear()

    def drop(self) -> None:
        self.connection.run(f"DROP TABLE IF EXISTS {self.table}")

    def fill(self, query: Query, weight: int) -> None:
        """Take in the rows of a query, each with this weight."""
        selectable(query).run_into(f"INSERT INTO {self.table}", f", {weight}")

    def fill_weighted(self, query: Query) -> None:
        """Take in the weighted rows of a query, of which the last column is the weight."""
        total = f"sum({self.weight})"
        shown = f"{self.columns}, {total}" if self.columns else total
        groups = f"GROUP BY {self.columns} " if self.columns else ""
        selectable(query).run_from(
            f"SELECT {shown} FROM", f"{groups}HAVING {total} <> 0", f"INSERT INTO {self.table}"
        )

    def rows(self) -> tuple[list[Row], list[Row]]:
        """What was added and what was removed."""
        gained, lost = (
            self.connection.rows(
                f"SELECT {self.columns or 1} FROM {self.table} WHERE {self.weight} {sign} 0"
            )
            for sign in "><"
        )
        if not self.columns:
            return [() for _ in gained], [() for _ in lost]
        return gained, lost

    def has_lost(self) -> bool:
        return bool(self.connection.value(self._lost))

    def copies(self) -> tuple[list[Row], list[Row]]:
        """What was added and what was removed, each row as often as that."""
        plus: list[Row] = []
        minus: list[Row] = []
        for *row, weight in self.connection.rows(f"SELECT * FROM {self.table}"):
            (plus if weight > 0 else minus).extend([tuple(row)] * abs(weight))
        return plus, minus

    def size(self) -> int:
        return int(self.connection.value(self._size))

    def clear(self) -> None:
        self.connection.run(self._clear)


def table_of(delta_set: protocol.Delta) -> DeltaSet:
    """A handle that came back over the seam: all that `SQLiteEngine` hands out are tables."""
    return cast(DeltaSet, delta_set)
