"""A relation in the lake: a Delta table that is changed by net rows.

    rows(commit(plus, minus)) = rows − minus + plus
    changes(a, b)             = rows(b) − rows(a)

A commit rewrites the files that hold the changed keys and no others, and enters them in Delta's log
through delta-rs. Every version stays readable by any Delta reader. Beside the log, `_harken/` keeps
the net changes of each commit: Delta's change feed would give whole files for rewritten ones.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from harken.engines.delta import rewrite, weighted
from harken.engines.delta.data_files import Written, read_file, read_matching, write_file
from harken.engines.delta.delta_log import (
    address,
    committed_at,
    file_difference,
    no_such_version,
    open_delta,
    plain_path,
    storage,
)
from harken.engines.delta.snapshot import LakeFile, Snapshot
from harken.errors import IntegrityError, StorageError

ROWS_PER_FILE = 131_072
SNAPSHOTS_KEPT = 8
READERS = 4
NOTES = "harken"
SIDE = "_harken"


@dataclass(frozen=True)
class Mark:
    """Identifies a commit, so that it takes effect once however often it is repeated."""

    application: str
    number: int


class LakeTable:
    """
    >>> import tempfile
    >>> schema = pa.schema([("item", pa.int64()), ("quantity", pa.int64())])
    >>> table = LakeTable.create(tempfile.mkdtemp(), schema, key=["item"])
    >>> rows = pa.table({"item": [1, 2], "quantity": [10, 20]})
    >>> version = table.commit(rows, rows.slice(0, 0), expected_version=0)
    >>> table.rows(version, keys=pa.table({"item": [2]})).to_pylist()
    [{'item': 2, 'quantity': 20}]
    """

    def __init__(self, delta: DeltaTable, storage_options: dict[str, str] | None = None) -> None:
        settings = delta.metadata().configuration
        if "harken.key" not in settings:
            raise StorageError(
                f"{delta.table_uri} is a Delta table, but not one that Harken made",
                code="not-a-lake-table",
                hint="it can be read as an input: db.lake(name, path, key=[...])",
            )
        self.path = plain_path(delta.table_uri)
        self.schema: pa.Schema = pa.schema(delta.schema().to_arrow())
        self.key: tuple[str, ...] = tuple(json.loads(settings["harken.key"]))
        self.bag = settings["harken.semantics"] == "bag"
        self.rows_per_file = int(settings["harken.rowsPerFile"])
        self._delta = delta
        self._options = storage_options
        self._storage = storage(self.path, storage_options)
        self.groups_read = 0
        """Number of row groups opened to find keys."""
        self._snapshot = lru_cache(SNAPSHOTS_KEPT)(self._load)

    @classmethod
    def create(
        cls,
        path: str | Path,
        schema: pa.Schema,
        *,
        key: Sequence[str],
        bag: bool = False,
        rows_per_file: int = ROWS_PER_FILE,
        storage_options: dict[str, str] | None = None,
    ) -> LakeTable:
        """An empty table, which is version 0. The rows are kept in the order of the key."""
        where = address(path)
        if "://" not in where:
            Path(where).mkdir(parents=True, exist_ok=True)
        delta = DeltaTable.create(
            where,
            schema=Schema.from_arrow(schema),
            configuration={
                "delta.enableChangeDataFeed": "true",
                "harken.key": json.dumps(list(key)),
                "harken.semantics": "bag" if bag else "set",
                "harken.rowsPerFile": str(rows_per_file),
            },
            storage_options=storage_options,
            raise_if_key_not_exists=False,
        )
        return cls(delta, storage_options)

    @classmethod
    def open(cls, path: str | Path, storage_options: dict[str, str] | None = None) -> LakeTable:
        return cls(open_delta(path, storage_options=storage_options), storage_options)

    @property
    def version(self) -> int:
        """The newest version, even if another process committed it."""
        self._delta.update_incremental()
        return self._delta.version()

    def capture(self, progress: Any = None, *, set_aside: bool = False) -> int:
        """Nothing to capture: the newest version is in the log already."""
        return self.version

    def written(self, version: int) -> float | None:
        """When the version was written, in seconds of the Unix epoch."""
        return committed_at(self._delta, version)

    def snapshot(self, version: int | None = None) -> Snapshot:
        return self._snapshot(self.version if version is None else version)

    def bounds(self, version: int, column: str) -> list[tuple[Any, Any]]:
        """The least and the greatest value of a column in each file, as the log has them."""
        return [(each.lowest, each.highest) for each in self._snapshot(version).bounds(column)]

    def may_be_null(self, version: int, column: str) -> bool:
        """May the column contain a NULL, as far as the log says?"""
        return any(each.may_be_null for each in self._snapshot(version).bounds(column))

    def files(self, version: int | None = None, keys: pa.Table | None = None) -> list[LakeFile]:
        """The files of a version, or those of them that can hold one of the keys."""
        snapshot = self.snapshot(version)
        return snapshot.files if keys is None else snapshot.holding(self._typed(keys))

    def rows(self, version: int | None = None, keys: pa.Table | None = None) -> pa.Table:
        """The rows of a version, or those with one of the keys, read without Spark."""
        if keys is None:
            parts = [self._read(file.path) for file in self.files(version)]
            return pa.concat_tables([self.schema.empty_table(), *parts])
        wanted = self._typed(keys)
        files = self.files(version, keys)
        with ThreadPoolExecutor(READERS) as pool:
            parts = list(pool.map(lambda file: self._read_matching(file.path, wanted), files))
        return pa.concat_tables([self.schema.empty_table(), *parts])

    def changes(self, from_version: int, to_version: int) -> pa.Table:
        """The net rows, with weights, that lead from one version to the other."""
        if from_version > to_version:
            return weighted.negate(self.changes(to_version, from_version))
        parts = [self._change(note) for note in self._notes(from_version, to_version)]
        return weighted.consolidate(pa.concat_tables([weighted.empty(self.schema), *parts]))

    def change_parts(
        self, from_version: int, to_version: int
    ) -> list[tuple[list[str], int | None, int]]:
        """The location of the changes between two versions: files with the weight of their rows
        (None: a column holds it) and their number of rows. They are net only together."""
        parts: list[tuple[list[str], int | None, int]] = []
        for version, note in self._notes(from_version, to_version):
            path = (note or {}).get("changes")
            if note is not None and "changes" in note and path is None:
                continue
            if path is not None and self._exists(path):
                with self._storage.open_input_file(path) as source:
                    rows = pq.ParquetFile(source).metadata.num_rows
                parts.append(([f"{self.path}/{path}"], None, rows))
                continue
            old, new = ({f.path: f for f in self.files(v)} for v in (version - 1, version))
            for one, other, weight in ((old, new, -1), (new, old, 1)):
                files = [file for name, file in one.items() if name not in other]
                if files:
                    parts.append(([f.uri for f in files], weight, sum(f.rows for f in files)))
        return parts

    def notes(self, version: int) -> dict[str, Any]:
        """The note attached to the commit of this version: see `commit`."""
        found = [note for at, note in self._notes(version - 1, version) if at == version]
        return (found and found[0]) or {}

    def commit(
        self,
        plus: pa.Table,
        minus: pa.Table,
        *,
        expected_version: int,
        mark: Mark | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> int:
        """Add and remove rows and return the version that has them; the old version if the net
        change is empty.

        Repeated with the same mark, it changes nothing and returns the version it made before.
        """
        current = self.version
        done = self._version_marked(mark)
        if done is not None:
            return done
        if current != expected_version:
            raise self._conflict(expected_version, current)
        if plus.num_rows and not minus.num_rows and not self.snapshot(current).files:
            rewritten = rewrite.fill(self._layout(current), self._conform(plus))
            self._enter(rewritten, current, mark, dict(notes or {}), data_change=True)
            return current + 1
        delta = weighted.net(self._conform(plus), self._conform(minus))
        if not delta.num_rows and not notes:
            return current
        rewritten = rewrite.apply(self._layout(current), delta)
        note = dict(notes or {})
        if rewritten.removed:
            note["changes"] = self._write_changes(delta, current + 1)
        self._enter(rewritten, current, mark, note, data_change=True)
        return current + 1

    def version_of(self, mark: Mark) -> int | None:
        """The version that the commit with this mark made, if there was one."""
        self._delta.update_incremental()
        return self._version_marked(mark)

    def with_same_rows(self, version: int) -> int:
        """The version itself, or a later one that differs only by merged files."""
        for at, note in sorted(self._notes(version, self.version), key=lambda noted: noted[0]):
            if note is None or note.get("changes", "") is not None:
                break
            version = at
        return version

    def compact(self) -> int:
        """Merge small files and files whose keys overlap; the rows stay the same."""
        current = self.version
        rewritten = rewrite.compact(self._layout(current))
        if not rewritten.removed:
            return current
        kept = {name: value for name, value in self.notes(current).items() if name != "changes"}
        note = {**kept, "changes": None}
        self._enter(rewritten, current, None, note, data_change=False)
        return current + 1

    def write_beside(self, path: str, content: bytes) -> None:
        """A file under `_harken/` for a note to name; `path` begins with the version it is for."""
        self._storage.create_dir(SIDE)
        with self._storage.open_output_stream(path) as sink:
            sink.write(content)

    def read_beside(self, path: str) -> bytes:
        with self._storage.open_input_file(path) as source:
            content: bytes = source.read()
            return content

    def remove_old_versions(
        self, keep_from: int, *, abandoned_before: datetime | None = None
    ) -> int:
        """Delete files that only versions before `keep_from` need, and return their number.

        A file that no version knows may belong to a commit in progress; those written before
        `abandoned_before` are taken for leftovers of a crash.
        """
        current = self.version
        if not 0 <= keep_from <= current:
            raise no_such_version(self.path, keep_from)
        unused = self._delta.vacuum(
            retention_hours=0,
            dry_run=True,
            enforce_retention_duration=False,
            keep_versions=list(range(keep_from, current + 1)),
        )
        unneeded = {*unused, *self._stale_side_files(keep_from)}
        if abandoned_before is not None:
            unneeded |= self._abandoned(keep_from, abandoned_before)
        present = [path for path in sorted(unneeded) if self._exists(path)]
        for path in present:
            self._storage.delete_file(path)
        return len(present)

    def _stale_side_files(self, keep_from: int) -> set[str]:
        named = {
            value
            for _, note in self._notes(keep_from - 1)
            for value in (note or {}).values()
            if isinstance(value, str)
        }
        old = {path for path in self._list(SIDE) if int(Path(path).name[:20]) <= keep_from}
        return old - named

    def _abandoned(self, keep_from: int, before: datetime) -> set[str]:
        known = {
            file.path
            for version in range(keep_from, self._delta.version() + 1)
            for file in self.snapshot(version).files
        }
        return {
            path
            for path, written in self._list("").items()
            if path.startswith("part-") and path not in known and written < before
        }

    def _load(self, version: int) -> Snapshot:
        delta = self._delta
        if delta.version() != version:
            delta = open_delta(self.path, version, self._options)
        return Snapshot(version, self.path, pa.table(delta.get_add_actions(flatten=True)))

    def _layout(self, version: int) -> rewrite.Layout:
        return rewrite.Layout(
            self.snapshot(version),
            self.key,
            self.rows_per_file,
            self.bag,
            self._read,
            self.add_file,
        )

    def _read_matching(self, path: str, keys: pa.Table) -> pa.Table:
        def find(rows: pa.Table) -> pa.Array:
            if keys.column_names[0] == self.key[0]:
                return rewrite.positions_in_order(rows, keys)
            return rewrite.positions_of(rows, keys)

        scattered = find if keys.column_names[0] != self.key[0] else None
        found, groups = read_matching(self._storage, path, self.schema, keys, scattered)
        self.groups_read += groups
        return found.take(find(found))

    def _read(self, path: str) -> pa.Table:
        return read_file(self._storage, path, self.schema)

    def add_file(self, rows: pa.Table) -> Written:
        return write_file(self._storage, f"part-{uuid.uuid4()}.parquet", rows, self.key)

    def _conform(self, rows: pa.Table) -> pa.Table:
        return weighted.positive_zeros(rows.select(self.schema.names).cast(self.schema))

    def _typed(self, keys: pa.Table) -> pa.Table:
        fields = [self.schema.field(name) for name in keys.column_names]
        return weighted.positive_zeros(keys.cast(pa.schema(fields)))

    def _enter(
        self,
        rewritten: rewrite.Rewritten,
        current: int,
        mark: Mark | None,
        note: Mapping[str, Any],
        *,
        data_change: bool,
    ) -> None:
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(file.path, file.size, {}, now, data_change, file.statistics)
            for file in rewritten.added
        ]
        actions += [
            # Readers of the change feed reject a removal without a size.
            RemoveAction(file.path, data_change, now, size=file.size, partition_values={})
            for file in rewritten.removed
        ]
        entry = {**note, "mark": None if mark is None else [mark.application, mark.number]}
        properties = CommitProperties(
            custom_metadata={NOTES: json.dumps(entry)},
            max_commit_retries=0,  # a retry would put our files on top of someone else's version
            app_transactions=[Transaction(mark.application, mark.number)] if mark else None,
        )
        try:
            self._delta.create_write_transaction(
                actions, "append", self._delta.schema(), commit_properties=properties
            )
        except CommitFailedError as error:
            raise self._conflict(current, self.version) from error
        self._delta.update_incremental()

    def _conflict(self, expected: int, found: int) -> IntegrityError:
        return IntegrityError(
            f"{self.path} is at version {found}, not {expected}: someone else changed it",
            code="lake-conflict",
            hint="read its changes first, then commit again",
        )

    def _version_marked(self, mark: Mark | None) -> int | None:
        if mark is None:
            return None
        # delta-rs records marks but does not check them.
        newest = self._delta.transaction_version(mark.application)
        if newest is None or newest < mark.number:
            return None
        wanted = [mark.application, mark.number]
        marked = (at for at, note in self._notes(0) if note and note.get("mark") == wanted)
        return next(marked, self._delta.version())

    def _notes(self, after: int, until: int | None = None) -> Iterator[tuple[int, Any]]:
        """The commits after a version, newest first, each with its note (None: not ours)."""
        current = self._delta.version()
        until = current if until is None else until
        if until > current:
            until = self.version
            current = until
        for entry in self._delta.history(max(1, current - after)):
            version = int(entry["version"])
            if after < version <= until:
                yield version, json.loads(entry[NOTES]) if NOTES in entry else None

    def _change(self, noted: tuple[int, Any]) -> pa.Table:
        version, note = noted
        if note is not None and "changes" in note:
            path = note["changes"]
            if path is None:
                return weighted.empty(self.schema)
            if self._exists(path):
                return read_file(self._storage, path, weighted.empty(self.schema).schema)
        return file_difference(
            self.snapshot(version - 1), self.snapshot(version), self.schema, self._read
        )

    def _write_changes(self, delta: pa.Table, version: int) -> str:
        self._storage.create_dir(SIDE)
        path = f"{SIDE}/{version:020}-{uuid.uuid4()}.parquet"
        write_file(self._storage, path, delta, ())
        return path

    def _exists(self, path: str) -> bool:
        return bool(self._storage.get_file_info(path).type == pa.fs.FileType.File)

    def _list(self, directory: str) -> dict[str, datetime]:
        selector = pa.fs.FileSelector(directory, allow_not_found=True)
        infos = self._storage.get_file_info(selector)
        return {info.path: info.mtime for info in infos if info.is_file}
