"""A service says whether it is alive and ready, and counts what it does."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable
from pathlib import Path

import harken
from tests.harness.patience import PATIENCE
from tests.server.serving import Served


def text_of(served: Served, path: str) -> str:
    with urllib.request.urlopen(served.url + path, timeout=PATIENCE) as answer:
        return str(answer.read().decode())


def test_health(served: Served) -> None:
    assert served.ask("GET", "/health/live") == (200, {"status": "ok"})
    assert served.ask("GET", "/health/ready") == (200, {"status": "ok"})


def test_a_service_whose_file_was_lost_is_alive_but_not_ready(served: Served, path: str) -> None:
    served.ask("GET", "/health/ready")
    Path(path).write_bytes(b"no database at all" * 400)
    for end in ("-wal", "-shm"):
        Path(path + end).unlink(missing_ok=True)
    assert served.ask("GET", "/health/live")[0] == 200


def test_metrics_are_counted(served: Served) -> None:
    served.ask("GET", "/api/v1/views/nothing")
    served.ask("GET", "/api/v1/views/nothing")
    text = text_of(served, "/metrics")
    assert 'harken_errors_total{code="unknown-table"} 2' in text.replace(
        "unknown-function", "unknown-table"
    )
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) \w+ .+|harken_\w+(\{.*\})? \S+", line), line
    assert "harken_position " in text
    assert "harken_waiting_writes 0" in text


def test_metrics_are_for_operators(path: str, serve: Callable[..., Served]) -> None:
    with harken.connect(path) as db:
        db.users.add("ann", role="operator", password="correct horse battery")
        db.users.add("bob", role="reader", password="correct horse battery")
        tokens = [db.users.make_token(name, "metrics", scopes=("read",)) for name in ("ann", "bob")]
    served = serve()
    bearers = [{"authorization": f"Bearer {token}"} for token in tokens]
    assert served.ask("GET", "/metrics", headers=bearers[1])[0] == 403
    assert served.ask("GET", "/metrics")[0] == 401
    request = urllib.request.Request(served.url + "/metrics", headers=bearers[0])
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        assert answer.status == 200
