"""A session without the Python function of a trigger loses no event."""

import pytest

import harken
from harken.continual.unwatched_triggers import UnwatchedTriggers
from harken.propagation.consumer import Consumer
from tests.continual.conftest import Watched


def is_high(price: float) -> bool:
    return price > 150


@pytest.fixture
def elsewhere(watched: Watched) -> harken.Database:
    """A session without the function; `watched` has it, and the query."""
    watched.db.foreign("is_high", is_high)
    watched.sql(
        "CREATE CONTINUAL QUERY q AS SELECT symbol, price FROM stock"
        " TRIGGER WHEN is_high(stock.price) NOTIFY OUT"
    )
    return watched.connect()


def kinds(watched: Watched) -> list[str]:
    return [each["kind"] for each in watched.messages()]


def test_what_another_session_changes_is_caught_up(
    watched: Watched, elsewhere: harken.Database
) -> None:
    elsewhere.sql("UPDATE stock SET price = 200 WHERE symbol = 'IBM'")
    (done,) = watched.run()
    assert done.inserted == [("IBM", 200.0)]
    assert done.cause.rows == ({"symbol": "IBM", "company": "IBM", "price": 200.0},)
    assert watched.run() == []
    assert kinds(watched) == ["results", "results"]
    elsewhere.close()


def test_the_owner_is_told_once_by_a_session_that_cannot_watch(
    watched: Watched, elsewhere: harken.Database
) -> None:
    elsewhere.sql("UPDATE stock SET price = 200 WHERE symbol = 'IBM'")
    elsewhere.sql("UPDATE stock SET price = 1 WHERE symbol = 'IBM'")
    assert elsewhere.next_due() is not None
    assert elsewhere.run_due() == elsewhere.run_due() == []
    ((failures, problem),) = elsewhere.sql("SELECT failures, problem FROM continual_query").rows
    assert failures == 1
    assert "no function is_high" in problem
    watched.clock.move(minutes=2)
    (again,) = elsewhere.run_due()
    assert again.outcome == "error"
    (done,) = watched.run()
    assert done.inserted == [("IBM", 1.0)]
    assert kinds(watched) == ["results", "error", "results", "recovered"]
    elsewhere.close()


def test_it_is_caught_up_when_the_function_is_there_again(
    watched: Watched, elsewhere: harken.Database
) -> None:
    watched.db.close()
    elsewhere.sql("UPDATE stock SET price = 200 WHERE symbol = 'IBM'")
    elsewhere.run_due()
    elsewhere.foreign("is_high", is_high)
    (done,) = elsewhere.run_due()
    assert done.inserted == [("IBM", 200.0)]
    elsewhere.sql("UPDATE stock SET price = 300 WHERE symbol = 'BAY'")
    (done,) = elsewhere.run_due()
    assert done.cause.text == "WHEN is_high(stock.price)"
    elsewhere.close()
    watched.db = watched.connect()


def test_what_does_not_concern_it_is_not_noted(
    watched: Watched, elsewhere: harken.Database
) -> None:
    elsewhere.sql("CREATE TABLE other (a INT)")  # nor does it prevent changes of the schema
    elsewhere.sql("INSERT INTO other VALUES (1)")
    elsewhere.sql("BEGIN; UPDATE stock SET price = 200; ROLLBACK")
    assert elsewhere.run_due() == watched.run() == []
    assert elsewhere.next_due() == watched.db.next_due()
    elsewhere.close()


def test_a_trigger_of_which_nothing_can_be_watched_is_noted_once(watched: Watched) -> None:
    internals = watched.db.internals
    triggers = UnwatchedTriggers(internals.connection, internals.network, Consumer())
    triggers.watch(7, harken.HarkenError("no function"), [])
    assert triggers.is_due
    with watched.db.transaction():
        triggers.note_blind()
    assert (list(triggers.noted()), triggers.is_due) == ([7], False)
    with watched.db.transaction():
        triggers.clear(7)
    assert triggers.noted() == {}
