"""Executions in the transaction that triggers them, right after it, and later."""

import datetime
from collections.abc import Callable

import pytest

from harken.continual.query_clauses import Trigger
from harken.continual.trigger_kinds import CONTENT, Cause
from tests.continual.conftest import Watched
from tests.continual.toy_trigger import ToyTriggers

Make = Callable[[str], ToyTriggers]


@pytest.fixture
def make(watched: Watched) -> Make:
    def make(coupling: str) -> ToyTriggers:
        toys = ToyTriggers()
        continual = watched.db.internals.continual
        continual.kinds.register(toys)
        watched.sql(
            "CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock TRIGGER TOY "
            f"{coupling} NOTIFY OUT"
        )
        return toys

    return make


def fire(watched: Watched, text: str = "toy") -> None:
    continual = watched.db.internals.continual
    (query,) = continual.queries.all()
    continual.fire(query.number, Cause(CONTENT, text, watched.clock.now, ({"symbol": "A"},)))


def executions(watched: Watched) -> int:
    found = watched.state("executions")[0]
    assert isinstance(found, int)
    return found


def test_by_default_the_commit_queues_it(watched: Watched, make: Make) -> None:
    toys = make("")
    with watched.db.transaction():
        watched.sql("INSERT INTO stock VALUES ('A', 'A', 1)")
        fire(watched, "first")
        fire(watched, "second")
    assert executions(watched) == 1
    (done,) = watched.run()
    assert (done.inserted, done.cause.text) == ([("A",)], "first; second")
    assert [each[0] for each in toys.told] == ["installed", "executed", "executed"]
    assert watched.run() == []


def test_in_the_transaction(watched: Watched, make: Make) -> None:
    make("COUPLING IN TRANSACTION")
    with watched.db.transaction():
        watched.sql("INSERT INTO stock VALUES ('A', 'A', 1)")
        fire(watched)
        watched.sql("INSERT INTO stock VALUES ('B', 'B', 1)")
    assert executions(watched) == 2
    assert watched.messages()[-1]["inserted"] == [{"symbol": "A"}, {"symbol": "B"}]
    watched.sql("INSERT INTO stock VALUES ('C', 'C', 1)")
    with watched.db.transaction():
        fire(watched)
    assert watched.messages()[-1]["inserted"] == [{"symbol": "C"}]


def test_right_after_the_commit(watched: Watched, make: Make) -> None:
    make("COUPLING BETWEEN 3 AND 4 SEPARATE SYNCHRONOUS")
    with watched.db.transaction():
        watched.sql("INSERT INTO stock VALUES ('A', 'A', 1)")
        fire(watched)
        assert executions(watched) == 1
    assert executions(watched) == 2


@pytest.mark.parametrize("coupling", ["", "COUPLING IN TRANSACTION"])
def test_a_rollback_takes_the_firing_back(watched: Watched, make: Make, coupling: str) -> None:
    make(coupling)
    watched.sql("BEGIN; INSERT INTO stock VALUES ('A', 'A', 1)")
    fire(watched)
    watched.sql("ROLLBACK")
    watched.sql("INSERT INTO stock VALUES ('B', 'B', 1)")
    assert watched.run() == []
    assert executions(watched) == 1


def test_a_paused_query_is_not_fired_and_a_snoozed_one_waits(watched: Watched, make: Make) -> None:
    toys = make("")
    watched.sql("PAUSE CONTINUAL QUERY q")
    with watched.db.transaction():
        fire(watched)
    assert watched.run() == []
    watched.sql("SNOOZE CONTINUAL QUERY q FOR 1 HOUR")
    with watched.db.transaction():
        fire(watched)
    assert watched.run(minutes=59) == []
    assert len(watched.run(minutes=1)) == 1
    watched.sql("DROP CONTINUAL QUERY q")
    told = ["installed", "executed", "dropped", "installed", "executed", "dropped"]
    assert [each[0] for each in toys.told] == told


def test_a_trigger_on_other_relations_delivers_the_whole_answer(watched: Watched) -> None:
    watched.sql("CREATE TABLE weather (sky STRING)")
    watched.db.internals.continual.kinds.register(ToyTriggers(frozenset({"weather"})))
    watched.sql("CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock TRIGGER TOY NOTIFY OUT")
    with watched.db.transaction():
        fire(watched)
    watched.run()
    assert watched.messages()[-1]["rows"] == [{"symbol": "BAY"}, {"symbol": "IBM"}]


def test_the_text_of_a_trigger_is_kept(watched: Watched, make: Make) -> None:
    make("")
    (query,) = watched.db.internals.continual.queries.all()
    trigger: Trigger = query.clauses.trigger
    assert str(trigger) == "TOY"
    assert query.installed == datetime.datetime(2026, 1, 5, 12, tzinfo=datetime.UTC)
