"""A client cannot tell whether FastAPI's routes or the direct path answered."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

import harken
from harken.api.database import Database
from harken.server import direct_path, writes
from harken.settings import Settings
from tests.harness.patience import PATIENCE
from tests.server.serving import Served

TRANSACTIONS, SQL = "/api/v1/transactions", "/api/v1/sql"
GENERAL = "?token="
"""A parameter that is allowed everywhere, and that the direct path does not take."""
BODIES: list[tuple[str, Any]] = [
    (TRANSACTIONS, {}),
    (TRANSACTIONS, {"insert": {"note": [["a"], ["é"]]}, "delete": {"note": [["b"]]}}),
    (TRANSACTIONS, {"insert": {"note": []}}),
    (TRANSACTIONS, {"insert": None}),
    (TRANSACTIONS, {"insert": {"note": "a"}}),
    (TRANSACTIONS, {"insert": {"note": [{"a": 1}]}}),
    (TRANSACTIONS, {"insert": {"note": [["a", "b"]]}}),
    (TRANSACTIONS, {"insert": {"stock": [["pen", 1]]}}),
    (TRANSACTIONS, {"insert": {"nothing": [["pen", 1]]}}),
    (TRANSACTIONS, {"other": {}}),
    (TRANSACTIONS, []),
    (TRANSACTIONS, b'{"insert": {"note": [["\xf0\x9f\x98\x80"]]}}'),
    (TRANSACTIONS, b'{"insert": {"note": [["\\ud83d\\ude00"]]}}'),
    (TRANSACTIONS, b'{"insert": {"note": [["\\ud83d"]]}}'),
    (TRANSACTIONS, b'{"insert": {"note": [["\xff"]]}}'),
    (TRANSACTIONS, b'\xef\xbb\xbf{"insert": {}}'),
    (TRANSACTIONS, b'{"insert": {}, "insert": 1}'),
    (TRANSACTIONS, b"[" * 16_000),
    (TRANSACTIONS, b""),
    (SQL, {"text": "SELECT item, quantity FROM stock WHERE quantity < ?", "values": [9]}),
    (SQL, {"text": "SELECT :a AS a", "values": {"a": {"decimal": "2.50"}}}),
    (SQL, {"text": "SELECT :a AS a", "values": {"a": {"number": "2.50"}}}),
    (SQL, b'{"text": "SELECT ? AS a, ? AS b", "values": [9007199254740993, 1.10]}'),
    (SQL, b'{"text": "SELECT ? AS a", "values": [NaN]}'),
    (SQL, {"text": "SELECT 1", "values": 7}),
    (SQL, {"text": 7}),
    (SQL, {"text": None}),
    (SQL, {"values": []}),
    (SQL, {"text": "SELEC"}),
    (SQL, {"text": "BEGIN"}),
    (SQL, {"text": "SELECT 1", "more": 1}),
]


def answer(served: Served, path: str, body: Any, **headers: str) -> tuple[Any, ...]:
    """The status, the headers and the body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, sent, {"content-type": "application/json", **headers})
    found = connection.getresponse()
    text = json.loads(found.read())
    connection.close()
    text.pop("position", None)
    text.pop("request", None)
    of_one = ("date", "x-request-id")
    named = {name: value for name, value in found.getheaders() if name not in of_one}
    if "results" in text or found.status == 200:
        named.pop("content-length")  # positions grow longer
    return found.status, sorted(named.items()), text


@pytest.mark.parametrize("body", BODIES, ids=lambda each: str(each)[:80])
def test_both_paths_answer_alike(served: Served, body: tuple[str, Any]) -> None:
    path, sent = body
    assert answer(served, path, sent) == answer(served, path + GENERAL, sent)


def test_both_paths_refuse_alike(serve: Callable[..., Served]) -> None:
    served = serve(token="secret", settings=Settings({"max_body_bytes": 100}, serving=True))
    given = {"authorization": "Bearer secret"}
    large = {"text": "x" * 200}
    for body, headers in (
        (large, given),
        ({"text": "SELECT 1"}, {}),
        ({"text": "SELECT 1"}, given),
    ):
        assert answer(served, SQL, body, **headers) == answer(
            served, SQL + GENERAL + "wrong", body, **headers
        )


def test_small_transactions_take_the_direct_path(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And others, larger ones and those of pages, do not."""
    direct: list[object] = []
    call = direct_path.transact
    monkeypatch.setattr(
        direct_path, "transact", lambda *given: direct.append(given) or call(*given)
    )
    assert answer(served, TRANSACTIONS, {"insert": {"note": [["a"]]}})[0] == 200
    assert len(direct) == 1
    many = {"insert": {"note": [[str(i)] for i in range(2_000)]}}
    assert answer(served, TRANSACTIONS, many)[0] == 200
    assert answer(served, TRANSACTIONS, {}, origin=served.url)[0] == 200
    assert len(direct) == 1


def test_a_bug_is_an_answer_too(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(writes, "apply", broken)
    first, second = (answer(served, TRANSACTIONS + more, {}) for more in ("", GENERAL))
    assert first == second
    assert (first[0], first[2]["code"]) == (500, "internal")
    while len([each for each in caplog.records if each.exc_info]) < 2:
        """The server logs an error once it has answered."""


def test_a_client_that_goes_away_gives_up_its_place(
    served: Served, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Its transaction waits behind another, and is never begun."""
    begun, go_on, applied = threading.Event(), threading.Event(), []
    apply = writes.apply  # type: ignore[attr-defined]

    def slow(db: Database, insert: Any, delete: Any) -> None:
        applied.append(insert)
        if "wait" in insert:
            begun.set()
            go_on.wait(PATIENCE)
            insert = {}
        apply(db, insert, delete)

    monkeypatch.setattr(writes, "apply", slow)
    first = threading.Thread(target=answer, args=(served, TRANSACTIONS, {"insert": {"wait": []}}))
    first.start()
    begun.wait(PATIENCE)
    connection = http.client.HTTPConnection("127.0.0.1", served.port)
    body = json.dumps({"insert": {"note": [["lost"]]}})
    connection.request("POST", TRANSACTIONS, body, {"content-type": "application/json"})
    while served.service.waiting_writes < 2:
        pass
    connection.close()
    while served.service.waiting_writes > 1:
        pass
    go_on.set()
    first.join()
    served.client.apply(insert={"note": [("kept",)]})
    assert {"note": [["lost"]]} not in applied
    with harken.connect(path) as db:
        assert db.sql("SELECT text FROM note").rows == [("kept",)]
