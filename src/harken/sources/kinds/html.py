"""Pages of HTML: rows by CSS selectors, the n-th table, or the page as one row.

    rows 'table.obs tr'                     an element for each row
    columns 'td'                            its cells in order, or a selector for each column:
    columns '.name, .price, a@href'         `@` takes an attribute
    table 2                                 the second table of the page

Law: a page without rows is one that has their place and nothing in it. A selector that finds
nothing where it must find something is a fault that names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from harken.errors import SourceFault, counted
from harken.limits import check
from harken.sources.html_tables import CELLS, Grid, grid_of, text_of
from harken.sources.number_texts import NUMBER_OPTIONS, numeral_reader
from harken.sources.outside import Context, Opened, Option
from harken.sources.polled_documents import Parsed, open_documents
from harken.sources.read_documents import DOCUMENT_OPTIONS, Document
from harken.sources.typed_rows import TypedRows, column_name, distinct_names, whole_entries

TYPES = ("text/html", "application/xhtml+xml", "text/plain", "application/xml", "text/xml")
MOST_ROWS = 1_000_000
ADDRESSES = frozenset({"href", "src", "action", "data-src", "poster", "cite"})
"""Attributes with an address, which is made absolute."""
WHOLE_PAGE = ("url", "title", "text")
CLOSED = ("table", "div", "ul", "ol", "dl", "section", "main", "article")
"""Elements whose end must be written, so that a page without it is not whole."""

_ENDS_IN_TAG = re.compile(r"<[a-zA-Z!/][^<>]*\Z")
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([\w-]{1,40})""", re.I)
_LAST_STEP = re.compile(r"(?s)^(.*[^\s>+~])(?:\s*[>+~]\s*|\s+)\S+$")


@dataclass(frozen=True, slots=True)
class Cell:
    """What one column takes from the element of a row."""

    selector: str
    attribute: str | None
    optional: bool

    @classmethod
    def read(cls, text: str) -> Cell:
        optional = text.endswith("?")
        selector, _, attribute = text.removesuffix("?").rpartition("@")
        if "@" not in text:
            selector, attribute = text.removesuffix("?"), ""
        return cls(selector.strip(), attribute.strip() or None, optional)

    def nodes(self, row: LexborNode) -> list[LexborNode]:
        return _found(row, self.selector) if self.selector else [row]

    def value(self, node: LexborNode | None, base: str) -> str | None:
        if node is None:
            return None
        if self.attribute is None:
            return text_of(node)
        given = node.attributes.get(self.attribute)
        if given is None or self.attribute not in ADDRESSES:
            return given
        return _absolute(base, given)

    def name(self, number: int) -> str:
        return column_name(f"{self.selector} {self.attribute or ''}", number)


@dataclass(frozen=True, slots=True)
class HtmlParser:
    rows: str | None
    cells: tuple[Cell, ...]
    names: tuple[str, ...]
    table: int | None
    heading: bool | None
    when_empty: str | None
    encoding: str | None
    is_new: bool
    """Is there no mirror yet? Then a selector that finds nothing is likely a mistake in it."""
    redacted: Callable[[str], str]
    """An address without the secrets in it."""

    def __call__(self, document: Document) -> Parsed:
        text = document.text(self.encoding, _charsets(document.body))
        if not text.strip():
            raise SourceFault(f"{document.name} is empty", code="source-suspect")
        _check_whole(text, document.name)
        page = LexborHTMLParser(text)
        base = _base(page, document)
        if self.rows is not None:
            return self._by_selectors(page, base, document.name)
        if self.table is not None:
            return self._by_table(page, base, document.name)
        if page.body is None:
            raise SourceFault(f"{document.name} has no content", code="source-suspect")
        title = text_of(page.css_first("title"))
        return Parsed(WHOLE_PAGE, [(self.redacted(document.address), title, text_of(page.body))])

    # --- by selectors ---

    def _by_selectors(self, page: LexborHTMLParser, base: str, name: str) -> Parsed:
        assert self.rows is not None
        found = _found(page, self.rows)
        if not found:
            self._check_empty(page, name)
        if len(found) > MOST_ROWS:
            raise SourceFault(f"{name} has more than {MOST_ROWS:,} rows", code="source-suspect")
        if len(self.cells) > 1:
            return self._by_cells(found, base, name)
        cell = self.cells[0] if self.cells else Cell(", ".join(CELLS), None, False)
        return self._by_place(found, cell, base, name)

    def _by_place(self, found: Sequence[LexborNode], cell: Cell, base: str, name: str) -> Parsed:
        """One selector, whose elements in a row are the columns. A row that has none, such as the
        heading of a table, is none."""
        rows: list[Sequence[LexborNode]] = []
        headings: Sequence[LexborNode] = ()
        for row in found:
            check()
            nodes = cell.nodes(row)
            if not nodes and not rows:
                headings = _found(row, "th")
            elif nodes and not self.cells and not rows and all(n.tag == "th" for n in nodes):
                headings = nodes
            elif nodes:
                rows.append(nodes)
        if found and not rows and not headings:
            raise self._nothing(name, f"columns '{cell.selector}'", counted(len(found), "row"))
        width = len(self.names) or max(map(len, rows), default=len(headings))
        short = sum(len(row) < width for row in rows)
        if self.names and short and not cell.optional:
            raise SourceFault(
                f"{counted(short, 'row', 'is')} shorter than the {width} columns that names gives, "
                f"in {name}",
                code=self._code(),
                hint=f"if cells may be missing at the end, write columns '{cell.selector}?'",
            )
        titles = [text_of(each) or "" for each in headings] if len(headings) == width else []
        names = self.names or tuple(
            column_name(titles[i] if titles else "", i + 1) for i in range(width)
        )
        values: list[Sequence[Any]] = [
            [cell.value(row[i] if i < len(row) else None, base) for i in range(width)]
            for row in rows
        ]
        return Parsed(distinct_names(names), values)

    def _by_cells(self, found: Sequence[LexborNode], base: str, name: str) -> Parsed:
        """A selector for each column. A row in which none of them finds anything is none."""
        rows: list[Sequence[Any]] = []
        has = [False] * len(self.cells)
        for row in found:
            check()
            nodes = [next(iter(cell.nodes(row)), None) for cell in self.cells]
            if all(node is None for node in nodes):
                continue
            values = [cell.value(node, base) for cell, node in zip(self.cells, nodes, strict=True)]
            has = [
                known or (node is not None and (cell.attribute is None or value is not None))
                for known, node, cell, value in zip(has, nodes, self.cells, values, strict=True)
            ]
            rows.append(values)
        for cell, there in zip(self.cells, has, strict=True):
            if found and not there and not cell.optional:
                what = cell.selector + (f"@{cell.attribute}" if cell.attribute else "")
                raise self._nothing(name, f"columns '{what}'", counted(len(found), "row"))
        names = self.names or [cell.name(i) for i, cell in enumerate(self.cells, 1)]
        return Parsed(distinct_names(names), rows)

    def _check_empty(self, page: LexborHTMLParser, name: str) -> None:
        """No rows: is their place there?"""
        assert self.rows is not None
        if self.when_empty is not None:
            if _found(page, self.when_empty):
                return
            raise self._nothing(name, f"rows '{self.rows}'", "the page, nor does when_empty")
        around = _LAST_STEP.match(self.rows) if "," not in self.rows else None
        if around is None:
            raise self._nothing(name, f"rows '{self.rows}'", "the page")
        if not _found(page, around[1]):
            raise self._nothing(name, f"rows '{self.rows}'", f"the page, which has no {around[1]}")

    # --- by table ---

    def _by_table(self, page: LexborHTMLParser, base: str, name: str) -> Parsed:
        tables = _found(page, "table")
        assert self.table is not None
        if len(tables) < self.table:
            raise self._nothing(name, f"table {self.table}", f"{counted(len(tables), 'table')}")
        grid = grid_of(tables[self.table - 1], self.heading)
        cells = self.cells or (Cell("", None, False),)
        if len(cells) > 1:
            raise SourceFault(
                "with the option table, columns has one entry for all cells, such as 'a@href'",
                code="bad-option",
            )
        return Parsed(self._names_of(grid, name), _values(grid, cells[0], base))

    def _names_of(self, grid: Grid, name: str) -> Sequence[str]:
        if not self.names:
            return grid.names()
        if grid.width and grid.width != len(self.names):
            raise SourceFault(
                f"the table has {counted(grid.width, 'column')}, and names gives "
                f"{len(self.names)}, in {name}",
                code=self._code(),
                hint="name each column of the table; take keeps some of them",
            )
        return distinct_names(self.names)

    # --- faults ---

    def _nothing(self, name: str, what: str, where: str) -> SourceFault:
        return SourceFault(
            f"{what} finds nothing in {where}, in {name}",
            code=self._code(),
            hint="look at the page: if it was built in another way, set the option to a selector "
            "that finds the rows again. If a page without rows looks like this, say so with the "
            "option when_empty, a selector of what such a page has",
        )

    def _code(self) -> str:
        return "bad-option" if self.is_new else "source-suspect"


def _values(grid: Grid, cell: Cell, base: str) -> list[Sequence[Any]]:
    found: list[Sequence[Any]] = []
    for row in grid.rows:
        check()
        nodes = [
            node if node is None or not cell.selector else next(iter(cell.nodes(node)), None)
            for node in row
        ]
        found.append([cell.value(node, base) for node in nodes])
    return found


def _found(place: LexborHTMLParser | LexborNode, selector: str) -> list[LexborNode]:
    try:
        return place.css(selector)
    except (SelectolaxError, ValueError):
        raise SourceFault(
            f"{selector[:80]!r} is no CSS selector", code="bad-option", hint="see docs/sources.md"
        ) from None


def _charsets(body: bytes) -> tuple[str, ...]:
    """What the page says of itself, or else what browsers assume."""
    found = _META_CHARSET.search(body, 0, 2_048)
    return (found[1].decode(),) if found else ("utf-8", "windows-1252")


def _base(page: LexborHTMLParser, document: Document) -> str:
    element = page.css_first("base[href]")
    given = element.attributes.get("href") if element is not None else None
    return _absolute(document.base, given) if given else document.base


def _absolute(base: str, address: str) -> str:
    try:
        return urljoin(base, address.strip())
    except ValueError:
        return address


def _check_whole(text: str, name: str) -> None:
    """A page that breaks off in a tag, or before the end of an element that must have one, is a
    part. Browsers show such pages, too, but their rows are not all there."""
    end = text.rstrip().lower()
    is_closed = "</html" in end[-1_000:] or "</body" in end[-1_000:]
    if is_closed:
        return
    if _ENDS_IN_TAG.search(end[-2_000:]):
        raise SourceFault(f"{name} breaks off in a tag", code="source-suspect")
    for tag in CLOSED:
        if len(re.findall(rf"<{tag}\b", end)) > end.count(f"</{tag}"):
            raise SourceFault(
                f"{name} breaks off before the end of an element {tag}", code="source-suspect"
            )


@dataclass(frozen=True, slots=True)
class HtmlKind:
    name = "html"
    title = "page of HTML"
    captures = ("poll",)
    options: tuple[Option, ...] = (
        *DOCUMENT_OPTIONS,
        Option("rows", "A CSS selector of the element of each row."),
        Option(
            "columns",
            "A selector of all cells of a row, or one for each column; `a@href` is an attribute, "
            "`.note?` may be missing everywhere.",
            "names",
            (),
        ),
        Option("names", "The names of the columns.", "names", ()),
        Option("table", "The number of the table in the page, from 1.", "integer", least=1),
        Option("heading", "Whether the table begins with a heading.", "flag"),
        Option("when_empty", "A CSS selector of what a page without rows has."),
        *NUMBER_OPTIONS,
    )

    def open(
        self, options: Mapping[str, Any], context: Context, capture: str | None = None
    ) -> Opened:
        parser = _parser(options, context)
        typed = TypedRows.of(
            context.known,
            options["types"],
            textual=True,
            nulls=options["nulls"],
            numeral=numeral_reader(options),
        )
        is_page = parser.rows is None and parser.table is None
        return open_documents(
            self.name,
            parser,
            typed,
            options,
            context,
            accept="text/html, */*;q=0.5",
            types=TYPES,
            key=("url",) if is_page else (),
            fixed_names=WHOLE_PAGE if is_page else parser.names,
        )


def _parser(options: Mapping[str, Any], context: Context) -> HtmlParser:
    rows, table = options["rows"], options["table"]
    if rows and table:
        raise SourceFault(
            "the options rows and table exclude each other",
            code="bad-option",
            hint="write rows 'table.prices tr', or table 1",
        )
    cells = tuple(Cell.read(each) for each in whole_entries(options["columns"]))
    names = tuple(options["names"])
    if (cells or names) and not (rows or table):
        raise SourceFault(
            "columns and names need to know what a row is",
            code="bad-option",
            hint="give the option rows or the option table",
        )
    if len(cells) > 1 and names and len(cells) != len(names):
        raise SourceFault(
            f"there are {len(cells)} columns and {len(names)} names", code="bad-option"
        )
    page = LexborHTMLParser("<p>")
    for selector in (rows, options["when_empty"], *(cell.selector for cell in cells)):
        if selector:
            _found(page, selector)
    return HtmlParser(
        rows,
        cells,
        names,
        table,
        options["heading"],
        options["when_empty"],
        options["encoding"],
        context.known is None,
        context.redacted,
    )


KIND = HtmlKind()
