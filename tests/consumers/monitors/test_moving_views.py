"""Monitored views that ask for the time: a commit that looks at one tells what is different since
the last look, whether by what it changed or because time has passed."""

from __future__ import annotations

import datetime
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import harken

pytestmark = pytest.mark.filterwarnings("ignore::harken.ClockWarning")

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
EVENTS = "CREATE TABLE e (id INT, ts TIMESTAMP); CREATE TABLE other (a INT);"
QUERIES = (
    "SELECT id FROM e WHERE ts > now()",
    "SELECT DISTINCT id FROM e WHERE ts <= now()",
    "SELECT id, ts FROM e WHERE ts > now() ORDER BY ts, id LIMIT 2",
    "SELECT count(*) AS n, max(id) AS m FROM e WHERE ts > current_timestamp()",
    "SELECT a, id FROM e LEFT JOIN other ON a = id AND ts > now()",
    "SELECT id FROM e WHERE ts >= current_date() AND id NOT IN (SELECT a FROM other)",
)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime.datetime:
        return self.now

    def pass_days(self, days: float) -> None:
        self.now += datetime.timedelta(days=days)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def day(number: int) -> str:
    return f"TIMESTAMP '{START + datetime.timedelta(days=number):%Y-%m-%d %H:%M:%S}'"


def applied(copy: Counter[Any], changes: list[harken.Change]) -> Counter[Any]:
    for change in changes:
        if change.fresh:
            copy.clear()
        copy.subtract(change.minus)
        copy.update(change.plus)
        assert all(count >= 0 for count in copy.values())
    return +copy


def test_a_row_whose_time_is_over_is_reported_as_deleted(clock: Clock) -> None:
    with harken.connect(clock=clock) as db:
        db.sql(EVENTS)
        db.sql("CREATE VIEW coming AS SELECT id FROM e WHERE ts > now()")
        monitor = db.monitor("coming")
        db.sql(f"INSERT INTO e VALUES (1, {day(2)}), (2, {day(9)})")
        assert monitor.changes() == [harken.Change("coming", [(1,), (2,)], [], 1)]
        clock.pass_days(5)
        db.sql("INSERT INTO other VALUES (1)")
        assert monitor.changes() == []  # nothing that it reads has changed: it was not looked at
        db.sql(f"INSERT INTO e VALUES (3, {day(6)})")
        assert monitor.changes() == [harken.Change("coming", [(3,)], [(1,)], 2)]


def test_a_row_between_two_evaluations_is_not_reported(clock: Clock) -> None:
    with harken.connect(clock=clock) as db:
        db.sql(EVENTS)
        db.sql("CREATE VIEW coming AS SELECT id FROM e WHERE ts > now()")
        monitor = db.monitor("coming")
        clock.pass_days(20)
        db.sql(
            f"INSERT INTO e VALUES (1, {day(15)})"
        )  # in the future of the first look, not of now
        db.sql(f"INSERT INTO e VALUES (2, {day(30)})")
        assert [(each.plus, each.minus) for each in monitor.changes()] == [([(2,)], [])]


def test_a_rollback_takes_the_look_back(clock: Clock) -> None:
    with harken.connect(clock=clock) as db:
        db.sql(EVENTS)
        db.sql(f"INSERT INTO e VALUES (1, {day(2)})")
        db.sql("CREATE VIEW coming AS SELECT id FROM e WHERE ts > now()")
        monitor = db.monitor("coming")
        clock.pass_days(5)
        db.sql(f"BEGIN; INSERT INTO e VALUES (2, {day(9)})")
        db.internals.reactions.check()
        db.rollback()
        assert monitor.changes() == []
        db.sql(f"INSERT INTO e VALUES (3, {day(9)})")
        assert monitor.changes() == [harken.Change("coming", [(3,)], [(1,)], 1)]


def test_a_client_starts_over_with_the_rows_last_evaluated(clock: Clock) -> None:
    with harken.connect(clock=clock) as db:
        db.sql(EVENTS)
        db.sql(f"INSERT INTO e VALUES (1, {day(2)}), (2, {day(9)})")
        db.sql("CREATE VIEW coming AS SELECT id FROM e WHERE ts > now()")
        first = db.monitor("coming")
        clock.pass_days(5)
        second = db.monitor("coming")
        copy = applied(Counter(), [second.snapshot()])
        db.sql(f"INSERT INTO e VALUES (3, {day(10)})")
        changes = second.changes()
        assert changes == first.changes()
        assert applied(copy, changes) == Counter(db.sql("SELECT * FROM coming").rows)


def test_rows_are_those_that_the_next_change_starts_from(clock: Clock) -> None:
    with harken.connect(clock=clock) as db:
        db.sql(f"{EVENTS} CREATE VIEW shown AS SELECT id, now() AS at FROM e")
        db.sql(f"INSERT INTO e VALUES (1, {day(2)})")
        monitor = db.monitor("shown")
        clock.pass_days(1)
        copy = Counter(monitor.rows())
        db.sql(f"INSERT INTO e VALUES (2, {day(2)})")
        assert applied(copy, monitor.changes()) == Counter(monitor.rows())


@pytest.mark.parametrize("wish", [{"durable": "box"}, {"keep": True}])
def test_another_session_continues_from_the_last_evaluation(
    clock: Clock, tmp_path: Path, wish: dict[str, Any]
) -> None:
    file = tmp_path / "events.db"
    with harken.connect(file, clock=clock) as db:
        db.sql(EVENTS)
        db.sql(f"INSERT INTO e VALUES (1, {day(2)}), (2, {day(9)})")
        db.sql("CREATE VIEW coming AS SELECT id FROM e WHERE ts > now()")
        monitor = db.monitor("coming", **wish)
        copy = applied(Counter(), [monitor.snapshot()])
        position = monitor.position
    clock.pass_days(0.01)
    with harken.connect(file, clock=clock) as writer:
        writer.sql(f"INSERT INTO e VALUES (3, {day(4)})")
        clock.pass_days(5)
        writer.sql(f"INSERT INTO e VALUES (4, {day(11)})")
    since = {"since": position} if "keep" in wish else wish
    clock.pass_days(0)
    with harken.connect(file, clock=clock) as db:
        copy = applied(copy, db.monitor("coming", **since).changes())
        assert copy == Counter(db.sql("SELECT * FROM coming").rows) == Counter([(2,), (4,)])


def test_a_redefined_view_is_compared_with_what_was_reported(clock: Clock) -> None:
    with harken.connect(clock=clock) as db:
        db.sql(EVENTS)
        db.sql(f"INSERT INTO e VALUES (1, {day(2)}), (2, {day(9)})")
        db.sql("CREATE VIEW coming AS SELECT id FROM e WHERE ts > now()")
        monitor = db.monitor("coming")
        copy = applied(Counter(), [monitor.snapshot()])
        clock.pass_days(5)
        db.sql("CREATE OR REPLACE VIEW coming AS SELECT id + 1 AS id FROM e WHERE ts > now()")
        copy = applied(copy, monitor.changes())
        assert copy == Counter([(3,)])
        clock.pass_days(5)
        db.sql(f"INSERT INTO e VALUES (7, {day(30)})")
        assert applied(copy, monitor.changes()) == Counter([(8,)])


@pytest.mark.parametrize("strategy", ["auto", "external", "naive"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_copy_holds_the_view_as_of_the_last_look(query: str, strategy: str, clock: Clock) -> None:
    random = Random(query)
    with harken.connect(clock=clock) as db:
        db.sql(EVENTS)
        db.sql(f"INSERT INTO e VALUES (1, {day(3)}), (2, {day(6)}), (2, NULL)")
        db.sql(f"CREATE VIEW v AS {query}")
        monitor = db.monitor("v", strategy=strategy)
        copy = applied(Counter(), [monitor.snapshot()])
        for _ in range(25):
            clock.pass_days(random.choice((0, 0.5, 1, 2)))
            elapsed = (clock.now - START).days
            with db.transaction():
                for _ in range(random.randint(1, 3)):
                    id_, at = random.randint(1, 4), day(elapsed + random.randint(-4, 5))
                    db.sql(
                        random.choice(
                            (
                                f"INSERT INTO e VALUES ({id_}, {at})",
                                f"DELETE FROM e WHERE id = {id_}",
                                f"UPDATE e SET ts = {at} WHERE id = {id_}",
                                f"INSERT INTO other VALUES ({id_}), ({id_})",
                                f"DELETE FROM other WHERE a = {id_}",
                            )
                        )
                    )
            db.sql(f"INSERT INTO e VALUES (9, {day(elapsed)})")  # so that it is looked at
            copy = applied(copy, monitor.changes())
            assert copy == Counter(db.sql(query).rows)


WARNING = (
    "it depends on now() in a way whose next change cannot be computed, such as showing the time "
    "itself: what only passing time changes is reported with the next transaction that changes a "
    "table it reads, and not before"
)


def test_a_monitor_of_the_time_warns_about_what_it_leaves_out() -> None:
    with harken.connect() as db:
        db.sql(f"{EVENTS} CREATE VIEW coming AS SELECT id, now() AS at FROM e")
        with pytest.warns(harken.ClockWarning) as caught:
            monitor = db.monitor("coming")
        assert monitor.warnings == (WARNING,)
        assert [str(each.message) for each in caught] == [f"coming: {WARNING}"]
        assert caught[0].filename == __file__
        told: list[str] = []
        db.monitor("coming", warn=told.append)
        assert told == [f"coming: {WARNING}"]
        assert db.monitor("e").warnings == ()


def test_explanations_say_what_is_left_out() -> None:
    with harken.connect() as db:
        db.sql(f"{EVENTS} CREATE VIEW coming AS SELECT id, now() AS at FROM e")
        db.sql("CREATE MATERIALIZED VIEW stored AS SELECT * FROM coming")
        for name in ("coming", "stored"):
            explanation = db.explain(name, verbose=True)
            assert explanation.warnings == (WARNING,)
            assert f"Warning: {WARNING}" in str(explanation)
            assert explanation.as_json()["warnings"] == (WARNING,)
        (result,) = db.sql("EXPLAIN SELECT id, now() AS at FROM e")
        assert result.rows[-1] == (f"Warning: {WARNING}",)
        assert db.explain("e", verbose=True).warnings == ()
        db.amosql(
            "create type task properties (due timestamp);"
            "create rule late() as for each task t when to_string(due(t)) = to_string(now()) "
            "do print(due(t));"
        )
        assert db.explain("late", verbose=True).warnings == (WARNING,)
