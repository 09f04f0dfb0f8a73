"""Outside sources in the console: their pages, what can be done to them, and the form."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from harken.settings import Settings
from tests.console.test_continual_queries import send
from tests.console.test_pages import fetch
from tests.server.serving import Served


@pytest.fixture
def served(serve: Callable[..., Served], tmp_path: Path) -> Served:
    return serve(settings=Settings({"source_roots": (str(tmp_path),)}, serving=True))


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps([{"id": 1, "price": 1.5}, {"id": 2, "price": 3}]))
    return path


@pytest.fixture
def fed(served: Served, prices: Path) -> Served:
    data = {"name": "price", "kind": "json", "options": {"path": str(prices)}, "key": "id"}
    assert send(served, "/sources", data) == (200, {"next": "/sources/price"})
    return served


def test_each_page_says_how_it_goes(fed: Served, prices: Path) -> None:
    for path, expected in {
        "/sources": "price",
        "/sources/price": "<b>Fresh</b>: 2 rows",
        "/new/source": "The address of the page",
        "/new/source?kind=postgresql": "Capture",
        "/search?q=pric": "/sources/price",
    }.items():
        status, text, _ = fetch(fed, path)
        assert status == 200, path
        assert expected in text, path
    assert fetch(fed, "/sources/nothing")[0] == 404
    prices.unlink()
    assert send(fed, "/sources/price/do/refresh", {})[0] in (200, 400, 500, 503)
    assert "there is no file" in fetch(fed, "/sources/price")[1]
    assert "1 failing" in fetch(fed, "/")[1]


def test_what_is_wrong_is_said(served: Served) -> None:
    for options, field in (({"path": "/etc/passwd"}, ""), ({"tokn": "x"}, "tokn")):
        status, found = send(served, "/sources/-/check", {"kind": "json", "options": options})
        assert (status, bool(found["message"])) == (400, True)
        assert found["field"] in ("", field)


def test_buttons_do_what_they_say(fed: Served, prices: Path) -> None:
    prices.write_text(json.dumps([{"id": 1, "price": 2}, {"id": 2, "price": 3}]))
    assert send(fed, "/sources/price/do/refresh", {})[0] == 200
    assert fed.client.sql("SELECT price FROM price WHERE id = 1") == [(2.0,)]
    assert send(fed, "/sources/price/do/pause", {})[0] == 200
    assert "<b>Paused</b>" in fetch(fed, "/sources/price")[1]
    assert send(fed, "/sources/price/do/resume", {})[0] == 200
    assert send(fed, "/sources/price/do/drop", {}) == (200, {"next": "/sources"})
    assert fetch(fed, "/sources/price")[0] == 404


def test_a_source_is_checked_and_then_added(page: Page, served: Served, prices: Path) -> None:
    page.goto(f"{served.url}/new/source?kind=json")
    page.locator("#name").fill("price")
    page.locator("summary").click()
    place = page.locator("#o-path")
    place.fill(str(prices))
    page.get_by_role("button", name="Check it").click()
    expect(page.locator("[data-result]")).to_contain_text("could be id")
    page.locator("#key").fill("id")
    page.get_by_role("button", name="Add the source").click()
    expect(page.locator("h1")).to_have_text("price")
    expect(page.locator("[data-live-count]")).to_have_text("2 rows")


def test_a_filter_form_installs_a_query(page: Page, fed: Served) -> None:
    page.goto(f"{fed.url}/sources/price")
    page.get_by_label("price", exact=True).fill("2")
    page.get_by_label("Comparison of price").select_option(">")
    page.get_by_role("button", name="Install query").click()
    expect(page.locator("[data-live-count]")).to_have_text("1 row")
    statement = page.locator("pre").first
    expect(statement).to_contain_text("SELECT * FROM price WHERE price > 2")
    expect(statement).to_contain_text("TRIGGER FROM price WHERE price > 2")
