"""Indexes, created by the engine where a statement needs one and never by the user.

A statement needs an index on a column it looks up by value, and where SQLite says it would
otherwise build one for a single run. Indexes only affect speed: where one cannot be created now
(a read-only transaction, another writer, a full disk) the statement runs without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress

from harken.engines.sqlite import layout
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.table_names import plain_name
from harken.errors import StorageError
from harken.ir.relations import Kind, Relation, is_extent
from harken.values.types import BOOLEAN

_AUTOMATIC = re.compile(r"SEARCH (t\d+) .*AUTOMATIC .*INDEX \(([^)]*)\)")
_MADE_HERE = re.compile(r"index (.*) (\d+(?:,\d+)*)", re.DOTALL)
_COLUMN = re.compile(r"c(\d+)=\?")


class Indexes:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[str, set[tuple[int, ...]]] = {}
        """By the name of a table, the columns of each of its indexes."""
        self._postponed: set[tuple[Relation, tuple[int, ...]]] = set()
        """Indexes wanted by a read-only transaction; see `make_postponed`."""
        self.temporary: set[str] = set()
        """The ids of the relations with temporary tables."""
        self.reload()

    def reload(self) -> None:
        """Read the indexes again, after a rollback or another process's change."""
        names = self._connection.rows(
            "SELECT name FROM main.sqlite_schema WHERE type = 'index' "
            "UNION ALL SELECT name FROM temp.sqlite_schema WHERE type = 'index'"
        )
        self._known = {}
        for (name,) in names:
            if found := _MADE_HERE.fullmatch(plain_name(name)):
                columns = tuple(map(int, found[2].split(",")))
                self._known.setdefault(found[1], set()).add(columns)

    def _of(self, relation: Relation) -> set[tuple[int, ...]]:
        return self._known.get(layout.table_name(relation), set())

    def serves(self, relation: Relation, columns: tuple[int, ...]) -> bool:
        """Can the table already be searched by some of these columns?"""
        if is_extent(relation) or not columns:
            return True
        wanted = set(columns)
        by_key = any(set(prefix) <= wanted for prefix in layout.key_prefixes(relation))
        return by_key or any(index[0] in wanted for index in self._of(relation))

    def of(self, relation: Relation) -> tuple[str, ...]:
        """The indexes created for a relation, by their columns."""
        found = sorted(self._of(relation))
        names = [", ".join(relation.columns[column].name for column in each) for each in found]
        return tuple(f"index on {each}" for each in names)

    def leads(self, relation: Relation, column: int) -> bool:
        """Is the column the first of some index, so that the index holds its values in order?"""
        by_key = any(prefix[:1] == (column,) for prefix in layout.key_prefixes(relation))
        return by_key or any(index[0] == column for index in self._of(relation))

    def ensure_whole(self, relation: Relation, columns: tuple[int, ...]) -> None:
        """Have an index by which a row is found by all these columns, though none of them tells
        many rows apart."""
        columns = _useful(relation, columns)
        if columns and columns not in self._of(relation) and not self._connection.read_only:
            self._make({(relation, columns)})

    def ensure(self, wanted: Iterable[tuple[Relation, tuple[int, ...]]]) -> bool:
        """Create the missing indexes; true if any was created."""
        missing = {
            (relation, columns[:1])
            for relation, given in wanted
            if not relation.past  # Δ-sets and copies have the one index they need
            and (columns := _useful(relation, given))
            and not self.serves(relation, columns)
        }
        if not missing or self._connection.read_only:
            return False
        if self._connection.only_reads:
            self._postponed |= missing
            return False
        return self._make(missing)

    def _make(self, missing: Iterable[tuple[Relation, tuple[int, ...]]]) -> bool:
        before = self._connection.in_transaction
        try:
            with self._connection.without_waiting():
                for relation, columns in missing:
                    temporary = relation.id in self.temporary
                    self._connection.run(layout.create_index(relation, columns, temporary))
                    self._known.setdefault(layout.table_name(relation), set()).add(columns)
        except StorageError as error:
            # A full disk can make SQLite roll back the whole transaction, which must not go
            # unnoticed.
            undone = before and not self._connection.in_transaction
            if undone or error.code not in ("locked", "read-only", "disk-full", "disk-error"):
                raise
            return False
        return True

    def make_postponed(self) -> None:
        """Create the indexes that a read-only transaction wanted, once it is over."""
        if self._postponed:
            wanted, self._postponed = self._postponed, set()
            with suppress(StorageError):  # another process may have dropped the table
                self.ensure(wanted)

    def wanted_by(
        self, sql: str, slots: int, aliases: Mapping[str, Relation]
    ) -> list[tuple[Relation, tuple[int, ...]]]:
        """The stored relations and columns that SQLite would index for a single run of the
        statement."""
        found = self.looked_up(sql, slots, aliases)
        return [(relation, columns) for relation, columns in found if relation.kind is Kind.STORED]

    def looked_up(
        self, sql: str, slots: int, aliases: Mapping[str, Relation]
    ) -> list[tuple[Relation, tuple[int, ...]]]:
        """The tables and columns that SQLite would index for a single run of the statement."""
        plan = self._connection.rows(f"EXPLAIN QUERY PLAN {sql}", (None,) * slots)
        wanted = []
        for *_, detail in plan:
            found = _AUTOMATIC.search(str(detail))
            relation = aliases.get(found.group(1)) if found else None
            if found and relation is not None:
                columns = tuple(int(number) for number in _COLUMN.findall(found.group(2)))
                wanted.append((relation, columns))
        return wanted


def _useful(relation: Relation, columns: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(c for c in columns if relation.columns[c].type != BOOLEAN)
