"""A lake table that Harken writes; a given Arrow table is copied into one, too.

Law: only this database and its streams commit to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from harken.engines import arrow_rows
from harken.engines.delta.tables import LakeTable
from harken.sources.kept_table import KeptTable
from harken.sources.place import OWN, Place
from harken.sources.registry import Described, FreePath, Progress, Request


def open_table(path: str) -> LakeTable:
    """The table at a path, for a writer beside the database, such as a stream."""
    return LakeTable.open(path)


class OwnTable(KeptTable):
    def written(self, version: int) -> float | None:
        return self.kept.written(version)

    def capture(self, progress: Progress | None = None, *, set_aside: bool = False) -> int:
        """Nothing to capture: the newest version is in the log already."""
        return self.kept.version


class OwnKind:
    name = OWN
    title = "written by Harken"
    has_versions = False
    keeps_files = True

    def accepts(self, given: Any) -> bool:
        """A Spark Connect DataFrame has every attribute, because any name could be a column."""
        return hasattr(given, "to_batches") and not hasattr(given, "toArrow")

    def describe(self, request: Request) -> Described:
        return Described(self, request.source.schema, rows=request.source)

    def make(
        self, described: Described, free: FreePath, columns: Sequence[str], keys: int, unique: bool
    ) -> tuple[str, int]:
        path, given = free(), _as_written_here(described.rows, list(columns))
        table = LakeTable.create(path, given.schema, key=list(columns[:keys]), bag=not unique)
        return path, table.commit(given, given.slice(0, 0), expected_version=0)

    def is_at(self, place: Place, given: Any) -> bool:
        return False

    def open(self, place: Place, key: Sequence[str], reader: Any, frame: Any) -> OwnTable:
        return OwnTable(LakeTable.open(place.path))


def _as_written_here(source: Any, columns: list[str]) -> pa.Table:
    """The given columns of an Arrow table in our types, without rows that a function cannot
    have."""
    types = [arrow_rows.type_of_column(name, source.schema.field(name).type) for name in columns]
    schema = pa.schema(list(zip(columns, map(arrow_rows.arrow_type, types), strict=True)))
    return arrow_rows.own_rows(source.select(columns), schema)


KIND = OwnKind()
