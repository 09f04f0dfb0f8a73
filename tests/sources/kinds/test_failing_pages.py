"""A server that fails in every way: an error is not empty, and empty is not an error.

Each kind of page is read once as it should be, then in each way of failing. Whatever the server
does, the answer is a fault, or the rows as they were.
"""

from __future__ import annotations

import gzip
import html
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.errors import SourceFault
from harken.sources.outside import Snapshot
from tests.harness.outside import opened, refused, rows_of
from tests.harness.web_site import Answer, Site, web_site

TABLE = (
    "<html><head><title>T</title></head><body><table class=obs><tr><th>City</th><th>N</th></tr>"
    "<tr><td>Åse</td><td>1</td></tr><tr><td>B</td><td>2</td></tr></table></body></html>"
)
FEED = (
    '<?xml version="1.0"?><rss version="2.0"><channel><item><guid>1</guid><title>Åse</title></item>'
    "<item><guid>2</guid><title>B</title></item></channel></rss>"
)
JSON = '{"r": [{"a": "Åse"}, {"a": "B"}]}'


@dataclass(frozen=True)
class Case:
    kind: str
    page: str
    type: str
    options: Mapping[str, Any] = field(default_factory=dict)
    empty: str = ""
    """A page without rows; none if the kind has no such pages."""
    shows_its_end: bool = True
    """Does a page that breaks off look different from a whole one?"""


CASES = {
    "html rows": Case("html", TABLE, "text/html", {"rows": ".obs tr"}, "<table class=obs></table>"),
    "html table": Case("html", TABLE, "text/html", {"table": 1}, "<table></table>"),
    "html page": Case("html", TABLE, "text/html"),
    "json": Case("json", JSON, "application/json", {"rows": "r"}, '{"r": []}'),
    "feed": Case("feed", FEED, "application/rss+xml", {}, '<rss version="2.0"><channel/></rss>'),
    "xml": Case("xml", FEED, "text/xml", {"rows": "/rss/channel/item"}, "<rss><channel/></rss>"),
    "bibtex": Case("bibtex", "@book{a, title={Åse}}\n@book{b,}", "text/plain", shows_its_end=False),
    "text": Case(
        "text", "Åse 1\nB 2\n", "text/plain", {"pattern": r"(?P<a>\w+) (?P<n>\d)"}, "\n", False
    ),
}  # fmt: skip
EACH = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def good(case: Case, body: bytes | None = None, **more: Any) -> Answer:
    return Answer(case.page.encode() if body is None else body, type=case.type, **more)


def whole(site: Site, case: Case) -> tuple[Any, Snapshot, list[Any]]:
    """The source, and what it has as long as all is well."""
    site.pages["/p"] = good(case)
    source = opened(case.kind, url=site.url("/p"), **case.options)
    first = source.snapshot()
    assert first is not None
    rows = rows_of(first)
    assert rows
    known = opened(case.kind, first.schema.columns, url=site.url("/p"), **case.options)
    return known, first, rows


def block(site: Site) -> Callable[[Any], None]:
    return lambda _: bool(site.stopped.wait(60)) and None


FAILURES: dict[str, Callable[[Site, Case], Answer]] = {
    "500": lambda site, case: good(case, status=500),
    "404": lambda site, case: good(case, status=404),
    "204": lambda site, case: Answer(status=204),
    "empty": lambda site, case: good(case, b""),
    "half": lambda site, case: good(
        case, case.page.encode()[:-5], headers={"Content-Length": str(len(case.page.encode()))}
    ),
    "broken chunks": lambda site, case: good(
        case, b"5\r\n<html", headers={"Transfer-Encoding": "chunked"}, told=False
    ),
    "wrong length": lambda site, case: good(case, headers={"Content-Length": "9999"}),
    "maintenance": lambda site, case: Answer(b"<html><body>Back soon</body></html>"),
    "cut gzip": lambda site, case: good(
        case, gzip.compress(case.page.encode())[:-9], headers={"Content-Encoding": "gzip"}
    ),
    "bomb": lambda site, case: good(
        case, gzip.compress(bytes(5_000_000)), headers={"Content-Encoding": "gzip"}
    ),
    "loop": lambda site, case: Answer(status=302, headers={"Location": "/p"}),
    "redirect to a file": lambda site, case: Answer(
        status=302, headers={"Location": "file:///etc/passwd"}
    ),
    "wrong encoding": lambda site, case: Answer(
        case.page.encode("utf-16-le"), type=case.type.partition(";")[0] + "; charset=utf-8"
    ),
}


@EACH
@pytest.mark.parametrize("failure", FAILURES)
def test_an_error_is_not_empty(site: Site, case: Case, failure: str) -> None:
    if case.kind == "html" and not case.options and failure == "maintenance":
        pytest.skip("any page is such a page")
    if case.kind == "xml" and failure == "wrong encoding":
        pytest.skip("XML tells its encoding by its first characters")
    source, first, rows = whole(site, case)
    site.pages["/p"] = FAILURES[failure](site, case)
    limited = {"max_bytes": 1_000_000, **case.options}
    known = opened(case.kind, first.schema.columns, url=site.url("/p"), **limited)
    for each in (source if failure != "bomb" else known, known):
        with pytest.raises(SourceFault) as fault:
            rows_of(each.snapshot(first.position))
        assert fault.value.code in ("source-down", "source-suspect", "not-allowed")
        assert site.url() not in fault.value.report()
    # When all is well again, nothing has happened.
    site.pages["/p"] = good(case)
    assert source.snapshot(first.position) is None
    assert rows_of(known.snapshot()) == rows


@EACH
def test_empty_is_not_an_error(site: Site, case: Case) -> None:
    source, first, _ = whole(site, case)
    if not case.empty or case.kind == "text":
        pytest.skip("a page without rows is not told from one that failed")
    site.pages["/p"] = good(case, case.empty.encode())
    found = source.snapshot(first.position)
    assert rows_of(found) == []
    assert found is not None
    assert found.schema.columns == first.schema.columns


@EACH
def test_a_slow_page_is_an_error(site: Site, case: Case) -> None:
    _, first, _ = whole(site, case)
    stuck = case.page.encode()[:20]
    site.pages["/p"] = good(case, stuck, rest=block(site), headers={"Content-Length": "100"})
    slow = opened(case.kind, url=site.url("/p"), timeout=0.05, **case.options)
    with refused("source-down", "within 0.05 s"):
        slow.snapshot(first.position)


@EACH
def test_a_server_that_wants_a_pause_gets_it(case: Case) -> None:
    # A host of its own, because no test may ask this one for as long as it says.
    with web_site(f"127.0.9.{list(CASES.values()).index(case) + 1}") as site:
        source, first, _ = whole(site, case)
        site.pages["/p"] = good(case, status=429, headers={"Retry-After": "3000"})
        with pytest.raises(SourceFault) as fault:
            source.snapshot(first.position)
        assert (fault.value.code, fault.value.retry_after) == ("source-down", 3000)
        with pytest.raises(SourceFault) as fault:
            source.snapshot(first.position)
        assert fault.value.retry_after is not None
        assert len(site.asked) == 2


@EACH
def test_a_page_may_not_lead_to_what_only_we_can_reach(site: Site, case: Case) -> None:
    site.pages["/p"] = good(case)
    public = opened(
        case.kind, url=site.url("/p"), given={"allow_private_addresses": False}, **case.options
    )
    with refused("not-allowed"):
        public.snapshot()
    assert site.asked == []


@EACH
def test_not_modified_is_unchanged(site: Site, case: Case) -> None:
    def answer(headers: Mapping[str, str]) -> Answer:
        if headers.get("if-none-match") == '"1"':
            return Answer(status=304)
        return good(case, headers={"ETag": '"1"'})

    site.pages["/p"] = answer
    source = opened(case.kind, url=site.url("/p"), **case.options)
    first = source.snapshot()
    assert first is not None
    assert source.snapshot(first.position) is None
    later = opened(case.kind, url=site.url("/p"), **case.options)
    assert later.snapshot(first.position) is None


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c.shows_its_end and c.options])
def test_a_page_that_breaks_off_anywhere_is_whole_or_an_error(site: Site, name: str) -> None:
    """Even if the server says that this is all of it."""
    case = CASES[name]
    source, first, rows = whole(site, case)
    page = case.page.encode()
    for length in range(1, len(page)):
        site.pages["/p"] = good(case, page[:length])
        with suppress(SourceFault):
            found = source.snapshot(first.position)
            assert found is None or rows_of(found) == rows, page[:length]


CELLS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=6)


@given(
    st.lists(st.tuples(CELLS, st.integers()), max_size=4),
    st.lists(st.tuples(CELLS, st.integers()), max_size=4),
)
@settings(deadline=None, max_examples=40)
def test_the_rows_of_a_table_are_those_of_the_page(
    before: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    def page(rows: list[tuple[str, int]]) -> Answer:
        cells = "".join(f"<tr><td>{html.escape(a)}</td><td>{n}</td></tr>" for a, n in rows)
        return Answer(f"<table><tr><th>a<th>n</tr>{cells}</table>".encode())

    def expected(rows: list[tuple[str, int]]) -> list[tuple[str | None, str]]:
        return [(a or None, str(n)) for a, n in rows]

    given_types = {"types": ("a text", "n text")}
    with web_site() as site:
        site.pages["/t"] = page(before)
        source = opened("html", url=site.url("/t"), table=1, **given_types)
        first = source.snapshot()
        assert rows_of(first) == expected(before)
        site.pages["/t"] = page(after)
        assert first is not None
        second = source.snapshot(first.position)
        assert (second is None) == (before == after)
        if second is not None:
            assert rows_of(second) == expected(after)
