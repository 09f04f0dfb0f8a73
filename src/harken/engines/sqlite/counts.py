"""Counted derivations in temporary tables: one of the rows, each with how many it has, and one of
what changed.

    members  X, w        by how many the derivations of a row changed
    counted  X, n        how many it has

Law: after `follow`, the table is what `build` would make of the derivations as they are now, and
the Δ-set holds the rows that came and went.
"""

from __future__ import annotations

from collections.abc import Iterable

from harken.calculus.counting import Derivations
from harken.engines.protocol import Delta, MemberChanges, Query, Row
from harken.engines.sqlite import layout
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.deltas import table_of
from harken.engines.sqlite.kept import KeptTables, Ledger
from harken.engines.sqlite.selectable import selectable, weight_of
from harken.engines.sqlite.sql_expressions import quote


class CountsTable(KeptTables):
    def __init__(self, connection: Connection, ledger: Ledger, specification: Derivations) -> None:
        self.specification = specification
        self._relation = specification.relation
        name = self._relation.id
        self._changed = f"members {name}"
        super().__init__(connection, ledger, name, [name, self._changed])
        self._table, self._members = self._tables
        self._columns = ", ".join(f"c{i}" for i in range(self._relation.arity)) or "k"
        """SQLite wants a key of at least one column: what only says yes has the key 0."""
        self._is_keyed = not layout.may_be_null(self._relation)

    # --- the tables ------------------------------------------------------------------------

    @property
    def counted_by(self) -> tuple[int, ...]:
        return tuple(range(self._relation.arity))

    def build(self, source: Query, counted: Iterable[Row] | None = None) -> None:
        """Count all derivations as they are, if they have not been counted before: by `counted_by`,
        with how many there are."""
        self.drop()
        typed = layout.typed_columns(self._relation) or "k INTEGER"
        identity = layout.identity(self._relation) or "k"
        for name, number in ((self.name, "n"), (self._changed, "w")):
            table = f"CREATE TEMP TABLE {quote(name)} ({typed}, {number} INTEGER NOT NULL"
            if self._is_keyed:
                self.connection.run(f"{table}, PRIMARY KEY ({identity})) WITHOUT ROWID")
            else:
                self.connection.run(f"{table})")
                index = f"temp.{quote(f'rows {name}')} ON {quote(name)}"
                self.connection.run(f"CREATE UNIQUE INDEX {index} ({identity})")
        if counted is None:
            self._gather(source, "1", self._table, "n")
        else:
            outside = () if self._relation.arity else (0,)
            marks = ", ".join("?" for _ in range(max(1, self._relation.arity) + 1))
            rows = [(*outside, *row) for row in counted]
            self.connection.run_many(f"INSERT INTO {self._table} VALUES ({marks})", rows)
        self.declare_built()

    def total(self) -> int:
        """How many derivations all rows have."""
        return int(self.connection.value(f"SELECT coalesce(sum(n), 0) FROM {self._table}"))

    # --- following the derivations ---------------------------------------------------------

    def _gather(self, query: Query, weight: str, table: str, number: str) -> None:
        shown = self._columns if self._relation.arity else "0"
        total = f"sum({weight})"
        selectable(query).run_from(
            f"SELECT {shown}, {total} FROM",
            f"WHERE 1 GROUP BY {self._columns if self._relation.arity else 1} HAVING {total} <> 0",
            f"INSERT INTO {table}",
            f"ON CONFLICT DO UPDATE SET {number} = {number} + excluded.{number}",
        )

    def follow(self, change: MemberChanges, delta: Delta) -> bool:
        """Bring the numbers up to date with changed derivations, and note who came and went."""
        for query, weight in change:
            self._gather(query, weight_of(query, weight), self._members, "w")
        run, changed = self.connection.run, table_of(delta).table
        run(
            f"INSERT INTO {self._table} SELECT * FROM {self._members} WHERE w <> 0 "
            "ON CONFLICT DO UPDATE SET n = n + excluded.n"
        )
        both = f"FROM {self._members} AS m CROSS JOIN {self._table} AS c WHERE {self._same()}"
        row = ", ".join(f"m.c{i}" for i in range(self._relation.arity))
        beside = f"{row}, " if row else ""
        run(
            f"INSERT INTO {changed} SELECT {beside}CASE c.n WHEN 0 THEN -1 ELSE 1 END {both} "
            "AND m.w <> 0 AND (c.n = 0 OR c.n = m.w)"
        )
        which = f"({self._columns})" if self._is_keyed else "rowid"
        found = ", ".join(f"c.{each}" for each in self._columns.split(", "))
        found = found if self._is_keyed else "c.rowid"
        run(f"DELETE FROM {self._table} WHERE {which} IN (SELECT {found} {both} AND c.n = 0)")
        run(f"DELETE FROM {self._members}")
        return True

    def _same(self) -> str:
        """Are a row of the one table and a row of the other the same?"""
        tests = (
            f"coalesce(m.c{i}, x'') = coalesce(c.c{i}, x'')"
            if column.type.nullable
            else f"m.c{i} = c.c{i}"
            for i, column in enumerate(self._relation.columns)
        )
        return " AND ".join(tests) or "1"
