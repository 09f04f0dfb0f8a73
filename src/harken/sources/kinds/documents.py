"""The documents in a directory: path, name, size, time and text of each.

The text of a page of HTML is what people see of it; a file that is no text has none.

Law: a file that cannot be read is set aside under its path, and the others are read.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from selectolax.lexbor import LexborHTMLParser

from harken.sources.column_types import TEXT, TIMESTAMP
from harken.sources.html_tables import text_of
from harken.sources.local_files import files_below, permitted
from harken.sources.outside import Context, Opened, Option
from harken.sources.polled_documents import Parsed, PolledDocuments, meaning_of
from harken.sources.read_documents import Document, FileReading
from harken.sources.typed_rows import TypedRows

COLUMNS = pa.schema(
    [
        ("path", TEXT),
        ("name", TEXT),
        ("size", pa.int64()),
        ("modified", TIMESTAMP),
        ("text", TEXT),
    ]
)
PAGES = frozenset({".html", ".htm", ".xhtml"})
LOOKED_AT = 8_192
"""Bytes in which a file that is no text has a zero."""


@dataclass(frozen=True, slots=True)
class FilesBelow:
    """The files of a directory. A path in the rows is relative to it."""

    directory: str
    pattern: str
    most_bytes: int
    most_each: int
    roots: tuple[str, ...] | None

    @contextmanager
    def reading(self) -> Iterator[FileReading]:
        files = files_below(self.directory, self.pattern, self.roots)
        yield FileReading(files, self.most_bytes, self.roots, self.most_each)

    def relative(self, address: str) -> str:
        top = permitted(self.directory, self.roots)
        path = Path(address)
        return path.relative_to(top).as_posix() if path.is_relative_to(top) else str(path)


@dataclass(frozen=True, slots=True)
class DocumentParser:
    files: FilesBelow
    encoding: str | None

    def __call__(self, document: Document) -> Parsed:
        path = Path(document.address)
        modified = document.modified
        assert isinstance(modified, datetime.datetime)
        row = (
            self.files.relative(document.address),
            path.name,
            len(document.body),
            modified,
            self._text(document, path),
        )
        return Parsed(COLUMNS.names, [row])

    def _text(self, document: Document, path: Path) -> str | None:
        is_marked = document.body.startswith((b"\xff\xfe", b"\xfe\xff"))
        if b"\0" in document.body[:LOOKED_AT] and not (is_marked or self.encoding):
            return None
        text = document.text(self.encoding, ("utf-8", "windows-1252", "latin-1"))
        if path.suffix.lower() in PAGES:
            return text_of(LexborHTMLParser(text).body)
        return text


@dataclass(frozen=True, slots=True)
class DocumentsKind:
    name = "documents"
    title = "documents in a directory"
    captures = ("poll",)
    options: tuple[Option, ...] = (
        Option("directory", "The directory, with its subdirectories.", required=True),
        Option("pattern", "Which files, such as `*.txt`.", default="*"),
        Option("max_file", "The most bytes of a file.", "integer", 10_000_000, least=1),
        Option("max_bytes", "The most bytes of all files.", "integer", 500_000_000, least=1),
        Option("encoding", "The characters' encoding; else UTF-8 or windows-1252."),
    )

    def open(
        self, options: Mapping[str, Any], context: Context, capture: str | None = None
    ) -> Opened:
        files = FilesBelow(
            options["directory"],
            options["pattern"],
            options["max_bytes"],
            options["max_file"],
            context.allowed_roots,
        )
        return Opened(
            polled=PolledDocuments(
                files,
                DocumentParser(files, options["encoding"]),
                TypedRows.of(context.known, COLUMNS),
                context,
                key=("path",),
                part_column="path",
                part_name=files.relative,
                fixed_names=COLUMNS.names,
                meaning=meaning_of(self.name, options),
            )
        )


KIND = DocumentsKind()
