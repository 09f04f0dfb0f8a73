"""ALTER, PAUSE, SNOOZE and the other changes of installed queries."""

import pytest

import harken
from tests.continual.conftest import Watched

QUERY = "CREATE CONTINUAL QUERY q AS SELECT symbol, price FROM stock TRIGGER EVERY HOUR NOTIFY OUT"
NEW = "INSERT INTO stock VALUES ('{}', 'New', 1)"


@pytest.fixture
def q(watched: Watched) -> Watched:
    watched.sql(QUERY)
    return watched


def test_a_paused_query_is_not_executed_and_tells_all_when_it_goes_on(q: Watched) -> None:
    q.sql("PAUSE CONTINUAL QUERY q")
    q.sql(NEW.format("A"))
    assert q.run(hours=5) == []
    q.sql("ALTER CONTINUAL QUERY q RESUME")
    assert q.run(minutes=59) == []
    (done,) = q.run(minutes=1)
    assert (done.inserted, done.cause.missed) == ([("A", 1.0)], 0)


def test_a_snoozed_query_is_executed_once_afterwards(q: Watched) -> None:
    q.sql("SNOOZE CONTINUAL QUERY q UNTIL '2026-01-05 15:30'")
    assert q.run(hours=3) == []
    (done,) = q.run(minutes=30)
    assert done.cause.missed == 2
    q.sql("SNOOZE CONTINUAL QUERY q FOR 2 DAYS")
    assert q.run(days=1) == []
    q.sql("RESUME CONTINUAL QUERY q")
    assert len(q.run()) == 1


def test_a_muted_query_is_executed_and_sends_nothing(q: Watched) -> None:
    q.sql("MUTE CONTINUAL QUERY q")
    q.sql(NEW.format("A"))
    assert len(q.run(hours=1)) == 1
    assert len(q.messages()) == 1
    q.sql("UNMUTE CONTINUAL QUERY q")
    q.sql(NEW.format("B"))
    q.run(hours=1)
    assert q.messages()[-1]["inserted"] == [{"symbol": "B", "price": 1}]


@pytest.mark.parametrize(("first", "then"), [("naive", "differential"), ("differential", "naive")])
def test_another_strategy_keeps_the_reference(watched: Watched, first: str, then: str) -> None:
    watched.sql(QUERY.replace("NOTIFY", f"STRATEGY {first} NOTIFY"))
    watched.sql(NEW.format("A"))
    with watched.db.transaction():
        watched.sql(NEW.format("B"))
        watched.sql(f"ALTER CONTINUAL QUERY q STRATEGY {then}")
        watched.sql(NEW.format("C"))
    watched.sql(NEW.format("D"))
    (done,) = watched.run(hours=1)
    assert done.strategy == then
    assert [row[0] for row in done.inserted] == ["A", "B", "C", "D"]


def test_another_query_begins_with_its_whole_answer(q: Watched) -> None:
    q.sql("ALTER CONTINUAL QUERY q AS SELECT company FROM stock")
    message = q.messages()[-1]
    assert message["execution"] == 2
    assert message["inserted"] == [{"company": "Bayer AG"}, {"company": "IBM"}]
    assert q.state("trigger", "query") == ("EVERY HOUR", "SELECT company FROM stock")


def test_clauses_are_put_in_place_of_others(q: Watched) -> None:
    q.sql("ALTER CONTINUAL QUERY q TRIGGER EVERY DAY AT '18:00' STOP AFTER 3 EXECUTIONS")
    assert q.state("trigger", "stop") == ("EVERY DAY AT '18:00'", "AFTER 3 EXECUTIONS")
    assert len(q.run(hours=6)) == 1
    q.sql("ALTER CONTINUAL QUERY q DELIVER COUNT ALWAYS PRIORITY 5 OWNER 'ann'")
    assert q.state("deliver", "priority", "owner") == ("COUNT ALWAYS", 5, "ann")
    q.sql("ALTER CONTINUAL QUERY q OWNER TO 'bob'")
    q.sql("ALTER CONTINUAL QUERY q RENAME TO p")
    assert q.state("name", "owner") == ("p", "bob")
    q.sql("ALTER CONTINUAL QUERY p ADD NOTIFY LOG")
    q.sql("ALTER CONTINUAL QUERY p DROP NOTIFY FILE")
    assert q.state("notify") == ("LOG",)


def test_on_request_runs_only_when_asked(q: Watched) -> None:
    q.sql("ALTER CONTINUAL QUERY q TRIGGER ON REQUEST")
    assert q.run(days=3) == []
    q.sql(NEW.format("A"))
    q.sql("EXECUTE CONTINUAL QUERY q")
    assert q.messages()[-1]["inserted"] == [{"symbol": "A", "price": 1}]
    assert q.sql("SELECT event FROM continual_execution WHERE execution = 2") == [("request",)]


def test_show_and_explain(q: Watched) -> None:
    ((name, *_),) = q.sql("SHOW CONTINUAL QUERIES")
    shown = dict(q.sql("SHOW CONTINUAL QUERY q"))
    assert name == "q"
    assert shown["deliver"] == "INSERTED"
    assert shown["next"] == "2026-01-05 13:00:00 UTC"
    plan = [line for (line,) in q.sql("EXPLAIN CONTINUAL QUERY q")]
    assert "triggered by the clock: EVERY HOUR, in the time of UTC" in plan
    assert any(line.startswith("difference: the sum of the changes") for line in plan)


@pytest.mark.parametrize(
    ("condition", "price"), [("stock.price > 200", 201), ("price > 200 AND symbol = 'IBM'", 300)]
)
def test_a_condition_stops_it_before_it_is_executed(
    watched: Watched, condition: str, price: int
) -> None:
    watched.sql(QUERY.replace("NOTIFY", f"STOP WHEN {condition} NOTIFY"))
    assert len(watched.run(hours=1)) == 1
    watched.sql(f"UPDATE stock SET price = {price} WHERE symbol = 'IBM'")
    assert watched.run(hours=1) == []
    assert watched.messages()[-1]["kind"] == "stopped"


def test_a_missed_deadline_runs_the_contingency(watched: Watched) -> None:
    watched.sql("CREATE TABLE late (name STRING)")
    watched.sql(
        QUERY.replace("NOTIFY", "DEADLINE 5 MINUTES ELSE INSERT INTO late VALUES ('q') NOTIFY")
    )
    assert watched.run(minutes=64)[0].outcome == "unchanged"
    (done,) = watched.run(minutes=70)
    assert done.outcome == "missed"
    assert watched.sql("SELECT name FROM late") == [("q",)]
    watched.sql(NEW.format("A"))
    (done,) = watched.run(minutes=48)
    assert done.inserted == [("A", 1.0)]


def test_priority_orders_what_is_due_together(watched: Watched) -> None:
    for name, priority in (("low", 1), ("high", 9), ("none", 0)):
        watched.sql(f"CREATE CONTINUAL QUERY {name} AS SELECT 1 AS n PRIORITY {priority}")
    assert [done.query for done in watched.run(days=1)] == ["high", "low", "none"]


def test_couplings_of_the_thesis(q: Watched) -> None:
    (id,) = q.state("id")
    q.sql(
        f"Activate {id} define communication protocol between (3) and (4) "
        "TransactionCoupling = same ExecutionCoupling = synchronous ScheduleCoupling = deferred"
    )
    assert q.state("coupling") == ("BETWEEN 3 AND 4 SAME SYNCHRONOUS DEFERRED",)
    q.sql("ACTIVATE CONTINUAL QUERY q COUPLING IN TRANSACTION")
    assert q.state("coupling") == ("IN TRANSACTION",)
    q.sql("ACTIVATE CONTINUAL QUERY q COUPLING AFTER COMMIT")
    assert q.state("coupling") == ("",)
    q.sql(f"Deactivate {id}")
    assert q.state("state") == ("stopped",)
    assert q.messages()[-1]["kind"] == "stopped"


@pytest.mark.parametrize(
    ("modes", "reason"),
    [
        ("SEPARATE DEFERRED", "needs the same transaction"),
        ("SAME ASYNCHRONOUS", "is synchronous"),
        ("SEPARATE SYNCHRONOUS CAUSALLY DEPENDENT", "causal dependency"),
        ("SAME SEPARATE", "exclude"),
    ],
)
def test_couplings_that_do_not_go_together(q: Watched, modes: str, reason: str) -> None:
    with pytest.raises(harken.HarkenError, match=reason):
        q.sql(f"ACTIVATE CONTINUAL QUERY q COUPLING BETWEEN 3 AND 4 {modes}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ALTER CONTINUAL QUERY q", "nothing is altered"),
        ("ALTER CONTINUAL QUERY q FLY", "FLY is no clause"),
        ("ALTER CONTINUAL QUERY nobody PAUSE", "no continual query nobody"),
        ("SNOOZE CONTINUAL QUERY q UNTIL '2020-01-01'", "has passed"),
        ("ALTER CONTINUAL QUERY q TRIGGER EVERY", "EVERY needs"),
        ("PAUSE CONTINUAL QUERY q now", "cannot stand here"),
        ("BEGIN; EXECUTE CONTINUAL QUERY q", "transaction"),
        ("ALTER CONTINUAL QUERY q DROP NOTIFY EMAIL 'x'", "does not notify EMAIL"),
        ("ALTER CONTINUAL QUERY q STOP WHEN nothing > 3", "nothing"),
        ("ALTER CONTINUAL QUERY q ZONE 'Mars/Olympus'", "no time zone"),
    ],
)
def test_errors_change_nothing(q: Watched, text: str, said: str) -> None:
    before = q.sql("SELECT * FROM continual_query")
    with pytest.raises(harken.HarkenError, match=said):
        q.sql(text)
    q.sql("ROLLBACK")
    assert q.sql("SELECT * FROM continual_query") == before
