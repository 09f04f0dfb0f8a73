"""Recursive relations that are stored, and the rules that keep them (`calculus.stored_recursion`).

Relations that depend on each other are stored together, each in a temporary table: its rows in the
order in which they came, none twice. What they gain and lose is found by two fixpoints, one for
rows that may be gone and one that puts rows in.

Law: after `follow` the tables hold the relations as they are, and the Δ-set what that changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harken.calculus.states import copy_of
from harken.calculus.stored_recursion import Maintenance
from harken.engines.protocol import Connection, Query
from harken.engines.sqlite import layout
from harken.engines.sqlite.copies import Validity
from harken.engines.sqlite.events import DeltaSet
from harken.engines.sqlite.expressions import quote
from harken.engines.sqlite.recursion import Fixpoint
from harken.ir.relations import Relation


@dataclass(frozen=True, slots=True)
class Rules:
    """The compiled rules of one combination of changed relations."""

    maintenance: Maintenance
    deletion: tuple[Fixpoint, ...]
    insertion: tuple[Fixpoint, ...]
    deleted: Mapping[str, str]
    """For each relation the table of the rows that may be gone."""


class KeptRows:
    """The stored rows of relations that depend on each other."""

    def __init__(self, connection: Connection, relations: tuple[Relation, ...], name: str) -> None:
        self._connection = connection
        self.relations = relations
        self.validity = Validity(connection, f"kept {name}")
        self.tables = {each.id: f"kept {each.id} for {name}" for each in relations}
        self.is_built = False
        """Are there tables? They may be out of date, see `holds`."""
        self.built = 0
        """How often the tables were made: with them go their indexes."""

    def holds(self) -> bool:
        """Are the rows there, as they were after the last change?"""
        return self.is_built and self.validity.holds()

    def build(self, query: Query, stated: Mapping[str, Relation]) -> None:
        """Take in the rows of all relations; `stated` are their names in the query."""
        self.is_built = True  # an earlier session of it may have left tables
        self.drop()
        self.is_built = True
        self.built += 1
        with query.evaluated():
            for relation in self.relations:
                table = quote(self.tables[relation.id])
                columns = layout.typed_columns(relation)
                identity = layout.identity(relation) if columns else "c0"
                self._connection.run(f"CREATE TEMP TABLE {table} ({columns or 'c0'})")
                source = query.tables[stated[relation.id].id]
                self._connection.run(f"INSERT INTO temp.{table} SELECT * FROM temp.{quote(source)}")
                self._connection.run(
                    f"CREATE UNIQUE INDEX temp.{quote(f'rows {self.tables[relation.id]}')} "
                    f"ON {table} ({identity})"
                )
        self.validity.declare()

    @property
    def copies(self) -> dict[str, str]:
        """The tables by the ids of the copies that they are."""
        return {copy_of(each).id: self.tables[each.id] for each in self.relations}

    def follow(self, rules: Rules, delta: DeltaSet) -> None:
        """Bring the rows up to date by rules, and fill the Δ-set with what that changed."""
        connection = self._connection
        table, deleted = self.tables[delta.relation.id], rules.deleted[delta.relation.id]
        try:
            for fixpoint in rules.deletion:
                fixpoint.run(connection, lambda _: ())
            for relation in self.relations:
                self._delete(relation, rules.deleted[relation.id])
            last = connection.value(f"SELECT max(rowid) FROM temp.{quote(table)}") or 0
            for fixpoint in rules.insertion:
                fixpoint.run(connection, lambda _: ())
            self._fill(delta, table, deleted, 1, f"s.rowid > {last} AND")
            self._fill(delta, deleted, table, -1)
        finally:
            for fixpoint in (*rules.deletion, *rules.insertion):
                fixpoint.clear(connection)
        self.validity.declare()

    def compare(self, query: Query, stated: Mapping[str, Relation], delta: DeltaSet) -> None:
        """Bring the rows up to date with those of a query for all of them, and fill the Δ-set."""
        with query.evaluated():
            sources = {name: query.tables[each.id] for name, each in stated.items()}
            source, table = sources[delta.relation.id], self.tables[delta.relation.id]
            self._fill(delta, source, table, 1)
            self._fill(delta, table, source, -1)
            for relation in self.relations:
                kept, now = (quote(each[relation.id]) for each in (self.tables, sources))
                same = _same(relation, "s", "o")
                there = f"SELECT 1 FROM temp.{now} AS o WHERE {same}"
                self._connection.run(f"DELETE FROM temp.{kept} AS s WHERE NOT EXISTS ({there})")
                self._connection.run(f"INSERT OR IGNORE INTO temp.{kept} SELECT * FROM temp.{now}")
        self.validity.declare()

    @property
    def can_take_in(self) -> bool:
        """Is there nothing stored but the relation whose change is known?"""
        return len(self.relations) == 1

    def take_in(self, delta: DeltaSet) -> None:
        """Bring the rows of a single relation up to date with its Δ-set."""
        relation = delta.relation
        table = quote(self.tables[relation.id])
        columns = ", ".join(f"c{i}" for i in range(relation.arity)) or "1"
        gone = f"SELECT * FROM {delta.table} WHERE {delta.weight} < 0"
        self._connection.run(
            f"DELETE FROM temp.{table} WHERE rowid IN (SELECT s.rowid FROM ({gone}) AS o "
            f"CROSS JOIN temp.{table} AS s WHERE {_same(relation, 's', 'o')})"
        )
        self._connection.run(
            f"INSERT OR IGNORE INTO temp.{table} SELECT {columns} FROM {delta.table} "
            f"WHERE {delta.weight} > 0"
        )
        self.validity.declare()

    def _fill(self, delta: DeltaSet, source: str, other: str, weight: int, tests: str = "") -> None:
        """Let the Δ-set have the rows of one table that are not in another."""
        columns = ", ".join(f"c{i}" for i in range(delta.relation.arity))
        there = f"SELECT 1 FROM temp.{quote(other)} AS o WHERE {_same(delta.relation, 's', 'o')}"
        self._connection.run(
            f"INSERT INTO {delta.table} SELECT {f'{columns}, ' if columns else ''}{weight} "
            f"FROM temp.{quote(source)} AS s WHERE {tests} NOT EXISTS ({there})"
        )

    def _delete(self, relation: Relation, deleted: str) -> None:
        table = quote(self.tables[relation.id])
        self._connection.run(
            f"DELETE FROM temp.{table} WHERE rowid IN (SELECT s.rowid "
            f"FROM temp.{quote(deleted)} AS o CROSS JOIN temp.{table} AS s "
            f"WHERE {_same(relation, 's', 'o')})"
        )

    def size(self) -> int:
        """How many rows are stored."""
        return self._rows("count(*)")

    def are_more_than(self, rows: int) -> bool:
        """Are about so many rows stored?"""
        return self.holds() and self._rows("max(rowid)") > rows

    def _rows(self, shown: str) -> int:
        tables = map(quote, self.tables.values())
        found = (self._connection.value(f"SELECT {shown} FROM temp.{table}") for table in tables)
        return sum(each or 0 for each in found)

    def drop(self) -> None:
        if not self.is_built:
            return
        self.is_built = False
        self.validity.revoke()
        for table in self.tables.values():
            self._connection.run(f"DROP TABLE IF EXISTS temp.{quote(table)}")


def _same(relation: Relation, one: str, other: str) -> str:
    tests = (
        f"{one}.c{i} {'IS' if column.type.nullable else '='} {other}.c{i}"
        for i, column in enumerate(relation.columns)
    )
    return " AND ".join(tests) or "1"
