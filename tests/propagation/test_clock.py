"""The clock as a relation: who hears of passing time, and that nothing is lost or told twice."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

import harken

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
TABLE = "CREATE TABLE task (id INT, due TIMESTAMP)"
OVERDUE = "SELECT id FROM task WHERE due < now() - INTERVAL 1 HOUR"
RULE = """
create type job properties (due timestamp, n integer);
create function told(integer n) -> integer times;
create rule late() as for each job j, integer i when due(j) < now() and n(j) = i
do set told(i) = i;
"""


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime.datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def at(hours: float) -> str:
    return f"TIMESTAMP '{START + hours * HOUR:%Y-%m-%d %H:%M:%S.%f}'"


def run_all(db: harken.Database, clock: Clock) -> list[datetime.datetime]:
    """Run at each moment that is due; the moments."""
    found = []
    while (due := db.next_due()) is not None and len(found) < 20:
        clock.now = max(clock.now, due)
        found.append(due)
        db.run_due()
    return found


def test_a_monitor_hears_of_passing_time_at_the_very_moment(clock: Clock) -> None:
    with harken.connect(clock=clock) as db:
        db.sql(f"{TABLE}; CREATE VIEW overdue AS {OVERDUE}")
        monitor = db.monitor("overdue")
        db.sql(f"INSERT INTO task VALUES (1, {at(2)}), (2, {at(1.5)})")
        assert monitor.changes() == []
        assert run_all(db, clock) == [
            START + 2.5 * HOUR + datetime.timedelta(microseconds=1),
            START + 3 * HOUR + datetime.timedelta(microseconds=1),
        ]
        assert [(each.plus, each.at) for each in monitor.changes()] == [
            ([(2,)], START + 2.5 * HOUR + datetime.timedelta(microseconds=1)),
            ([(1,)], START + 3 * HOUR + datetime.timedelta(microseconds=1)),
        ]


def test_nothing_is_due_without_a_view_over_the_clock(clock: Clock) -> None:
    with harken.connect(clock=clock) as db:
        db.sql(f"{TABLE}; CREATE VIEW overdue AS {OVERDUE}")
        db.sql(f"INSERT INTO task VALUES (1, {at(2)})")
        assert db.next_due() is None
        monitor = db.monitor("overdue")
        assert db.next_due() is not None
        monitor.close()
        assert db.next_due() is None


def test_what_a_change_makes_due_earlier_is_due_earlier(clock: Clock) -> None:
    with harken.connect(clock=clock) as db:
        db.sql(f"{TABLE}; CREATE MATERIALIZED VIEW todo AS SELECT id FROM task WHERE due > now()")
        db.sql(f"INSERT INTO task VALUES (1, {at(5)})")
        assert db.next_due() == START + 5 * HOUR
        db.sql(f"INSERT INTO task VALUES (2, {at(3)})")
        assert db.next_due() == START + 3 * HOUR
        db.sql("DELETE FROM task WHERE id = 2")
        assert db.next_due() == START + 5 * HOUR
        db.sql(f"BEGIN; INSERT INTO task VALUES (2, {at(3)})")
        db.rollback()
        assert db.next_due() == START + 5 * HOUR


def test_a_rule_acts_when_its_condition_becomes_true_by_itself(clock: Clock) -> None:
    with harken.connect(clock=clock) as db:
        db.amosql(f"{RULE} activate late();")
        with db.transaction():
            db.amosql("create job instances :job;")
            job = db.variables["job"]
            db.function("due")[job] = START + HOUR
            db.function("n")[job] = 7
        told = db.function("told")
        assert told.get(7) is None
        clock.now = START + HOUR
        db.run_due()
        assert told.get(7) is None  # due is not before now yet
        assert run_all(db, clock)[0] == START + HOUR + datetime.timedelta(microseconds=1)
        assert told[7] == 7
        del told[7]
        clock.now += HOUR
        db.run_due()
        assert told.get(7) is None  # it became true once


def test_a_commit_before_the_run_sees_the_right_old_state(clock: Clock) -> None:
    """The last wave was at 0:00, the commit is at 3:00, and in between a row came due."""
    with harken.connect(clock=clock) as db:
        db.sql(f"{TABLE}; CREATE VIEW todo AS SELECT id FROM task WHERE due > now()")
        db.sql("CREATE VIEW number AS SELECT count(*) AS n FROM task WHERE due > now()")
        db.sql(f"INSERT INTO task VALUES (1, {at(2)}), (2, {at(9)})")
        todo, number = db.monitor("todo"), db.monitor("number")
        clock.now = START + 3 * HOUR
        db.sql(f"INSERT INTO task VALUES (3, {at(4)}), (4, {at(1)})")
        assert [(c.plus, c.minus) for c in todo.changes()] == [([(3,)], [(1,)])]
        assert number.changes() == []  # one came and one went
        assert db.next_due() == START + 4 * HOUR


def test_a_constraint_that_time_breaks_is_complained_of_and_repaired_by_rules(
    clock: Clock,
) -> None:
    with harken.connect(clock=clock) as db:
        db.sql("CREATE TABLE offer (id INT, until TIMESTAMP, CHECK (until > now()))")
        db.sql("CREATE VIEW open_offers AS SELECT id FROM offer WHERE until > now()")
        monitor = db.monitor("open_offers")
        db.sql(f"INSERT INTO offer VALUES (1, {at(1)})")
        with pytest.raises(harken.IntegrityError, check=lambda e: e.code == "constraint"):
            db.sql(f"INSERT INTO offer VALUES (2, {at(-1)})")
        clock.now = START + HOUR
        with pytest.raises(harken.IntegrityError, match="does not hold any more, because time"):
            db.run_due()
        assert [c.minus for c in monitor.changes()] == [[], [(1,)]]
        assert db.run_due() == []
        db.sql(f"INSERT INTO offer VALUES (3, {at(5)})")  # the broken row is nobody else's fault


def test_nothing_is_lost_by_a_restart(clock: Clock, tmp_path: Path) -> None:
    file = tmp_path / "tasks.db"
    with harken.connect(file, clock=clock) as db:
        db.sql(f"{TABLE}; CREATE MATERIALIZED VIEW overdue AS {OVERDUE}")
        db.monitor("overdue", durable="box").close()
        db.sql(f"INSERT INTO task VALUES (1, {at(2)}), (2, {at(30)})")
        expected = db.next_due()
    clock.now = START + 10 * HOUR
    with harken.connect(file, clock=clock) as db:
        assert db.next_due() == expected
        assert db.sql("SELECT * FROM overdue").rows == []
        db.run_due()
        assert db.sql("SELECT * FROM overdue").rows == [(1,)]
        box = db.monitor("overdue", durable="box")
        assert [each.plus for each in box.changes()] == [[(1,)]]


def test_two_sessions_bring_shared_views_up_to_date_once(clock: Clock, tmp_path: Path) -> None:
    file = tmp_path / "tasks.db"
    with harken.connect(file, clock=clock) as one, harken.connect(file, clock=clock) as two:
        one.sql(f"{TABLE}; CREATE MATERIALIZED VIEW overdue AS {OVERDUE}")
        one.sql(f"INSERT INTO task VALUES (1, {at(2)}), (2, {at(30)})")
        box = one.monitor("overdue", durable="box")
        here = two.monitor("overdue")
        assert one.next_due() == two.next_due()
        clock.now = START + 4 * HOUR
        one.run_due()
        due = two.next_due()
        assert due == START + 31 * HOUR + datetime.timedelta(microseconds=1)
        two.run_due()
        assert two.sql("SELECT * FROM overdue").rows == [(1,)]
        assert [each.plus for each in box.changes()] == [[(1,)]]
        here.close()


def test_a_monitor_of_one_session_starts_over_if_another_moved_the_clock(
    clock: Clock, tmp_path: Path
) -> None:
    file = tmp_path / "tasks.db"
    with harken.connect(file, clock=clock) as one, harken.connect(file, clock=clock) as two:
        one.sql(f"{TABLE}; CREATE VIEW overdue AS {OVERDUE}")
        one.sql(f"CREATE MATERIALIZED VIEW kept AS {OVERDUE}")
        one.sql(f"INSERT INTO task VALUES (1, {at(2)}), (2, {at(30)})")
        here = two.monitor("overdue")
        clock.now = START + 4 * HOUR
        one.run_due()
        assert two.next_due() == clock.now
        two.run_due()
        assert [(each.plus, each.fresh) for each in here.changes()] == [([(1,)], True)]


def test_a_rollback_takes_the_clock_back(clock: Clock) -> None:
    with harken.connect(clock=clock) as db:
        db.sql(f"{TABLE}; CREATE VIEW todo AS SELECT id FROM task WHERE due > now()")
        db.sql(f"INSERT INTO task VALUES (1, {at(2)})")
        monitor = db.monitor("todo")
        clock.now = START + 3 * HOUR
        db.sql(f"BEGIN; INSERT INTO task VALUES (2, {at(9)})")
        db.internals.reactions.check()
        db.rollback()
        assert db.next_due() == START + 2 * HOUR
        db.run_due()
        assert [(c.plus, c.minus) for c in monitor.changes()] == [([], [(1,)])]


def test_a_view_made_later_starts_at_the_present(clock: Clock) -> None:
    with harken.connect(clock=clock) as db:
        db.sql(f"{TABLE}; INSERT INTO task VALUES (1, {at(2)}), (2, {at(9)})")
        db.sql("CREATE MATERIALIZED VIEW one AS SELECT id FROM task WHERE due > now()")
        clock.now = START + 3 * HOUR
        db.sql("CREATE MATERIALIZED VIEW two AS SELECT id FROM task WHERE due > now()")
        for name in ("one", "two"):
            assert db.sql(f"SELECT * FROM {name}").rows == [(2,)]
        db.sql("DROP VIEW one; DROP VIEW two")
        assert db.next_due() is None
        clock.now = START + 10 * HOUR
        db.sql("CREATE MATERIALIZED VIEW two AS SELECT id FROM task WHERE due > now()")
        assert db.sql("SELECT * FROM two").rows == []


def test_what_cannot_be_followed_says_so(clock: Clock) -> None:
    with harken.connect(clock=clock) as db:
        db.sql(f"{TABLE}; CREATE VIEW shown AS SELECT id, now() AS at FROM task")
        with pytest.warns(harken.ClockWarning, match="whose next change cannot be computed"):
            monitor = db.monitor("shown")
        db.sql(f"INSERT INTO task VALUES (1, {at(2)})")
        assert db.next_due() is None
        clock.now += HOUR
        db.sql(f"INSERT INTO task VALUES (2, {at(2)})")
        assert monitor.changes()[-1].minus == [(1, START)]


def test_a_view_that_nobody_follows_is_read_as_of_now(clock: Clock) -> None:
    with harken.connect(clock=clock) as db:
        db.sql(f"{TABLE}; CREATE VIEW todo AS SELECT id FROM task WHERE due > now()")
        db.sql(f"INSERT INTO task VALUES (1, {at(2)}), (2, {at(9)})")
        assert db.snapshot("todo").plus == [(1,), (2,)]
        db.sql(f"CREATE MATERIALIZED VIEW other AS {OVERDUE}")
        clock.now = START + 5 * HOUR
        assert db.snapshot("todo").plus == [(2,)]
        assert db.sql("SELECT * FROM other").rows == []
