"""What people change on the pages: rows, what is kept of the past, grants, mail, announcements."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console.test_continual_queries import LOW, send
from tests.console.test_pages import fetch
from tests.server.serving import Served


def test_rows_are_added_edited_and_deleted(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/data/stock")
    expect(page.locator("[data-live-count]")).to_have_text("3 rows")
    page.get_by_role("button", name="Add a row").click()
    row = page.get_by_role("dialog", name="A row of stock")
    row.get_by_label("item").fill("cap")
    row.get_by_label("quantity").fill("many")
    row.get_by_role("button", name="Save").click()
    expect(row.locator(".problem")).to_be_visible()
    row.get_by_label("quantity").fill("8")
    row.get_by_role("button", name="Save").click()
    expect(page.locator("tr.add")).to_contain_text("cap")
    page.get_by_role("button", name="Edit cap").click()
    row.get_by_label("quantity").fill("9")
    row.get_by_role("button", name="Save").click()
    expect(page.locator("tr.chg .was")).to_have_attribute("title", "was 8")
    assert served.client.sql("SELECT * FROM low WHERE item = 'cap'") == [("cap", 9)]
    page.get_by_role("button", name="Edit cap").click()
    row.get_by_role("button", name="Delete the row").click()
    expect(page.locator("tr.del")).to_contain_text("cap")


def test_a_row_is_changed_only_as_it_was_seen(served: Served) -> None:
    served.client.sql("INSERT INTO note VALUES ('a'), (NULL)")
    assert send(served, "/rows/note", {"old": {"text": None}, "new": {"text": "b"}})[0] == 200
    assert send(served, "/rows/note", {"old": {"text": None}, "new": {"text": "c"}})[0] == 400
    assert send(served, "/rows/note", {"old": {}, "new": {"texts": "c"}})[0] == 400
    assert send(served, "/rows/note", {"old": {}, "new": {}})[0] == 400
    assert send(served, "/rows/low", {"old": {}, "new": {"item": "x"}})[0] == 400
    assert sorted(served.client.sql("SELECT * FROM note")) == [("a",), ("b",)]


def test_the_rows_at_any_position_that_is_kept(served: Served) -> None:
    assert send(served, "/keep/stock", {})[0] == 200
    served.client.sql("UPDATE stock SET quantity = 77 WHERE item = 'pen'")
    served.client.sql("UPDATE stock SET quantity = 78 WHERE item = 'pen'")
    shown = fetch(served, "/data/stock?tab=changes")[1]
    assert shown.count("1 row added, 1 row removed") == 2
    found = re.search(r'max="(\d+)"', shown)
    assert found is not None
    position = int(found[1])
    then = fetch(served, f"/data/stock?tab=changes&at={position - 1}")[1]
    assert '<td class="n">77</td>' in then
    assert fetch(served, f"/data/stock?tab=changes&at={position + 5}")[0] == 400


def test_a_trial_says_how_often_it_would_have_fired(served: Served) -> None:
    content = LOW.replace("EVERY DAY AT '08:00'", "WHEN stock.quantity < 10")
    assert "is not known" in send(served, "/queries/-/try", {"text": content})[1]
    assert send(served, "/keep/stock", {})[0] == 200
    for quantity in (1, 60, 2):
        served.client.sql(f"UPDATE stock SET quantity = {quantity} WHERE item = 'ink'")
    shown = send(served, "/queries/-/try", {"text": content})[1]
    assert "It would have fired 2 times in the last day." in shown
    assert (
        "would have fired 24 times"
        in send(
            served, "/queries/-/try", {"text": LOW.replace("EVERY DAY AT '08:00'", "EVERY HOUR")}
        )[1]
    )


def test_a_test_message_is_sent_and_nothing_installed(served: Served) -> None:
    status, shown = send(served, "/queries/-/test", {"text": LOW})
    assert (status, "log" in shown, "sent" in shown) == (200, True, True)
    status, found = send(served, "/queries/-/test", {"text": LOW.replace("NOTIFY LOG", "")})
    assert (status, found["message"]) == (400, "nobody is told, so there is nothing to test")
    assert served.client.sql("SHOW CONTINUAL QUERIES") == []


def test_queries_are_given_away_and_dropped_together(served: Served) -> None:
    served.client.sql(LOW)
    served.client.sql(LOW.replace("low_stock", "other"))
    assert send(served, "/queries/low_stock/transfer", {"owner": "ann"})[0] == 200
    assert "<dt>owner</dt><dd>ann" in fetch(served, "/queries/low_stock")[1]
    assert "Drop all of mine" in fetch(served, "/queries")[1]
    assert send(served, "/queries/-/drop-all", {}) == (200, {"next": "/queries", "dropped": 2})
    assert "No continual queries yet" in fetch(served, "/queries")[1]


def test_the_operator_grants_announces_and_backs_up(served: Served, path: str) -> None:
    served.client.sql(LOW)
    assert (
        send(served, "/operator/grant", {"on": "stock", "to": "PUBLIC", "right": "SELECT"})[0]
        == 200
    )
    grants = fetch(served, "/operator?tab=grants")[1]
    assert "Take back" in grants
    taken = {"on": "stock", "to": "PUBLIC", "right": "SELECT", "take": True}
    assert send(served, "/operator/grant", taken)[0] == 200
    assert "Nothing is granted" in fetch(served, "/operator?tab=grants")[1]
    wrong = {"on": "stock; DROP TABLE stock", "to": "PUBLIC", "right": "SELECT"}
    assert send(served, "/operator/grant", wrong)[0] == 404
    told = send(served, "/operator/announce", {"text": "Away <b>on</b> Sunday", "subject": ""})[1]
    assert told == {"told": "On its way to 1 person."}
    assert "Away &lt;b&gt;on&lt;/b&gt; Sunday" in fetch(served, "/operator?tab=announce")[1]
    assert "Written to" in send(served, "/operator/backup", {})[1]["told"]
    assert [each for each in os.listdir(Path(path).parent) if each.endswith(".harken")]


@pytest.mark.parametrize(
    ("place", "data"),
    [
        ("/operator/mail", {"host": "m", "sender": "a@b.example", "port": 0}),
        ("/operator/mail/test", {"address": "ann@example.org"}),
        ("/operator/announce", {"text": " ", "subject": ""}),
        ("/operator/grant", {"on": "stock", "to": "ann", "right": "EVERYTHING"}),
    ],
)
def test_what_is_wrong_is_said(served: Served, place: str, data: object) -> None:
    status, found = send(served, place, data)
    assert 400 <= status < 500
    assert found["message"]
