"""Sizes, fan-outs and update rates of relations: the numbers behind the cost model.

Sizes and fan-outs are read at first use, and again when a good part of the rows has changed. For
updates we keep, per relation, the number of transactions that changed it and a running mean of
the rows changed per transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.indexes import Indexes
from harken.engines.sqlite.layout import table_name
from harken.engines.sqlite.sql_expressions import quote
from harken.errors import StorageError
from harken.ir.relations import Relation, Role

STALE_PART = 0.2
STALE_ROWS = 1000
"""A size is read again after this fraction of the rows has changed, and at least this many rows."""
STALE_PART_ELSEWHERE = 1.0
"""The same fraction for relations whose pending rows must be counted: all rows once over."""
VALUES_LOOKED_AT = 1000
ROWS_LOOKED_AT = 100_000
LATELY = 0.2
"""The weight of the last transaction in the running mean of changed rows."""


@dataclass(slots=True)
class Updates:
    """How often and how much a relation is updated."""

    transactions: int = 0
    rows: int = 0
    lately: float = 0.0
    """Changed rows per transaction, a running mean."""

    def note(self, rows: int) -> None:
        self.lately += (rows - self.lately) * (LATELY if self.transactions else 1.0)
        self.transactions += 1
        self.rows += rows


@dataclass(slots=True)
class Known:
    """The statistics read for a relation, and how many of its rows have changed since."""

    rows: float
    fanouts: dict[frozenset[int], float] = field(default_factory=dict)
    changed: int = 0
    stale_part: float = STALE_PART

    @property
    def is_stale(self) -> bool:
        return self.changed > max(STALE_ROWS, self.stale_part * self.rows)


class Statistics:
    def __init__(self, connection: Connection, indexes: Indexes) -> None:
        self._connection = connection
        self._indexes = indexes
        self._known: dict[str, Known] = {}
        self._unknown = Known(0.0)
        self.updates: dict[str, Updates] = {}
        self.elsewhere: Callable[[Relation], float | None] = lambda relation: None
        """Sizes of relations of which only some rows are in a table here."""
        self.values_elsewhere: Callable[[Relation, int], float | None] = lambda relation, i: None
        """Estimated distinct values in a column of such a relation."""

    def note(self, relation: str, rows: int) -> None:
        """Record that a transaction changed this many rows of a relation."""
        self.updates.setdefault(relation, Updates()).note(rows)
        # Without a branch: a transaction takes the same steps, whatever was asked before.
        self._known.get(relation, self._unknown).changed += rows

    def tell(self, relation: Relation, rows: int) -> None:
        """Record the current size of a relation."""
        known = self._known.setdefault(relation.id, Known(float(rows)))
        known.rows = float(rows)

    def forget(self) -> None:
        self._known.clear()

    def rows(self, relation: Relation) -> float:
        return self._about(relation).rows

    def sizes(self, relations: Mapping[str, Relation]) -> dict[str, float]:
        """The sizes of several relations, given by id."""
        return {name: self._size(name, relation) for name, relation in relations.items()}

    def _size(self, name: str, relation: Relation) -> float:
        known = self._known.get(name)
        return self.rows(relation) if known is None or known.is_stale else known.rows

    def fanout(self, relation: Relation, columns: Collection[int]) -> float:
        if len(columns) == relation.arity and relation.is_set:
            return 1.0
        if relation.key is not None and set(relation.key) <= set(columns):
            return 1.0
        about = self._about(relation)
        found = about.fanouts.get(frozenset(columns))
        if found is None:
            each = [self._column_fanout(relation, column, about.rows) for column in columns]
            found = about.fanouts[frozenset(columns)] = min(each, default=about.rows)
        return found

    def _about(self, relation: Relation) -> Known:
        known = self._known.get(relation.id)
        if known is None or known.is_stale:
            known = self._known[relation.id] = self._read(relation)
        return known

    def _read(self, relation: Relation) -> Known:
        if relation.role is Role.BEFORE:
            assert isinstance(relation.of, Relation)
            relation = relation.of
        rows = self.elsewhere(relation)
        if rows is not None:
            return Known(rows, stale_part=STALE_PART_ELSEWHERE)
        count = self._connection.value(f"SELECT count(*) FROM {self._table(relation)}")
        return Known(float(count))

    def _column_fanout(self, relation: Relation, column: int, rows: float) -> float:
        """Rows per distinct value of a column, from its first values in the order of the index."""
        if rows == 0:
            return 0.0
        if self.elsewhere(relation) is not None:
            values = self.values_elsewhere(relation, column)
            return max(1.0, rows / (values or 10))
        if not self._indexes.leads(relation, column):
            return max(1.0, rows / 10)
        table, c = self._table(relation), f"c{column}"
        values, last = self._connection.rows(
            f"WITH RECURSIVE v(x) AS (SELECT min({c}) FROM {table} UNION ALL "
            f"SELECT (SELECT min({c}) FROM {table} WHERE {c} > v.x) FROM v "
            f"WHERE v.x IS NOT NULL LIMIT {VALUES_LOOKED_AT}) SELECT count(x), max(x) FROM v"
        )[0]
        if values < VALUES_LOOKED_AT - 1:
            return rows / max(1.0, float(values))
        seen = self._connection.value(
            f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {c} <= ? LIMIT {ROWS_LOOKED_AT})",
            (last,),
        )
        return float(seen) / float(values)

    def _table(self, relation: Relation) -> str:
        return quote(table_name(relation))


MEASURE = "PRAGMA main.optimize = 0x10012"
"""Analyze the tables that have become ten times as large, from a sample of their rows."""
SMALLEST_ASSUMED = 8
"""Rows that SQLite is told a measured table has at least. From 3 on it looks rows up by their keys
(tried with SQLite 3.54); below 10, MEASURE does not take a table of one row for another one than it
measured."""
RAISE_SMALL = (
    f"UPDATE main.sqlite_stat1 SET stat = {SMALLEST_ASSUMED} || "
    "substr(stat, length(CAST(stat AS INTEGER)) + 1) "
    f"WHERE CAST(stat AS INTEGER) < {SMALLEST_ASSUMED}"
)


def measure(connection: Connection) -> None:
    """Let SQLite look at tables that have grown a good deal: it plans by their sizes, and by
    how many rows a value of an index has. This is only speed, as indexes are.

    Of a table with one or two rows SQLite would rather read all than look a row up by its key,
    and would go on doing so when the table has grown: no table is taken for that small."""
    if not connection.read_only:
        with suppress(StorageError), connection.without_waiting():
            connection.run(MEASURE)
            if connection.has_table("sqlite_stat1"):
                connection.run(RAISE_SMALL)
                if connection.raw.changes():
                    connection.run("ANALYZE main.sqlite_schema")  # reads them again
