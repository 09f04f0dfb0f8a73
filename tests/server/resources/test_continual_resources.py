"""Continual queries over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import harken
from tests.server.resources.asking import Asking
from tests.server.serving import Served

PLACE = "/continual-queries"
LOW = {
    "name": "low_stock",
    "query": "SELECT item, quantity FROM stock WHERE quantity < 10",
    "trigger": "EVERY DAY AT '07:00'",
    "notify": ["FILE 'low.jsonl'"],
}


@pytest.fixture
def api(served: Served) -> Asking:
    return Asking(served)


def installed(api: Asking, **clauses: Any) -> Any:
    answer = api.post(PLACE, {**LOW, "notify": [], **clauses})
    assert answer.status == 201, answer.body
    return answer.body


def test_a_query_lives_over_http(api: Asking) -> None:
    made = installed(api)
    assert (made["name"], made["state"], made["executions"]) == ("low_stock", "active", 1)
    assert made["statement"].startswith("CREATE CONTINUAL QUERY low_stock AS\nSELECT item")
    path = f"{PLACE}/low_stock"
    assert api.get(path).body == made
    assert api.get(f"{path}/answer").body["rows"] == [["pen", 5]]
    assert api.get(f"{path}/plan").body["columns"][0] == {"name": "item", "type": "STRING"}
    for verb, member, value in (
        ("pause", "state", "paused"),
        ("resume", "state", "active"),
        ("mute", "muted", True),
        ("unmute", "muted", False),
    ):
        assert api.post(f"{path}/{verb}").body[member] == value
    snoozed = api.post(f"{path}/snooze", {"until": "2999-01-01T00:00:00Z"}).body
    assert snoozed["snoozed"] == "2999-01-01T00:00:00+00:00"
    ran = api.post(f"{path}/run").body
    assert ran["query"]["executions"] == 2
    (first,), (second,) = api.pages(f"{path}/executions", 1)
    assert first["execution"] > second["execution"]
    renamed = api.ask("PATCH", path, {"name": "few", "trigger": "EVERY WEEK"}).body
    assert (renamed["name"], renamed["clauses"]["trigger"]) == ("few", "EVERY WEEK")
    assert api.ask("DELETE", f"{PLACE}/few").status == 204
    assert api.get(f"{PLACE}/few").code == "unknown-table"
    assert api.get(f"{PLACE}/few").status == 404


def test_a_statement_is_read_tried_and_installed(api: Asking) -> None:
    text = (
        "CREATE CONTINUAL QUERY few AS SELECT item FROM stock WHERE quantity < 10 "
        "TRIGGER EVERY DAY AT '07:00' ZONE 'Europe/Oslo'"
    )
    checked = api.post("/continual-query-checks", {"statement": text}).body
    assert (checked["zone"], len(checked["due"])) == ("Europe/Oslo", 5)
    tried = api.post("/continual-query-previews", {"statement": text}).body
    assert tried["columns"] == [{"name": "item", "type": "STRING"}]
    assert api.get(PLACE).body == {"items": [], "next": None}
    assert api.post(PLACE, {"statement": text}).body["clauses"]["zone"] == "Europe/Oslo"
    wrong = api.post("/continual-query-checks", {"statement": text.replace("item", "itm")})
    assert (wrong.status, wrong.code, wrong.body["line"]) == (400, "unknown-column", 1)


def test_messages_are_tried_delivered_and_sent_again(api: Asking, path: str) -> None:
    samples = api.post("/continual-query-tests", LOW | {"notify": ["LOG 'a'"]})
    (sample,) = samples.body["samples"]
    assert (sample["channel"], sample["address"]) == ("log", "a")
    with harken.connect(path) as db:
        db.continual("few", LOW["query"], notify="LOG 'a'")
    (message,) = api.get(f"{PLACE}/few/deliveries").body["items"]
    assert message["query"] == "few"
    sent = api.post(f"{PLACE}/few/deliveries/{message['number']}/resend")
    assert (sent.status, sent.body) == (202, {"number": message["number"]})
    assert api.post(f"{PLACE}/few/deliveries/999/resend").status == 404


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "as a statement, or as a query"),
        ({"statement": "x", "query": "SELECT 1"}, "as a statement, or as a query"),
        ({"query": "SELECT item FROM stock", "every": 5}, "unknown field every"),
        ({"query": "SELECT item FROM stock", "trigger": "SOMETIMES"}, ""),
        ({"query": "SELECT item FROM stock", "priority": "high"}, "priority is invalid"),
        ({"statement": "DROP TABLE stock"}, ""),
    ],
)
def test_a_wrong_installation_is_explained(api: Asking, body: Any, said: str) -> None:
    answer = api.post(PLACE, body)
    assert (answer.status, answer.body["kind"]) == (400, "error")
    assert said in answer.body["message"]
    assert api.get(PLACE).body["items"] == []


def test_somebody_elses_change_is_not_overwritten(api: Asking) -> None:
    installed(api)
    path = f"{PLACE}/low_stock"
    seen = api.get(path)
    assert api.get(path, if_none_match=seen.etag).status == 304
    changed = api.ask("PATCH", path, {"trigger": "EVERY WEEK"}, if_match=seen.etag)
    assert changed.status == 200
    late = api.ask("DELETE", path, if_match=seen.etag)
    assert (late.status, late.code) == (412, "changed-meanwhile")
    assert api.ask("PATCH", path, {"trigger": "EVERY DAY"}, if_match=changed.etag).status == 200
    assert api.get(path, if_none_match=seen.etag).status == 200


def test_a_repeated_request_is_carried_out_once(serve: Callable[..., Served]) -> None:
    api = Asking(serve())
    key = {"idempotency_key": "4b1c"}
    first, second = (api.post(PLACE, LOW | {"notify": []}, **key) for _ in range(2))
    assert first.status == second.status == 201
    assert first.body == second.body
    other = api.post(PLACE, LOW | {"name": "other", "notify": []}, **key)
    assert (other.status, other.code) == (409, "key-reused")
    assert len(api.get(PLACE).body["items"]) == 1
    failed = api.post(f"{PLACE}/nothing/pause", **key | {"idempotency_key": "7"})
    assert failed.status == 404
    assert api.post(f"{PLACE}/low_stock/run", idempotency_key="8").body["query"]["executions"] == 2
    assert api.post(f"{PLACE}/low_stock/run", idempotency_key="8").body["query"]["executions"] == 2
    assert api.post(PLACE, LOW, idempotency_key="x" * 300).status == 400


def test_lists_come_in_pages(api: Asking) -> None:
    for number in range(5):
        installed(api, name=f"q{number}")
    pages = [[each["name"] for each in page] for page in api.pages(PLACE, 2)]
    assert pages == [["q0", "q1"], ["q2", "q3"], ["q4"]]
    assert api.get(f"{PLACE}?state=paused").body["items"] == []
    for wrong in ("limit=0", "limit=5000", "cursor=%20", "cursor=WzFd", "state=gone", "page=2"):
        assert api.get(f"{PLACE}?{wrong}").status == 400, wrong
