"""The fetched rows of a lake relation.

A temporary table with the name and layout of a stored relation holds the rows of some keys, so that
statements about those keys run as if the relation were resident. A key is fetched as a whole, with
its pending changes; triggers note changes to the table as pending. A rollback undoes both, like
everything in the session.

Law: for each present key, the rows of the table are the rows of the relation.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from types import MappingProxyType
from typing import Protocol

from harken.engines.placement.lake_catalog import Pending
from harken.engines.sqlite import layout, many
from harken.engines.sqlite.change_capture import BRINGING, CREATE_BRINGING, NOTICED
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.layout import table_name
from harken.engines.sqlite.sql_expressions import quote
from harken.engines.sqlite.table_names import stored_name
from harken.ir.relations import Relation, extent_name
from harken.values.rows import Row

NOTHING: Mapping[Row, Row] = MappingProxyType({})
ONE_BY_ONE = 16
"""For more values than this, their pending rows are found by one query."""
WHOLE = "harken_whole"
ASKED = "harken_asked"
CREATE = (
    CREATE_BRINGING,
    f"CREATE TEMP TABLE IF NOT EXISTS {WHOLE} (name TEXT PRIMARY KEY) WITHOUT ROWID",
    f"CREATE TEMP TABLE IF NOT EXISTS {ASKED} "
    "(name TEXT, columns TEXT, value TEXT, PRIMARY KEY (name, columns, value)) WITHOUT ROWID",
)


class CacheOrigin(Protocol):
    """The origin of the rows: a version of a table, without pending changes."""

    def size(self) -> int: ...

    def rows(self, columns: Sequence[int] = (), values: Collection[Row] | None = None) -> list[Row]:
        """All rows, or those that have one of the values in the columns."""


class Cache:
    def __init__(self, connection: Connection, relation: Relation, pending: Pending | None) -> None:
        self._connection = connection
        self.relation = relation
        self._pending = pending
        self.name = table_name(relation)
        self.table = f"temp.{quote(self.name)}"
        self._present = f"temp.{quote(f'present {self.name}')}"
        self.home = tuple(relation.key or range(relation.inputs))
        """The key columns; none if the relation is only fetched as a whole."""
        self.seeks = 0
        """Number of look-ups since the cache was last empty."""

    # --- the table -------------------------------------------------------------------------

    def exists(self) -> bool:
        return self._connection.has_table(stored_name(self.name), "temp")

    def create(self) -> None:
        for statement in CREATE:
            self._connection.run(statement)
        self._connection.run(layout.create_table(self.relation, temporary=True))
        if self.home:
            types = layout.typed_columns(self.relation).split(", ")
            columns = ", ".join(types[i] for i in self.home)
            key = ", ".join(f"c{i}" for i in self.home)
            self._connection.run(
                f"CREATE TEMP TABLE {quote(f'present {self.name}')} "
                f"({columns}, PRIMARY KEY ({key})) WITHOUT ROWID"
            )
        if self._pending is not None:
            self._pending.create_changed()
        for statement in self._triggers():
            self._connection.run(statement)

    def drop(self) -> None:
        """Drop the table with its triggers, and those on extents."""
        for position, _ in self._surrogates():
            self._connection.run(f"DROP TRIGGER IF EXISTS temp.{self._trigger(f'gone {position}')}")
        for table in (self.table, self._present):
            self._connection.run(f"DROP TABLE IF EXISTS {table}")
        if self._pending is not None:
            self._pending.drop_changed()
        self._forget_questions()

    def clear(self) -> None:
        """Release all rows; pending changes are stored elsewhere."""
        self.seeks = 0
        with self._unnoticed():
            self._connection.run(f"DELETE FROM {self.table}")
        if self.home:
            self._connection.run(f"DELETE FROM {self._present}")
        self._forget_questions()

    def _forget_questions(self) -> None:
        for statement in CREATE:
            self._connection.run(statement)
        for table in (WHOLE, ASKED):
            self._connection.run(f"DELETE FROM temp.{table} WHERE name = ?", (self.name,))

    def size(self) -> int:
        return int(self._connection.value(f"SELECT count(*) FROM {self.table}"))

    # --- what is at hand -------------------------------------------------------------------

    def is_whole(self) -> bool:
        found = f"SELECT EXISTS (SELECT 1 FROM temp.{WHOLE} WHERE name = ?)"
        return bool(self._connection.value(found, (self.name,)))

    def bring_all(self, source: CacheOrigin) -> None:
        if self.is_whole():
            return
        rows = Counter(self._read(source))
        for *row, weight in self._pending.rows() if self._pending is not None else ():
            rows[tuple(row)] += weight
        present = self.present_keys()
        with self._all_or_nothing():
            self.put(row for row in rows.elements() if self.key_of(row) not in present)
            self._connection.run(f"INSERT INTO temp.{WHOLE} VALUES (?)", (self.name,))

    def bring(self, columns: tuple[int, ...], values: Collection[Row], source: CacheOrigin) -> None:
        """Fetch all rows that have one of the values in the columns."""
        if self.is_whole() or not values:
            return
        if not self.home:
            self.bring_all(source)
        elif set(self.home) <= set(columns):
            places = [columns.index(i) for i in self.home]
            self.fetch({tuple(value[place] for place in places) for value in values}, source)
        else:
            self._bring_matching(columns, values, source)

    def _bring_matching(
        self, columns: tuple[int, ...], values: Collection[Row], source: CacheOrigin
    ) -> None:
        shown = json.dumps(columns)
        texts = {value: json.dumps(value) for value in values}
        asked = self._asked_among(shown, list(texts.values()))
        unasked = {value: text for value, text in texts.items() if text not in asked}
        if not unasked:
            return
        found = self._read(source, columns, list(unasked))
        keys = {self.key_of(row) for row in found}
        keys |= {self.key_of(row) for row in self._pending_with(columns, list(unasked))}
        # A row with a unique key is all there is of that key.
        known = {self.key_of(row): row for row in found} if self.relation.key else {}
        self.fetch(keys, source, known)
        self._connection.run_many(
            f"INSERT OR IGNORE INTO temp.{ASKED} VALUES (?, ?, ?)",
            ((self.name, shown, text) for text in unasked.values()),
        )

    def _asked_among(self, columns: str, values: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for start in range(0, len(values), many.BATCH):
            batch = values[start : start + many.BATCH]
            marks = ", ".join("?" for _ in batch)
            asked = f"SELECT value FROM temp.{ASKED} WHERE name = ? AND columns = ?"
            rows = self._connection.rows(
                f"{asked} AND value IN ({marks})", (self.name, columns, *batch)
            )
            found.update(text for (text,) in rows)
        return found

    def fetch(
        self, keys: Collection[Row], source: CacheOrigin, known: Mapping[Row, Row] = NOTHING
    ) -> None:
        """Fetch the rows of these keys; `known` are rows already read, without pending changes."""
        possible = [key for key in keys if self._can_be(key)]
        present = self._present_among(possible)
        missing = sorted(key for key in possible if key not in present)
        if not missing:
            return
        rows = Counter(known[key] for key in missing if key in known)
        unknown = [key for key in missing if key not in known]
        if unknown:
            rows.update(self._read(source, self.home, unknown))
        for *row, weight in self._pending_with(self.home, missing):
            rows[tuple(row)] += weight
        marks = ", ".join("?" for _ in self.home)
        with self._all_or_nothing():
            self.put(rows.elements())
            self._connection.run_many(f"INSERT INTO {self._present} VALUES ({marks})", missing)

    def _read(
        self,
        source: CacheOrigin,
        columns: Sequence[int] = (),
        values: Collection[Row] | None = None,
    ) -> list[Row]:
        self._connection.fetched += 1
        self.seeks += 1 if columns else 0
        return source.rows(columns, values)

    def _pending_with(self, columns: tuple[int, ...], values: Sequence[Row]) -> Iterator[Row]:
        """The pending changes of rows with one of these values."""
        if self._pending is None or self._pending.is_unused():
            return
        whole = [value for value in values if None not in value]
        if len(whole) > ONE_BY_ONE:
            yield from self._pending.among(columns, whole)
            values = [value for value in values if None in value]
        for value in values:
            yield from self._pending.matching(columns, value)

    def put(self, rows: Iterable[Row]) -> None:
        with self._unnoticed():
            many.insert(self._connection, self.relation, rows)

    def key_of(self, row: Row) -> Row:
        return tuple(row[i] for i in self.home)

    def _can_be(self, key: Row) -> bool:
        """NULL, which an outer join may ask for, occurs in no column without NULLs."""
        columns = self.relation.columns
        pairs = zip(self.home, key, strict=True)
        return not any(part is None and not columns[i].type.nullable for i, part in pairs)

    def _present_among(self, keys: Sequence[Row]) -> set[Row]:
        columns = ", ".join(f"c{i}" for i in self.home)
        mark = f"({', '.join('?' for _ in self.home)})"
        found: set[Row] = set()
        for start in range(0, len(keys), many.BATCH):
            batch = keys[start : start + many.BATCH]
            marks = ", ".join([mark] * len(batch))
            found.update(
                self._connection.rows(
                    f"SELECT {columns} FROM {self._present} WHERE ({columns}) IN (VALUES {marks})",
                    tuple(chain.from_iterable(batch)),
                )
            )
        return found

    def present_keys(self) -> set[Row]:
        if not self.home:
            return set()
        return set(self._connection.rows(f"SELECT * FROM {self._present}"))

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """After an interrupt, rows without their key's mark would be fetched twice."""
        self._connection.run("SAVEPOINT bring")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:
                self._connection.undo_to("bring")
            raise
        self._connection.release("bring")

    @contextmanager
    def _unnoticed(self) -> Iterator[None]:
        """Rows that are fetched or released are no events: the relation does not change."""
        self._connection.run(f"INSERT INTO temp.{BRINGING} VALUES (1)")
        try:
            yield
        finally:
            with self._connection.watch.shielded():
                self._connection.run(f"DELETE FROM temp.{BRINGING}")

    # --- triggers --------------------------------------------------------------------------

    def _triggers(self) -> Iterator[str]:
        if self._pending is None:
            return
        sides = {
            "INSERT": [("NEW", 1)],
            "DELETE": [("OLD", -1)],
            "UPDATE": [("OLD", -1), ("NEW", 1)],
        }
        for event, rows in sides.items():
            counts = " ".join(
                self._pending.counting(
                    ", ".join(f"{row}.c{i}" for i in range(self.relation.arity)), weight
                )
                for row, weight in rows
            )
            yield (
                f"CREATE TEMP TRIGGER {self._trigger(f'pending {event}')} "
                f"AFTER {event} ON {self.table} WHEN {NOTICED} BEGIN {counts} END"
            )
        yield from self._integrity()

    def _integrity(self) -> Iterator[str]:
        """The work of foreign keys in a resident relation."""
        for position, extent in self._surrogates():
            for event in ("INSERT", "UPDATE"):
                yield (
                    f"CREATE TEMP TRIGGER {self._trigger(f'object {position} {event}')} "
                    f"BEFORE {event} ON {self.table} "
                    f"WHEN {NOTICED} AND NOT EXISTS "
                    f"(SELECT 1 FROM {extent} WHERE c0 = NEW.c{position}) "
                    "BEGIN SELECT RAISE(ABORT, 'FOREIGN KEY constraint failed'); END"
                )
            yield (
                f"CREATE TEMP TRIGGER {self._trigger(f'gone {position}')} "
                f"AFTER DELETE ON main.{extent} BEGIN "
                f"DELETE FROM {quote(self.name)} WHERE c{position} = OLD.c0; END"
            )

    def _surrogates(self) -> Iterator[tuple[int, str]]:
        for position, column in enumerate(self.relation.columns):
            if column.type.surrogate:
                yield position, quote(extent_name(column.type.name))

    def _trigger(self, what: str) -> str:
        return quote(f"{what} {self.name}")
