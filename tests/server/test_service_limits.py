"""No client stops the others: each request has limits, and the service goes on serving."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

import harken
from harken.errors import HarkenError
from harken.settings import Settings
from tests.harness.patience import PATIENCE
from tests.server.serving import Served

FOREIGN = Path(__file__).parents[1] / "harness/foreign"
ENDLESS = "SELECT count(*) FROM n a, n b, n c, n d, n e, n f, n g"
BOMBS = {
    "cross join": ENDLESS,
    "range": "SELECT * FROM range(1000000000000)",
    "string_agg": "SELECT string_agg(repeat('x', 1000000), ',') FROM n a, n b",
    "rows": "SELECT a.i FROM n a, n b, n c, n d",
    "recursion": "WITH RECURSIVE r(t) AS (SELECT 'ab' UNION ALL SELECT t || t FROM r) "
    "SELECT max(length(t)) FROM r",
    "insert": "INSERT INTO n SELECT a.i FROM n a, n b, n c, n d, n e",
    "recursive insert": "INSERT INTO n WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
    "FROM r) SELECT i FROM r",
    "like": "SELECT count(*) FROM n WHERE repeat('a', 1000000) LIKE concat('%', "
    "repeat('a', 40000), 'b')",
}
LIMITS = {"statement_timeout": 0.5, "row_limit": 100_000, "memory_limit": 256 * 2**20}


@pytest.fixture
def limited(serve: Callable[..., Served], path: str) -> Served:
    with harken.connect(path) as db:
        db.sql("CREATE TABLE n (i INT); CREATE VIEW v AS SELECT item FROM stock")
        db.load("n", [(i,) for i in range(300)])
        db.sql(f"INSERT INTO stock VALUES ('{'a' * 60}b', 1)")
        db.amosql('create function hang(integer i) -> integer as foreign "hanging:hang";')
        db.amosql('create function sleep(integer i) -> integer as foreign "hanging:sleep";')
        db.amosql("commit;")
    return serve(settings=Settings(LIMITS, serving=True))


def check_it_serves(served: Served) -> None:
    """It writes and it reads."""
    served.put("cap", 1)
    rows = served.ask("GET", "/api/v1/views/low")[1]["rows"]
    assert ["cap", 1] in rows


def test_a_pattern_that_python_would_never_be_done_with_is_answered(limited: Served) -> None:
    where = quote("item RLIKE '^(a+)+$'")
    status, found = limited.ask("GET", f"/api/v1/views/v?where={where}")
    assert (status, found["rows"]) == (200, [])


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_exceeding_a_limit_is_an_error_and_the_service_continues(
    limited: Served, bomb: str
) -> None:
    status, answer = limited.ask("POST", "/api/v1/sql", {"text": bomb})
    assert status in (400, 503), answer
    assert "code" in json.dumps(answer)
    assert "internal" not in json.dumps(answer)
    assert limited.client.sql("SELECT count(*) FROM n") == [(300,)]
    check_it_serves(limited)


@pytest.mark.parametrize("name", ["hang", "sleep"])
def test_a_foreign_function_that_hangs_keeps_nobody_waiting(limited: Served, name: str) -> None:
    with harken.connect(limited.service.path) as db:
        db.amosql(f"create function h() -> bag of integer as select {name}(1);")
        db.amosql("commit;")
    status, answer = limited.ask("GET", "/api/v1/views/h")
    assert (status, answer["code"]) == (503, "timeout"), answer
    check_it_serves(limited)


def test_settings_cannot_be_changed_over_http(limited: Served) -> None:
    with pytest.raises(HarkenError) as caught:
        limited.client.sql("SET statement_timeout = 0")
    assert caught.value.code == "not-allowed"
    assert limited.client.sql("SHOW statement_timeout")[0][1] == "0.5"


def test_a_request_is_cancelled_when_its_client_goes_away(
    serve: Callable[..., Served], path: str
) -> None:
    """Without a time limit, and so that the one writer is busy with it."""
    with harken.connect(path) as db:
        db.sql("CREATE TABLE n (i INT)")
        db.load("n", [(i,) for i in range(300)])
    served = serve(settings=Settings({"statement_timeout": 0}, serving=True))
    body = json.dumps({"text": f"INSERT INTO note SELECT 'begun'; {ENDLESS}"})
    connection = http.client.HTTPConnection("127.0.0.1", served.port)
    connection.request("POST", "/api/v1/sql", body, {"content-type": "application/json"})
    while not served.ask("GET", "/api/v1/views/note")[1]["rows"]:
        pass
    connection.close()
    check_it_serves(served)


def test_a_long_question_does_not_keep_other_readers_waiting(
    serve: Callable[..., Served], path: str
) -> None:
    with harken.connect(path) as db:
        db.sql("CREATE TABLE n (i INT)")
        db.load("n", [(i,) for i in range(300)])
        db.sql(f"CREATE VIEW long AS {ENDLESS}")
    served = serve(settings=Settings({"statement_timeout": 0}, serving=True))
    connections = []
    for _ in range(2):
        connections.append(http.client.HTTPConnection("127.0.0.1", served.port))
        connections[-1].request("GET", "/api/v1/views/long")
    assert served.ask("GET", "/api/v1/views/low")[0] == 200
    for each in connections:
        each.close()


def test_a_writer_that_waits_does_not_block_readers(served: Served, path: str) -> None:
    answered = threading.Event()
    with harken.connect(path) as other:
        other.sql("BEGIN; INSERT INTO note VALUES ('mine')")
        waiting = threading.Thread(target=lambda: (served.put("cap", 1), answered.set()))
        waiting.start()
        for _ in range(5):
            assert served.ask("GET", "/api/v1/views/low")[0] == 200
        assert not answered.is_set()
        other.sql("COMMIT")
    waiting.join()
    assert answered.is_set()


@pytest.mark.parametrize("name", ["hang", "sleep"])
def test_the_process_ends_soon_after_a_signal_whatever_runs(path: str, name: str) -> None:
    with harken.connect(path) as db:
        db.amosql(f'create function f(integer i) -> integer as foreign "hanging:{name}";')
        db.amosql("create function h() -> bag of integer as select f(1); commit;")
    unlimited = ("--set", "statement_timeout=0")
    process = subprocess.Popen(
        [sys.executable, "-m", "harken", "serve", "--db", path, "--port", "0", *unlimited],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": str(FOREIGN)},
    )
    assert process.stdout is not None
    address = process.stdout.readline().split("http://")[1].strip().strip("/")
    host, port = address.split(":")
    connection = http.client.HTTPConnection(host, int(port))
    connection.request("GET", "/api/v1/views/h")
    assert process.stdout.readline() == "hanging\n"
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE)
    connection.close()
    process.stdout.close()


def test_a_query_of_too_many_rows_is_the_clients_mistake(limited: Served) -> None:
    question = {"text": "SELECT a.i FROM n a, n b, n c"}
    status, answer = limited.ask("POST", "/api/v1/sql", question)
    assert (status, answer["error"]["code"] if "error" in answer else answer["code"]) == (
        400,
        "row-limit",
    )
    inside = {"text": "SELECT count(*) AS n FROM range(150000)"}
    status, answer = limited.ask("POST", "/api/v1/sql", inside)
    assert status == 200 or "row-limit" not in json.dumps(answer)


def test_a_text_of_very_many_operators_is_answered_at_once(limited: Served) -> None:
    question = {"text": f"SELECT {'+'.join(['1'] * 200_000)} AS a"}
    status, answer = limited.ask("POST", "/api/v1/sql", question)
    assert status == 400
    assert "too-complex" in json.dumps(answer)
