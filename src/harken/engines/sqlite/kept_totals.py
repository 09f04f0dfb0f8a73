"""Kept totals in temporary tables: one of the totals, one of what they are computed from.

    support  G, n, s             how many members a group has, and their sum
        or   G, V, n             how often each value occurs, if the least or greatest is wanted
    members  the same            by how much that changed
    totals   G, total

Law: after `follow`, totals and support are what `build` would make of the members as they are now,
and the Δ-set holds the difference.
"""

from __future__ import annotations

from collections.abc import Iterable

from harken.calculus.totals import Totals
from harken.engines.protocol import Delta, MemberChanges, Query, Row
from harken.engines.sqlite import layout
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.deltas import table_of
from harken.engines.sqlite.kept import KeptTables, Ledger
from harken.engines.sqlite.selectable import selectable, weight_of
from harken.engines.weighing import Weighing

LARGEST = 2**63 - 1
TOTAL = {
    "count": "n",
    "some": "1",
    "notany": "1",
    "sum": "s",
    "avg": "CAST(s AS REAL) / n",
}


class TotalsTable(KeptTables):
    def __init__(self, connection: Connection, ledger: Ledger, specification: Totals) -> None:
        self.specification = totals = specification
        name = totals.relation.id
        super().__init__(connection, ledger, name, [name, f"support {name}", f"members {name}"])
        self._table, self._support, self._members = self._tables
        self._groups = [f"c{i}" for i in range(len(totals.groups))]
        self._key = ", ".join(self._groups) or "k"
        """SQLite wants a key of at least one column: a single group has the key 0."""

    # --- the tables ------------------------------------------------------------------------

    def build(self, source: Query, counted: Iterable[Row] | None = None) -> None:
        """Compute everything from the members as they are, if they have not been counted before:
        by `counted_by`, with how many there are and their sum."""
        self.drop()
        key, run = self._key, self.connection.run
        typed = layout.typed_columns(self.specification.relation)
        groups = typed.rpartition(", ")[0] or "k INTEGER"
        totals = typed if self._groups else f"k INTEGER, {typed}"
        kept = (f"{groups}, n, s", key)
        if self.specification.counts_values:
            kept = (f"{groups}, v, n", f"{key}, v")
        tables = {self._members: kept, self._support: kept, self._table: (totals, key)}
        for table, (columns, primary) in tables.items():
            run(f"CREATE TEMP TABLE {table} ({columns}, PRIMARY KEY ({primary})) WITHOUT ROWID")
        if counted is None:
            self._gather(source, "1", self._support)
        if (counted is None or self._take_counted(counted)) and self._is_exact(self._support):
            run(f"INSERT INTO {self._table} {self._all_totals()}")
            self.declare_built()

    def _all_totals(self) -> str:
        if self.specification.counts_values:
            total = f"{self.specification.aggregate}(v)"
            return f"SELECT {self._key}, {total} FROM {self._support} GROUP BY {self._key}"
        return f"SELECT {self._key}, {TOTAL[self.specification.aggregate]} FROM {self._support}"

    @property
    def counted_by(self) -> tuple[int, ...]:
        """The columns of the members by which the support has its rows."""
        values = (self.specification.value,) if self.specification.counts_values else ()
        return (*self.specification.groups, *(each for each in values if each is not None))

    def _take_counted(self, counted: Iterable[Row]) -> bool:
        """Fill the support with rows (counted_by, n, s); false if a sum does not fit."""
        outside = () if self._groups else (0,)
        width = len(self._groups or "k") + 2
        rows = [(*outside, *row)[:width] for row in counted]
        if any(row[-1] is None or abs(row[-1]) > LARGEST for row in rows):
            return False
        marks = ", ".join("?" for _ in range(width))
        self.connection.run_many(f"INSERT INTO {self._support} VALUES ({marks})", rows)
        return True

    # --- following the members -------------------------------------------------------------

    def follow(self, change: MemberChanges, delta: Delta) -> bool:
        """Bring the totals up to date with changed members, and note what changed; false if they
        left the range of exact numbers, and nothing is kept any more."""
        for query, weight in change:
            self._gather(query, weight_of(query, weight), self._members)
        run, found = self.connection.run, table_of(delta)
        total = f"c{len(self._groups)}"
        columns = ", ".join([*self._groups, total])
        touched = f"({self._key}) IN (SELECT {self._key} FROM {self._members})"
        nothing = "n = 0" if self.specification.counts_values else "n = 0 AND s = 0"
        run(f"DELETE FROM {self._members} WHERE {nothing}")
        run(f"INSERT INTO {found.table} SELECT {columns}, -1 FROM {self._table} WHERE {touched}")
        self._add_members()
        if not self._is_exact(self._members):
            delta.clear()
            self.drop()
            return False
        run(f"DELETE FROM {self._table} WHERE {touched}")
        run(f"INSERT INTO {self._table} {self._totals_of(self._members)}")
        run(
            f"INSERT INTO {found.table} SELECT {columns}, 1 FROM {self._table} WHERE {touched} "
            f"ON CONFLICT DO UPDATE SET {found.weight} = {found.weight} + 1"
        )
        run(f"DELETE FROM {found.table} WHERE {found.weight} = 0")
        run(f"DELETE FROM {self._members}")
        return True

    def _gather(self, query: Query, weight: str, table: str) -> None:
        kept = self.specification
        weighing = Weighing(
            self.counted_by,
            weight,
            kept.present,
            is_summed=not kept.counts_values,
            value=None if kept.counts_values else kept.value,
            is_keyed=not self._groups,
        )
        selectable(query).weighed(weighing, f"INSERT INTO {table}", self._added)

    @property
    def _added(self) -> str:
        sums = "" if self.specification.counts_values else ", s = s + excluded.s"
        return f"ON CONFLICT DO UPDATE SET n = n + excluded.n{sums}"

    def _add_members(self) -> None:
        run = self.connection.run
        key = self._key
        run(f"INSERT INTO {self._support} SELECT * FROM {self._members} WHERE 1 {self._added}")
        run(
            f"DELETE FROM {self._support} WHERE n = 0 "
            f"AND ({key}) IN (SELECT {key} FROM {self._members})"
        )

    def _is_exact(self, changed: str) -> bool:
        """An integer that overflows becomes a real in SQLite: then the sum is not kept. Asked of
        the groups that stand in a table."""
        if self.specification.counts_values:
            return True
        inexact = "WHERE typeof(s) <> 'integer'"
        changes = f"SELECT 1 FROM {self._members} {inexact}"
        sums = f"SELECT 1 FROM {self._support} {inexact}"
        if changed != self._support:
            sums += f" AND ({self._key}) IN (SELECT {self._key} FROM {changed})"
        return not self.connection.value(f"SELECT EXISTS ({changes}) OR EXISTS ({sums})")

    def _totals_of(self, groups: str) -> str:
        """The totals of the groups that stand in a table, from the support."""
        key = self._key
        some = f"SELECT DISTINCT {key} FROM {groups}"
        if not self.specification.counts_values:
            total = TOTAL[self.specification.aggregate]
            return f"SELECT {key}, {total} FROM {self._support} WHERE ({key}) IN ({some})"
        same = " AND ".join(f"x.{each} = d.{each}" for each in key.split(", "))
        extreme = (
            f"(SELECT {self.specification.aggregate}(x.v) FROM {self._support} AS x WHERE {same})"
        )
        return (
            f"SELECT {key}, total FROM (SELECT {key}, {extreme} AS total FROM ({some}) AS d) "
            "WHERE total IS NOT NULL"
        )
