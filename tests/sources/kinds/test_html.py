"""Pages of HTML become rows; a page that was built in another way is no page without rows."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from tests.harness.outside import opened, refused, rows_of, table_of, types_of
from tests.harness.web_site import Answer, Site

WEATHER = """<html><head><title>Weather</title></head><body>
<table class="other"><tr><td>x</td></tr></table>
<table class="obs"><thead><tr><th>Station</th><th>Wind (km/h)</th><th>Rain</th></tr></thead>
<tr><td><a href="/oslo">Oslo</a></td><td>12</td><td>0.5</td></tr>
<tr><td><a href="bergen.html">Bergen</a></td><td>30</td><td></td></tr>
</table></body></html>"""


def page(text: str, **given: object) -> Answer:
    return Answer(text.encode(), **given)  # type: ignore[arg-type]


def test_without_selectors_a_page_is_one_row(site: Site) -> None:
    text = "<title> The  page </title><body><h1>Hi</h1><p>a<b>b</b> c</p><script>x</script>"
    site.pages["/a"] = page(text)
    source = opened("html", url=site.url("/a"))
    found = source.snapshot()
    assert found is not None
    assert found.schema.key == ("url",)
    assert rows_of(found) == [(site.url("/a"), "The page", "Hi ab c")]


def test_rows_and_cells_by_selectors(site: Site) -> None:
    site.pages["/w"] = page(WEATHER)
    found = opened(
        "html",
        url=site.url("/w"),
        rows="table.obs tr",
        columns=("td",),
        names=("station", "wind", "rain"),
    ).snapshot()
    assert types_of(found) == {"station": "string", "wind": "int64", "rain": "double"}
    assert rows_of(found) == [("Oslo", 12, 0.5), ("Bergen", 30, None)]


def test_the_heading_of_a_table_names_its_columns(site: Site) -> None:
    site.pages["/w"] = page(WEATHER)
    expected = [("Oslo", 12, 0.5), ("Bergen", 30, None)]
    for given in ({"table": 2}, {"rows": "table.obs tr"}, {"rows": ".obs tr", "columns": ("td",)}):
        found = opened("html", url=site.url("/w"), **given).snapshot()
        assert table_of(found).column_names == ["station", "wind_km_h", "rain"]
        found = opened("html", url=site.url("/w"), **given).snapshot()
        assert rows_of(found) == expected


def test_a_selector_for_each_column_with_links_and_attributes(site: Site) -> None:
    site.pages["/shop/list"] = page(
        '<ul class="items"><li data-id="7"><a href="../p/7">Pen</a> <b>1.50</b></li>'
        '<li data-id="8"><a href="//cdn.example/8">Ink</a><i>new</i></li></ul>'
    )
    found = opened(
        "html",
        url=site.url("/shop/list"),
        rows="ul.items li",
        columns=("@data-id", "a", "a@href", "b", "i:is(.x", "i)?"),
        names=("id", "title", "link", "price", "note"),
    ).snapshot()
    assert rows_of(found) == [
        (7, "Pen", site.url("/p/7"), 1.5, None),
        (8, "Ink", "http://cdn.example/8", None, "new"),
    ]


def test_cells_that_span_and_headings_above_each_other(site: Site) -> None:
    site.pages["/t"] = page(
        "<table><tr><th rowspan=2>City</th><th colspan=2>Temp</th></tr>"
        "<tr><th>min</th><th>max</th></tr>"
        "<tr><td rowspan='2'>Oslo</td><td>1</td><td>5</td></tr><tr><td>2</td><td>6</td></tr>"
        "<tr><td colspan=3>none</td></tr></table>"
    )
    found = table_of(opened("html", url=site.url("/t"), table=1).snapshot())
    assert found.column_names == ["city", "temp_min", "temp_max"]
    assert found.column("city").to_pylist() == ["Oslo", "Oslo", "none"]
    assert found.column("temp_max").to_pylist() == ["5", "6", "none"]


def test_a_table_inside_a_table_is_not_mixed_with_it(site: Site) -> None:
    site.pages["/t"] = page(
        "<table><tr><td>a<table><tr><td>in</td></tr></table></td><td>b</td></tr></table>"
    )
    assert rows_of(opened("html", url=site.url("/t"), table=1).snapshot()) == [("a in", "b")]
    assert rows_of(opened("html", url=site.url("/t"), table=2).snapshot()) == [("in",)]


def test_declared_types_nulls_and_numbers_as_they_are_written(site: Site) -> None:
    site.pages["/t"] = page(
        "<table><tr><th>Day<th>Price<th>Left</tr>"
        "<tr><td>2026-05-01<td>1.234,50<td>−3</tr><tr><td>2026-05-02<td>n/a<td>4</tr></table>"
    )
    found = opened(
        "html",
        url=site.url("/t"),
        table=1,
        types=("price decimal(8", "2)"),
        nulls=("n/a",),
        thousands=".",
        decimal=",",
    ).snapshot()
    assert types_of(found) == {"day": "date32[day]", "price": "decimal128(8, 2)", "left": "int64"}
    rows = rows_of(opened("html", url=site.url("/t"), table=1, nulls=("n/a",)).snapshot())
    assert rows[0] == (datetime.date(2026, 5, 1), "1.234,50", -3)


def test_several_pages_and_the_page_of_each_row(site: Site) -> None:
    for name in "ab":
        site.pages[f"/{name}"] = page(f"<table><tr><th>N</th></tr><tr><td>{name}</td></tr></table>")
    urls = [site.url("/a"), site.url("/b")]
    source = opened("html", url=" ".join(urls), table=1, page_column="page")
    first = source.snapshot()
    assert first is not None
    assert first.part_column == "page"
    assert rows_of(first) == [("a", urls[0]), ("b", urls[1])]
    # One is set aside while the other goes on.
    site.pages["/a"] = page("down", status=500)
    site.pages["/b"] = page("<table><tr><th>N</th></tr><tr><td>c</td></tr></table>")
    second = source.snapshot(first.position)
    assert second is not None
    assert list(second.set_aside) == [urls[0]]
    assert "500" in second.set_aside[urls[0]]
    assert rows_of(second) == [("c", urls[1])]
    assert source.snapshot(second.position) is None
    site.pages["/b"] = page("down", status=500)
    with refused("source-down", "500"):
        source.snapshot(second.position)


def test_without_a_column_for_the_page_one_that_fails_stops_all(site: Site) -> None:
    site.pages["/a"] = page("<table><tr><td>1</td></tr></table>")
    with refused("source-down", "404"):
        opened("html", url=f"{site.url('/a')} {site.url('/b')}", table=1).snapshot()


# --- what has changed ------------------------------------------------------------------------


def test_a_page_that_is_as_it_was_gives_no_snapshot(site: Site) -> None:
    site.pages["/w"] = page(WEATHER)
    source = opened("html", url=site.url("/w"), table=2)
    first = source.snapshot()
    assert first is not None
    assert source.snapshot(first.position) is None
    # So does one that is opened later.
    assert opened("html", url=site.url("/w"), table=2).snapshot(first.position) is None
    # With other options the position means nothing.
    assert opened("html", url=site.url("/w"), table=1).snapshot(first.position) is not None


def test_an_etag_saves_the_page(site: Site) -> None:
    def answer(headers: dict[str, str]) -> Answer:
        if headers.get("if-none-match") == '"1"':
            return Answer(status=304)
        return page(WEATHER, headers={"ETag": '"1"'})

    site.pages["/w"] = answer
    source = opened("html", url=site.url("/w"), table=2)
    first = source.snapshot()
    assert first is not None
    assert source.snapshot(first.position) is None
    again = source.snapshot()
    assert rows_of(again) == [("Oslo", 12, 0.5), ("Bergen", 30, None)]
    assert [each.get("if-none-match") for _, each in site.asked] == [None, '"1"', '"1"']


def test_of_many_pages_one_that_changed_is_parsed(site: Site) -> None:
    def tagged(text: str) -> object:
        def answer(headers: dict[str, str]) -> Answer:
            tag = f'"{text}"'
            if headers.get("if-none-match") == tag:
                return Answer(status=304)
            table = f"<table><tr><td>{text}</td></tr></table>"
            return page(table, headers={"ETag": tag})

        return answer

    site.pages |= {f"/{name}": tagged(name) for name in "abc"}
    source = opened("html", url=" ".join(site.url(f"/{n}") for n in "abc"), table=1)
    first = source.snapshot()
    assert first is not None
    site.pages["/b"] = tagged("changed")
    second = source.snapshot(first.position)
    assert rows_of(second) == [("a",), ("changed",), ("c",)]
    assert len(site.asked) == 6
    # Opened later, the others are read as well.
    later = opened("html", url=" ".join(site.url(f"/{n}") for n in "abc"), table=1)
    assert rows_of(later.snapshot(first.position)) == [("a",), ("changed",), ("c",)]


# --- empty is not an error, an error is not empty --------------------------------------------

KNOWN = pa.schema([("station", pa.string()), ("wind_km_h", pa.int64()), ("rain", pa.float64())])


def test_a_table_without_rows_is_empty(site: Site) -> None:
    head = WEATHER.partition("<tr><td><a href=")[0] + "</table></body></html>"
    site.pages["/w"] = page(head)
    for given in ({"table": 2}, {"rows": ".obs tr"}, {"rows": ".obs tr", "columns": ("td",)}):
        found = opened("html", KNOWN, url=site.url("/w"), **given).snapshot()
        assert rows_of(found) == [], given
        assert found is not None
        assert found.schema.columns == KNOWN
    body = "<div class=results></div>"
    site.pages["/d"] = page(body)
    assert (
        rows_of(opened("html", KNOWN, url=site.url("/d"), rows=".results > .row").snapshot()) == []
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": "table.obs tr"}, ["table.obs tr", "no table.obs"]),
        ({"rows": ".row"}, ["'.row'", "when_empty"]),
        ({"rows": ".row", "when_empty": ".none"}, ["'.row'", "when_empty"]),
        ({"table": 3}, ["table 3", "1 table"]),
        ({"rows": "table tr", "columns": (".name",)}, ["columns '.name'", "1 row"]),
        ({"rows": "table tr", "columns": ("td", ".name")}, ["columns '.name'"]),
        ({"rows": "table tr", "columns": ("td", "td@title")}, ["columns 'td@title'"]),
        ({"rows": "table tr", "columns": ("td",), "names": ("a", "b", "c")}, ["shorter", "3"]),
        ({"table": 1, "names": ("a", "b", "c")}, ["1 column", "3"]),
    ],
    ids=str,
)
def test_a_selector_that_finds_nothing_is_named(
    site: Site, options: dict[str, object], words: list[str]
) -> None:
    site.pages["/w"] = page("<html><body><table><tr><td>x</td></tr></table></body></html>")
    with refused("source-suspect", *words):
        opened("html", KNOWN, url=site.url("/w"), **options).snapshot()
    with refused("bad-option", *words):
        opened("html", url=site.url("/w"), **options).snapshot()


def test_what_such_a_page_has_tells_that_there_are_no_rows(site: Site) -> None:
    site.pages["/w"] = page("<p class=none>Nothing found</p>")
    found = opened("html", KNOWN, url=site.url("/w"), rows=".row", when_empty="p.none").snapshot()
    assert rows_of(found) == []


@pytest.mark.parametrize(
    "text",
    [
        WEATHER[: WEATHER.index("Bergen")],
        WEATHER[: WEATHER.index("</table></body>")],
        WEATHER[: WEATHER.index("30</td>") - 2],
        "<div><p>one",
        "",
        "  \n ",
    ],
)
def test_half_a_page_is_no_page(site: Site, text: str) -> None:
    site.pages["/w"] = page(text)
    for given in ({}, {"table": 2}, {"rows": ".obs tr"}):
        with refused("source-suspect"):
            opened("html", KNOWN, url=site.url("/w"), **given).snapshot()


def test_a_value_that_does_not_fit_the_mirror_is_named(site: Site) -> None:
    site.pages["/w"] = page(WEATHER.replace(">12<", ">calm<"))
    with refused("source-changed", "wind_km_h", "integer", "'calm'", "nulls"):
        opened("html", KNOWN, url=site.url("/w"), table=2).snapshot()
    site.pages["/w"] = page(WEATHER.replace(">0.5<", ">1<").replace(">12<", "> <"))
    found = opened("html", KNOWN, url=site.url("/w"), table=2).snapshot()
    assert types_of(found)["rain"] == "double"
    assert rows_of(opened("html", KNOWN, url=site.url("/w"), table=2).snapshot())[0] == (
        "Oslo",
        None,
        1.0,
    )


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"rows": "td[["}, "selector"),
        ({"rows": "td", "table": 1}, "exclude"),
        ({"columns": ("td",)}, "rows"),
        ({"rows": "td", "columns": ("a", "b"), "names": ("x",)}, "2 columns"),
        ({"table": 1, "types": ("x integer",)}, "'types'"),
        ({"table": 1, "types": ("column_1 wide",)}, "wide"),
        ({"table": 1, "types": ("column_1",)}, "a name and a type"),
        ({"table": 1, "thousands": "."}, "thousands"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(site: Site, options: dict[str, object], word: str) -> None:
    site.pages["/w"] = page("<table><tr><td>x</td></tr></table>")
    with refused("bad-option", word.strip("'")):
        opened("html", url=site.url("/w"), **options).snapshot()


def test_a_page_or_a_file_must_be_named() -> None:
    for given in ({}, {"url": "http://a.example/", "path": "/x"}, {"url": "http://a http://a"}):
        with refused("bad-option"):
            opened("html", **given)


# --- encodings -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "type", "options"),
    [
        ("<p>Åse</p>".encode(), "text/html", {}),
        ("<p>Åse</p>".encode("latin-1"), "text/html; charset=iso-8859-1", {}),
        ("<p>Åse</p>".encode("cp1252"), "text/html", {}),
        ("<p>Åse</p>".encode("utf-16"), "text/html", {}),
        ('<meta charset="cp1250"><p>Åse</p>'.replace("Å", "Ą").encode("cp1250"), "text/html", {}),
        ("<p>Åse</p>".encode("latin-1"), "text/html; charset=utf-8", {"encoding": "latin-1"}),
    ],
    ids=["utf-8", "told", "not told", "marked", "in the page", "by the option"],
)
def test_encodings(site: Site, body: bytes, type: str, options: dict[str, str]) -> None:
    site.pages["/a"] = Answer(body, type=type)
    rows = rows_of(opened("html", url=site.url("/a"), **options).snapshot())
    assert rows[0][2] == ("Ąse" if b"cp1250" in body else "Åse")


def test_a_wrong_encoding_is_a_fault(site: Site) -> None:
    site.pages["/a"] = Answer("<p>Åse</p>".encode("latin-1"), type="text/html; charset=utf-8")
    with refused("source-suspect", "utf-8", "encoding"):
        opened("html", url=site.url("/a")).snapshot()
    site.pages["/a"] = Answer(b"<p>x</p>", type="text/html; charset=klingon")
    with refused("source-suspect", "klingon"):
        opened("html", url=site.url("/a")).snapshot()


def test_a_deep_page_is_read(site: Site) -> None:
    site.pages["/a"] = page("<b>" * 100_000 + "x" + "</b>" * 100_000)
    assert rows_of(opened("html", url=site.url("/a")).snapshot())[0][2] == "x"
