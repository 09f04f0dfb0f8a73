"""The page that follows a view, in a real browser."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import pytest

import harken
from tests.server.browser import CHROMIUM, Browser
from tests.server.serving import Served

ROOT = Path(__file__).parents[2]
PAGE = files("harken.server").joinpath("page.html").read_text("utf-8")
TEXT = "document.querySelector('table')?.innerText.split(/\\s+/).filter(Boolean).join(' ')"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: script/chromium --install")
    browser = Browser(tmp_path / "profile")
    yield browser
    browser.close()


def test_the_page_is_served_and_in_the_documents(served: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port)
    connection.request("GET", "/?view=low")
    answer = connection.getresponse()
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.read().decode() == PAGE
    connection.close()
    assert f"```html\n{PAGE}```" in (ROOT / "docs/monitor.md").read_text("utf-8")


def test_a_browser_follows_a_view(
    serve: Callable[..., Served], browser: Browser, path: str
) -> None:
    served = serve()
    browser.open(f"{served.url}/?view=low")
    browser.wait_for(f"{TEXT} == 'pen 5'")
    served.put("<b>&", 3)
    browser.wait_for(f"{TEXT} == 'pen 5 <b>& 3'")
    served.put("pen", None)
    browser.wait_for(f"{TEXT} == '<b>& 3'")

    served.stop()
    with harken.connect(path) as db:
        db.sql("INSERT INTO stock VALUES ('cap', 1)")
    again = serve(port=served.port)
    browser.wait_for(f"{TEXT} == '<b>& 3 cap 1'")
    again.put("cap", None)
    browser.wait_for(f"{TEXT} == '<b>& 3'")


def test_a_browser_shows_all_digits(served: Served, browser: Browser) -> None:
    served.client.sql("CREATE TABLE sums (n BIGINT, price DECIMAL(10,2))")
    browser.open(f"{served.url}/?view=sums")
    browser.wait_for("document.querySelector('h1')?.innerText.startsWith('sums at')")
    served.client.sql("INSERT INTO sums VALUES (9007199254740993, 205039.00)")
    browser.wait_for(f"{TEXT} == '9007199254740993 205039.00'")
    served.client.sql("DELETE FROM sums")
    browser.wait_for(f"{TEXT} == ''")


def test_a_browser_gives_the_token_of_the_page(
    serve: Callable[..., Served], browser: Browser
) -> None:
    served = serve(token="a&b")
    browser.open(f"{served.url}/?view=stock&where=quantity%3C9&token=a%26b")
    browser.wait_for(f"{TEXT} == 'pen 5'")
