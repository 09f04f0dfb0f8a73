"""Inputs that exist and that Harken only reads.

`DeltaInput` is a Delta table of someone else, at any of its versions. `DirectoryInput` is a
directory of files that grows: a new file adds its rows, a vanished one takes them back, a file that
changed does both. A vanished file can no longer be read, so the rows are kept in a lake table of
Harken's own, whose versions are what views read; its column `_file` says where a row came from.

    rows(capture()) = the rows of all files in the directory
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from harken.engines.spark import rewrite, weighted
from harken.engines.spark.delta import (
    change_feed,
    committed_at,
    file_difference,
    open_delta,
    plain_path,
    storage,
)
from harken.engines.spark.snapshot import LakeFile, Snapshot
from harken.engines.spark.tables import SIDE, SNAPSHOTS_KEPT, LakeTable
from harken.errors import StorageError

Progress = Callable[[int, int], None]
"""Who is told how many files have been read, and of how many."""
FILE = "_file"
# What a file of these keeps from its rows, and a plain Parquet reader would not know of.
UNREADABLE_FEATURES = frozenset({"columnMapping", "deletionVectors"})


class DeltaInput:
    """A Delta table that others write; `key` is what its rows are sought by."""

    def __init__(
        self,
        path: str | Path,
        *,
        key: tuple[str, ...],
        storage_options: dict[str, str] | None = None,
    ) -> None:
        self._delta = open_delta(path, storage_options=storage_options)
        self._options = storage_options
        self.path = plain_path(self._delta.table_uri)
        self.schema: pa.Schema = pa.schema(self._delta.schema().to_arrow())
        self.key = key
        self.partition_columns = tuple(self._delta.metadata().partition_columns)
        self._snapshot = lru_cache(SNAPSHOTS_KEPT)(self._load)

    @property
    def version(self) -> int:
        self._delta.update_incremental()
        return self._delta.version()

    def capture(self, progress: Progress | None = None) -> int:
        """What is newest is in the log already."""
        return self.version

    def written(self, version: int) -> float | None:
        """When, in seconds of the Unix epoch."""
        return committed_at(self._delta, version)

    @property
    def plain_files(self) -> bool:
        """Whether the rows are exactly what a Parquet reader finds in `files`."""
        features = frozenset(self._delta.protocol().reader_features or ())
        mapped = self._delta.metadata().configuration.get("delta.columnMapping.mode", "none")
        return not (features & UNREADABLE_FEATURES or self.partition_columns or mapped != "none")

    def bounds(self, version: int, column: str) -> list[tuple[Any, Any]]:
        """The least and the greatest value of a column in each file, as the log has them."""
        return [(each.lowest, each.highest) for each in self._snapshot(version).bounds(column)]

    def files(self, version: int | None = None, keys: pa.Table | None = None) -> list[LakeFile]:
        """The files of a version that can hold one of the keys; see `plain_files`."""
        snapshot = self._snapshot(self.version if version is None else version)
        return snapshot.files if keys is None else snapshot.holding(keys)

    def rows(self, version: int | None = None, keys: pa.Table | None = None) -> pa.Table:
        """The rows of a version, or those with one of the keys, read without Spark."""
        at = self.version if version is None else version
        if keys is None or not self.plain_files:
            found = self._scan(at)
        else:
            files = storage(self.path, self._options)
            parts = [self._read(files, file.path) for file in self.files(at, keys)]
            found = pa.concat_tables([self.schema.empty_table(), *parts])
        return found if keys is None else found.take(rewrite.positions_of(found, keys))

    def _scan(self, version: int) -> pa.Table:
        """By delta-rs, which knows all that Delta has."""
        found = pa.table(open_delta(self.path, version, self._options).scan())
        return weighted.positive_zeros(found.select(self.schema.names).cast(self.schema))

    def changes(self, from_version: int, to_version: int) -> pa.Table:
        """The net rows, with weights: from the change feed, or from the files that differ."""
        if from_version > to_version:
            return weighted.negate(self.changes(to_version, from_version))
        if from_version == to_version:
            return weighted.empty(self.schema)
        try:
            return change_feed(self._delta, from_version, to_version, self.schema)
        except DeltaError:  # the feed was off for some of these versions
            return self._difference(from_version, to_version)

    def _difference(self, old: int, new: int) -> pa.Table:
        if not self.plain_files:
            return weighted.net(self.rows(new), self.rows(old))
        files = storage(self.path, self._options)
        snapshots = self._snapshot(old), self._snapshot(new)
        return file_difference(*snapshots, self.schema, lambda path: self._read(files, path))

    def _read(self, files: Any, path: str) -> pa.Table:
        with files.open_input_file(path) as source:
            found = pq.ParquetFile(source).read()
        missing = [field for field in self.schema if field.name not in found.column_names]
        for field in missing:  # the column is younger than the file
            found = found.append_column(field, pa.nulls(found.num_rows, field.type))
        return weighted.positive_zeros(found.select(self.schema.names).cast(self.schema))

    def _load(self, version: int) -> Snapshot:
        delta = open_delta(self.path, version, self._options)
        return Snapshot(version, self.path, pa.table(delta.get_add_actions(flatten=True)))


class DirectoryInput:
    """The files of one format in a directory and the directories in it.

    Names that begin with `_` or `.` are left out, as Spark leaves them out: write a file under such
    a name and rename it when it is complete.
    """

    def __init__(self, directory: str | Path, table: LakeTable, *, format: str) -> None:
        _check_format(format)
        self.directory = Path(directory)
        self.table = table
        self.format = format
        self.schema: pa.Schema = table.schema.remove(table.schema.get_field_index(FILE))

    @classmethod
    def create(
        cls,
        directory: str | Path,
        path: str | Path,
        schema: pa.Schema,
        *,
        key: list[str],
        format: str,
    ) -> DirectoryInput:
        """Nothing of the directory is read yet; `path` is where the rows will be kept."""
        _check_format(format)
        schema = schema.append(pa.field(FILE, pa.string()))
        return cls(directory, LakeTable.create(path, schema, key=key, bag=True), format=format)

    def capture(self, progress: Progress | None = None) -> int:
        """Bring the table up to date with the directory; the version that is.

        What was captured is noted in the commit itself: a capture that dies is simply repeated.
        """
        version = self.table.version
        old, new = self._captured(version), self._listing()
        if old == new:
            return version
        gone = [name for name, stamp in old.items() if new.get(name) != stamp]
        come = [name for name, stamp in new.items() if old.get(name) != stamp]
        parts = [self.table.schema.empty_table()]
        for number, name in enumerate(come):
            if progress is not None:
                progress(number, len(come))
            parts.append(self._read(name))
        listing = self._write_listing(new, version + 1)
        return self.table.commit(
            pa.concat_tables(parts),
            self._kept_rows(version, gone),
            expected_version=version,
            notes={"listing": listing},
        )

    def written(self, version: int) -> float | None:
        """When the newest file of a version was, in seconds of the Unix epoch."""
        times = [nanoseconds for _, nanoseconds in self._captured(version).values()]
        return max(times) / 1e9 if times else None

    def changes(self, from_version: int, to_version: int) -> pa.Table:
        """The net rows, with weights; a row that moved to another file is no change."""
        return weighted.project(self.table.changes(from_version, to_version), self.schema.names)

    def _listing(self) -> dict[str, list[int]]:
        listing = {}
        for path in sorted(self.directory.rglob("*")):
            name = path.relative_to(self.directory)
            if path.is_file() and not any(part.startswith(("_", ".")) for part in name.parts):
                status = path.stat()
                listing[name.as_posix()] = [status.st_size, status.st_mtime_ns]
        return listing

    def _captured(self, version: int) -> Mapping[str, list[int]]:
        path = self.table.notes(version).get("listing") if version else None
        if path is None:
            return {}
        listing: dict[str, list[int]] = json.loads(self.table.read_beside(path))
        return listing

    def _write_listing(self, listing: Mapping[str, list[int]], version: int) -> str:
        path = f"{SIDE}/{version:020}-{uuid.uuid4()}.listing.json"
        self.table.write_beside(path, json.dumps(listing).encode())
        return path

    def _kept_rows(self, version: int, names: list[str]) -> pa.Table:
        if not names:
            return self.table.schema.empty_table()
        return self.table.rows(version, keys=pa.table({FILE: pa.array(names, pa.string())}))

    def _read(self, name: str) -> pa.Table:
        try:
            rows = READERS[self.format](self.directory / name, self.schema)
            rows = rows.select(self.schema.names).cast(self.schema)
        except (pa.ArrowException, OSError, KeyError) as error:
            raise StorageError(
                f"cannot read {self.directory / name} as {self.format}: {error}",
                code="bad-file",
                hint="mend the file or move it away; nothing of the directory was captured",
            ) from error
        return rows.append_column(FILE, pa.array([name] * rows.num_rows, pa.string()))


def _check_format(format: str) -> None:
    if format not in READERS:
        raise StorageError(
            f"files of format {format!r} cannot be read",
            code="unknown-format",
            hint=f"the formats are {', '.join(sorted(READERS))}",
        )


def _read_parquet(path: Path, schema: pa.Schema) -> pa.Table:
    return pq.ParquetFile(path).read(columns=schema.names)


def _read_csv(path: Path, schema: pa.Schema) -> pa.Table:
    """With a header; an empty field is NULL, a quoted empty one is empty text."""
    return pa.csv.read_csv(
        path,
        convert_options=pa.csv.ConvertOptions(
            column_types=schema,
            include_columns=schema.names,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
    )


def _read_json(path: Path, schema: pa.Schema) -> pa.Table:
    """One object a line; a missing field is NULL."""
    if not path.stat().st_size:
        return schema.empty_table()
    options = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    return pa.json.read_json(path, parse_options=options)


READERS: Mapping[str, Callable[[Path, pa.Schema], pa.Table]] = {
    "csv": _read_csv,
    "json": _read_json,
    "parquet": _read_parquet,
}
