"""A lake relation: its place in the lake, its pending changes, and its fetched rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from harken.engines import arrow_rows as conversion
from harken.engines.delta import weighted
from harken.engines.delta.tables import LakeTable, Mark
from harken.engines.placement import faults
from harken.engines.placement.cache import Cache
from harken.engines.placement.lake_catalog import Pending
from harken.engines.protocol import TooManyRows
from harken.engines.sqlite.connection import Connection
from harken.engines.tally import Tally
from harken.errors import IntegrityError
from harken.ir.relations import Column, Relation
from harken.sources.own_table import OwnTable
from harken.sources.place import UNWRITTEN, Place
from harken.sources.registry import Source, open_source
from harken.values.rows import Row
from harken.values.types import INTEGER

VERSIONS_KEPT = 8


class PlacedRelation:
    def __init__(
        self,
        connection: Connection,
        relation: Relation,
        place: Place,
        application: str,
        reader: Callable[[], Any],
        tally: Tally,
    ) -> None:
        self.relation = relation
        self.place = place
        self._application = f"{application} {relation.id}"
        self.pending = Pending(connection, relation)
        self.cache = Cache(connection, relation, self.pending if place.is_own else None)
        self._reader = reader
        self._tally = tally
        self._table: Source | None = None
        self.frame: Any = None
        """The DataFrame behind the relation, if there is one and this session was given it."""

    def is_at(self, relation: Relation, place: Place) -> bool:
        return self.relation == relation and self.place.path == place.path

    @property
    def columns(self) -> list[str]:
        """The names of the relation's columns in the table."""
        given: list[str] | None = self.place.options.get("columns")
        return given or conversion.column_names(self.relation.columns)

    # --- the table -------------------------------------------------------------------------

    @property
    def table(self) -> Source:
        if self._table is None:
            self._table = self._open()
        self._table.stand_on(self.place)
        return self._table

    def _open(self) -> Source:
        place = self.place
        if place.is_own and not (Path(place.path) / "_delta_log").is_dir():
            if self.is_written:
                raise faults.missing(place.path)
            schema = conversion.arrow_schema(self.relation.columns)
            key = [schema.names[i] for i in conversion.home_columns(self.relation)]
            LakeTable.create(place.path, schema, key=key, bag=not self.relation.is_set)
        key = [self.columns[i] for i in self.cache.home]
        return open_source(place, key, self._reader, self.frame)

    def reopen(self, frame: Any = None) -> None:
        self.frame = frame
        self._table = None

    def is_behind(self) -> bool:
        """Does our own table have a later version than the one that is read?"""
        log = Path(self.place.path) / "_delta_log"
        return (log / f"{self.place.version + 1:020}.json").exists()

    def newest(
        self, progress: Callable[[int, int], None] | None = None, *, set_aside: bool = False
    ) -> int:
        """Look for changes where the relation comes from and return the version that has them."""
        with self._translated():
            return self.table.capture(progress, set_aside=set_aside)

    def set_aside(self, version: int) -> dict[str, str]:
        """The files of a directory that cannot be read, and why."""
        if version < 0:
            return {}
        with self._translated():
            return self.table.set_aside(version)

    def change_size(self, to_version: int) -> int:
        with self._translated():
            return self.table.change_size(self.place.version, to_version)

    def changes(self, to_version: int) -> list[Row]:
        """What leads from the version that is read to another: rows with their weights."""
        return self.stored_changes(self.table_changes(to_version))

    def table_changes(self, to_version: int) -> pa.Table:
        """The same, including rows that the relation leaves out."""
        with self._translated():
            found = self.table.changes(max(0, self.place.version), to_version)
        return found.select([*self.columns, weighted.WEIGHT])

    def stored_changes(self, found: pa.Table) -> list[Row]:
        columns = (*self.relation.columns, Column("weight", INTEGER))
        return conversion.from_arrow(found, columns)

    def _translated(self) -> AbstractContextManager[None]:
        return faults.translated(self.place)

    @property
    def own(self) -> LakeTable:
        """The table, which only we write."""
        table = self.table
        assert isinstance(table, OwnTable)
        return table.kept

    @property
    def version(self) -> int:
        return self.place.version

    @property
    def is_own(self) -> bool:
        return self.place.is_own

    def pending_rows(self) -> list[Row]:
        return self.pending.rows() if self.is_own else []

    @property
    def is_written(self) -> bool:
        return self.place.version != UNWRITTEN

    def size(self) -> int:
        """The number of rows in the version that is read, without pending changes."""
        if not self.is_written:
            return 0
        with self._translated():
            return sum(file.rows for file in self.table.files(self.place.version))

    def values(self, column: int) -> float | None:
        """The most distinct values a column of integers can have, by the bounds of the files."""
        if not self.is_written:
            return None
        bounds = self.table.bounds(self.place.version, self.columns[column])
        if not bounds or not all(type(end) is int for pair in bounds for end in pair):
            return None
        return float(max(high for _, high in bounds) - min(low for low, _ in bounds) + 1)

    def bytes(self) -> int:
        if not self.is_written:
            return 0
        return sum(file.size for file in self.table.files(self.place.version))

    def rows(
        self,
        columns: Sequence[int] = (),
        values: Collection[Row] | None = None,
        most: float = math.inf,
    ) -> list[Row]:
        """The rows of the version that is read, or those with one of the values."""
        if not self.is_written:
            return []
        with self._translated():
            keys = None if values is None else self.keys(columns, list(values))
            groups = self.table.groups_read
            found = self.table.rows(self.place.version, keys)
            files = self.table.files(self.place.version, keys)
        self._tally.seeks += 1
        self._tally.files += len(files)
        self._tally.row_groups += self.table.groups_read - groups
        self._tally.rows += found.num_rows
        if found.num_rows > most:
            raise TooManyRows
        return conversion.from_arrow(found.select(self.columns), self.relation.columns)

    def at_most(self, most: int) -> AtMost:
        return AtMost(self, most)

    def keys(self, columns: Sequence[int], values: list[Row]) -> pa.Table:
        chosen = [self.relation.columns[i] for i in columns]
        schema = pa.schema([self.table.schema.field(self.columns[i]) for i in columns])
        return conversion.to_arrow(values, chosen, schema)

    # --- writing ---------------------------------------------------------------------------

    def files_to_rewrite(self) -> tuple[int, int]:
        """The number of rows in the files that writing the pending changes would rewrite, and
        the number of pending rows."""
        pending = self.pending.rows()
        if not pending or not self.is_written:
            return 0, len(pending)
        home = self.cache.home or tuple(range(self.relation.arity))
        keys = self.keys(home, list({tuple(row[i] for i in home) for row in pending}))
        return sum(file.rows for file in self.table.files(self.place.version, keys)), len(pending)

    def write(self) -> int:
        """Commit the pending changes to the table and return the version that has them. Commits
        are numbered, so repeating one does nothing."""
        table = self.own
        plus: list[Row] = []
        minus: list[Row] = []
        for *row, weight in self.pending.rows():
            (plus if weight > 0 else minus).extend([tuple(row)] * abs(weight))
        columns, schema = self.relation.columns, table.schema
        return table.commit(
            conversion.to_arrow(plus, columns, schema),
            conversion.to_arrow(minus, columns, schema),
            expected_version=max(0, self.place.version),
            mark=self._mark(),
        )

    def written_before(self) -> int | None:
        """The version with the pending changes, if they were written and only that was not
        recorded."""
        table = self.own
        return table.version_of(self._mark())

    def tidied_before(self) -> int:
        """The newest version with the same rows as the one that is read."""
        table = self.own
        return table.with_same_rows(self.place.version)

    def _mark(self) -> Mark:
        return Mark(self._application, self.place.commits + 1)

    def give_way(self, changes: list[Row]) -> list[Row]:
        """Someone else has made these changes while others are pending here. Theirs count as later:
        pending changes of the same keys (in a set: of the same rows) are dropped. Returns the
        resulting change of the relation, each row with its weight:

            changes − what is dropped
        """
        if not self.relation.is_set:
            return changes
        identity = self.relation.key or range(self.relation.arity)
        touched = {tuple(row[i] for i in identity) for row in changes}
        weights = Counter({row[:-1]: row[-1] for row in changes})
        forgotten = []
        for *values, weight in self.pending.rows():
            row = tuple(values)
            if tuple(row[i] for i in identity) in touched:
                forgotten.append(row)
                weights[row] -= weight
        self.pending.forget(forgotten)
        return [(*row, weight) for row, weight in weights.items() if weight]

    def tidy(self, version: int) -> int:
        """Merge small files and remove versions that nobody reads. Returns the version to stand
        on: the newest, if it has the same rows as this one."""
        table = self.own
        try:
            newest = table.compact()
        except IntegrityError:  # someone else is writing: try another time
            return version
        table.remove_old_versions(max(0, version - VERSIONS_KEPT))
        return newest if not table.changes(version, newest).num_rows else version


@dataclass(frozen=True, slots=True)
class AtMost:
    """A lake relation that returns at most this many rows at once."""

    lake_relation: PlacedRelation
    most: int

    def size(self) -> int:
        return self.lake_relation.size()

    def rows(self, columns: Sequence[int] = (), values: Collection[Row] | None = None) -> list[Row]:
        return self.lake_relation.rows(columns, values, self.most)
