"""The rounds of a recursion that counts derivations, in temporary tables (`calculus.rounds`).

    stored   round, X, n     how often a row is there in a round
    changed  round, X, w     by how many that changes
    moving   round, X, w     the same of the round that is being gone through

Law: after `follow`, what is stored is what `build` would make, and the Δ-set holds what that
changed, whatever the rounds.
"""

from __future__ import annotations

from dataclasses import replace

from harken.calculus.rounds import Rounds
from harken.engines.protocol import Delta, Query, RoundsChange, RoundsSource
from harken.engines.sqlite import layout, recursion
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.deltas import DeltaSet, table_of
from harken.engines.sqlite.kept import KeptTables, Ledger
from harken.engines.sqlite.selectable import selectable
from harken.engines.sqlite.sql_expressions import quote
from harken.ir.strata import no_fixpoint


class RoundsTable(KeptTables):
    def __init__(self, connection: Connection, ledger: Ledger, rounds: Rounds) -> None:
        self.rounds = rounds
        width = rounds.relation.arity
        row = replace(rounds.stored, columns=rounds.stored.columns[:-1])
        self._row = row
        name = rounds.stored.id
        self._names = (name, f"changed {name}")
        super().__init__(connection, ledger, name, self._names)
        self._stored, self._changed = self._tables
        self.moving = DeltaSet(connection, row)
        self._columns = ", ".join(f"c{i}" for i in range(width + 1))
        self._shown = ", ".join(f"c{i}" for i in range(1, width + 1))
        self._weight = f"c{width + 1}"

    @property
    def tables(self) -> dict[str, str]:
        """The tables by the ids of the relations that plans read."""
        return {self.rounds.stored.id: self._names[0]}

    # --- the tables ------------------------------------------------------------------------

    def create(self) -> None:
        """Make them, empty."""
        self.drop()
        typed = layout.typed_columns(self._row)
        identity = layout.identity(self._row)
        for name in self._names:
            self.connection.run(
                f"CREATE TEMP TABLE {quote(name)} ({typed}, {self._weight} INTEGER NOT NULL)"
            )
            self.connection.run(
                f"CREATE UNIQUE INDEX temp.{quote(f'rows {name}')} ON {quote(name)} ({identity})"
            )
        self.moving.create()

    def build(self, source: RoundsSource) -> None:
        """Go through all rounds as they are now."""
        self._begin(source.base, "1")
        self._go(source.step)
        self.connection.run(f"INSERT INTO {self._stored} SELECT * FROM {self._changed}")
        self.connection.run(f"DELETE FROM {self._changed}")
        self.declare_built()

    def drop(self) -> None:
        super().drop()
        self.moving.drop()

    # --- following a change ----------------------------------------------------------------

    def follow(self, change: RoundsChange, delta: Delta) -> bool:
        """Bring the rounds up to date. The change of the step is that of the rounds that are
        stored, so it is looked at first."""
        run = self.connection.run
        try:
            self._take(change.kept_step)
            if change.base is not None:
                self._begin(change.base, f"c{self.rounds.relation.arity}")
            self._go(change.step)
            run(
                f"INSERT INTO {table_of(delta).table} SELECT {self._shown}, sum({self._weight}) "
                f"FROM {self._changed} WHERE 1 GROUP BY {self._shown} "
                f"HAVING sum({self._weight}) <> 0"
            )
            run(
                f"INSERT INTO {self._stored} SELECT * FROM {self._changed} "
                f"WHERE {self._weight} <> 0 ON CONFLICT DO UPDATE "
                f"SET {self._weight} = {self._weight} + excluded.{self._weight}"
            )
            same = " AND ".join(self._same(i) for i in range(self._row.arity))
            gone = f"FROM {self._changed} AS m CROSS JOIN {self._stored} AS s WHERE {same}"
            run(
                f"DELETE FROM {self._stored} WHERE rowid IN "
                f"(SELECT s.rowid {gone} AND s.{self._weight} = 0)"
            )
        finally:
            run(f"DELETE FROM {self._changed}")
            self.moving.clear()
        self.validity.declare()
        return True

    def _same(self, i: int) -> str:
        if self._row.columns[i].type.nullable:
            return f"coalesce(m.c{i}, x'') = coalesce(s.c{i}, x'')"
        return f"m.c{i} = s.c{i}"

    def _begin(self, query: Query, weight: str) -> None:
        """What the first round gains and loses: the rows of the query have no number yet."""
        columns = ", ".join(f"c{i}" for i in range(self.rounds.relation.arity))
        self._put(query, f"0, {columns}", f"sum({weight})", columns)

    def _take(self, query: Query | None) -> None:
        """What the rounds gain and lose because a step is another one now."""
        if query is not None:
            total = f"sum({self._weight} * c{self.rounds.relation.arity + 2})"
            self._put(query, f"c0 + 1, {self._shown}", total, self._columns)

    def _put(self, query: Query, row: str, total: str, groups: str) -> None:
        selectable(query).run_from(
            f"SELECT {row}, {total} FROM",
            f"WHERE 1 GROUP BY {groups} HAVING {total} <> 0",
            f"INSERT INTO {self._changed}",
            f"ON CONFLICT DO UPDATE SET {self._weight} = {self._weight} + excluded.{self._weight}",
        )

    def _go(self, step: Query) -> None:
        """Go through the rounds, each when all that changes in it is known."""
        run, value = self.connection.run, self.connection.value
        number, rows, name = -1, 0, self.rounds.relation.written_name
        changes = f"FROM {self._changed} WHERE {self._weight} <> 0"
        while (found := value(f"SELECT min(c0) {changes} AND c0 > {number}")) is not None:
            number = found
            if number > recursion.ROUND_LIMIT:
                raise no_fixpoint((name,), f"{recursion.ROUND_LIMIT} rounds", in_rounds=True)
            run(f"INSERT INTO {self.moving.table} SELECT * {changes} AND c0 = {number}")
            rows += value(f"SELECT sum(abs({self._weight})) FROM {self.moving.table}")
            if rows > recursion.ROW_LIMIT:
                raise no_fixpoint((name,), f"{recursion.ROW_LIMIT} rows", in_rounds=True)
            self._put(step, f"c0 + 1, {self._shown}", f"sum({self._weight})", self._columns)
            self.moving.clear()
