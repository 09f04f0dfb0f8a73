"""A directory of files that grows, as an input: a new file adds its rows, a vanished one takes them
back, a file that changed does both. A vanished file can no longer be read, so the rows are kept in
a lake table of Harken's own, whose versions are what views read; its column `_file` says where a
row came from.

    rows(capture()) = the rows of all files in the directory
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from harken.engines.delta import weighted
from harken.engines.delta.tables import SIDE, LakeTable
from harken.errors import StorageError

Progress = Callable[[int, int], None]
"""Who is told how many files have been read, and of how many."""
FILE = "_file"


Stamp: TypeAlias = list[Any]
"""Of a file: its size, its time in nanoseconds, and if it was set aside, why."""
PLAIN = 2
"""How many parts the stamp of a file has that could be read."""


class DirectoryInput:
    """The files of one format in a directory and the directories in it.

    Names that begin with `_` or `.` are left out, as Spark leaves them out: write a file under such
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
        """Nothing of the directory is read yet; `path` is where the rows will be kept."""
        check_format(format)
        schema = schema.append(pa.field(FILE, pa.string()))
        return cls(directory, LakeTable.create(path, schema, key=key, bag=True), format=format)

    def capture(self, progress: Progress | None = None, *, set_aside: bool = False) -> int:
        """Bring the table up to date with the directory; the version that is.

        What was captured is noted in the commit itself: a capture that dies is simply repeated.
        With `set_aside` a file that cannot be read is noted with the reason, and read again only
        when it changes; until then the rows stay that it had when it could be read.
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
        """When the newest file of a version was, in seconds of the Unix epoch."""
        times = [nanoseconds for _, nanoseconds, *_ in self._captured(version).values()]
        return max(times) / 1e9 if times else None

    def set_aside(self, version: int) -> dict[str, str]:
        """The files of a version that cannot be read, and why."""
        captured = self._captured(version)
        return {name: stamp[PLAIN] for name, stamp in captured.items() if len(stamp) > PLAIN}

    def changes(self, from_version: int, to_version: int) -> pa.Table:
        """The net rows, with weights; a row that moved to another file is no change."""
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
    """Has a file not changed since it was captured? One that was set aside is tried again where
    nothing is set aside."""
    return before is not None and before[:PLAIN] == now and (set_aside or len(before) == PLAIN)


def check_format(format: str) -> None:
    if format not in READERS:
        raise StorageError(
            f"files of format {format!r} cannot be read",
            code="unknown-format",
            hint=f"the formats are {', '.join(sorted(READERS))}",
        )


def _read_parquet(path: Path, schema: pa.Schema) -> pa.Table:
    rows = pq.ParquetFile(path).read(columns=schema.names)
    for field in schema:
        found = rows.schema.field(field.name).type
        if _kind(found) != _kind(field.type):
            raise pa.ArrowInvalid(f"the column {field.name} is {found} there, not {field.type}")
    return rows


def _kind(type_: pa.DataType) -> str:
    """Values of one kind are cast into each other without becoming something else."""
    kinds = {
        "integer": pa.types.is_integer,
        "floating": pa.types.is_floating,
        "date": pa.types.is_date,
        "timestamp": pa.types.is_timestamp,
        "decimal": pa.types.is_decimal,
    }
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return "text"
    return next((name for name, test in kinds.items() if test(type_)), str(type_))


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
    check_objects(path)
    options = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    return pa.json.read_json(path, parse_options=options)


def check_objects(path: Path) -> None:
    """Arrow's reader does not survive a file that begins with something else."""
    with path.open("rb") as lines:
        first = next((line for line in lines if line.strip()), b"{")
    if not first.lstrip(b"\xef\xbb\xbf \t").startswith(b"{"):
        raise pa.ArrowInvalid("each line must be an object")


READERS: Mapping[str, Callable[[Path, pa.Schema], pa.Table]] = {
    "csv": _read_csv,
    "json": _read_json,
    "parquet": _read_parquet,
}
