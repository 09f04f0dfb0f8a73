"""Kept first rows in temporary tables: the rows shown, and those that may take their place.

    members  X, w        the change of the rows
    ahead    X, n        the rows up to some last one, and how often each is there, in order
    last     X           that last one; without it, all rows are ahead
    shown    Y           the first of them, each as often as it is among them

Rows come and go before the last one as well as after it. When too few are left before it, nothing
is kept any more, and is to be built again.

Law: after `follow`, what is shown is what `build` would show of the rows as they are now, and the
Δ-set holds the difference.
"""

from __future__ import annotations

from harken.calculus.first_rows import FirstRows
from harken.engines.protocol import Delta, MemberChanges, Query
from harken.engines.sqlite import layout
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.deltas import table_of
from harken.engines.sqlite.foreign_functions import foreign_module
from harken.engines.sqlite.kept import KeptTables, Ledger
from harken.engines.sqlite.ordered import order_by
from harken.engines.sqlite.selectable import selectable, weight_of
from harken.engines.sqlite.sql_expressions import quote
from harken.ir.relations import COPIES

AHEAD = 1_000
"""So many rows are kept, at least,"""
TIMES = 4
"""and this many times those shown; at twice as many, the last ones are dropped."""


class FirstRowsTable(KeptTables):
    def __init__(self, connection: Connection, ledger: Ledger, specification: FirstRows) -> None:
        assert specification.first.count is not None
        rows, name = specification.members.goal, specification.relation.id
        parts = [f"{part} {name}" for part in ("ahead", "members", "last", "before")]
        super().__init__(connection, ledger, name, [name, *parts])
        self._shown, self._ahead, self._members, self._last, self._before = self._tables
        self.specification = specification
        self._first = specification.first
        self._count = specification.first.count
        self._needed = self._count + specification.first.offset
        self.wanted = max(AHEAD, TIMES * self._needed)
        self._index = f"temp.{quote(f'order {name}')} ON {quote(f'ahead {name}')}"
        self._typed, self._typed_shown = map(layout.typed_columns, (rows, specification.relation))
        self._columns = _columns(rows.arity)
        self._columns_shown = _columns(specification.relation.arity)
        self._matches = " AND ".join(f"a.c{i} IS m.c{i}" for i in range(rows.arity))
        self._order = order_by(self._first.order)
        # An index has no say about NULLs: they come first upwards, and last downwards.
        self._keys = ", ".join(f"c{i}{' DESC' * down}" for i, down, _ in self._first.order)

    # --- the tables ------------------------------------------------------------------------

    def build(self, source: Query) -> None:
        """Compute everything from the first of the rows as they are, as many as are `wanted`."""
        self.drop()
        run = self.connection.run
        run(f"CREATE TEMP TABLE {self._members} ({self._typed}, w INTEGER)")
        run(f"CREATE TEMP TABLE {self._ahead} ({self._typed}, n INTEGER)")
        run(f"CREATE TEMP TABLE {self._last} ({self._typed})")
        for table in (self._shown, self._before):
            run(f"CREATE TEMP TABLE {table} ({self._typed_shown})")
        selectable(source).run_from(
            f"SELECT {self._columns}, count(*) FROM",
            f"WHERE 1 GROUP BY {self._columns}",
            f"INSERT INTO {self._ahead}",
        )
        run(f"CREATE INDEX {self._index} ({self._keys})")
        if self._copies() >= self.wanted:  # of the last one there may be more
            run(f"DELETE FROM {self._ahead} WHERE rowid = ({self._last_ahead('rowid')})")
            self._note_last()
            if self._copies() < self._needed:
                return  # one row is there so often that it cannot be told how often
        self._show()
        self.declare_built()

    def size(self) -> int:
        return int(self.connection.value(f"SELECT count(*) FROM {self._ahead}"))

    def _copies(self) -> int:
        return int(self.connection.value(f"SELECT total(n) FROM {self._ahead}"))

    def _last_ahead(self, columns: str) -> str:
        last = f"(SELECT count(*) FROM {self._ahead}) - 1"
        return f"SELECT {columns} FROM {self._ahead} ORDER BY {self._order} LIMIT 1 OFFSET {last}"

    def _note_last(self) -> None:
        """What comes after all that are ahead does not matter from now on."""
        self.connection.run(f"DELETE FROM {self._last}")
        self.connection.run(f"INSERT INTO {self._last} {self._last_ahead(self._columns)}")

    def _show(self) -> None:
        """Each of the rows is there at least once, so as many as are needed are enough."""
        shown = ", ".join(f"a.{each}" for each in self._columns_shown.split(", "))
        self.connection.run(
            f"INSERT INTO {self._shown} SELECT {shown} FROM "
            f"(SELECT *, min(n, {self._needed}) AS copies FROM {self._ahead} "
            f"ORDER BY {self._order} LIMIT {self._needed}) AS a, "
            f"{quote(foreign_module(COPIES))}(a.copies) "
            f"ORDER BY {order_by(self._first.order, 'a.')} "
            f"LIMIT {self._count} OFFSET {self._first.offset}"
        )

    # --- following the rows ----------------------------------------------------------------

    def follow(self, change: MemberChanges, delta: Delta) -> bool:
        """Bring the rows up to date with changed ones, and note what changed among those shown;
        false if too few are left, and nothing is kept any more."""
        for query, weight in change:
            self._gather(query, weight_of(query, weight))
        self._add_members()
        if not self._are_enough():
            self.drop()
            return False
        run = self.connection.run
        run(f"INSERT INTO {self._before} SELECT * FROM {self._shown}")
        run(f"DELETE FROM {self._shown}")
        self._show()
        run(
            f"INSERT INTO {table_of(delta).table} SELECT {self._columns_shown}, sum(w) FROM "
            f"(SELECT *, 1 AS w FROM {self._shown} UNION ALL SELECT *, -1 FROM {self._before}) "
            f"WHERE 1 GROUP BY {self._columns_shown} HAVING sum(w) <> 0"
        )
        run(f"DELETE FROM {self._before}")
        if self.size() > TIMES * self.wanted:
            self._let_go()
        return True

    def _gather(self, query: Query, weight: str) -> None:
        selectable(query).run_from(
            f"SELECT {self._columns}, sum({weight}) FROM",
            f"WHERE 1 GROUP BY {self._columns} HAVING sum({weight}) <> 0",
            f"INSERT INTO {self._members}",
        )

    def _add_members(self) -> None:
        run = self.connection.run
        later = f"SELECT 1 FROM {self._last} AS l WHERE ({self._is_ahead('m', 'l')}) IS NOT TRUE"
        run(f"DELETE FROM {self._members} AS m WHERE EXISTS ({later})")
        found = f"SELECT 1 FROM {self._ahead} AS a WHERE {self._matches}"
        run(
            f"INSERT INTO {self._ahead} SELECT {self._columns}, 0 FROM {self._members} AS m "
            f"WHERE NOT EXISTS ({found})"
        )
        run(
            f"UPDATE {self._ahead} AS a SET n = n + m.w FROM {self._members} AS m "
            f"WHERE {self._matches}"
        )
        run(
            f"DELETE FROM {self._ahead} WHERE rowid IN (SELECT a.rowid "
            f"FROM {self._members} AS m CROSS JOIN {self._ahead} AS a "
            f"WHERE {self._matches} AND a.n = 0)"
        )
        run(f"DELETE FROM {self._members}")

    def _is_ahead(self, one: str, other: str) -> str:
        """Does one row come before the other in the order, or is it the same?"""
        ways: list[str] = []
        same: list[str] = []
        for i, down, nulls_first in self._first.order:
            x, y = f"{one}.c{i}", f"{other}.c{i}"
            missing, there = (x, y) if nulls_first else (y, x)
            before = f"({x} {'>' if down else '<'} {y} OR ({missing} IS NULL AND {there} NOTNULL))"
            ways.append(" AND ".join([*same, before]))
            same.append(f"{x} IS {y}")
        return " OR ".join([*ways, " AND ".join(same)])

    def _are_enough(self) -> bool:
        """Are as many rows left as are needed, or are they all there are?"""
        is_all = self.connection.value(f"SELECT NOT EXISTS (SELECT 1 FROM {self._last})")
        return self._copies() >= self._needed or bool(is_all)

    def _let_go(self) -> None:
        """Keep as many rows as at first."""
        kept = f"SELECT rowid FROM {self._ahead} ORDER BY {self._order} LIMIT {self.wanted}"
        self.connection.run(f"DELETE FROM {self._ahead} WHERE rowid NOT IN ({kept})")
        self._note_last()


def _columns(width: int) -> str:
    return ", ".join(f"c{i}" for i in range(width))
