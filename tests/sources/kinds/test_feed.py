"""Feeds of RSS and Atom become one row for each entry."""

from __future__ import annotations

import datetime

import pytest

from tests.harness.outside import opened, refused, rows_of, types_of
from tests.harness.web_site import Answer, Site

RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><link>/</link>
<item><guid>1</guid><title>A &amp; B</title><link>/a</link><description>One</description>
<category>x</category><category>y</category>
<pubDate>Fri, 01 May 2026 10:00:00 +0200</pubDate></item>
<item><title>No name</title></item>
<item><guid>1</guid><title>older</title></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><id>f</id>
<entry><id>urn:1</id><title>T</title><link href="https://example.org/1"/>
<author><name>Ann</name></author><updated>2026-05-01T08:00:00Z</updated>
<content type="html">&lt;p>Hi&lt;script>x&lt;/script>&lt;/p></content></entry></feed>"""
HALF = RSS[: RSS.index("<item><title>No")]


def feed(text: str) -> Answer:
    return Answer(text.encode(), type="application/xml")


def test_rss(site: Site) -> None:
    site.pages["/f"] = feed(RSS)
    found = opened("feed", url=site.url("/f")).snapshot()
    assert found is not None
    assert found.schema.key == ("id",)
    first, second = rows_of(found)
    at = datetime.datetime(2026, 5, 1, 8)
    assert first == ("1", "A & B", site.url("/a"), "One", None, at, None, "x, y")
    assert second[1:] == ("No name", *[None] * 6)
    assert len(second[0]) == 64
    assert types_of(opened("feed", url=site.url("/f")).snapshot())["published"] == "timestamp[us]"


def test_atom(site: Site) -> None:
    site.pages["/f"] = feed(ATOM)
    source = opened("feed", url=site.url("/f"))
    found = source.snapshot()
    ((*row, updated, _),) = rows_of(found)
    assert row == ["urn:1", "T", "https://example.org/1", "<p>Hi</p>", "Ann", None]
    assert updated == datetime.datetime(2026, 5, 1, 8)
    assert found is not None
    assert source.snapshot(found.position) is None


def test_a_feed_without_entries_is_empty(site: Site) -> None:
    site.pages["/f"] = feed('<rss version="2.0"><channel><title>x</title></channel></rss>')
    assert rows_of(opened("feed", url=site.url("/f")).snapshot()) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html><body>Log in</body></html>",
        RSS[: RSS.index("<item><title>No")],
        "/etc/passwd",
        "{}",
    ],
    ids=["nothing", "a page", "a half", "a path", "an object"],
)
def test_what_is_no_feed_is_a_fault(site: Site, text: str) -> None:
    site.pages["/f"] = feed(text)
    with refused("source-suspect"):
        opened("feed", url=site.url("/f")).snapshot()


def test_entities_are_not_expanded(site: Site) -> None:
    bomb = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    text = f'<!DOCTYPE rss [<!ENTITY e0 "ha">{bomb}<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    item = "<item><title>&e11; &f;</title></item>"
    site.pages["/f"] = feed(f'{text}<rss version="2.0"><channel>{item}</channel></rss>')
    ((_, title, *_),) = rows_of(opened("feed", url=site.url("/f")).snapshot())
    assert len(title or "") < 100
    assert "root:" not in (title or "")
