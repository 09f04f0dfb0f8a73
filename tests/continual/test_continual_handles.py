"""Continual queries from Python: db.continual and its handle, and as plain data."""

import datetime
from typing import Any

import pytest
import yaml

import harken
from tests.continual.conftest import Watched

QUERY = "SELECT symbol, price FROM stock WHERE price > 50"


def install(watched: Watched, **clauses: Any) -> harken.ContinualQuery:
    return watched.db.continual("dear", QUERY, trigger="EVERY HOUR", **clauses)


def test_install_and_look_again(watched: Watched) -> None:
    made = install(watched, notify=[f"FILE '{watched.out}'"], priority=3, zone="Europe/Oslo")
    again = watched.db.continual("dear")
    assert (again.id, again.name) == (made.id, "dear")
    assert again.status.clauses.priority == 3
    assert watched.messages()[0]["inserted"] == [{"symbol": "IBM", "price": 100}]
    assert watched.db.continual(made.id).name == "dear"


def test_without_a_name(watched: Watched) -> None:
    made = watched.db.continual(query=QUERY)
    assert made.name == made.id == watched.state("id")[0]


def test_run_and_history(watched: Watched) -> None:
    made = install(watched)
    watched.sql("INSERT INTO stock VALUES ('A', 'A', 99)")
    done = made.run()
    assert done is not None
    assert done.inserted == [("A", 99.0)]
    first, second = made.history()
    assert (first.event, second.event) == ("installed", "request")
    assert second.result["inserted"] == [{"symbol": "A", "price": 99}]


def test_change_it(watched: Watched) -> None:
    made = install(watched)
    made.alter(trigger="EVERY DAY", deliver="COMPLETE")
    made.pause()
    assert made.status.state == "paused"
    made.resume()
    made.mute()
    made.snooze(watched.clock.now + datetime.timedelta(hours=30))
    assert made.status.muted
    assert watched.run(hours=25) == []
    made.unmute()
    made.give_to("ann")
    assert watched.state("owner", "trigger", "deliver") == ("ann", "EVERY DAY", "COMPLETE")
    assert len(watched.run(hours=5)) == 1
    made.drop()
    assert watched.db.continual_queries.list() == []
    with pytest.raises(harken.HarkenError, match="no continual query dear"):
        made.pause()


def test_wrong_arguments(watched: Watched) -> None:
    with pytest.raises(harken.HarkenError, match="no clause triger"):
        watched.db.continual("q", QUERY, triger="EVERY DAY")
    with pytest.raises(harken.HarkenError, match="there is no column nothing"):
        watched.db.continual("q", QUERY, stop="WHEN nothing = 1")
    with pytest.raises(harken.HarkenError, match="no continual query q"):
        watched.db.continual("q")
    assert watched.db.next_due() is None


FULL = {
    "query": QUERY,
    "trigger": "EVERY MONDAY, FRIDAY AT '08:30'",
    "stop": "AT '2026-07-01 00:00:00' OR AFTER 100 EXECUTIONS OR WHEN stock.price > 1000",
    "deliver": "CHANGED BY (symbol) AS LINK ALWAYS",
    "strategy": "naive",
    "deadline": "10 MINUTES ELSE DELETE FROM stock WHERE price = 0",
    "coupling": "BETWEEN 3 AND 4 SEPARATE SYNCHRONOUS IMMEDIATE",
    "notify": ["FILE '/tmp/it''s.jsonl'", "LOG"],
    "priority": -2,
    "zone": "America/New_York",
    "owner": "ann@example.org",
    "paused": True,
    "muted": True,
}


TEMPLATE = "CREATE TEMPLATE short TEXT '{{ count }}'"


def test_export_and_import_lose_nothing(watched: Watched, tmp_path: Any) -> None:
    watched.sql(TEMPLATE)
    queries = watched.db.continual_queries
    assert queries.install_all({"q": FULL, "p": {"query": "SELECT 1 AS n"}}) == {
        "q": "installed",
        "p": "installed",
    }
    exported = yaml.safe_load(yaml.safe_dump(queries.export()))
    assert exported["q"] == FULL
    assert set(queries.install_all(exported).values()) == {"unchanged"}
    with harken.connect(clock=watched.clock) as other:
        other.sql("CREATE TABLE stock (symbol STRING PRIMARY KEY, company STRING, price DOUBLE)")
        other.sql(TEMPLATE)
        other.continual_queries.install_all(exported)
        assert other.continual_queries.export() == exported


def test_an_edited_document_alters_what_is_there(watched: Watched) -> None:
    queries = watched.db.continual_queries
    watched.sql(TEMPLATE)
    queries.install_all({"q": FULL})
    before = watched.state("id")
    edited = {**FULL, "trigger": "EVERY DAY", "paused": False}
    assert queries.install_all({"q": edited}) == {"q": "altered"}
    del edited["paused"]
    assert queries.export() == {"q": edited}
    assert watched.state("id") == before


def test_a_wrong_document_installs_none(watched: Watched) -> None:
    documents = {"a": {"query": QUERY}, "b": {"query": QUERY, "stopp": "AFTER 1 DAY"}}
    with pytest.raises(harken.HarkenError, match=r"continual query b.*no clause stopp"):
        watched.db.continual_queries.install_all(documents)
    assert watched.db.continual_queries.list() == []


def test_try_a_query_before_it_is_installed(watched: Watched) -> None:
    queries = watched.db.continual_queries
    notify = [f"FILE '{watched.out}'"]
    (sample,) = queries.test(QUERY, {"notify": notify}, name="dear")
    assert sample.payload["inserted"] == [{"symbol": "IBM", "price": 100}]
    assert sample.text.subject == "dear: 1 new"
    assert watched.messages() == []
    queries.test(QUERY, {"notify": notify}, name="dear", send=True)
    assert [each["kind"] for each in watched.messages()] == ["sample"]
    assert queries.list() == []
