"""A stored copy of a relation as it was, in a temporary table.

Law: after `follow`, the copy is what `build` would make of the relation as it is now.
"""

from __future__ import annotations

from harken.calculus.states import copy_of
from harken.engines.protocol import CopiedRows, Delta, Query
from harken.engines.sqlite import layout
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.deltas import table_of
from harken.engines.sqlite.kept import KeptTables, Ledger
from harken.engines.sqlite.selectable import selectable


class Copy(KeptTables):
    def __init__(self, connection: Connection, ledger: Ledger, kept: CopiedRows) -> None:
        relation = kept.relation
        super().__init__(connection, ledger, relation.id, [copy_of(relation).id])
        self._relation = relation
        self._table = self._tables[0]
        self._columns = ", ".join(f"c{i}" for i in range(relation.arity))

    def build(self, source: Query) -> None:
        self.drop()
        columns = layout.typed_columns(self._relation)
        keyed = columns and not layout.may_be_null(self._relation)
        key = f", PRIMARY KEY ({self._columns})) WITHOUT ROWID" if keyed else ")"
        self.connection.run(f"CREATE TEMP TABLE {self._table} ({columns or 'c0'}{key}")
        selectable(source).run_into(f"INSERT INTO {self._table}", "" if self._columns else ", 1")
        self.declare_built()

    def follow(self, change: None, delta: Delta) -> bool:
        """Bring the copy up to date with what the relation has gained and lost."""
        found = table_of(delta)
        matches = " AND ".join(f"c{i} IS {self._table}.c{i}" for i in range(self._relation.arity))
        self.connection.run(
            f"DELETE FROM {self._table} WHERE EXISTS "
            f"(SELECT 1 FROM {found.table} AS d WHERE {matches or 1} AND d.{found.weight} < 0)"
        )
        self.connection.run(
            f"INSERT INTO {self._table} SELECT {self._columns or 1} FROM {found.table} "
            f"WHERE {found.weight} > 0"
        )
        return True
