"""JSON over HTTP or in files: a path leads to the rows, and a path in each to its columns.

A page may lead to the next one, by a header `Link`, by an address or by a cursor in it. Numbers
are exact: one that a double cannot hold is a decimal, or text. Objects and lists in a row are JSON
text with sorted keys.

Law: all pages that there are, or a fault; rows null or [] are empty, and rows that are not there
are a fault.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from harken.errors import SourceFault, counted
from harken.limits import check
from harken.sources.column_types import Numeral
from harken.sources.json_paths import JsonPath, Place, read_path
from harken.sources.number_texts import NULLS_OPTION, TYPES_OPTION
from harken.sources.outside import Context, Opened, Option
from harken.sources.polled_documents import Parsed, open_documents
from harken.sources.read_documents import DOCUMENT_OPTIONS, Document
from harken.sources.typed_rows import TypedRows, distinct_names, whole_entries

LINES = frozenset({"application/x-ndjson", "application/jsonl", "application/jsonlines"})
LINE_SUFFIXES = (".jsonl", ".ndjson")
MOST_ROWS = 5_000_000
MOST_COLUMNS = 2_000
LINK = "link"


@dataclass(frozen=True, slots=True)
class Column:
    path: JsonPath
    optional: bool


@dataclass(frozen=True, slots=True)
class JsonParser:
    rows: JsonPath
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    next: str | None
    cursor: str | None
    lines: bool | None
    encoding: str | None
    is_new: bool

    def __call__(self, document: Document) -> Parsed:
        text = document.text(self.encoding)
        if self._is_of_lines(document):
            if self.rows.steps:
                raise SourceFault(
                    f"each line of {document.name} is a row, so rows '{self.rows.text}' leads "
                    "nowhere",
                    code="bad-option" if self.is_new else "source-changed",
                    hint="leave the option rows out: the option columns has paths in each line",
                )
            rows = [
                Place(_read(line, document, number))
                for number, line in enumerate(text.splitlines(), 1)
                if line.strip()
            ]
            return self._parsed(rows, document.name, None)
        root = Place(_read(text, document))
        return self._parsed(self._rows(root, document.name), document.name, root, document)

    def _is_of_lines(self, document: Document) -> bool:
        if self.lines is not None:
            return self.lines
        return document.media_type in LINES or document.address.endswith(LINE_SUFFIXES)

    # --- rows ---

    def _rows(self, root: Place, name: str) -> list[Place]:
        found = self.rows.places(root)
        if not found and self.rows.steps and not self._leads_to_nothing(root):
            raise self._nothing(f"rows '{self.rows.text}'", name, _members(root.value))
        if self.rows.is_of_members:
            return found
        rows: list[Place] = []
        for place in found:
            if isinstance(place.value, list):
                rows += place.members()
            elif place.value is not None:
                rows.append(place)
        if len(rows) > MOST_ROWS:
            raise SourceFault(f"{name} has more than {MOST_ROWS:,} rows", code="source-suspect")
        return rows

    def _leads_to_nothing(self, root: Place) -> bool:
        """Is there an empty list, an empty object or null on the way, below which there is
        nothing?"""
        for length in range(len(self.rows.steps) + 1):
            before = JsonPath("", self.rows.steps[:length]).places(root)
            if before and all(place.value in (None, [], {}) for place in before):
                return True
        return False

    def _parsed(
        self,
        rows: list[Place],
        name: str,
        root: Place | None,
        document: Document | None = None,
    ) -> Parsed:
        parsed = self._of_columns(rows, name) if self.columns else self._of_members(rows, name)
        if root is not None and document is not None and self.next is not None:
            parsed.next = self._next(root, document)
        return parsed

    def _of_members(self, rows: Sequence[Place], name: str) -> Parsed:
        """The columns are all members that the rows have, in the order in which they appear."""
        is_of_names = any(isinstance(row.key, str) for row in rows)
        names: dict[str, int] = {"key": 0} if is_of_names and self.rows.is_of_members else {}
        found: list[list[Any]] = []
        for row in rows:
            check()
            value = row.value if isinstance(row.value, dict) else {"value": row.value}
            values: list[Any] = [None] * len(names)
            if "key" in names:
                value = {"key": row.key, **value}
            for member, each in value.items():
                place = names.setdefault(member, len(names))
                if place == len(values):
                    values.append(each)
                else:
                    values[place] = each
            found.append(values)
            if len(names) > MOST_COLUMNS:
                raise SourceFault(
                    f"the rows have more than {MOST_COLUMNS:,} members, in {name}",
                    code="source-suspect",
                    hint="name those to keep with the option columns",
                )
        full = [(*values, *([None] * (len(names) - len(values)))) for values in found]
        if self.names and len(self.names) != len(names) and found:
            raise SourceFault(
                f"there are {counted(len(names), 'column')} and {len(self.names)} names, in {name}",
                code="bad-option" if self.is_new else "source-changed",
                hint=f"the columns are {', '.join(names)}; choose some with the option columns",
            )
        return Parsed(distinct_names(self.names or tuple(names)), list(full))

    def _of_columns(self, rows: Sequence[Place], name: str) -> Parsed:
        found: list[Sequence[Any]] = []
        there = [False] * len(self.columns)
        for row in rows:
            check()
            places = [column.path.first(row) for column in self.columns]
            there = [known or place is not None for known, place in zip(there, places, strict=True)]
            found.append([None if place is None else place.value for place in places])
        for column, is_there in zip(self.columns, there, strict=True):
            if rows and not is_there and not column.optional:
                what = f"columns '{column.path.text}'"
                raise self._nothing(what, name, _members(rows[0].value))
        names = self.names or [column.path.name for column in self.columns]
        return Parsed(distinct_names(names), found)

    def _nothing(self, what: str, name: str, has: str) -> SourceFault:
        return SourceFault(
            f"{what} leads nowhere in {name}, which has {has}",
            code="bad-option" if self.is_new else "source-suspect",
            hint="check the path; a column that may be missing in all rows ends in a question mark",
        )

    # --- the next page ---

    def _next(self, root: Place, document: Document) -> str | None:
        assert self.next is not None
        if self.next == LINK:
            return document.links.get("next")
        place = read_path(self.next).first(root)
        if place is None or place.value in (None, "", False):
            return None
        if isinstance(place.value, dict | list | bool):
            raise SourceFault(
                f"next '{self.next}' leads to no address and no cursor, in {document.name}",
                code="source-suspect",
            )
        value = str(place.value)
        try:
            if self.cursor is None:
                return str(httpx.URL(document.base).join(value))
            return str(httpx.URL(document.address).copy_set_param(self.cursor, value))
        except (httpx.InvalidURL, ValueError):
            raise SourceFault(
                f"next '{self.next}' leads to no address, in {document.name}", code="source-suspect"
            ) from None


def _read(text: str, document: Document, line: int | None = None) -> Any:
    """Numbers stay as they are written."""
    try:
        return json.loads(
            text, parse_int=Numeral, parse_float=Numeral, parse_constant=_refuse_constant
        )
    except RecursionError:
        raise SourceFault(f"{document.name} is nested too deeply", code="source-suspect") from None
    except ValueError as error:
        at = getattr(error, "lineno", 1) if line is None else line
        told = f", and says that it is {document.media_type}" if document.media_type else ""
        raise SourceFault(
            f"{document.name} is not JSON, or only a part of it, at line {at}{told}",
            code="source-suspect",
            hint="for one value in each line set the option lines" if line is None else None,
        ) from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _members(value: Any) -> str:
    if isinstance(value, dict):
        shown = [str(each)[:40] for each in list(value)[:8]]
        return "the members " + ", ".join(shown) if shown else "no members"
    return f"a list of {len(value):,}" if isinstance(value, list) else "a single value"


@dataclass(frozen=True, slots=True)
class JsonKind:
    name = "json"
    title = "JSON"
    captures = ("poll",)
    options: tuple[Option, ...] = (
        *DOCUMENT_OPTIONS,
        Option("rows", "The path to the rows, such as `data.items`.", default="$"),
        Option(
            "columns", "A path in each row for each column; `note?` may be missing.", "names", ()
        ),
        Option("names", "The names of the columns.", "names", ()),
        TYPES_OPTION,
        NULLS_OPTION,
        Option("next", "`link` for the header Link, or the path to the next address or cursor."),
        Option("cursor", "The parameter of the address that the cursor becomes."),
        Option("max_pages", "The most pages of one reading.", "integer", 1_000, least=1),
        Option("lines", "Whether each line is a value of its own.", "flag"),
    )

    def open(
        self, options: Mapping[str, Any], context: Context, capture: str | None = None
    ) -> Opened:
        columns = tuple(
            Column(read_path(each.removesuffix("?")), each.endswith("?"))
            for each in whole_entries(options["columns"])
        )
        names = tuple(options["names"])
        if columns and names and len(columns) != len(names):
            raise SourceFault(
                f"there are {len(columns)} columns and {len(names)} names", code="bad-option"
            )
        if options["cursor"] and options["next"] in (None, LINK):
            raise SourceFault(
                "the option cursor needs the path to the cursor",
                code="bad-option",
                hint="give it with the option next, such as next 'meta.cursor'",
            )
        if options["next"] not in (None, LINK):
            read_path(options["next"])
        parser = JsonParser(
            read_path(options["rows"]),
            columns,
            names,
            options["next"],
            options["cursor"],
            options["lines"],
            options["encoding"],
            context.known is None,
        )
        typed = TypedRows.of(context.known, options["types"], nulls=options["nulls"])
        return open_documents(
            self.name,
            parser,
            typed,
            options,
            context,
            accept="application/json, */*;q=0.5",
            follows=options["next"] is not None and options["path"] is None,
            most_documents=options["max_pages"],
            fixed_names=names or [each.path.name for each in columns] or None,
        )


KIND = JsonKind()
