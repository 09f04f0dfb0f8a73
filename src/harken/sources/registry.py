"""What can stand behind a far relation, and how its changes are captured.

| kind      | what it is                             | its changes                             |
| --------- | -------------------------------------- | --------------------------------------- |
| own       | a table that Harken writes             | the net rows that each commit noted     |
| delta     | a Delta table of someone else          | the change feed, or files that differ   |
| directory | files in a directory that grows        | new and vanished files                  |
| frame     | any DataFrame that the user registered | its rows now against those of last time |

Directories and DataFrames have no versions; for them Harken keeps their rows in a table of its own,
beside its others, whose versions are theirs. `capture` brings it up to date.

Law: rows(capture()) are the rows that the source has now, and
     changes(a, b) = rows(b) − rows(a).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from harken.engines.delta.snapshot import LakeFile
from harken.engines.delta.tables import LakeTable
from harken.engines.lake.catalog import DELTA, DIRECTORY, FRAME, Place
from harken.errors import EngineError, StorageError
from harken.sources.delta_table import BEGIN_AGAIN, DeltaInput
from harken.sources.directory import DirectoryInput, Progress, check_objects

SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json"}


class Source(Protocol):
    """A table with versions."""

    path: str
    schema: pa.Schema
    key: tuple[str, ...]

    @property
    def version(self) -> int: ...
    def files(self, version: int | None = None, keys: pa.Table | None = None) -> list[LakeFile]: ...
    def rows(self, version: int | None = None, keys: pa.Table | None = None) -> pa.Table: ...
    def changes(self, from_version: int, to_version: int) -> pa.Table: ...
    def bounds(self, version: int, column: str) -> list[tuple[Any, Any]]: ...
    def may_be_null(self, version: int, column: str) -> bool: ...
    def capture(self, progress: Progress | None = None, *, set_aside: bool = False) -> int:
        """Look what is new; the version that has it. With `set_aside` files that cannot be read
        are left out and noted."""

    def written(self, version: int) -> float | None:
        """When what is new in a version was written, in seconds of the Unix epoch, if known."""


class KeptSource:
    """A source without versions of its own, whose rows are kept in a table that has them."""

    def __init__(self, table: LakeTable) -> None:
        self.kept = table
        self.path = table.path
        self.schema = table.schema
        self.key = table.key
        self.plain_files = True

    @property
    def version(self) -> int:
        return self.kept.version

    def files(self, version: int | None = None, keys: pa.Table | None = None) -> list[LakeFile]:
        return self.kept.files(version, keys)

    def rows(self, version: int | None = None, keys: pa.Table | None = None) -> pa.Table:
        return self.kept.rows(version, keys)

    def changes(self, from_version: int, to_version: int) -> pa.Table:
        return self.kept.changes(from_version, to_version)

    def bounds(self, version: int, column: str) -> list[tuple[Any, Any]]:
        return self.kept.bounds(version, column)

    def may_be_null(self, version: int, column: str) -> bool:
        return self.kept.may_be_null(version, column)


class DirectorySource(KeptSource):
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


class FrameSource(KeptSource):
    """Until the user registers a DataFrame again, after reopening, its last rows stand."""

    def __init__(self, table: LakeTable, reader: Any, frame: Any) -> None:
        super().__init__(table)
        self._reader = reader
        self._frame = frame

    def written(self, version: int) -> float | None:
        return None

    def capture(self, progress: Progress | None = None, *, set_aside: bool = False) -> int:
        version = self.kept.version
        if self._frame is None:
            return version
        plus, minus = _difference(
            self._frame.select(*map(_quoted, self.schema.names)),
            self._reader.frame(self.kept, version),
        )
        collect = self._reader.collect
        return self.kept.commit(
            collect(plus, self.schema), collect(minus, self.schema), expected_version=version
        )


def _difference(now: Any, before: Any) -> tuple[Any, Any]:
    """What Spark finds in the one and not in the other, each row as often as it is more."""
    return now.exceptAll(before), before.exceptAll(now)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def open_source(place: Place, key: Sequence[str], reader: Any, frame: Any) -> Source:
    options = place.options
    if place.kind == DELTA:
        return DeltaInput(
            place.path,
            key=tuple(key),
            columns=options["columns"],
            identity=options["identity"],
            version=place.version,
            entry=options.get("entry"),
        )
    table = LakeTable.open(place.path)
    if place.kind == DIRECTORY:
        return DirectorySource(options["directory"], table, options["format"])
    if place.kind == FRAME:
        return FrameSource(table, reader, frame)
    return table


def look_at_directory(
    directory: Path, format: str | None, schema: pa.Schema | None
) -> tuple[str, pa.Schema]:
    """The format of its files, and their columns."""
    format = format or format_of(directory)
    return format, schema or schema_of(directory, format)


def format_of(directory: Path) -> str:
    found = {format for file in _files(directory) if (format := _suggested(file))}
    if len(found) != 1:
        raise EngineError(
            f"{directory} has files of {len(found)} formats"
            if found
            else f"{directory} has no files whose names tell their format",
            code="unknown-format",
            hint='say which: db.lake(name, path, key=[...], format="csv")',
        )
    return found.pop()


def _files(directory: Path) -> list[Path]:
    return sorted(
        file
        for file in directory.rglob("*")
        if file.is_file() and not file.name.startswith(("_", "."))
    )


def _suggested(file: Path) -> str | None:
    return SUFFIXES.get(file.suffix.lower())


def schema_of(directory: Path, format: str) -> pa.Schema:
    import pyarrow.dataset

    every = _files(directory)
    files = [str(file) for file in every if _suggested(file) == format] or list(map(str, every))
    if not files:
        raise EngineError(
            f"{directory} has no files yet, so their columns are not known",
            code="unknown-format",
            hint="give them: db.lake(name, path, key=[...], schema=pyarrow.schema([...]))",
        )
    try:
        if format == "json":
            check_objects(Path(files[0]))
        return pyarrow.dataset.dataset(files[:1], format=format).schema.remove_metadata()
    except (pa.ArrowException, OSError) as error:
        raise StorageError(
            f"cannot read {files[0]} as {format}: {error}",
            code="bad-file",
            hint="mend the file or move it away",
        ) from error


def change_size(source: Source, before: int, after: int) -> int:
    """About how many rows changed between two versions; never fewer than did."""
    kept = source.kept if isinstance(source, KeptSource) else source
    if isinstance(kept, LakeTable):
        parts = kept.change_parts(before, after)
        return sum(rows for _, _, rows in parts)
    old, new = ({file.path: file.rows for file in source.files(v)} for v in (before, after))
    return sum(rows for path, rows in old.items() if path not in new) + sum(
        rows for path, rows in new.items() if path not in old
    )
