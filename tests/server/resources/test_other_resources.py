"""Sources, ad-hoc queries, the schema, templates and messages over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import harken
from harken.settings import Settings
from tests.harness.patience import PATIENCE
from tests.server.resources.asking import Asking
from tests.server.serving import Served

ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000) "
    "SELECT count(*) FROM n"
)


@pytest.fixture
def api(served: Served) -> Asking:
    return Asking(served)


# --- sources ---------------------------------------------------------------------------


def test_a_source_lives_over_http(serve: Callable[..., Served], tmp_path: Path) -> None:
    place = tmp_path / "prices.json"
    place.write_text('[{"item": "pen", "price": 3}, {"item": "ink", "price": 5}]')
    api = Asking(serve(settings=Settings({"source_roots": str(tmp_path)}, serving=True)))
    wanted = {"kind": "json", "options": {"path": str(place)}}
    checked = api.post("/source-checks", wanted)
    assert checked.status == 200, checked.body
    assert checked.body["rows"] == [["pen", 3], ["ink", 5]]
    made = api.post("/sources", {**wanted, "name": "price", "key": ["item"], "every": 60})
    assert (made.status, made.body["rows"], made.body["key"]) == (201, 2, ["item"]), made.body
    place.write_text('[{"item": "pen", "price": 4}]')
    read = api.post("/sources/price/refresh", {"confirm": True}).body
    assert (read["plus"], read["minus"]) == (1, 2)
    assert api.post("/sources/price/pause").body["state"] == "paused"
    assert api.post("/sources/price/resume").body["state"] != "paused"
    assert api.ask("PATCH", "/sources/price", {"every": 120}).status == 200
    assert "poll" in str(api.get("/sources/price/details").body)
    assert [each["name"] for each in api.get("/sources").body["items"]] == ["price"]
    assert api.get("/relations/price").body["kind"] == "source"
    assert api.ask("DELETE", "/sources/price").status == 204
    assert api.get("/sources/price").code == "unknown-source"
    kinds = [each["name"] for each in api.get("/source-kinds").body["items"]]
    assert {"html", "json"} <= set(kinds)


def test_sources_read_no_files_that_are_not_allowed(api: Asking) -> None:
    for place in ("/etc/passwd", "../../etc/passwd", "file:///etc/passwd"):
        wanted = {"kind": "json", "options": {"path": place}}
        answer = api.post("/source-checks", wanted)
        assert answer.status in (400, 403), answer.body
        assert "root:" not in str(answer.body)
        assert api.post("/sources", {**wanted, "name": "passwords"}).status in (400, 403)


# --- queries ---------------------------------------------------------------------------


def test_queries_only_read(api: Asking) -> None:
    asked = {"text": "SELECT item FROM stock WHERE quantity > ? ORDER BY item", "values": [1]}
    (result,) = api.post("/queries", asked).body["results"]
    assert result == {
        "kind": "rows",
        "columns": ["item"],
        "types": ["charstring"],
        "rows": [["ink"], ["pen"]],
        "count": 2,
    }
    (cut,) = api.post("/queries", {**asked, "rows": 1}).body["results"]
    assert (cut["rows"], cut["count"]) == ([["ink"]], 2)
    (found,) = api.post("/queries", {"text": "SELECT 9007199254740993 AS n"}).body["results"]
    assert found["rows"] == [["9007199254740993"]]
    refused = api.post("/queries", {"text": "DELETE FROM stock"})
    assert refused.code == "read-only"
    assert api.get("/queries").body["items"] == []


def test_a_query_is_cancelled(api: Asking) -> None:
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(api.post("/queries", {"text": ENDLESS, "id": "long"}))
    )
    asking.start()
    while not api.get("/queries").body["items"]:
        pass
    (running,) = api.get("/queries").body["items"]
    assert (running["id"], running["user"], running["text"]) == ("long", "operator", ENDLESS)
    assert api.post("/queries", {"text": "SELECT 1", "id": "long"}).status == 409
    assert api.ask("DELETE", "/queries/long").status == 204
    asking.join(PATIENCE)
    (answer,) = answers
    assert (answer.status, answer.code) == (503, "cancelled")
    assert api.ask("DELETE", "/queries/long").status == 404


def test_a_query_ends_when_its_time_is_over(api: Asking) -> None:
    answer = api.post("/queries", {"text": ENDLESS, "seconds": 0.05})
    assert (answer.status, answer.code) == (503, "timeout")


def test_files_cannot_be_read_by_programs_of_users(path: str, serve: Callable[..., Served]) -> None:
    with harken.connect(path) as db:
        db.users.add("ann", role="operator", password="correct horse battery")
        db.users.add("carl", role="author", password="correct horse battery")
        token = db.users.make_token("carl", "tests")
    carl = Asking(serve(), token)
    for language, text in (
        ("datalog", '.decl f(x: symbol)\n.input f(filename="/etc/passwd")\nf(x)?'),
        ("amosql", 'select foreign "os:system";'),
        ("sql", "SELECT * FROM csv.`/etc/passwd`"),
        ("sql", "CREATE TABLE t USING csv LOCATION '/etc'"),
    ):
        answer = carl.post("/queries", {"text": text, "language": language})
        assert answer.status in (400, 403, 404), (text, answer.body)


# --- schema ----------------------------------------------------------------------------


def test_relations_rules_plans_and_settings(api: Asking, path: str) -> None:
    with harken.connect(path) as db:
        db.amosql(
            "create type item properties (size integer);"
            "create rule grow() as when for each item i where size(i) > 9 do print(i);"
        )
    names = [each["name"] for page in api.pages("/relations", 2) for each in page]
    assert {"low", "stock", "note"} <= set(names)
    assert names == sorted(names)
    low = api.get("/relations/low").body
    assert (low["kind"], low["reads"]) == ("view", ["stock"])
    assert api.get("/relations/stock").body["readers"] == ["view low"]
    assert api.get("/relations/nothing").status == 404
    assert [each["name"] for each in api.get("/rules").body["items"]] == ["grow"]
    assert "size(i) > 9" in api.get("/rules/grow").body["text"]
    assert api.get("/rules/shrink").code == "unknown-rule"
    plan = api.get("/plans/low").body
    assert plan["details"]["name"] == "low()"
    assert "stock" in plan["text"]
    settings = {each["name"]: each for page in api.pages("/settings", 30) for each in page}
    assert settings["row_limit"]["value"] == 5_000_000
    assert settings["smtp_password"]["value"] is None


# --- templates and messages ------------------------------------------------------------


def test_templates_are_saved_changed_and_dropped(api: Asking) -> None:
    path, body = "/templates/few", {"text": "{{ count }} rows", "fields": {"item": "text"}}
    saved = api.ask("PUT", path, body)
    assert saved.body["text"] == body["text"]
    assert api.ask("PUT", path, {"text": "{{ nothing }}"}).status == 400
    assert api.ask("PUT", path, body, if_match='"another"').status == 412
    assert [each["name"] for each in api.get("/templates").body["items"]] == ["few"]
    assert api.ask("DELETE", path, if_match=saved.etag).status == 204
    assert api.get(path).status == 404


def test_announcements_reach_everybody_once(api: Asking) -> None:
    for name in ("a", "b"):
        body = {"name": name, "query": "SELECT item FROM stock", "notify": ["LOG 'ops'"]}
        assert api.post("/continual-queries", body).status == 201
    told = api.post("/announcements", {"text": "We move on Monday."}, idempotency_key="1")
    assert (told.status, len(told.body["numbers"])) == (202, 1)
    again = api.post("/announcements", {"text": "We move on Monday."}, idempotency_key="1")
    assert again.body == told.body
    listed = [each["number"] for page in api.pages("/messages", 2) for each in page]
    assert told.body["numbers"][0] in listed
    assert listed == sorted(listed, reverse=True)
    (number,) = told.body["numbers"]
    assert api.post(f"/messages/{number}/resend").status == 202
    assert {"name": "log"} in api.get("/channels").body["items"]
