"""Recursive relations that are stored, and the rules that keep them (`calculus.maintenance`).

Relations that depend on each other are stored together, each in a temporary table: its rows in the
order in which they came, none twice. What they gain and lose is found by two fixpoints, one for
rows that may be gone and one that puts rows in.

Law: after `follow` the tables hold the relations as they are, and the Δ-set what that changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harken.calculus.maintenance import Maintenance
from harken.calculus.states import copy_of
from harken.engines.sqlite import layout
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.copies import Validity
from harken.engines.sqlite.engine import Query
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


class Kept:
    """The stored rows of relations that depend on each other."""

    def __init__(self, connection: Connection, relations: tuple[Relation, ...], name: str) -> None:
        self._connection = connection
        self.relations = relations
        self.validity = Validity(connection, f"kept {name}")
        self.tables = {each.id: f"kept {each.id} for {name}" for each in relations}

    def build(self, query: Query, stated: Mapping[str, Relation]) -> None:
        """Take in the rows of all relations; `stated` are their names in the query."""
        self.drop()
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
        query.clear()
        self.validity.declare()

    @property
    def copies(self) -> dict[str, str]:
        """The tables by the ids of the copies that they are."""
        return {copy_of(each).id: self.tables[each.id] for each in self.relations}

    def follow(self, rules: Rules, delta: DeltaSet) -> None:
        connection = self._connection
        goal = delta.relation
        columns = ", ".join(f"c{i}" for i in range(goal.arity)) or "1"
        try:
            for fixpoint in rules.deletion:
                fixpoint.run(connection, lambda _: ())
            for relation in self.relations:
                self._delete(relation, rules.deleted[relation.id])
            table, deleted = self.tables[goal.id], rules.deleted[goal.id]
            last = connection.value(f"SELECT max(rowid) FROM temp.{quote(table)}") or 0
            for fixpoint in rules.insertion:
                fixpoint.run(connection, lambda _: ())
            for source, other, tests, weight in (
                (table, deleted, f"s.rowid > {last} AND ", 1),
                (deleted, table, "", -1),
            ):
                same = _same(goal, "s", "o")
                connection.run(
                    f"INSERT INTO {delta.table} SELECT {columns}, {weight} "
                    f"FROM temp.{quote(source)} AS s WHERE {tests}"
                    f"NOT EXISTS (SELECT 1 FROM temp.{quote(other)} AS o WHERE {same})"
                )
        finally:
            for fixpoint in (*rules.deletion, *rules.insertion):
                fixpoint.clear(connection)
        self.validity.declare()

    def _delete(self, relation: Relation, deleted: str) -> None:
        table = quote(self.tables[relation.id])
        self._connection.run(
            f"DELETE FROM temp.{table} WHERE rowid IN (SELECT s.rowid "
            f"FROM temp.{quote(deleted)} AS o CROSS JOIN temp.{table} AS s "
            f"WHERE {_same(relation, 's', 'o')})"
        )

    def size(self) -> int:
        """How many rows are stored."""
        count = "SELECT count(*) FROM temp."
        return sum(
            int(self._connection.value(f"{count}{quote(table)}")) for table in self.tables.values()
        )

    def drop(self) -> None:
        self.validity.revoke()
        for table in self.tables.values():
            self._connection.run(f"DROP TABLE IF EXISTS temp.{quote(table)}")


def _same(relation: Relation, one: str, other: str) -> str:
    tests = (
        f"{one}.c{i} {'IS' if column.type.nullable else '='} {other}.c{i}"
        for i, column in enumerate(relation.columns)
    )
    return " AND ".join(tests) or "1"
