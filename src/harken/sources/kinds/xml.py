"""XML by paths: an XPath to the rows, and one in each row for each column.

Names count without their namespaces. Entities and other documents are never loaded, and the parser
limits depth and size.

Law: a document is well-formed to its end, or it is a fault. No rows are empty only if the element
around them is there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lxml import etree

from harken.errors import SourceFault, counted
from harken.limits import check
from harken.sources.column_types import Numeral, json_text
from harken.sources.number_texts import NUMBER_OPTIONS, numeral_reader
from harken.sources.outside import Context, Opened, Option
from harken.sources.polled_documents import Parsed, open_documents
from harken.sources.read_documents import DOCUMENT_OPTIONS, Document
from harken.sources.typed_rows import TypedRows, column_name, distinct_names, whole_entries

MOST_ROWS = 2_000_000
MOST_COLUMNS = 2_000
_AROUND = re.compile(r"(.*[^/])/(?!/)[^/\[\]]+(\[[^\]]*\])?")
_LAST_NAME = re.compile(r"[\w.-]+(?=[^\w]*(\(\))?[^\w]*$)")


@dataclass(frozen=True, slots=True)
class Column:
    text: str
    path: Any
    optional: bool

    def name(self, number: int) -> str:
        plain = re.sub(r"/?text\(\)|\[[^\]]*\]", "", self.text)
        found = _LAST_NAME.search(plain)
        return found[0] if found else column_name(plain, number)


@dataclass(frozen=True, slots=True)
class XmlParser:
    rows: str
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    when_empty: str | None
    encoding: str | None
    is_new: bool

    def __call__(self, document: Document) -> Parsed:
        root = _root(document, self.encoding)
        found = _evaluated(_path(self.rows), root, self.rows)
        rows = [each for each in found if etree.iselement(each)]
        if len(rows) < len(found):
            raise SourceFault(
                f"rows '{self.rows}' leads to values, not to elements", code="bad-option"
            )
        if not rows:
            self._check_empty(root, document.name)
        if len(rows) > MOST_ROWS:
            raise SourceFault(
                f"{document.name} has more than {MOST_ROWS:,} rows", code="source-suspect"
            )
        if self.columns:
            return self._of_columns(rows, document.name)
        return _of_members(rows, document.name)

    def _of_columns(self, rows: Sequence[Any], name: str) -> Parsed:
        found: list[Sequence[Any]] = []
        there = [False] * len(self.columns)
        for row in rows:
            check()
            results = [_evaluated(column.path, row, column.text) for column in self.columns]
            there = [known or bool(each) for known, each in zip(there, results, strict=True)]
            found.append([_value(each[0]) if each else None for each in results])
        for column, is_there in zip(self.columns, there, strict=True):
            if rows and not is_there and not column.optional:
                raise self._nothing(f"columns '{column.text}'", counted(len(rows), "row"), name)
        names = self.names or [each.name(i) for i, each in enumerate(self.columns, 1)]
        return Parsed(distinct_names(names), found)

    def _check_empty(self, root: Any, name: str) -> None:
        if self.when_empty is not None:
            if _evaluated(_path(self.when_empty), root, self.when_empty):
                return
        else:
            around = _AROUND.fullmatch(self.rows)
            if around is not None and _evaluated(_path(around[1]), root, around[1]):
                return
        raise self._nothing(f"rows '{self.rows}'", f"a document of {root.tag}", name)

    def _nothing(self, what: str, where: str, name: str) -> SourceFault:
        return SourceFault(
            f"{what} finds nothing in {where}, in {name}",
            code="bad-option" if self.is_new else "source-suspect",
            hint="check the path. The element around the rows, as in /catalog/book, tells a "
            "document without rows from another one; so does a path in the option when_empty",
        )


def _of_members(rows: Sequence[Any], name: str) -> Parsed:
    """The columns are the attributes and the children of the rows."""
    names: dict[str, int] = {}
    found: list[dict[str, Any]] = []
    for row in rows:
        check()
        values: dict[str, list[Any]] = {}
        for attribute, value in row.attrib.items():
            values.setdefault(attribute, []).append(value)
        for child in row:
            if isinstance(child.tag, str):
                values.setdefault(child.tag, []).append(_value(child))
        if not values:
            values["value"] = [_value(row)]
        found.append({k: v[0] if len(v) == 1 else json_text(v) for k, v in values.items()})
        for member in values:
            names.setdefault(member, len(names))
        if len(names) > MOST_COLUMNS:
            raise SourceFault(
                f"the rows have more than {MOST_COLUMNS:,} members, in {name}",
                code="source-suspect",
                hint="name those to keep with the option columns",
            )
    return Parsed(
        distinct_names(tuple(names)), [tuple(row.get(each) for each in names) for row in found]
    )


def _root(document: Document, encoding: str | None) -> Any:
    if not document.body.strip():
        raise SourceFault(f"{document.name} is empty", code="source-suspect")
    parser = etree.XMLParser(
        encoding=encoding,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(document.body, parser)
    except LookupError:
        raise SourceFault(f"there is no encoding {encoding!r}", code="bad-option") from None
    except etree.XMLSyntaxError as error:
        raise SourceFault(
            f"{document.name} is not well-formed XML, or only a part of it: {error.msg}",
            code="source-suspect",
        ) from None
    for element in root.iter():
        check()
        _without_namespaces(element)
    return root


def _without_namespaces(element: Any) -> None:
    if not isinstance(element.tag, str):
        return
    if element.tag.startswith("{"):
        element.tag = element.tag.rpartition("}")[2]
    for name in [each for each in element.attrib if each.startswith("{")]:
        plain, value = name.rpartition("}")[2], element.attrib.pop(name)
        if plain not in element.attrib:
            element.attrib[plain] = value


def _path(text: str) -> Any:
    try:
        return etree.XPath(text, regexp=False, smart_strings=False)
    except etree.XPathSyntaxError:
        raise SourceFault(
            f"{text[:80]!r} is no XPath",
            code="bad-option",
            hint="write for example /catalog/book, or title, @id and price/text() in a row",
        ) from None


def _evaluated(path: Any, node: Any, text: str) -> list[Any]:
    try:
        found = path(node)
    except etree.XPathError as error:
        raise SourceFault(
            f"the path {text[:80]!r} cannot be followed: {error}",
            code="bad-option",
            hint="names are written without their namespaces",
        ) from None
    return found if isinstance(found, list) else [found]


def _value(found: Any) -> Any:
    if etree.iselement(found):
        found = "".join(map(str, found.itertext()))
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, float):
        return None if found != found else Numeral(f"{found:.15g}")
    return " ".join(str(found).split()) or None


@dataclass(frozen=True, slots=True)
class XmlKind:
    name = "xml"
    title = "XML"
    captures = ("poll",)
    options: tuple[Option, ...] = (
        *DOCUMENT_OPTIONS,
        Option("rows", "An XPath to the element of each row: `/catalog/book`.", required=True),
        Option(
            "columns", "A path in each row for each column; `@id?` may be missing.", "names", ()
        ),
        Option("names", "The names of the columns.", "names", ()),
        Option("when_empty", "An XPath that finds something in a document without rows."),
        *NUMBER_OPTIONS,
    )

    def open(
        self, options: Mapping[str, Any], context: Context, capture: str | None = None
    ) -> Opened:
        columns = tuple(
            Column(each.removesuffix("?"), _path(each.removesuffix("?")), each.endswith("?"))
            for each in whole_entries(options["columns"])
        )
        names = tuple(options["names"])
        if names and len(columns) != len(names):
            raise SourceFault(
                f"there are {len(columns)} columns and {len(names)} names", code="bad-option"
            )
        _path(options["rows"])
        typed = TypedRows.of(
            context.known,
            options["types"],
            textual=True,
            nulls=options["nulls"],
            numeral=numeral_reader(options),
        )
        parser = XmlParser(
            options["rows"],
            columns,
            names,
            options["when_empty"],
            options["encoding"],
            context.known is None,
        )
        return open_documents(
            self.name,
            parser,
            typed,
            options,
            context,
            accept="application/xml, text/xml, */*;q=0.5",
            fixed_names=names or [each.name(i) for i, each in enumerate(columns, 1)] or None,
        )


KIND = XmlKind()
