"""Kept totals: those that are added up have one table, those of extremes have two. They are
temporary, or in the file for materialised views.

    added       kept     G, totals, and n, s_V where no total is the count or the sum
    extremes    support  G, V, n      how often each value occurs
                kept     G, total

`members` is a temporary table of what a change comes to: by how much n and each s_V changed, or how
often each value occurs more or less often than before.

Law: after `follow`, totals and support are what `build` would make of the members as they are now,
and the Δ-set holds the difference.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterable
from functools import partial

from harken.calculus.totals import Totals
from harken.engines.protocol import Delta, MemberChanges, Query, Row
from harken.engines.sqlite import layout
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.deltas import table_of
from harken.engines.sqlite.kept import KeptTables, Ledger
from harken.engines.sqlite.selectable import selectable, weight_of
from harken.engines.sqlite.sql_expressions import quote
from harken.engines.sqlite.weighing_statement import around
from harken.engines.weighing import Weighing
from harken.ir.clauses import stored_relations
from harken.ir.printer import print_program

LARGEST = 2**63 - 1
LAYOUT = 1
"""Raised when totals are laid out in another way: those that are in files are built anew."""


def totals_table(
    connection: Connection, ledger: Ledger, totals: Totals, in_file: bool
) -> TotalsTable:
    table = ExtremeTotals if totals.counts_values else AddedTotals
    return table(connection, ledger, totals, in_file)


def definition_of(totals: Totals) -> str:
    """What totals in a file are made from; sessions that agree on it keep the same."""
    stored = stored_relations(totals.members).values()
    types = [[str(column.type) for column in each.columns] for each in stored]
    parts = (LAYOUT, print_program(totals.members), types, totals.groups, totals.measures)
    return hashlib.sha256(repr((*parts, totals.present)).encode()).hexdigest()[:16]


class TotalsTable(KeptTables):
    """What both kinds have in common."""

    supporting: tuple[str, ...] = ()
    """Tables beside that of the totals."""

    def __init__(
        self, connection: Connection, ledger: Ledger, specification: Totals, in_file: bool
    ) -> None:
        self.specification = totals = specification
        name = totals.relation.id
        tables = [name, *(f"{each} {name}" for each in self.supporting)]
        define = partial(definition_of, totals) if in_file else None
        super().__init__(connection, ledger, name, tables, define)
        self._create_table = "CREATE TABLE main." if in_file else "CREATE TEMP TABLE "
        # A trigger must not name the schema of a table that it changes.
        self._table, self._members = quote(name), quote(f"members {name}")
        self._groups = [f"c{i}" for i in range(len(totals.groups))]
        self._key = ", ".join(self._groups) or "k"
        """SQLite wants a key of at least one column: a single group has the key 0."""
        typed = layout.typed_columns(totals.relation).split(", ")
        self._typed_key = ", ".join(typed[: len(self._groups)]) or "k INTEGER"
        self._columns = [f"c{i}" for i in range(totals.relation.arity)]
        self._touched = f"({self._key}) IN (SELECT {self._key} FROM {self._members})"

    # --- the tables ------------------------------------------------------------------------

    def build(self, source: Query, counted: Iterable[Row] | None = None) -> None:
        """Compute everything from the members as they are, if they have not been counted before:
        by `counted_by`, with how many there are and the sums of the values."""
        self.drop()
        self.prepare()
        self._create()
        if counted is None:
            self._gather(source, "1", self._gathered)
        if (counted is None or self._take_counted(counted)) and self._complete():
            self.declare_built()

    @abstractmethod
    def _create(self) -> None: ...

    @property
    @abstractmethod
    def _gathered(self) -> str:
        """The table that gathers all members, with the columns that it has of them."""

    @abstractmethod
    def _complete(self) -> bool:
        """Compute the totals of the gathered members; false if they cannot be kept."""

    @abstractmethod
    def prepare(self) -> None:
        """Make room for changes of the members, if this session has none."""

    def _create_members(self, columns: str, key: str) -> None:
        self.connection.run(
            f"CREATE TEMP TABLE IF NOT EXISTS {self._members} "
            f"({columns}, PRIMARY KEY ({key})) WITHOUT ROWID"
        )

    def drop(self) -> None:
        super().drop()
        self.connection.run(f"DROP TABLE IF EXISTS temp.{self._members}")

    @property
    @abstractmethod
    def counted_by(self) -> tuple[int, ...]:
        """The columns of the members by which they are gathered."""

    @property
    def summed(self) -> tuple[int, ...]:
        """The columns of the members whose sums are kept."""
        return ()

    def _take_counted(self, counted: Iterable[Row]) -> bool:
        """Fill the table with rows (counted_by, n, sums); false if a sum does not fit."""
        outside = () if self._groups else (0,)
        rows = [(*outside, *row) for row in counted]
        width = len(outside) + len(self.counted_by)
        if any(each is None or abs(each) > LARGEST for row in rows for each in row[width:]):
            return False
        marks = ", ".join("?" for _ in range(width + 1 + len(self.summed)))
        self.connection.run_many(f"INSERT INTO {self._gathered} VALUES ({marks})", rows)
        return True

    # --- following the members -------------------------------------------------------------

    def follow(self, change: MemberChanges, delta: Delta) -> bool:
        """Bring the totals up to date with changed members, and note what changed; false if they
        left the range of exact numbers, and nothing is kept any more."""
        self.prepare()
        for query, weight in change:
            self._gather(query, weight_of(query, weight), self._members)
        first, inexact, then = self.following(table_of(delta).table)
        for sql in first:
            self.connection.run(sql)
        if inexact and self.connection.value(f"SELECT {inexact}"):
            delta.clear()
            self.drop()
            return False
        for sql in then:
            self.connection.run(sql)
        return True

    @abstractmethod
    def following(self, delta: str) -> tuple[list[str], str, list[str]]:
        """The statements that take in the gathered members and note in the table `delta` what that
        changed, in two parts. After the first, the sums must not be inexact."""

    # --- one group at a time ---------------------------------------------------------------

    def gathering(self, query: Query, weight: int | None, select: str, table: str) -> str:
        """The statement that inserts changed members into a table with the columns `gathered`, of
        a query that is one SELECT."""
        before, after = around(self._weighing(weight_of(query, weight)))
        return f"INSERT INTO {table} {before} ({select}) {after}"

    @property
    @abstractmethod
    def gathered(self) -> list[str]:
        """The columns of gathered members."""

    @abstractmethod
    def taking_in(self, delta: str, abort: str) -> list[str]:
        """The statements of a trigger that take in gathered members, NEW, and note in the table
        `delta` what that changed. `abort` is the message if they cannot be kept exactly."""

    def settling(self, delta: str) -> str:
        """What remains to be done when all are taken in."""
        return f"DELETE FROM {delta} WHERE c{len(self._columns)} = 0"

    @property
    def _is_new(self) -> str:
        return " AND ".join(f"{each} = NEW.{each}" for each in self._key.split(", "))

    def _noting_one(self, delta: str, weight: int) -> str:
        columns = ", ".join(self._columns)
        total = f"c{len(self._columns)}"
        return (
            f"INSERT INTO {delta} SELECT {columns}, {weight} FROM {self._table} "
            f"WHERE {self._is_new} ON CONFLICT DO UPDATE SET {total} = {total} + ({weight})"
        )

    def _gather(self, query: Query, weight: str, table: str) -> None:
        conflict = self._added(table == self._members)
        selectable(query).weighed(self._weighing(weight), f"INSERT INTO {table}", conflict)

    @abstractmethod
    def _added(self, to_members: bool) -> str:
        """What becomes of a row whose key is there."""

    def _weighing(self, weight: str) -> Weighing:
        return Weighing(
            self.counted_by,
            weight,
            self.specification.present,
            values=self.summed,
            is_keyed=not self._groups,
        )

    def _noting(self, delta: str, weight: int) -> str:
        """Put the totals of touched groups into a Δ-set. Those that stay the same cancel out."""
        columns = ", ".join(self._columns)
        total = f"c{len(self._columns)}"
        insert = f"INSERT INTO {delta} SELECT {columns}, {weight} FROM {self._table}"
        conflict = f" ON CONFLICT DO UPDATE SET {total} = {total} + 1" if weight > 0 else ""
        return f"{insert} WHERE {self._touched}{conflict}"

    def _settling(self, delta: str) -> list[str]:
        return [
            self._noting(delta, 1),
            f"DELETE FROM {delta} WHERE c{len(self._columns)} = 0",
            f"DELETE FROM {self._members}",
        ]


class AddedTotals(TotalsTable):
    """Counts, sums and averages: the table of the totals is what they are computed from."""

    def __init__(
        self, connection: Connection, ledger: Ledger, specification: Totals, in_file: bool
    ) -> None:
        super().__init__(connection, ledger, specification, in_file)
        self._count, self._sums = "n", {value: f"s{value}" for value in self.summed}
        places = self._columns[len(self._groups) :]
        for place, measure in zip(places, specification.measures, strict=True):
            if measure.aggregate == "count":
                self._count = place
            elif measure.aggregate == "sum" and measure.value is not None:
                self._sums[measure.value] = place
        """The columns that hold how many members a group has, and the sum of each value."""
        self._given = [self._count, *self._sums.values()]

    @property
    def counted_by(self) -> tuple[int, ...]:
        return self.specification.groups

    @property
    def summed(self) -> tuple[int, ...]:
        return self.specification.values

    def prepare(self) -> None:
        sums = [f"s{value}" for value in self.summed]
        self._create_members(", ".join([self._typed_key, "n", *sums]), self._key)

    def _create(self) -> None:
        # Without a type a sum that is too large stays a real number, by which it is recognised.
        computed = [name for name in self._columns[len(self._groups) :] if name not in self._given]
        columns = ", ".join([self._typed_key, *self._given, *computed])
        self.connection.run(
            f"{self._create_table}{self._table} "
            f"({columns}, PRIMARY KEY ({self._key})) WITHOUT ROWID"
        )

    @property
    def _gathered(self) -> str:
        return f"{self._table} ({', '.join([self._key, *self._given])})"

    def _complete(self) -> bool:
        if computed := self._computed():
            self.connection.run(f"UPDATE {self._table} SET {', '.join(computed)}")
        inexact = self._inexact_in(self._table, list(self._sums.values()))
        return not (inexact and self.connection.value(f"SELECT {inexact}"))

    def _computed(self) -> list[str]:
        """The totals that are not the count or a sum."""
        found = []
        places = self._columns[len(self._groups) :]
        for place, measure in zip(places, self.specification.measures, strict=True):
            if measure.aggregate == "avg" and measure.value is not None:
                total = f"CAST({self._sums[measure.value]} AS REAL) / {self._count}"
                found.append(f"{place} = {total}")
            elif place not in self._given:
                found.append(f"{place} = 1")
        return found

    def following(self, delta: str) -> tuple[list[str], str, list[str]]:
        sums = [f"s{value}" for value in self.summed]
        given, gathered = ", ".join(self._given), ", ".join(["n", *sums])
        nothing = " AND ".join(f"{each} = 0" for each in ("n", *sums))
        first = [
            f"DELETE FROM {self._members} WHERE {nothing}",
            self._noting(delta, -1),
            f"INSERT INTO {self._table} ({self._key}, {given}) SELECT {self._key}, {gathered} "
            f"FROM {self._members} WHERE 1 {self._added(False)}",
            f"DELETE FROM {self._table} WHERE {self._count} = 0 AND {self._touched}",
        ]
        if computed := self._computed():
            first.append(f"UPDATE {self._table} SET {', '.join(computed)} WHERE {self._touched}")
        tests = [
            self._inexact_in(self._members, sums),
            self._inexact_in(self._table, list(self._sums.values()), f" AND {self._touched}"),
        ]
        return first, " OR ".join(filter(None, tests)), self._settling(delta)

    @property
    def gathered(self) -> list[str]:
        return [*self._key.split(", "), "n", *(f"s{value}" for value in self.summed)]

    def taking_in(self, delta: str, abort: str) -> list[str]:
        new = ", ".join(f"NEW.{each}" for each in self.gathered)
        given = ", ".join(self._given)
        computed = self._computed()
        update = f"UPDATE {self._table} SET {', '.join(computed)} WHERE {self._is_new}"
        inexact = " OR ".join(f"typeof({each}) <> 'integer'" for each in self._sums.values())
        check = f"SELECT RAISE(ABORT, '{abort}') FROM {self._table} WHERE {self._is_new}"
        return [
            self._noting_one(delta, -1),
            f"INSERT INTO {self._table} ({self._key}, {given}) SELECT {new} WHERE 1 "
            f"{self._added(False)}",
            *([update] if computed else []),
            *([f"{check} AND ({inexact})"] if inexact else []),
            f"DELETE FROM {self._table} WHERE {self._is_new} AND {self._count} = 0",
            self._noting_one(delta, 1),
        ]

    def _added(self, to_members: bool) -> str:
        sums = [f"s{value}" for value in self.summed]
        names = ["n", *sums] if to_members else self._given
        added = ", ".join(f"{each} = {each} + excluded.{each}" for each in names)
        return f"ON CONFLICT DO UPDATE SET {added}"

    def _inexact_in(self, table: str, sums: list[str], which: str = "") -> str:
        """An integer that overflows becomes a real in SQLite: then the sum is not kept."""
        inexact = " OR ".join(f"typeof({each}) <> 'integer'" for each in sums)
        return f"EXISTS (SELECT 1 FROM {table} WHERE ({inexact}){which})" if sums else ""


class ExtremeTotals(TotalsTable):
    """The least or greatest values: each value is counted, so that the next one is there when the
    extreme one goes."""

    supporting = ("support",)

    @property
    def _support(self) -> str:
        return quote(f"support {self.name}")

    @property
    def counted_by(self) -> tuple[int, ...]:
        return (*self.specification.groups, *self.specification.values)

    def prepare(self) -> None:
        self._create_members(f"{self._typed_key}, v, n", f"{self._key}, v")

    def _create(self) -> None:
        counted, key = f"{self._typed_key}, v, n", f"{self._key}, v"
        total = f"{self._typed_key}, {self._columns[-1]}"
        for table, columns, primary in (
            (self._support, counted, key),
            (self._table, total, self._key),
        ):
            self.connection.run(
                f"{self._create_table}{table} ({columns}, PRIMARY KEY ({primary})) WITHOUT ROWID"
            )

    @property
    def _gathered(self) -> str:
        return self._support

    @property
    def _aggregate(self) -> str:
        return self.specification.measures[0].aggregate

    def _complete(self) -> bool:
        totals = f"SELECT {self._key}, {self._aggregate}(v) FROM {self._support}"
        self.connection.run(f"INSERT INTO {self._table} {totals} GROUP BY {self._key}")
        return True

    def following(self, delta: str) -> tuple[list[str], str, list[str]]:
        key = self._key
        same = " AND ".join(f"x.{each} = d.{each}" for each in key.split(", "))
        extreme = f"(SELECT {self._aggregate}(x.v) FROM {self._support} AS x WHERE {same})"
        some = f"SELECT DISTINCT {key} FROM {self._members}"
        first = [
            f"DELETE FROM {self._members} WHERE n = 0",
            self._noting(delta, -1),
            f"INSERT INTO {self._support} SELECT * FROM {self._members} WHERE 1 "
            f"{self._added(True)}",
            f"DELETE FROM {self._support} WHERE n = 0 AND {self._touched}",
            f"DELETE FROM {self._table} WHERE {self._touched}",
            f"INSERT INTO {self._table} SELECT {key}, total FROM "
            f"(SELECT {key}, {extreme} AS total FROM ({some}) AS d) WHERE total IS NOT NULL",
        ]
        return first, "", self._settling(delta)

    def _added(self, to_members: bool) -> str:
        return "ON CONFLICT DO UPDATE SET n = n + excluded.n"

    @property
    def gathered(self) -> list[str]:
        return [*self._key.split(", "), "v", "n"]

    def taking_in(self, delta: str, abort: str) -> list[str]:
        new = ", ".join(f"NEW.{each}" for each in self.gathered)
        key = ", ".join(f"NEW.{each}" for each in self._key.split(", "))
        extreme = f"SELECT {self._aggregate}(v) AS v FROM {self._support} WHERE {self._is_new}"
        return [
            self._noting_one(delta, -1),
            f"INSERT INTO {self._support} SELECT {new} WHERE 1 {self._added(True)}",
            f"DELETE FROM {self._support} WHERE {self._is_new} AND v = NEW.v AND n = 0",
            f"DELETE FROM {self._table} WHERE {self._is_new}",
            f"INSERT INTO {self._table} SELECT {key}, v FROM ({extreme}) WHERE v IS NOT NULL",
            self._noting_one(delta, 1),
        ]
