"""The permanent page of an execution, and the link to it in messages."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import harken
from harken.notify.texts import MOST_ROWS
from tests.harness.patience import PATIENCE
from tests.server.serving import Served
from tests.server.test_accounts import PASSWORD, Browser

ADDRESS = {"public_address": "https://harken.example.org/"}


def shown(served: Served, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    try:
        connection.request("GET", path, headers={"accept": "text/html"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def tell(path: str, out: Path, clauses: str = "") -> list[dict[str, object]]:
    """What a query tells at its installation, and of more rows than a message shows."""
    with harken.connect(path, settings=ADDRESS) as db:
        db.sql(
            "CREATE CONTINUAL QUERY few AS SELECT item, quantity FROM low TRIGGER ON REQUEST "
            f"{clauses} NOTIFY FILE '{out}' OWNER 'carl'"
        )
        db.insert("stock", [(f"<{n}>", 1) for n in range(MOST_ROWS + 12)])
        db.continual("few").run()
        db.run_due()
        return [json.loads(line) for line in out.read_text().splitlines()]


def test_a_message_links_to_the_page_of_its_execution(
    path: str, serve: Callable[..., Served], tmp_path: Path
) -> None:
    first, second = tell(path, tmp_path / "out.jsonl", "DELIVER INSERTED AS LINK")
    assert (second["inserted"], second["left_out"]) == ([], {"inserted": MOST_ROWS + 12})
    link = str(second["link"])
    assert link.startswith("https://harken.example.org/results/cq")
    assert str(first["link"]).rpartition("/")[0] == link.rpartition("/")[0]
    place = link.removeprefix("https://harken.example.org")
    served = serve()
    status, page = shown(served, place)
    assert status == 200
    assert page.count("<tr>") == MOST_ROWS + 13
    assert "<td>&lt;7&gt;</td>" in page  # not a tag
    status, page = shown(served, place.rpartition("/")[0])
    assert [f"{place[:-1]}{n}" in page for n in (1, 2)] == [True, True]


def test_results_that_are_not_there(
    path: str, serve: Callable[..., Served], tmp_path: Path
) -> None:
    (_, second) = tell(path, tmp_path / "out.jsonl")
    place = str(second["link"]).removeprefix("https://harken.example.org")
    served = serve()
    query = place.rpartition("/")[0]
    for wrong in (f"{query}/3", f"{query}/x", f"{query}/-1", "/results/few/1", "/results/cq1/1"):
        status, page = shown(served, wrong)
        assert (status, "are not kept" in page) == (404, True), wrong


def test_the_page_is_for_its_owner(path: str, serve: Callable[..., Served], tmp_path: Path) -> None:
    with harken.connect(path) as db:
        for name, role in (("ann", "operator"), ("bob", "author"), ("carl", "author")):
            db.users.add(name, role=role, password=PASSWORD)
            db.sql(f"GRANT SELECT ON low TO {name}")
        db.sql("GRANT NOTIFY ON CHANNEL file TO carl")
    (_, second) = tell(path, tmp_path / "out.jsonl")
    place = str(second["link"]).removeprefix("https://harken.example.org")
    served = serve()
    assert shown(served, place)[0] == 303  # to the page for signing in
    for name, status in (("ann", 200), ("bob", 404), ("carl", 200)):
        browser = Browser(served, accept="text/html")
        browser.sign_in(name)
        for each in (place, place.rpartition("/")[0]):
            assert browser.ask("GET", each)[0] == status, (name, each)


def test_the_whole_answer_stands_on_the_page_of_a_complete_delivery(
    path: str, serve: Callable[..., Served], tmp_path: Path
) -> None:
    found = tell(path, tmp_path / "out.jsonl", "DELIVER COMPLETE")
    place = str(found[-1]["link"]).removeprefix("https://harken.example.org")
    _, page = shown(serve(), place)
    assert "<h3>All rows</h3>" in page
    assert "<td>pen</td>" in page


def test_without_an_address_there_is_no_link(path: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with harken.connect(path) as db:
        db.sql(f"CREATE CONTINUAL QUERY few AS SELECT item FROM low NOTIFY FILE '{out}'")
        db.run_due()
    (told,) = map(json.loads, out.read_text().splitlines())
    assert "link" not in told
    assert "page" not in told


# --- signals --------------------------------------------------------------------------------------


def test_a_signal_over_http_fires_the_queries_that_wait_for_it(
    path: str, serve: Callable[..., Served]
) -> None:
    with harken.connect(path) as db:
        db.sql("CREATE CONTINUAL QUERY q AS SELECT item FROM low TRIGGER SIGNAL failure")
        served = serve()
        served.client.signal("Failure")
        status, found = served.ask("POST", "/api/v1/signals/other", {})
        assert (status, list(found)) == (200, ["position"])
        until = "SELECT count(*) FROM continual_execution WHERE event = 'content'"
        while db.sql(until).rows == [(0,)]:
            db.run_due()  # or the scheduler of the service does it
        assert db.continual("q").status.executions == 2


@pytest.mark.parametrize("name", ["", "%20" * 400, "x" * 5_000])
def test_a_signal_needs_a_name(path: str, serve: Callable[..., Served], name: str) -> None:
    status, _ = serve().ask("POST", f"/api/v1/signals/{name}", {})
    assert status in (400, 404)


def test_a_reader_raises_no_signals(path: str, serve: Callable[..., Served]) -> None:
    with harken.connect(path) as db:
        db.users.add("bob", role="reader", password=PASSWORD)
        db.users.add("carl", role="author", password=PASSWORD)
    served = serve()
    for name, status in (("bob", 403), ("carl", 200)):
        browser = Browser(served)
        browser.sign_in(name)
        assert browser.ask("POST", "/api/v1/signals/failure", {})[0] == status
