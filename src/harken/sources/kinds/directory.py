"""A directory of Parquet, CSV or JSON files, one object in a line: the rows of all of them.

The column `_file` says where a row came from. Names that begin with `_` or `.` are left out.

Law: a file that cannot be read with the columns of the source is set aside, and the others are
read. Nothing is read if no file has changed.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from harken.errors import HarkenError, SourceFault
from harken.limits import check
from harken.sources.column_types import TEXT
from harken.sources.file_formats import READERS, SUFFIXES, schema_of_file
from harken.sources.local_files import files_below, is_unchanged, permitted, stamp_of
from harken.sources.outside import Context, Opened, Option, OutsideSchema, Position, Snapshot
from harken.sources.polled_documents import meaning_of
from harken.sources.typed_rows import declared_types

FILE = "_file"
BATCH = 100_000
"""Rows in a batch."""
MOST_TRIED = 20
"""Files that are looked at for the columns, if the first ones cannot be read."""


@dataclass(slots=True)
class PolledDirectory:
    directory: str
    pattern: str
    format: str | None
    types: Mapping[str, pa.DataType]
    context: Context
    meaning: str

    def schema(self) -> OutsideSchema:
        files, format = self._files()
        return OutsideSchema(self._columns(files, format).append(pa.field(FILE, TEXT)))

    def snapshot(self, since: Position | None = None) -> Snapshot | None:
        files, format = self._files()
        before = self._stamps_of(since)
        if before is not None and self._is_same(files, before):
            return None
        stamps = {name: stamp_of(path) for name, path in files.items() if path.exists()}
        schema = self._columns(files, format)
        aside: dict[str, str] = {}
        times = [path.stat().st_mtime for path in files.values() if path.exists()]
        return Snapshot(
            OutsideSchema(schema.append(pa.field(FILE, TEXT))),
            self._batches(files, format, schema, aside),
            position=json.dumps({"of": self.meaning, "files": stamps}),
            at=datetime.datetime.fromtimestamp(max(times), datetime.UTC) if times else None,
            set_aside=aside,
            part_column=FILE,
        )

    def close(self) -> None: ...

    def _batches(
        self, files: Mapping[str, Path], format: str, schema: pa.Schema, aside: dict[str, str]
    ) -> Iterator[pa.RecordBatch]:
        for name, path in files.items():
            check()
            try:
                table = READERS[format](path, schema).select(schema.names).cast(schema)
            except (pa.ArrowException, OSError, KeyError, ValueError) as error:
                aside[name] = " ".join(str(error).split())[:500]
                continue
            part = pa.array([name] * table.num_rows, TEXT)
            yield from table.append_column(FILE, part).to_batches(max_chunksize=BATCH)
        if aside and len(aside) == len(files):
            name, why = next(iter(aside.items()))
            raise SourceFault(
                f"none of the {len(files)} files in {self.directory} can be read; {name}: {why}",
                code="source-suspect",
                hint="check the options format and types",
            )

    def _files(self) -> tuple[dict[str, Path], str]:
        """By their names in the directory; and their format."""
        top = permitted(self.directory, self.context.allowed_roots)
        found = files_below(self.directory, self.pattern, self.context.allowed_roots)
        named = {
            path.relative_to(top).as_posix() if path.is_relative_to(top) else str(path): path
            for path in found
        }
        formats = {SUFFIXES.get(path.suffix.lower()) for path in found} - {None}
        format = self.format or (formats.pop() if len(formats) == 1 else None)
        if format is None:
            raise SourceFault(
                f"{self.directory} has files of {len(formats)} formats"
                if formats
                else f"{self.directory} has no files whose names tell their format",
                code="bad-option",
                hint=f"give the option format: {', '.join(READERS)}",
            )
        of_format = {
            name: path
            for name, path in named.items()
            if SUFFIXES.get(path.suffix.lower()) == format
        }
        return of_format or named, format

    def _columns(self, files: Mapping[str, Path], format: str) -> pa.Schema:
        """Those of the mirror, or of the first file that can be read; declared types go first."""
        if self.context.known is not None:
            known = self.context.known.columns
            return pa.schema([each for each in known if each.name != FILE])
        failed: HarkenError | None = None
        for path in list(files.values())[:MOST_TRIED]:
            try:
                found = schema_of_file(path, format)
            except HarkenError as error:
                failed = failed or error
                continue
            return self._declared(found)
        if failed is not None:
            raise SourceFault(failed.message, code="source-suspect", hint=failed.hint)
        if self.types:
            return pa.schema(list(self.types.items()))
        raise SourceFault(
            f"{self.directory} has no files yet, so their columns are not known",
            code="bad-option",
            hint="name them with their types: types 'id integer, name text'",
        )

    def _declared(self, schema: pa.Schema) -> pa.Schema:
        strange = [name for name in self.types if name not in schema.names]
        if strange:
            raise SourceFault(
                f"the option types names the column {strange[0]}, which the files do not have",
                code="bad-option",
                hint=f"the columns are {', '.join(schema.names)}",
            )
        fields = [(each.name, self.types.get(each.name, _plain(each.type))) for each in schema]
        return pa.schema(fields)

    def _stamps_of(self, since: Position | None) -> dict[str, str] | None:
        found = json.loads(since) if since else {}
        return dict(found["files"]) if found.get("of") == self.meaning else None

    @staticmethod
    def _is_same(files: Mapping[str, Path], before: Mapping[str, str]) -> bool:
        try:
            return files.keys() == before.keys() and all(
                is_unchanged(path, before[name]) for name, path in files.items()
            )
        except OSError:
            return False


def _plain(type_: pa.DataType) -> pa.DataType:
    """A column in which the file that was looked at has no value is text."""
    return TEXT if pa.types.is_null(type_) else type_


@dataclass(frozen=True, slots=True)
class DirectoryKind:
    name = "directory"
    title = "directory of Parquet, CSV or JSON files"
    captures = ("poll",)
    options: tuple[Option, ...] = (
        Option("directory", "The directory, with its subdirectories.", required=True),
        Option("pattern", "Which files, such as `*.csv`.", default="*"),
        Option(
            "format", "The format, where names do not tell it.", "choice", choices=tuple(READERS)
        ),
        Option("types", "Types of columns: `price decimal(8, 2), day date`.", "names", ()),
    )

    def open(
        self, options: Mapping[str, Any], context: Context, capture: str | None = None
    ) -> Opened:
        return Opened(
            polled=PolledDirectory(
                options["directory"],
                options["pattern"],
                options["format"],
                declared_types(options["types"]),
                context,
                meaning_of(self.name, options),
            )
        )


KIND = DirectoryKind()
