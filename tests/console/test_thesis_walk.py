"""Section 6.4 of the thesis on continual queries, screen by screen, as two people at once.

A user registers, asks, installs, browses and deletes; the operator administers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import harken
from harken.settings import Settings
from tests.harness.patience import PATIENCE
from tests.server.serving import Served

PASSWORD = "correct horse battery"


@pytest.fixture
def served(serve: Callable[..., Served], path: str, tmp_path: Path) -> Served:
    (tmp_path / "weather.json").write_text(
        json.dumps([{"zip": 97005, "wind": 12.5}, {"zip": 97210, "wind": 30.0}])
    )
    with harken.connect(path) as db:
        db.users.add("olga", role="operator", password=PASSWORD)
        db.source("weather", "json", path=str(tmp_path / "weather.json"), key="zip")
    given = {"registration": "open", "source_roots": (str(tmp_path),)}
    return serve(settings=Settings(given, serving=True))


@pytest.fixture
def other(chromium: Browser) -> Iterator[Page]:
    """A second person, at another machine."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE * 1000)
    yield context.new_page()
    context.close()


def sign_in(page: Page, served: Served, name: str) -> None:
    page.goto(f"{served.url}/login")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("h1")).to_have_text("Home")


def test_section_6_4(page: Page, other: Page, served: Served) -> None:
    # 6-7, user registration; a wrong password is refused
    page.goto(f"{served.url}/register")
    page.get_by_label("Name").fill("wtang")
    page.get_by_label("Mail address").fill("wtang@example.org")
    page.get_by_label("Password, at least 10 characters").fill(PASSWORD)
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    page.get_by_label("Name").fill("wtang")
    page.get_by_label("Password").fill("something else")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("[data-told]")).to_contain_text("wrong")
    sign_in(page, served, "wtang")

    # the operator lets the new user read, send and write queries
    sign_in(other, served, "olga")
    other.goto(f"{served.url}/operator?tab=users")
    other.get_by_label("Role of wtang").select_option("author")
    with other.expect_navigation():
        other.locator("tr", has_text="wtang").get_by_role("button", name="Set role").click()
    for right, on in (("SELECT", "stock"), ("SELECT", "weather"), ("NOTIFY", "log")):
        other.goto(f"{served.url}/operator?tab=grants")
        other.get_by_label("Let", exact=True).fill("wtang")
        other.get_by_label("have the right").select_option(right)
        other.get_by_label("on a table").fill(on)
        with other.expect_navigation():
            other.get_by_role("button", name="Grant", exact=True).click()
        expect(other.get_by_role("region", name="Grants")).to_contain_text(right)

    # 6-8 to 6-10, normal query: table descriptions, the query, its result
    page.goto(f"{served.url}/data")
    expect(page.locator("tbody")).not_to_contain_text("note")  # not granted
    page.get_by_role("link", name="stock", exact=True).click()
    expect(page.locator("aside dl")).to_contain_text("quantity")
    page.get_by_role("link", name="Query", exact=True).first.click()
    page.get_by_label("Statement").fill("SELECT item, quantity FROM stock ORDER BY quantity")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("[data-results] h2")).to_contain_text("3 rows")

    # 6-11 to 6-14, a time-based continual query, with the template of every weekday
    page.goto(f"{served.url}/new/query")
    page.get_by_label("Name", exact=True).fill("prices")
    page.get_by_label("Add a table or view").select_option("stock")
    page.get_by_label("Template").select_option("EVERY WEEKDAY AT '08:00'")
    expect(page.get_by_label("weekday")).to_have_value("1-5")
    page.get_by_label("Stop", exact=True).fill("AFTER 2 WEEKS")
    expect(page.get_by_label("The same as text")).to_have_value(
        "CREATE CONTINUAL QUERY prices AS\nSELECT * FROM stock\n"
        "TRIGGER EVERY WEEKDAY AT '08:00'\nSTOP AFTER 2 WEEKS"
    )
    page.get_by_role("button", name="Install").click()
    expect(page.locator(".state")).to_contain_text("Watching since")

    # 6-15, a content-based one, by clicking
    page.goto(f"{served.url}/new/query")
    page.get_by_label("Name", exact=True).fill("falling")
    page.get_by_label("Add a table or view").select_option("stock")
    page.get_by_label("when data changes").check()
    event = page.get_by_role("group", name="Event")
    event.get_by_label("Attribute").select_option("quantity")
    event.get_by_label("Operator").select_option("DECBYP")
    event.get_by_label("Value").fill("5")
    event.get_by_label("WHERE").fill("stock.item = 'pen'")
    page.get_by_label("Channel").select_option("log")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Install").click()
    expect(page.locator("[data-live-count]")).to_have_text("3 rows")

    # 6-18, the source meta query is the operator's
    other.goto(f"{served.url}/query?text=SELECT name, owner FROM continual_query")
    other.get_by_role("button", name="Run").click()
    expect(other.locator("[data-results]")).to_contain_text("falling")
    page.goto(f"{served.url}/query?text=SELECT * FROM note")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("[data-results] .problem")).to_be_visible()

    # 6-19 to 6-21, source data update: the operator changes a row, and the user sees it
    page.goto(f"{served.url}/queries/falling")
    expect(page.locator("[data-live-count]")).to_have_text("3 rows")
    other.goto(f"{served.url}/data/stock")
    other.get_by_role("button", name="Edit pen").click()
    row = other.get_by_role("dialog", name="A row of stock")
    row.get_by_label("quantity").fill("4")
    row.get_by_role("button", name="Save").click()
    expect(other.locator("tr.chg .was")).to_have_attribute("title", "was 5")
    expect(page.locator("tr.add")).to_contain_text("pen")

    # 6-16 and 6-17, browse and delete: only the own ones, one or all
    other.goto(f"{served.url}/queries/falling")
    expect(other.locator("dl").last).to_contain_text("wtang")
    page.goto(f"{served.url}/queries")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.clock.install()
    page.goto(f"{served.url}/queries")
    page.get_by_role("button", name="Drop all of mine").click()
    expect(page.locator(".toast")).to_contain_text("gone in ten seconds")
    page.clock.run_for(11_000)
    expect(page.locator("main")).to_contain_text("No continual queries yet")

    # 6-22 and 6-23, the weather watch: a source of its own with a form that installs a query
    page.goto(f"{served.url}/sources/weather")
    expect(page.locator(".state")).to_contain_text("Fresh")
    page.get_by_label("zip", exact=True).fill("97005")
    page.get_by_role("button", name="Install query").click()
    expect(page.locator("pre").first).to_contain_text("WHERE zip = 97005")
    expect(page.locator("[data-live-count]")).to_have_text("1 row")
