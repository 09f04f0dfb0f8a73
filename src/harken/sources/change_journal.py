"""What a reader of its own has seen of a source, and the changes of each version, in a directory.

Law: the changes of the versions up to n, applied to nothing, are the rows of version n. A version
is there whole or not at all, whenever the process is killed.
"""

from __future__ import annotations

import datetime
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from harken.errors import SourceFault
from harken.sources.outside import Position, Snapshot
from harken.sources.spark_schemas import CHANGE_COLUMNS

ROWS, CHANGES = "rows", "changes"
Values = tuple[Any, ...]


class ChangeJournal:
    """`rows-N.arrow` has the rows of version N, and in its metadata the position; `changes-N.arrow`
    what the version changed."""

    def __init__(self, directory: str, key: tuple[str, ...] | None = None) -> None:
        self._directory = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._key = key

    @property
    def version(self) -> int:
        return max(self._versions(ROWS), default=0)

    @property
    def position(self) -> Position | None:
        if not self.version:
            return None
        metadata = self._read(ROWS, self.version).schema.metadata or {}
        found = json.loads(metadata.get(b"harken", b"{}")).get("position")
        return None if found is None else str(found)

    def take_in(self, snapshot: Snapshot) -> None:
        """One more version, if anything changed. It counts from when its rows are written."""
        before = self.version
        table = pa.Table.from_batches(list(snapshot.batches), snapshot.schema.columns)
        if snapshot.set_aside:
            name, why = next(iter(snapshot.set_aside.items()))
            raise SourceFault(f"{name} cannot be read: {why}", code="source-suspect")
        old = self._read(ROWS, before) if before else table.slice(0, 0)
        if old.schema.names != table.schema.names or old.schema.types != table.schema.types:
            raise SourceFault(
                f"the columns of the source were {', '.join(old.schema.names)} and are now "
                f"{', '.join(table.schema.names)}, or have other types",
                code="source-changed",
                hint="start the stream again, with another state and another checkpoint",
            )
        key = self._key if self._key is not None else snapshot.schema.key
        moment = datetime.datetime.now(datetime.UTC)
        rows = [(*row, kind, before + 1, moment) for row, kind in differences(old, table, key)]
        if not rows and before:
            return
        schema = pa.schema([*table.schema.remove_metadata(), *CHANGE_COLUMNS])
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
        arrays = [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)]
        self._write(CHANGES, before + 1, pa.Table.from_arrays(arrays, schema=schema))
        kept = json.dumps({"position": snapshot.position})
        self._write(ROWS, before + 1, table.replace_schema_metadata({"harken": kept}))
        if before:
            self._path(ROWS, before).unlink(missing_ok=True)

    def changes(self, version: int) -> pa.Table:
        return self._read(CHANGES, version)

    def forget(self, version: int) -> None:
        """The changes up to this version were taken in."""
        for each in self._versions(CHANGES):
            if each <= version:
                self._path(CHANGES, each).unlink(missing_ok=True)

    def _versions(self, kind: str) -> list[int]:
        return [int(each.stem.split("-")[1]) for each in self._directory.glob(f"{kind}-*.arrow")]

    def _path(self, kind: str, version: int) -> Path:
        return self._directory / f"{kind}-{version}.arrow"

    def _read(self, kind: str, version: int) -> pa.Table:
        try:
            with self._path(kind, version).open("rb") as file:
                return ipc.open_file(file).read_all()
        except (OSError, pa.ArrowException) as error:
            raise SourceFault(
                f"the state of the stream in {self._directory} is damaged: {error}",
                code="source-lost",
                hint="start the stream again, with another state and another checkpoint",
            ) from error

    def _write(self, kind: str, version: int, table: pa.Table) -> None:
        path = self._path(kind, version)
        fresh = path.with_suffix(".new")
        with fresh.open("wb") as file:
            with ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)


def differences(old: pa.Table, new: pa.Table, key: tuple[str, ...]) -> Iterator[tuple[Values, str]]:
    """The rows that differ, each with its `_change_type`; equal rows are counted.

    >>> before, after = pa.table({"id": [1, 2], "n": [1, 1]}), pa.table({"id": [2, 3], "n": [5, 1]})
    >>> [(kind, *row) for row, kind in differences(before, after, ("id",))]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('delete', 1, 1), ('update_preimage', 2, 1), ('update_postimage', 2, 5), ('insert', 3, 1)]
    """
    before, after = Counter(_rows(old)), Counter(_rows(new))
    places = [new.schema.names.index(name) for name in key]
    minus, plus = before - after, after - before
    gone = {tuple(row[place] for place in places): row for row in minus} if places else {}
    come = {tuple(row[place] for place in places): row for row in plus} if places else {}
    for row in minus.elements():
        if tuple(row[place] for place in places) not in come:
            yield row, "delete"
    for row in plus.elements():
        replaced = gone.get(tuple(row[place] for place in places))
        if replaced is not None:
            yield replaced, "update_preimage"
        yield row, "insert" if replaced is None else "update_postimage"


def _rows(table: pa.Table) -> Iterator[Values]:
    for batch in table.to_batches():
        yield from zip(*(column.to_pylist() for column in batch), strict=True)
