"""Continual queries in the console: their pages, what can be done to them, and the form."""

from __future__ import annotations

import http.client
import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.console.test_pages import fetch
from tests.harness.patience import PATIENCE
from tests.server.serving import Served

LOW = """CREATE CONTINUAL QUERY low_stock AS SELECT item, quantity FROM stock WHERE quantity < 10
TRIGGER EVERY DAY AT '08:00' NOTIFY LOG"""


def send(served: Served, path: str, data: Any) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    connection.request("POST", path, json.dumps(data), {"content-type": "application/json"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    is_json = answer.headers.get_content_type().endswith("json")
    return answer.status, json.loads(text) if is_json else text


@pytest.fixture
def watched(served: Served) -> Served:
    served.client.sql(LOW)
    return served


def test_each_page_says_how_it_goes(watched: Served) -> None:
    pages = {
        "/queries": "EVERY DAY AT",
        "/queries?q=zzz": "Nothing matches",
        "/queries/low_stock": "Watching since",
        "/queries/low_stock?tab=executions": "installed",
        "/queries/low_stock?tab=deliveries": "results",
        "/queries/low_stock?tab=how": "triggered by the clock",
        "/queries/low_stock/edit": "Edit low_stock",
        "/new/query?copy=low_stock": "SELECT item, quantity FROM stock",
        "/search?q=low_st": "/queries/low_stock",
    }
    for path, expected in pages.items():
        status, text, _ = fetch(watched, path)
        assert status == 200, path
        assert expected in text, path
        assert "<img" not in text, path
    assert fetch(watched, "/queries/nothing")[0] == 404


def test_buttons_do_what_they_say(watched: Served) -> None:
    for action, state in (
        ("pause", "paused"),
        ("resume", "active"),
        ("mute", "muted"),
        ("unmute", "active"),
        ("run", "active"),
    ):
        assert send(watched, f"/queries/low_stock/do/{action}", {})[0] == 200
        text = json.dumps(watched.client.sql("SHOW CONTINUAL QUERIES"), default=str)
        assert state in text, action
    assert send(watched, "/queries/low_stock/snooze", {"hours": 8})[0] == 200
    assert "<b>Snoozed</b>" in fetch(watched, "/queries/low_stock")[1]
    assert send(watched, "/queries/low_stock/snooze", {"hours": -1})[0] == 400
    assert send(watched, "/queries/low_stock/do/nothing", {})[0] == 400
    assert send(watched, "/queries/low_stock/resend", {"number": 10**6})[0] == 404
    assert send(watched, "/queries/low_stock/do/drop", {}) == (200, {"next": "/queries"})
    assert fetch(watched, "/queries/low_stock")[0] == 404


def test_what_is_wrong_names_its_field(served: Served) -> None:
    start = "CREATE CONTINUAL QUERY low AS SELECT item FROM "
    cases = {
        "stoc": "query",
        "stock TRIGGER EVERY BLUE MOON": "trigger",
        "stock TRIGGER EVERY DAY STOP AFTER bananas": "stop",
        "stock TRIGGER EVERY DAY NOTIFY EMAI 'ann'": "notify",
        "stock TRIGGER EVERY DAY ZONE 'Mars/Base'": "zone",
    }
    for rest, field in cases.items():
        for path in ("/queries/-/try", "/queries"):
            status, found = send(served, path, {"text": start + rest})
            assert (status, found["field"]) == (400, field), (path, rest, found)
            assert found["message"]
    assert served.client.sql("SHOW CONTINUAL QUERIES") == []


def test_a_trial_shows_the_message_and_installs_nothing(served: Served) -> None:
    status, shown = send(served, "/queries/-/try", {"text": LOW})
    assert status == 200
    assert "low_stock: 2 new" in shown
    assert "triggered by the clock" in shown
    assert "<img" not in shown
    assert served.client.sql("SHOW CONTINUAL QUERIES") == []
    found = send(served, "/queries/-/read", {"text": LOW})[1]
    assert found["fields"]["trigger"] == "EVERY DAY AT '08:00'"
    assert len(found["due"]) == 5


def test_it_is_edited_as_text(watched: Served) -> None:
    text = LOW.replace("low_stock", "scarce").replace("NOTIFY LOG", "STOP AFTER 2 WEEKS PRIORITY 5")
    status, found = send(watched, "/queries/low_stock/alter", {"text": text})
    assert (status, found) == (200, {"next": "/queries/scarce"})
    page = fetch(watched, "/queries/scarce?tab=executions")[1]
    assert "AFTER 2 WEEKS" in fetch(watched, "/queries/scarce/edit")[1]
    assert "NOTIFY" not in fetch(watched, "/queries/scarce")[1]
    assert "installed" in page  # its history is still there
    text = text.replace("scarce", "low_stock").replace("stock WHERE", "nothing WHERE")
    assert send(watched, "/queries/scarce/alter", {"text": text})[1]["field"] == "query"


def test_rows_come_only_when_they_are_others(watched: Served) -> None:
    found = json.loads(fetch(watched, "/queries/low_stock/rows")[1])
    assert found["count"] == 2
    assert fetch(watched, f"/queries/low_stock/rows?known={found['state']}")[0] == 204
    watched.client.sql("UPDATE stock SET quantity = 1 WHERE item = 'ink'")
    assert fetch(watched, f"/queries/low_stock/rows?known={found['state']}")[0] == 200


def test_a_query_is_made_by_clicking(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/queries")
    page.get_by_role("link", name="New continual query").first.click()
    page.get_by_label("Name", exact=True).fill("low_stock")
    page.get_by_label("Add a table or view").select_option("low")
    for column in ("item", "quantity"):
        page.locator("[data-columns]").get_by_role("button", name=column).click()
    expect(page.get_by_label("minute")).to_have_value("0")
    page.get_by_label("Template").select_option("EVERY MONDAY AT '08:00'")
    expect(page.locator("[data-due]")).to_contain_text("Mon")
    expect(page.get_by_label("weekday")).to_have_value("1")
    page.get_by_label("Channel").select_option("log")
    page.get_by_role("button", name="Add").click()
    statement = page.get_by_label("The same as text")
    expect(statement).to_have_value(
        "CREATE CONTINUAL QUERY low_stock AS\nSELECT item, quantity FROM low\n"
        "TRIGGER EVERY MONDAY AT '08:00'\nNOTIFY LOG"
    )
    statement.fill(statement.input_value().replace("MONDAY", "TUESDAY"))
    expect(page.get_by_label("Trigger", exact=True)).to_have_value("EVERY TUESDAY AT '08:00'")
    page.get_by_label("hour").fill("9")
    expect(page.get_by_label("Trigger", exact=True)).to_have_value("CRON '* 9 * * *'")
    expect(statement).to_have_value(re.compile("TRIGGER CRON '\\* 9 \\* \\* \\*'"))
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("[data-result]")).to_contain_text("low_stock: 2 new")
    page.get_by_label("Stop").fill("AFTER bananas")
    expect(page.locator(".problem")).to_be_visible()
    page.get_by_label("Stop").fill("AFTER 2 WEEKS")
    page.get_by_role("button", name="Install").click()
    expect(page.locator("h1")).to_have_text("low_stock")
    expect(page.locator("[data-live-count]")).to_have_text("2 rows")


def test_events_are_clicked_and_typed_in_step(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/new/query")
    statement, trigger = (
        page.get_by_label("The same as text"),
        page.get_by_label("Trigger", exact=True),
    )
    page.get_by_label("Add a table or view").select_option("stock")
    page.get_by_label("when data changes").check()
    event = page.get_by_role("group", name="Event")
    event.get_by_label("Attribute").select_option("quantity")
    event.get_by_label("Operator").select_option("DECBYP")
    event.get_by_label("Value").fill("5")
    event.get_by_label("WHERE").fill("stock.item = 'pen'")
    expect(trigger).to_have_value("WHEN stock.quantity DECBYP 5 WHERE stock.item = 'pen'")
    page.get_by_role("button", name="Or", exact=True).click()
    second = event.nth(1)
    second.get_by_label("Group function").select_option("MAX")
    second.get_by_label("Operator").select_option("<")
    second.get_by_label("Value").fill("2390000")
    expect(trigger).to_have_value(
        "WHEN (stock.quantity DECBYP 5 WHERE stock.item = 'pen') OR MAX(stock.quantity) < 2390000"
    )
    statement.fill(statement.input_value().replace("2390000", "7").replace("DECBYP", "INCBYP"))
    expect(second.get_by_label("Value")).to_have_value("7")
    expect(event.first.get_by_label("Operator")).to_have_value("INCBYP")
    statement.fill(statement.input_value().split("TRIGGER")[0] + "TRIGGER WHEN a THEN b")
    expect(page.locator("[data-free]")).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(trigger).to_have_value("")


def test_a_drop_can_be_undone(page: Page, watched: Served) -> None:
    page.clock.install()
    page.goto(f"{watched.url}/queries/low_stock")
    page.get_by_role("button", name="Drop").click()
    expect(page.locator(".toast")).to_contain_text("gone in ten seconds")
    page.get_by_role("button", name="Undo").click()
    page.goto(f"{watched.url}/queries")
    expect(page.locator("main")).to_contain_text("low_stock")
    page.goto(f"{watched.url}/queries/low_stock")
    page.get_by_role("button", name="Drop").click()
    page.clock.fast_forward(10_000)
    expect(page.locator("main")).to_contain_text("No continual queries yet")
