"""Recursive relations that are stored, and the rules that keep them (`calculus.stored_recursion`).

Relations that depend on each other are stored together, each in a temporary table: its rows in the
order in which they came, none twice. What they gain and lose is found by two fixpoints, one for
rows that may be gone and one that puts rows in.

Law: after `follow` the tables hold the relations as they are, and the Δ-set what that changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from harken.calculus.states import copy_of
from harken.calculus.stored_recursion import Maintenance
from harken.engines.protocol import Delta, RecursionChange, RecursionSource, RecursiveRows
from harken.engines.sqlite import layout
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.deltas import DeltaSet, table_of
from harken.engines.sqlite.kept import KeptTables, Ledger
from harken.engines.sqlite.recursion import Fixpoint
from harken.engines.sqlite.selectable import selectable
from harken.engines.sqlite.sql_expressions import quote
from harken.ir.relations import Relation
from harken.planner.prepare import Plan

if TYPE_CHECKING:
    from harken.engines.sqlite.engine import SQLiteEngine


@dataclass(frozen=True, slots=True)
class Rules:
    """The compiled rules of one combination of changed relations."""

    deletion: tuple[Fixpoint, ...]
    insertion: tuple[Fixpoint, ...]
    deleted: Mapping[str, str]
    """For each relation the table of the rows that may be gone."""


class RecursionTables(KeptTables):
    """The stored rows of relations that depend on each other."""

    def __init__(
        self,
        connection: Connection,
        ledger: Ledger,
        specification: RecursiveRows,
        engine: SQLiteEngine,
    ) -> None:
        self.relations = specification.relations
        name = specification.name
        self._engine = engine
        self.tables = {each.id: f"kept {each.id} for {name}" for each in self.relations}
        super().__init__(connection, ledger, f"kept {name}", list(self.tables.values()))
        self.is_built = False
        """Are there tables? They may be out of date, see `holds`."""
        self.version = 0
        """How often the tables were made: with them go their indexes."""

    def holds(self) -> bool:
        """Are the rows there, as they were after the last change?"""
        return self.is_built and self.validity.holds()

    def build(self, source: RecursionSource) -> None:
        """Take in the rows of all relations."""
        self.is_built = True  # an earlier session of it may have left tables
        self.drop()
        self.is_built = True
        self.version += 1
        with source.query.evaluated():
            for relation in self.relations:
                table = quote(self.tables[relation.id])
                columns = layout.typed_columns(relation)
                identity = layout.identity(relation) if columns else "c0"
                self.connection.run(f"CREATE TEMP TABLE {table} ({columns or 'c0'})")
                found = quote(self._stated(source)[relation.id])
                self.connection.run(f"INSERT INTO temp.{table} SELECT * FROM temp.{found}")
                self.connection.run(
                    f"CREATE UNIQUE INDEX temp.{quote(f'rows {self.tables[relation.id]}')} "
                    f"ON {table} ({identity})"
                )
        self.declare_built()

    def _stated(self, source: RecursionSource) -> dict[str, str]:
        """The tables of a query for all rows, by the relation."""
        tables = selectable(source.query).tables
        return {name: tables[each.id] for name, each in source.stated.items()}

    def prepare(self, rules: Maintenance, deletion: Plan, insertion: Plan) -> Rules:
        """Rows that may be gone are found reading the stored ones, which others are put into."""
        first = self._engine.compile_into(deletion, {}, self.copies)
        deleted = {each.id: first.tables[rules.deleted(each).id] for each in self.relations}
        known = {rules.deleted(each).id: deleted[each.id] for each in self.relations}
        grown = {rules.grown(each).id: self.tables[each.id] for each in self.relations}
        second = self._engine.compile_into(insertion, grown, {**known, **self.copies})
        return Rules(first.fixpoints, second.fixpoints, deleted)

    @property
    def copies(self) -> dict[str, str]:
        """The tables by the ids of the copies that they are."""
        return {copy_of(each).id: self.tables[each.id] for each in self.relations}

    def follow(self, change: RecursionChange, delta: Delta) -> bool:
        """Bring the rows up to date by rules, and fill the Δ-set with what that changed."""
        connection, rules, found = self.connection, cast(Rules, change), table_of(delta)
        table, deleted = self.tables[delta.relation.id], rules.deleted[delta.relation.id]
        try:
            for fixpoint in rules.deletion:
                fixpoint.run(connection, lambda _: ())
            for relation in self.relations:
                self._delete(relation, rules.deleted[relation.id])
            last = connection.value(f"SELECT max(rowid) FROM temp.{quote(table)}") or 0
            for fixpoint in rules.insertion:
                fixpoint.run(connection, lambda _: ())
            self._fill(found, table, deleted, 1, f"s.rowid > {last} AND")
            self._fill(found, deleted, table, -1)
        finally:
            for fixpoint in (*rules.deletion, *rules.insertion):
                fixpoint.clear(connection)
        self.validity.declare()
        return True

    def compare(self, source: RecursionSource, delta: Delta) -> None:
        """Bring the rows up to date with those of a query for all of them, and fill the Δ-set."""
        with source.query.evaluated():
            sources, found = self._stated(source), table_of(delta)
            wanted, table = sources[delta.relation.id], self.tables[delta.relation.id]
            self._fill(found, wanted, table, 1)
            self._fill(found, table, wanted, -1)
            for relation in self.relations:
                kept, now = (quote(each[relation.id]) for each in (self.tables, sources))
                same = _same(relation, "s", "o")
                there = f"SELECT 1 FROM temp.{now} AS o WHERE {same}"
                self.connection.run(f"DELETE FROM temp.{kept} AS s WHERE NOT EXISTS ({there})")
                self.connection.run(f"INSERT OR IGNORE INTO temp.{kept} SELECT * FROM temp.{now}")
        self.validity.declare()

    @property
    def can_apply(self) -> bool:
        """Is there nothing stored but the relation whose change is known?"""
        return len(self.relations) == 1

    def apply(self, delta: Delta) -> None:
        """Bring the rows of a single relation up to date with its Δ-set."""
        relation, found = delta.relation, table_of(delta)
        table = quote(self.tables[relation.id])
        columns = ", ".join(f"c{i}" for i in range(relation.arity)) or "1"
        gone = f"SELECT * FROM {found.table} WHERE {found.weight} < 0"
        self.connection.run(
            f"DELETE FROM temp.{table} WHERE rowid IN (SELECT s.rowid FROM ({gone}) AS o "
            f"CROSS JOIN temp.{table} AS s WHERE {_same(relation, 's', 'o')})"
        )
        self.connection.run(
            f"INSERT OR IGNORE INTO temp.{table} SELECT {columns} FROM {found.table} "
            f"WHERE {found.weight} > 0"
        )
        self.validity.declare()

    def _fill(self, delta: DeltaSet, source: str, other: str, weight: int, tests: str = "") -> None:
        """Put the rows of one table that are not in another into the Δ-set."""
        columns = ", ".join(f"c{i}" for i in range(delta.relation.arity))
        there = f"SELECT 1 FROM temp.{quote(other)} AS o WHERE {_same(delta.relation, 's', 'o')}"
        self.connection.run(
            f"INSERT INTO {delta.table} SELECT {f'{columns}, ' if columns else ''}{weight} "
            f"FROM temp.{quote(source)} AS s WHERE {tests} NOT EXISTS ({there})"
        )

    def _delete(self, relation: Relation, deleted: str) -> None:
        table = quote(self.tables[relation.id])
        self.connection.run(
            f"DELETE FROM temp.{table} WHERE rowid IN (SELECT s.rowid "
            f"FROM temp.{quote(deleted)} AS o CROSS JOIN temp.{table} AS s "
            f"WHERE {_same(relation, 's', 'o')})"
        )

    def size(self) -> int:
        """How many rows are stored."""
        return self._rows("count(*)")

    def _rows(self, shown: str) -> int:
        tables = map(quote, self.tables.values())
        found = (self.connection.value(f"SELECT {shown} FROM temp.{table}") for table in tables)
        return sum(each or 0 for each in found)

    def drop(self) -> None:
        if self.is_built:
            self.is_built = False
            super().drop()


def _same(relation: Relation, one: str, other: str) -> str:
    tests = (
        f"{one}.c{i} {'IS' if column.type.nullable else '='} {other}.c{i}"
        for i, column in enumerate(relation.columns)
    )
    return " AND ".join(tests) or "1"
