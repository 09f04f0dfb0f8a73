"""Continual queries with time triggers, from their statement to the message."""

import contextlib
import datetime

import pytest

import harken
from tests.continual.conftest import Watched

BAYER = """CREATE CONTINUAL QUERY bayer AS
    SELECT symbol, price FROM stock WHERE company = 'Bayer AG'
    TRIGGER EVERY 20 MINUTES STOP AFTER 2 WEEKS {} NOTIFY OUT"""


def test_the_first_execution_is_the_whole_answer_and_always_a_message(watched: Watched) -> None:
    watched.sql(BAYER.format(""))
    (message,) = watched.messages()
    assert message["query"] == "bayer"
    assert message["execution"] == 1
    assert message["inserted"] == [{"symbol": "BAY", "price": 10.5}]
    assert message["deleted"] == message["changed"] == []


def test_a_later_execution_delivers_what_is_new(watched: Watched) -> None:
    watched.sql(BAYER.format(""))
    watched.sql("INSERT INTO stock VALUES ('BA2', 'Bayer AG', 7)")
    watched.sql("DELETE FROM stock WHERE symbol = 'BAY'")
    (done,) = watched.run(minutes=21)
    assert (done.execution, done.inserted, done.deleted) == (2, [("BA2", 7.0)], [("BAY", 10.5)])
    assert done.cause.at == datetime.datetime(2026, 1, 5, 12, 20, tzinfo=datetime.UTC)
    assert watched.messages()[-1]["inserted"] == [{"symbol": "BA2", "price": 7}]


def test_no_message_when_nothing_has_changed(watched: Watched) -> None:
    watched.sql(BAYER.format(""))
    watched.sql("UPDATE stock SET price = 11")
    watched.sql("UPDATE stock SET price = 10.5 WHERE symbol = 'BAY'")
    (done,) = watched.run(minutes=21)
    assert done.outcome == "unchanged"
    assert len(watched.messages()) == 1


def test_changes_of_other_sessions_and_before_a_restart_are_in_the_difference(
    watched: Watched,
) -> None:
    watched.sql(BAYER.format(""))
    watched.sql("INSERT INTO stock VALUES ('BA2', 'Bayer AG', 7)")
    watched.reopen()
    with watched.connect() as other:
        other.sql("INSERT INTO stock VALUES ('BA3', 'Bayer AG', 8)")
    (done,) = watched.run(minutes=21)
    assert done.inserted == [("BA2", 7.0), ("BA3", 8.0)]
    assert done.strategy == "differential"


@pytest.mark.parametrize("strategy", ["naive", "differential", "auto"])
def test_the_strategy_changes_nothing(watched: Watched, strategy: str) -> None:
    watched.sql(BAYER.format(f"STRATEGY {strategy}"))
    for n in range(3):
        watched.sql(f"INSERT INTO stock VALUES ('B{n}', 'Bayer AG', {n})")
        watched.sql("DELETE FROM stock WHERE price = 1")
        (done,) = watched.run(minutes=21)
        assert [row[0] for row in done.inserted] == ([] if n == 1 else [f"B{n}"])


def test_missed_due_times_are_run_once_and_counted(watched: Watched) -> None:
    watched.sql(BAYER.format(""))
    (done,) = watched.run(hours=2)
    assert done.cause.missed == 5
    assert watched.run(minutes=19) == []
    assert len(watched.run(minutes=2)) == 1


def test_it_stops_in_time_and_its_owner_is_told(watched: Watched) -> None:
    watched.sql(BAYER.format(""))
    assert watched.run(weeks=2) == []  # the stop wins over the trigger
    assert watched.messages()[-1]["kind"] == "stopped"
    assert watched.state("state", "executions") == ("stopped", 1)
    assert watched.db.next_due() is None


def test_it_stops_after_a_year_if_it_says_nothing(watched: Watched) -> None:
    watched.sql("CREATE CONTINUAL QUERY a AS SELECT symbol FROM stock")
    assert watched.state("trigger", "stop") == ("EVERY DAY", "AFTER 1 YEAR")
    assert len(watched.run(days=1)) == 1


def test_it_stops_after_a_number_of_executions(watched: Watched) -> None:
    watched.sql(
        "CREATE CONTINUAL QUERY a AS SELECT symbol FROM stock TRIGGER EVERY HOUR "
        "STOP AFTER 2 EXECUTIONS NOTIFY OUT"
    )
    assert len(watched.run(hours=1)) == 1
    assert watched.run(hours=1) == []
    assert [each["kind"] for each in watched.messages()] == ["results", "stopped"]


def test_a_query_that_fails_stops_no_transaction_and_recovers(watched: Watched) -> None:
    watched.sql(
        "CREATE CONTINUAL QUERY ratio AS SELECT symbol, 100 / price AS ratio FROM stock "
        "TRIGGER EVERY HOUR NOTIFY OUT"
    )
    watched.sql("UPDATE stock SET price = 0 WHERE symbol = 'IBM'")
    (failed,) = watched.run(hours=1)
    assert (failed.outcome, failed.execution) == ("error", 2)
    assert watched.run(seconds=61)[0].outcome == "error"
    assert watched.state("state", "failures", "executions") == ("active", 2, 1)
    watched.sql("UPDATE stock SET price = 50 WHERE symbol = 'IBM'")
    (done,) = watched.run(minutes=3)
    assert (done.inserted, done.deleted) == ([("IBM", 2.0)], [("IBM", 1.0)])
    kinds = [each["kind"] for each in watched.messages()]
    assert sorted(kinds) == ["error", "recovered", "results", "results"]


def test_a_query_that_shows_the_time_is_recomputed(watched: Watched) -> None:
    watched.sql("CREATE CONTINUAL QUERY q AS SELECT now() AS at TRIGGER EVERY HOUR")
    assert watched.state("follows") == ("naive",)
    for _ in range(2):
        (done,) = watched.run(hours=1)
        assert (done.outcome, done.inserted) == ("changed", [(watched.clock.now,)])


def test_a_query_that_compares_with_the_time_is_followed(watched: Watched) -> None:
    watched.sql("CREATE TABLE event (id INT PRIMARY KEY, at TIMESTAMP)")
    watched.sql("INSERT INTO event VALUES (1, TIMESTAMP '2026-01-05 13:30:00')")
    watched.sql(
        "CREATE CONTINUAL QUERY q AS SELECT id FROM event WHERE at < now() TRIGGER EVERY HOUR"
    )
    assert watched.state("follows") == ("differential",)
    assert [done.inserted for done in watched.run(hours=1)] == [[]]
    assert [done.inserted for done in watched.run(hours=1)] == [[(1,)]]


def test_asking_for_a_query_that_fails_is_an_error(watched: Watched) -> None:
    watched.sql("CREATE CONTINUAL QUERY q AS SELECT 1 / price AS x FROM stock TRIGGER ON REQUEST")
    watched.sql("UPDATE stock SET price = 0")
    with pytest.raises(harken.HarkenError, match=r"the continual query q fails.*division by zero"):
        watched.sql("EXECUTE CONTINUAL QUERY q")


def test_a_row_that_cannot_be_read_harms_nobody(watched: Watched) -> None:
    watched.sql(BAYER.format(""))
    watched.sql("CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock TRIGGER EVERY HOUR")
    watched.sql("UPDATE continual_query SET trigger = 'EVERY FULL MOON' WHERE name = 'bayer'")
    watched.reopen()
    watched.sql("INSERT INTO stock VALUES ('BA2', 'Bayer AG', 7)")
    assert [done.query for done in watched.run(hours=1)] == ["q"]
    assert watched.db.next_due() is not None


def test_what_it_reads_can_be_redefined(watched: Watched) -> None:
    watched.sql("CREATE VIEW cheap AS SELECT symbol FROM stock WHERE price < 50")
    watched.sql("CREATE CONTINUAL QUERY a AS SELECT symbol FROM cheap TRIGGER EVERY HOUR")
    watched.sql("INSERT INTO stock VALUES ('A', 'A', 1)")
    watched.sql("CREATE OR REPLACE VIEW cheap AS SELECT symbol FROM stock WHERE price > 50")
    watched.sql("INSERT INTO stock VALUES ('Z', 'Z', 1000)")
    (done,) = watched.run(hours=1)
    assert (done.inserted, done.deleted) == ([("IBM",), ("Z",)], [("BAY",)])


def test_what_it_reads_cannot_be_dropped(watched: Watched) -> None:
    watched.sql(BAYER.format(""))
    with pytest.raises(harken.HarkenError, match="the continual query bayer"):
        watched.sql("DROP TABLE stock")
    watched.sql("DROP CONTINUAL QUERY bayer")
    watched.sql("DROP TABLE stock")
    assert watched.sql("SELECT * FROM continual_query") == []


def test_it_can_be_installed_in_a_transaction(watched: Watched) -> None:
    with watched.db.transaction():
        watched.sql("INSERT INTO stock VALUES ('BA2', 'Bayer AG', 7)")
        watched.sql(BAYER.format(""))
        watched.sql("INSERT INTO stock VALUES ('BA3', 'Bayer AG', 8)")
    assert len(watched.messages()[0]["inserted"]) == 2
    (done,) = watched.run(minutes=21)
    assert done.inserted == [("BA3", 8.0)]


def test_a_rollback_takes_it_back(watched: Watched) -> None:
    watched.sql(f"BEGIN; {BAYER.format('')}; ROLLBACK")
    watched.sql("INSERT INTO stock VALUES ('BA2', 'Bayer AG', 7)")
    assert watched.run(minutes=21) == []
    assert watched.messages() == []


@pytest.mark.parametrize("undone", ["ROLLBACK", "SELECT nothing FROM nowhere"])
def test_a_rollback_brings_back_what_was_followed(watched: Watched, undone: str) -> None:
    other = "CREATE CONTINUAL QUERY o AS SELECT company FROM stock TRIGGER EVERY HOUR"
    watched.sql(BAYER.format(""))
    with contextlib.suppress(harken.HarkenError):
        watched.sql(f"BEGIN; DROP CONTINUAL QUERY bayer; {other}; {undone}")
    watched.sql("ROLLBACK")
    watched.sql("INSERT INTO stock VALUES ('BA2', 'Bayer AG', 7)")
    watched.sql(other)
    watched.sql("INSERT INTO stock VALUES ('BA3', 'Bayer AG', 8)")
    first, second = watched.run(hours=1)
    assert first.inserted == [("BA2", 7.0), ("BA3", 8.0)]
    assert second.inserted == [("Bayer AG",)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CREATE CONTINUAL QUERY a AS", "needs a query"),
        ("CREATE CONTINUAL QUERY a AS TRIGGER EVERY DAY", "needs a query"),
        ("CREATE CONTINUAL QUERY a AS SELECT x FROM stock", "no column x"),
        ("CREATE CONTINUAL QUERY a AS DELETE FROM stock", "one SELECT"),
        ("CREATE CONTINUAL QUERY a AS SELECT symbol FROM stock STOP AFTER 0 WEEKS", "no length"),
        ("CREATE CONTINUAL QUERY a AS SELECT symbol FROM stock TRIGGER EVERY FULL MOON", "EVERY"),
        ("CREATE CONTINUAL QUERY a AS SELECT symbol FROM stock STOP AT '1998-01-01'", "stop at on"),
        (
            "CREATE CONTINUAL QUERY a AS SELECT symbol FROM stock DELIVER CHANGED BY (isin)",
            "no column isin",
        ),
        (
            "CREATE CONTINUAL QUERY a AS SELECT 1 AS n FROM stock WHERE price > ? STOP AFTER 1 DAY",
            "parameter",
        ),
        ("DROP CONTINUAL QUERY nobody", "no continual query nobody"),
    ],
)
def test_errors_say_what_is_wrong(watched: Watched, text: str, said: str) -> None:
    with pytest.raises(harken.HarkenError, match=said) as caught:
        watched.sql(text)
    assert caught.value.code
    assert watched.db.next_due() is None
