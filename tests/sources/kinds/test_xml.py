"""XML by paths, without entities, networks or namespaces."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.harness.outside import opened, refused, table_of
from tests.harness.web_site import Answer, Site

CATALOG = """<?xml version="1.0"?><c:catalog xmlns:c="urn:c" xmlns:x="urn:x">
<c:book x:id="1"><c:title>A <b>bold</b> one</c:title><price>1.50</price><!-- n --></c:book>
<c:book x:id="2"><c:title>B</c:title><author>X</author><author>Y</author></c:book></c:catalog>"""


def read(site: Site, text: str, known: pa.Schema | None = None, **options: Any) -> pa.Table:
    site.pages["/x"] = Answer(text.encode(), type="application/xml")
    return table_of(opened("xml", known, url=site.url("/x"), **options).snapshot())


def test_attributes_and_children_are_columns(site: Site) -> None:
    assert read(site, CATALOG, rows="/catalog/book").to_pylist() == [
        {"id": 1, "title": "A bold one", "price": 1.5, "author": None},
        {"id": 2, "title": "B", "price": None, "author": '["X", "Y"]'},
    ]


def test_a_path_for_each_column(site: Site) -> None:
    columns = ("@id", "title/b/text()?", "count(author)", "author[last()]", "../@lang?")
    found = read(site, CATALOG, rows="//book", columns=columns)
    assert found.column_names == ["id", "b", "author", "author_2", "lang"]
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (1, "bold", 0, None, None),
        (2, None, 2, "Y", None),
    ]


KNOWN = pa.schema([("id", pa.int64())])


def test_no_rows_are_empty_where_their_place_is(site: Site) -> None:
    assert read(site, "<catalog/>", KNOWN, rows="/catalog/book").num_rows == 0
    assert read(site, "<a><none/></a>", KNOWN, rows="//book", when_empty="/a/none").num_rows == 0


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("<error/>", {"rows": "/catalog/book"}, ["/catalog/book", "error"]),
        ("<error/>", {"rows": "//book"}, ["//book", "when_empty"]),
        ("<error/>", {"rows": "//book", "when_empty": "//none"}, ["//book"]),
        (CATALOG, {"rows": "//book", "columns": ("name",)}, ["'name'", "2 rows"]),
        (CATALOG[:-20], {"rows": "//book"}, ["well-formed", "part"]),
        ("", {"rows": "//book"}, ["empty"]),
        ("<p>Log in<br></p>", {"rows": "//book"}, ["well-formed"]),
        ("<a>" * 10_000 + "</a>" * 10_000, {"rows": "//a"}, ["well-formed"]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_not_there_is_a_fault(
    site: Site, text: str, options: dict[str, Any], words: list[str]
) -> None:
    with refused("source-suspect", *words):
        read(site, text, KNOWN, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"rows": "//["},
        {"rows": "count(//book)"},
        {"rows": "//n:book"},
        {"rows": "//book", "columns": ("a",), "names": ("a", "b")},
    ],
    ids=str,
)
def test_wrong_options_are_refused(site: Site, options: dict[str, Any]) -> None:
    with refused("bad-option"):
        read(site, CATALOG, KNOWN, **options)


def test_entities_are_not_expanded(site: Site) -> None:
    site.pages["/secret"] = Answer(b"secret")
    text = (
        '<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/passwd">'
        f'<!ENTITY w SYSTEM "{site.url("/secret")}">]><a><b>&f;&w;</b></a>'
    )
    assert read(site, text, rows="/a/b").to_pylist() == [{"value": "&f;&w;"}]
    assert site.paths() == ["/x"]
    bomb = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    with refused("source-suspect", "entity"):
        read(site, f'<!DOCTYPE a [<!ENTITY e0 "ha">{bomb}]><a><b>&e11;</b></a>', rows="/a/b")
