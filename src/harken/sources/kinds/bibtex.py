"""Bibliographies in BibTeX: one row for each entry.

Each entry is parsed for itself, so a broken one is set aside under its key and the others are read.

Law: an entry is a row, or it is named among those that were set aside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pybtex.database.input.bibtex import Parser, month_names
from pybtex.exceptions import PybtexError
from pybtex.richtext import Text

from harken.errors import SourceFault
from harken.limits import check
from harken.sources.column_types import TEXT, json_text
from harken.sources.outside import Context, Opened, Option
from harken.sources.polled_documents import Parsed, open_documents
from harken.sources.read_documents import DOCUMENT_OPTIONS, PART_OPTION, Document
from harken.sources.typed_rows import TypedRows

FIELDS = (
    *("title", "journal", "booktitle", "publisher", "volume", "number", "pages"),
    *("doi", "url", "keywords", "abstract"),
)
"""The fields that are columns of their own; the others are members of `other`."""
PERSONS = ("author", "editor")
COLUMNS = pa.schema(
    [
        ("citekey", TEXT),
        ("kind", TEXT),
        *((name, TEXT) for name in PERSONS),
        ("year", pa.int64()),
        *((name, TEXT) for name in FIELDS),
        ("other", TEXT),
    ]
)
EXACT = frozenset({"doi", "url"})
"""Fields in which nothing is LaTeX."""
MOST_ENTRIES = 200_000
LONGEST_ENTRY = 200_000
"""Characters."""
LONGEST_REASON = 200

_START = re.compile(r"^[ \t]*@[ \t]*(\w+)[ \t]*[{(]\s*([^\s,{}()\"=]*)", re.MULTILINE)
_YEAR = re.compile(r"\d{4}", re.ASCII)
_NOT_ENTRIES = frozenset({"comment", "preamble", "string"})


@dataclass(frozen=True, slots=True)
class Piece:
    """A command of the file as it stands there."""

    kind: str
    key: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class BibtexParser:
    encoding: str | None
    keeps_latex: bool

    def __call__(self, document: Document) -> Parsed:
        text = document.text(self.encoding, ("utf-8", "latin-1"))
        pieces = list(pieces_of(text))
        if not pieces:
            raise SourceFault(
                f"{document.name} has no entry of BibTeX",
                code="source-suspect",
                hint="an entry begins with @ in a line of its own, as in @book{...}",
            )
        macros = _macros(pieces)
        rows: dict[str, tuple[Any, ...]] = {}
        aside: dict[str, str] = {}
        entries = [each for each in pieces if each.kind not in _NOT_ENTRIES]
        if len(entries) > MOST_ENTRIES:
            raise SourceFault(
                f"{document.name} has more than {MOST_ENTRIES:,} entries", code="source-suspect"
            )
        for piece in entries:
            check()
            try:
                row = self._row(piece, macros)
            except _Broken as error:
                aside[piece.key or f"line {piece.line}"] = f"line {piece.line}: {error}"
                continue
            if piece.key in rows:
                again = f"{piece.key} (line {piece.line})"
                aside[again] = f"line {piece.line}: there is an entry of this name before"
            else:
                rows[piece.key] = row
        if aside and not rows:
            name, why = next(iter(aside.items()))
            raise SourceFault(
                f"no entry of {document.name} can be read; {name}: {why}", code="source-suspect"
            )
        return Parsed(COLUMNS.names, list(rows.values()), set_aside=aside)

    def _row(self, piece: Piece, macros: Mapping[str, str]) -> tuple[Any, ...]:
        if len(piece.text) > LONGEST_ENTRY:
            raise _Broken(f"it is longer than {LONGEST_ENTRY:,} characters")
        try:
            found = Parser(macros=dict(macros)).parse_string(piece.text).entries
        except (PybtexError, RecursionError) as error:
            raise _Broken(_reason(error)) from None
        if len(found) != 1:
            raise _Broken("it has no key, or no end")
        ((key, entry),) = found.items()
        fields = {name.lower(): self._plain(name, value) for name, value in entry.fields.items()}
        persons = {
            role.lower(): "; ".join(self._plain(role, str(each)) or "" for each in people)
            for role, people in entry.persons.items()
        }
        year = fields.get("year") or ""
        rest = {**persons, **fields}
        for name in (*PERSONS, *FIELDS, *(["year"] if _YEAR.fullmatch(year) else [])):
            rest.pop(name, None)
        return (
            key,
            entry.type.lower(),
            *(persons.get(name) for name in PERSONS),
            int(year) if _YEAR.fullmatch(year) else None,
            *(fields.get(name) for name in FIELDS),
            json_text(rest) if rest else None,
        )

    def _plain(self, name: str, value: str) -> str | None:
        """What LaTeX prints, as text."""
        found = value
        if not self.keeps_latex and name.lower() not in EXACT and set(value) & set("\\{}$~"):
            try:
                found = str(Text.from_latex(value.replace("~", " ")))
            except (PybtexError, ValueError, RecursionError):
                found = value
        return " ".join(found.split()) or None


class _Broken(Exception):
    """An entry cannot be read."""


def pieces_of(text: str) -> Iterator[Piece]:
    """
    >>> [(each.kind, each.key, each.line) for each in pieces_of("@book{a,\\n}\\n@misc(b,)")]
    [('book', 'a', 1), ('misc', 'b', 3)]
    """
    starts = list(_START.finditer(text))
    ends = [*(each.start() for each in starts[1:]), len(text)]
    line, counted = 1, 0
    for start, end in zip(starts, ends, strict=False):
        line += text.count("\n", counted, start.start())
        counted = start.start()
        yield Piece(start[1].lower(), start[2], line, text[start.start() : end])


def _macros(pieces: list[Piece]) -> dict[str, str]:
    """What `@string` defines, in order, for later ones may use earlier ones."""
    found = dict(month_names)
    for piece in pieces:
        if piece.kind == "string":
            parser = Parser(macros=found)
            try:
                parser.parse_string(piece.text[:LONGEST_ENTRY])
            except PybtexError:
                continue  # the entries that use it are named
            found = {name.lower(): value for name, value in parser.macros.items()}
    return found


def _reason(error: Exception) -> str:
    """Its line is that of the entry, which we say ourselves."""
    text = re.sub(r"^syntax error in line \d+: |(?<=undefined string) in line \d+", "", str(error))
    return " ".join(text.split())[:LONGEST_REASON]


@dataclass(frozen=True, slots=True)
class BibtexKind:
    name = "bibtex"
    title = "bibliography in BibTeX"
    captures = ("poll",)
    options: tuple[Option, ...] = (
        *(each for each in DOCUMENT_OPTIONS if each is not PART_OPTION),
        Option("keep_latex", "Whether values stay as they are written.", "flag", False),
    )

    def open(
        self, options: Mapping[str, Any], context: Context, capture: str | None = None
    ) -> Opened:
        return open_documents(
            self.name,
            BibtexParser(options["encoding"], options["keep_latex"]),
            TypedRows.of(context.known, COLUMNS),
            options,
            context,
            key=("citekey",),
            fixed_names=COLUMNS.names,
            part_column="citekey",
        )


KIND = BibtexKind()
