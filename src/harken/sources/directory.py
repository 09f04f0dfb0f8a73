"""A growing directory of files, as an input: a new file adds its rows, a deleted one removes them,
a changed file does both. A deleted file can no longer be read, so the rows are kept in a lake table
of Harken's own; views read the versions of that table. Its column `_file` says where a row came
from.

    rows(capture()) = the rows of all files in the directory
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from harken.engines import arrow_rows
from harken.engines.delta import weighted
from harken.engines.delta.tables import SIDE, LakeTable
from harken.errors import EngineError, StorageError
from harken.sources.delta_table import BEGIN_AGAIN
from harken.sources.file_formats import READERS, check_format, check_schema, look_at_directory
from harken.sources.kept_table import KeptTable
from harken.sources.place import Place
from harken.sources.registry import Described, FreePath, Progress, Request

FILE = "_file"


Stamp: TypeAlias = list[Any]
"""A file's size, its time in nanoseconds, and the reason if it was set aside."""
PLAIN = 2
"""Parts in the stamp of a readable file."""


class DirectoryInput:
    """The files of one format in a directory and its subdirectories.

    Names that begin with `_` or `.` are ignored, as Spark ignores them: write a file under such
    a name and rename it when it is complete.
    """

    def __init__(self, directory: str | Path, table: LakeTable, *, format: str) -> None:
        check_format(format)
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
        """An input that has read nothing yet; `path` is where the rows will be kept."""
        check_format(format)
        schema = schema.append(pa.field(FILE, pa.string()))
        return cls(directory, LakeTable.create(path, schema, key=key, bag=True), format=format)

    def capture(self, progress: Progress | None = None, *, set_aside: bool = False) -> int:
        """Bring the table up to date with the directory and return its version.

        The commit itself records what was captured, so a capture that dies is simply repeated.
        With `set_aside`, a file that cannot be read is noted with the reason and read again only
        when it changes; until then its last readable rows stay.
        """
        version = self.table.version
        old, new = self._captured(version), self._listing()
        come = [name for name in new if not _is_known(old.get(name), new[name], set_aside)]
        gone = [name for name in old if name not in new or name in come]
        if not come and not gone:
            return version
        parts = [self.table.schema.empty_table()]
        listed = {name: old[name] for name in new if name not in come}
        for number, name in enumerate(come):
            if progress is not None:
                progress(number, len(come))
            listed[name] = new[name]
            try:
                parts.append(self._read(name))
            except StorageError as error:
                if not set_aside:
                    raise
                listed[name] = [*new[name], error.message]
        gone = [name for name in gone if name not in listed or len(listed[name]) == PLAIN]
        listing = self._write_listing(listed, version + 1)
        return self.table.commit(
            pa.concat_tables(parts),
            self._kept_rows(version, gone),
            expected_version=version,
            notes={"listing": listing},
        )

    def written(self, version: int) -> float | None:
        """The time of the newest file in a version, in seconds of the Unix epoch."""
        times = [nanoseconds for _, nanoseconds, *_ in self._captured(version).values()]
        return max(times) / 1e9 if times else None

    def set_aside(self, version: int) -> dict[str, str]:
        """The files of a version that cannot be read, and why."""
        captured = self._captured(version)
        return {name: stamp[PLAIN] for name, stamp in captured.items() if len(stamp) > PLAIN}

    def changes(self, from_version: int, to_version: int) -> pa.Table:
        """The net rows with weights; a row that moved to another file is no change."""
        return weighted.project(self.table.changes(from_version, to_version), self.schema.names)

    def _listing(self) -> dict[str, Stamp]:
        listing: dict[str, Stamp] = {}
        for path in sorted(self.directory.rglob("*")):
            name = path.relative_to(self.directory)
            if path.is_file() and not any(part.startswith(("_", ".")) for part in name.parts):
                status = path.stat()
                listing[name.as_posix()] = [status.st_size, status.st_mtime_ns]
        return listing

    def _captured(self, version: int) -> Mapping[str, Stamp]:
        path = self.table.notes(version).get("listing") if version else None
        if path is None:
            return {}
        listing: dict[str, Stamp] = json.loads(self.table.read_beside(path))
        return listing

    def _write_listing(self, listing: Mapping[str, Stamp], version: int) -> str:
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


def _is_known(before: Stamp | None, now: Stamp, set_aside: bool) -> bool:
    """Is a file unchanged since it was captured? A file that was set aside is tried again where
    nothing may be set aside."""
    return before is not None and before[:PLAIN] == now and (set_aside or len(before) == PLAIN)


class DirectorySource(KeptTable):
    def __init__(self, directory: str, table: LakeTable, format: str) -> None:
        super().__init__(table)
        self._input = DirectoryInput(directory, table, format=format)

    def changes(self, from_version: int, to_version: int) -> pa.Table:
        return self._input.changes(from_version, to_version)

    def written(self, version: int) -> float | None:
        return self._input.written(version)

    def set_aside(self, version: int) -> dict[str, str]:
        return self._input.set_aside(version)

    def capture(self, progress: Progress | None = None, *, set_aside: bool = False) -> int:
        if not self._input.directory.is_dir():
            raise StorageError(
                f"there is no directory {self._input.directory}",
                code="no-lake-table",
                hint=f"put it back, or {BEGIN_AGAIN}",
            )
        return self._input.capture(progress, set_aside=set_aside)


class DirectoryKind:
    name = "directory"
    title = "directory of files"
    has_versions = False
    keeps_files = True

    def accepts(self, given: Any) -> bool:
        return isinstance(given, str | Path)

    def describe(self, request: Request) -> Described:
        if request.format is not None:
            check_format(request.format)
        check_schema(request.schema)
        directory = Path(request.source).resolve()
        if not directory.is_dir():
            raise EngineError(
                f"there is no Delta table or directory at {request.source}",
                code="no-lake-table",
                hint="check the path",
            )
        format, schema = look_at_directory(directory, request.format, request.schema)
        return Described(self, schema, options={"directory": str(directory), "format": format})

    def make(
        self, described: Described, free: FreePath, columns: Sequence[str], keys: int, unique: bool
    ) -> tuple[str, int]:
        schema = arrow_rows.storable([described.schema.field(column) for column in columns])
        path = free()
        where, format = described.options["directory"], described.options["format"]
        DirectoryInput.create(where, path, schema, key=list(columns[:keys]), format=format)
        return path, 0

    def is_at(self, place: Place, given: Any) -> bool:
        if not self.accepts(given):
            return False
        return str(Path(given).resolve()) in (place.path, place.options["directory"])

    def open(self, place: Place, key: Sequence[str], reader: Any, frame: Any) -> DirectorySource:
        options = place.options
        return DirectorySource(options["directory"], LakeTable.open(place.path), options["format"])


KIND = DirectoryKind()
