"""A Delta table written by others, as an input: read at any of its versions, never written.

Only some of its columns are read, and they stay as they were when it was registered. If the columns
change, or the table is deleted and created again, its versions no longer continue the old ones and
reading on would give wrong answers. Such a table is rejected; so is one that was restored to an
earlier state, whose versions now mean something else.

    rows(b) = rows(a) + changes(a, b)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from harken.engines.delta import rewrite, weighted
from harken.engines.delta.delta_log import (
    change_feed,
    committed_at,
    file_difference,
    has_exact_feed,
    open_delta,
    plain_path,
    storage,
)
from harken.engines.delta.snapshot import LakeFile, Snapshot
from harken.engines.delta.tables import SNAPSHOTS_KEPT
from harken.errors import StorageError, TypeFault
from harken.sources.place import Place
from harken.sources.registry import ChangeParts, Described, FreePath, Request

# Delta features by which a file hides rows from a plain Parquet reader.
UNREADABLE_FEATURES = frozenset({"columnMapping", "deletionVectors"})
BEGIN_AGAIN = "to go on with what is there now, delete the function and register it again"


class DeltaInput:
    """`key` is the columns that rows are looked up by. A table registered before is opened with
    its columns, its identity, the version that is read, and the log's entry for that version."""

    def __init__(
        self,
        path: str | Path,
        *,
        key: tuple[str, ...],
        columns: Sequence[str] | None = None,
        identity: str | None = None,
        version: int | None = None,
        entry: str | None = None,
        storage_options: dict[str, str] | None = None,
    ) -> None:
        self._options = storage_options
        self._delta = open_delta(path, storage_options=storage_options)
        self._seen = self._log_entry()
        self.path = plain_path(self._delta.table_uri)
        self.groups_read = 0
        """Not counted."""
        self.identity = identity or str(self._delta.metadata().id)
        """The id that Delta gives every table at its creation."""
        self.standing = version, entry
        """The version that is read, and its entry in the log."""
        opened = self._delta if version is None else self._at(version)
        self.schema: pa.Schema = _columns(opened, columns)
        self.key = key
        self.partition_columns = tuple(self._delta.metadata().partition_columns)
        self._snapshot = lru_cache(SNAPSHOTS_KEPT)(self._load)

    # --- versions --------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The newest version."""
        self._refresh()
        self._check_identity(self._delta)
        self._check_entry()
        return self._delta.version()

    def note(self, version: int) -> dict[str, Any]:
        return {"entry": self.entry(version)}

    def stand_on(self, place: Place) -> None:
        self.standing = place.version, place.options.get("entry")

    def set_aside(self, version: int) -> dict[str, str]:
        return {}

    def entry(self, version: int) -> str | None:
        """Identifies this version among all of its number, if the log still has it."""
        path = plain_path(self._delta.table_uri)
        if "://" in path:
            return None
        try:
            text = Path(path, "_delta_log", f"{version:020}.json").read_bytes()
        except OSError:  # a checkpoint took its place
            return None
        return hashlib.sha256(text).hexdigest()[:16]

    def _check_entry(self) -> None:
        version, entry = self.standing
        if version is None or entry is None:
            return
        if self._delta.version() < version or self.entry(version) not in (entry, None):
            raise StorageError(
                f"version {version} of {self.path} is not what it was: the table was put back to "
                "an earlier state, and has gone on from there",
                code="input-changed",
                hint=f"put the newer one back, or {BEGIN_AGAIN}",
            )

    def capture(
        self, progress: Callable[[int, int], None] | None = None, *, set_aside: bool = False
    ) -> int:
        """Nothing to capture: the newest version is in the log already."""
        version = self.version
        _check_columns(self.schema, _columns(self._delta), f"{self.path} (version {version})")
        return version

    def written(self, version: int) -> float | None:
        """When the version was written, in seconds of the Unix epoch."""
        return committed_at(self._delta, version)

    def _refresh(self) -> None:
        """If someone replaced the log, reading must not continue where the old one ended."""
        if self._seen is not None and self._seen == self._log_entry():
            self._delta.update_incremental()
        else:
            self._delta = open_delta(self.path, storage_options=self._options)
        self._seen = self._log_entry()

    def _log_entry(self) -> tuple[int, int] | None:
        """Identifies the last log entry read among all files of that name."""
        path = plain_path(self._delta.table_uri)
        if "://" in path:
            return None
        try:
            status = Path(path, "_delta_log", f"{self._delta.version():020}.json").stat()
        except OSError:  # a checkpoint took its place
            return None
        return status.st_ino, status.st_mtime_ns

    def _at(self, version: int) -> DeltaTable:
        try:
            found = open_delta(self.path, version, self._options)
        except StorageError as error:
            if error.code == "no-such-version":
                newest = open_delta(self.path, storage_options=self._options)
                self._check_identity(newest)
                written = newest.version()
                error.hint = (
                    f"its log was shortened; {BEGIN_AGAIN}"
                    if version <= written
                    else f"its newest version is {written}"
                )
            raise
        self._check_identity(found)
        self._check_entry()
        return found

    def _check_identity(self, found: DeltaTable) -> None:
        if str(found.metadata().id) != self.identity:
            raise StorageError(
                f"the Delta table {self.path} is not the one that was registered: that was deleted "
                "and another was made in its place, so its changes are unknown",
                code="input-changed",
                hint=f"put the old one back, or {BEGIN_AGAIN}",
            )

    # --- rows ------------------------------------------------------------------------------

    @property
    def plain_files(self) -> bool:
        """Whether the rows are exactly what a Parquet reader finds in `files`."""
        features = frozenset(self._delta.protocol().reader_features or ())
        mapped = self._delta.metadata().configuration.get("delta.columnMapping.mode", "none")
        return not (features & UNREADABLE_FEATURES or self.partition_columns or mapped != "none")

    def bounds(self, version: int, column: str) -> list[tuple[Any, Any]]:
        """The least and the greatest value of a column in each file, as the log has them."""
        return [(each.lowest, each.highest) for each in self._snapshot(version).bounds(column)]

    def may_be_null(self, version: int, column: str) -> bool:
        """May the column contain a NULL, as far as the log says?"""
        return any(each.may_be_null for each in self._snapshot(version).bounds(column))

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
        if keys is None:
            return found
        return found.take(rewrite.positions_of(found, weighted.positive_zeros(keys)))

    def _scan(self, version: int) -> pa.Table:
        """Rows read by delta-rs, which supports all of Delta."""
        return self._conform(pa.table(self._at(version).scan(columns=self.schema.names)))

    def changes(self, from_version: int, to_version: int) -> pa.Table:
        """The net rows with weights: from the change feed if it is exact, otherwise from the
        files that differ."""
        if from_version > to_version:
            return weighted.negate(self.changes(to_version, from_version))
        if from_version == to_version:
            return weighted.empty(self.schema)
        if not has_exact_feed(self._delta, from_version, to_version):
            return self._difference(from_version, to_version)
        try:
            return change_feed(self._delta, from_version, to_version, self.schema)
        except (DeltaError, pa.ArrowException, KeyError):
            # The feed was off for some of these versions, or a column was missing for a while.
            return self._difference(from_version, to_version)

    def change_size(self, from_version: int, to_version: int) -> int:
        return sum(rows for _, _, rows in self._changed_files(from_version, to_version))

    def change_parts(self, from_version: int, to_version: int) -> ChangeParts | None:
        return self._changed_files(from_version, to_version) if self.plain_files else None

    def _changed_files(self, from_version: int, to_version: int) -> ChangeParts:
        old, new = ({f.path: f for f in self.files(v)} for v in (from_version, to_version))
        gone = [file for path, file in old.items() if path not in new]
        come = [file for path, file in new.items() if path not in old]
        return [
            ([file.uri for file in files], weight, sum(file.rows for file in files))
            for files, weight in ((gone, -1), (come, 1))
        ]

    def _difference(self, old: int, new: int) -> pa.Table:
        if not self.plain_files:
            return weighted.net(self.rows(new), self.rows(old))
        files = storage(self.path, self._options)
        snapshots = self._snapshot(old), self._snapshot(new)
        return file_difference(*snapshots, self.schema, lambda path: self._read(files, path))

    def _read(self, files: Any, path: str) -> pa.Table:
        with files.open_input_file(path) as source:
            file = pq.ParquetFile(source)
            there = set(file.schema_arrow.names)
            found = file.read(columns=[name for name in self.schema.names if name in there])
        missing = [field for field in self.schema if field.name not in there]
        for field in missing:  # the column is younger than the file
            found = found.append_column(field, pa.nulls(found.num_rows, field.type))
        return self._conform(found)

    def _conform(self, found: pa.Table) -> pa.Table:
        return weighted.positive_zeros(found.select(self.schema.names).cast(self.schema))

    def _load(self, version: int) -> Snapshot:
        actions = self._at(version).get_add_actions(flatten=True)
        return Snapshot(version, self.path, pa.table(actions), self._count)

    def _count(self, path: str) -> int:
        with storage(self.path, self._options).open_input_file(path) as source:
            return int(pq.ParquetFile(source).metadata.num_rows)


def _columns(delta: DeltaTable, wanted: Sequence[str] | None = None) -> pa.Schema:
    schema: pa.Schema = pa.schema(delta.schema().to_arrow())
    if wanted is None:
        return schema
    return pa.schema([schema.field(name) for name in wanted])


def _check_columns(known: pa.Schema, now: pa.Schema, where: str) -> None:
    for field in known:
        if field.name not in now.names:
            problem = f"the column {field.name} is gone from {where}"
        elif now.field(field.name).type != field.type:
            found = now.field(field.name).type
            problem = f"the column {field.name} of {where} was {field.type} and is {found} now"
        else:
            continue
        raise StorageError(
            problem,
            code="input-changed",
            hint=f"put it back as it was, and step again; or {BEGIN_AGAIN}",
        )


class DeltaKind:
    name = "delta"
    title = "Delta table"
    has_versions = True
    keeps_files = False

    def accepts(self, given: Any) -> bool:
        if not isinstance(given, str | Path):
            return False
        return "://" in str(given) or (Path(given) / "_delta_log").is_dir()

    def describe(self, request: Request) -> Described:
        if request.format is not None or request.schema is not None:
            raise TypeFault(
                "a Delta table says itself what format and columns it has",
                code="bad-value",
                hint="leave out format= and schema=",
            )
        path = _absolute(request.source)
        found = DeltaInput(path, key=tuple(request.key), version=request.version)
        begin = found.version if request.version is None else request.version
        options = {"identity": found.identity}
        return Described(self, found.schema, path, options, version=begin)

    def make(
        self, described: Described, free: FreePath, columns: Sequence[str], keys: int, unique: bool
    ) -> tuple[str, int]:
        assert described.version is not None
        return described.path, described.version

    def is_at(self, place: Place, given: Any) -> bool:
        return isinstance(given, str | Path) and _absolute(given) == place.path

    def open(self, place: Place, key: Sequence[str], reader: Any, frame: Any) -> DeltaInput:
        return DeltaInput(
            place.path,
            key=tuple(key),
            columns=place.options["columns"],
            identity=place.options["identity"],
            version=place.version,
            entry=place.options.get("entry"),
        )


def _absolute(given: str | Path) -> str:
    return str(given) if "://" in str(given) else str(Path(given).resolve())


KIND = DeltaKind()
