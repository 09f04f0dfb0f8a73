"""A request with an idempotency key is carried out once."""

from __future__ import annotations

import datetime

import pytest

import harken
from harken.database.kept_answers import KEPT_SECONDS, KeptAnswer, KeyedRequest
from tests.server.resources.asking import Asking
from tests.server.serving import Served

BODY = {"insert": {"note": [["a"]]}}


@pytest.fixture
def api(served: Served) -> Asking:
    return Asking(served)


def test_a_repeated_transaction_inserts_once(api: Asking) -> None:
    answers = [api.post("/transactions", BODY, idempotency_key="k") for _ in range(3)]
    assert {each.status for each in answers} == {200}
    assert api.get("/views/note").body["rows"] == [["a"]]
    assert api.post("/transactions", {"insert": {}}, idempotency_key="k").code == "key-reused"


def test_a_repeated_text_runs_once(api: Asking) -> None:
    text = {"text": "INSERT INTO note VALUES ('b'); SELECT count(*) AS n FROM note"}
    first, second = (api.post("/sql", text, idempotency_key="k") for _ in range(2))
    assert first.body["results"] == second.body["results"]
    assert first.body["results"][0]["rows"] == [[1]]
    nested = {"text": "BEGIN; INSERT INTO note VALUES ('c'); COMMIT"}
    assert api.post("/sql", nested, idempotency_key="n").code == "transaction"


def test_a_failed_request_leaves_its_key_free(api: Asking) -> None:
    wrong = {"insert": {"note": [["a"]], "nothing": [[1]]}}
    assert api.post("/transactions", wrong, idempotency_key="k").status == 404
    assert api.post("/transactions", BODY, idempotency_key="k").status == 200


def test_an_answer_that_is_too_large_is_not_done_twice(api: Asking) -> None:
    text = {"text": "INSERT INTO note VALUES ('b'); SELECT repeat('x', 70000)"}
    assert api.post("/sql", text, idempotency_key="k").status == 200
    again = api.post("/sql", text, idempotency_key="k")
    assert (again.status, again.code) == (413, "too-large")
    assert api.get("/views/note").body["rows"] == [["b"]]


def test_keys_are_forgotten_after_a_day_and_bounded(tmp_path: object) -> None:
    now = [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)]
    db = harken.connect(clock=lambda: now[0], settings={"idempotency_keys": 3})
    made: list[str] = []

    def once(key: str, body: bytes = b"") -> None:
        request = KeyedRequest.of("ann", key, "POST", "/x", body)
        db.keyed_requests.once(request, lambda: made.append(key) or KeptAnswer(200, "{}"))

    once("a")
    once("a")
    assert made == ["a"]
    now[0] += datetime.timedelta(seconds=KEPT_SECONDS + 1)
    once("a", b"another")
    assert made == ["a", "a"]
    for number in range(100):
        once(f"k{number}")
    rows = db.internals.connection.rows("SELECT count(*), max(length(digest)) FROM harken_answers")
    assert rows[0][0] <= 10
    assert rows[0][1] == 64
    db.close()


def test_the_key_of_one_is_not_that_of_another() -> None:
    ann, bob = (KeyedRequest.of(name, "k", "POST", "/x", b"") for name in ("ann", "bob"))
    assert ann.digest != bob.digest
