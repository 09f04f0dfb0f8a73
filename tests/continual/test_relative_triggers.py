"""Triggers that refer to changes of the answer, to another query, or to an event."""

import pytest

import harken
from harken.continual.time_triggers import TimeTriggers
from harken.continual.trigger_kinds import CONTENT, Cause
from tests.continual.conftest import Watched
from tests.continual.toy_trigger import ToyTriggers

NEW = "INSERT INTO stock VALUES ('{}', 'New', 1)"


def test_after_so_many_changes(watched: Watched) -> None:
    watched.sql("CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock TRIGGER AFTER 3 CHANGES")
    watched.sql(NEW.format("A"))
    watched.sql("DELETE FROM stock WHERE symbol = 'A'")
    watched.sql(NEW.format("B"))
    assert watched.run() == []  # A has come and gone again
    watched.sql(NEW.format("C"))
    watched.sql("DELETE FROM stock WHERE symbol = 'IBM'")
    (done,) = watched.run()
    assert (done.cause.text, done.inserted) == ("3 rows have changed", [("B",), ("C",)])
    watched.sql(NEW.format("D"))
    assert watched.run() == []


def test_changes_before_a_restart_count(watched: Watched) -> None:
    watched.sql("CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock TRIGGER AFTER 2 CHANGES")
    watched.sql(NEW.format("A"))
    watched.reopen()
    with watched.connect() as other:
        other.sql(NEW.format("B"))
    assert len(watched.run()) == 1


def test_in_the_transaction_that_changes_enough(watched: Watched) -> None:
    watched.sql(
        "CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock TRIGGER AFTER 2 CHANGES "
        "COUPLING IN TRANSACTION"
    )
    watched.sql("INSERT INTO stock VALUES ('A', 'A', 1), ('B', 'B', 1)")
    assert watched.state("executions") == (2,)
    assert watched.run() == []


@pytest.mark.parametrize(("delay", "seconds"), [("", 0), ("50 SECONDS ", 50)])
def test_after_the_execution_of_another(watched: Watched, delay: str, seconds: int) -> None:
    watched.sql("CREATE CONTINUAL QUERY first AS SELECT 1 AS n TRIGGER EVERY HOUR")
    watched.sql(
        "CREATE CONTINUAL QUERY second AS SELECT symbol FROM stock "
        f"TRIGGER {delay}AFTER EXECUTION OF first"
    )
    found = [each.query for each in watched.run(hours=1)]
    if seconds:
        assert found == ["first"]
        assert watched.run(seconds=seconds - 1) == []
        (late,) = watched.run(seconds=1)
        assert late.cause.text == "first was executed"
    else:
        assert found == ["first", "second"]


def test_after_the_stop_of_another(watched: Watched) -> None:
    watched.sql("CREATE CONTINUAL QUERY first AS SELECT 1 AS n STOP AFTER 3 DAYS")
    watched.sql("CREATE CONTINUAL QUERY last AS SELECT 1 AS n TRIGGER 1 DAY AFTER STOP OF first")
    assert [each.query for each in watched.run(days=3)] == []
    assert watched.run(hours=23) == []
    assert [each.query for each in watched.run(hours=1)] == ["last"]


def test_some_time_after_any_event(watched: Watched) -> None:
    continual, toys = watched.db.internals.continual, ToyTriggers()
    continual.kinds.register(toys)
    watched.sql("CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock TRIGGER 1 MINUTE AFTER TOY")
    assert watched.state("trigger", "type") == ("1 MINUTE AFTER TOY", "content")
    (query,) = continual.queries.all()
    with watched.db.transaction():
        continual.fire(query.number, Cause(CONTENT, "toy", watched.clock.now))
    assert watched.run(seconds=59) == []
    assert len(watched.run(seconds=1)) == 1
    assert [each[0] for each in toys.told] == ["installed", "executed", "executed"]


@pytest.mark.parametrize(
    "text",
    [
        "AFTER 100 CHANGES",
        "AFTER 1 CHANGE",
        "AFTER STOP OF a",
        "50 SECONDS AFTER EXECUTION OF `a b`",
    ],
)
def test_the_text_is_read_again(watched: Watched, text: str) -> None:
    kinds = watched.db.internals.continual.kinds
    trigger = kinds.read(text)
    assert kinds.read(str(trigger)) == trigger
    assert str(trigger) == text
    assert TimeTriggers().reads(text, 0, "sql") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("AFTER 0 CHANGES", "cannot be"),
        ("AFTER EXECUTION OF nobody", "no continual query nobody"),
        ("5 MINUTES AFTER EVERY DAY", "refers to an event"),
        ("AFTER 3 CHANGES STRATEGY naive", "cannot be counted"),
        ("AFTER 3 CHANGES LATER", "LATER"),
    ],
)
def test_errors(watched: Watched, text: str, said: str) -> None:
    with pytest.raises(harken.HarkenError, match=said):
        watched.sql(f"CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock TRIGGER {text}")


@pytest.mark.parametrize(
    "trigger", ["EVERY MONDAY OR stock.price > 200", "WHEN stock.price > 200 OR EVERY MONDAY"]
)
def test_a_schedule_or_an_event(watched: Watched, trigger: str) -> None:
    watched.sql(f"CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock TRIGGER {trigger}")
    watched.reopen()
    assert watched.state("trigger")[0].startswith("EVERY MONDAY AT '00:00' OR ")
    watched.sql("UPDATE stock SET price = 300 WHERE symbol = 'IBM'")
    assert [each.cause.kind for each in watched.run()] == ["content"]
    assert watched.run(days=6) == []
    assert [each.cause.kind for each in watched.run(days=1)] == ["time"]
    lines = [row[0].strip() for row in watched.sql("EXPLAIN CONTINUAL QUERY q")]
    assert "(stock.price, stock.price > 200, END)" in lines
    assert any("by the clock: EVERY MONDAY" in each for each in lines)
    watched.sql("DROP CONTINUAL QUERY q")
    watched.sql("UPDATE stock SET price = 3")
    assert watched.run(days=7) == []


@pytest.mark.parametrize("other", ["EVERY FRIDAY", "ON REQUEST"])
def test_or_joins_one_schedule_with_events(watched: Watched, other: str) -> None:
    with pytest.raises(harken.HarkenError, match="OR joins one schedule with events"):
        watched.sql(
            f"CREATE CONTINUAL QUERY q AS SELECT symbol FROM stock TRIGGER EVERY MONDAY OR {other}"
        )
