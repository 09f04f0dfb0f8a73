"""The scheduler: one process at a time does what is due, and another takes over."""

from __future__ import annotations

import datetime
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import harken
from harken.api.scheduling import Scheduler
from harken.database import role_lease
from tests.harness.patience import PATIENCE

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)
OPENED = """
CREATE TABLE task (id INT, due TIMESTAMP);
CREATE MATERIALIZED VIEW late AS SELECT id FROM task WHERE due <= now();
"""


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime.datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path, clock: Clock) -> str:
    path = str(tmp_path / "tasks.db")
    with harken.connect(path, clock=clock) as db:
        db.sql(OPENED)
        db.sql(f"INSERT INTO task VALUES (1, TIMESTAMP '{START + 60 * SECOND:%Y-%m-%d %H:%M:%S}')")
    return path


def late(db: harken.Database) -> list[tuple[int]]:
    return db.sql("SELECT id FROM late ORDER BY id").rows


def test_a_turn_does_what_is_due_and_says_when_there_is_more(path: str, clock: Clock) -> None:
    with harken.connect(path, clock=clock, settings={"scheduler_lease": 600}) as db:
        scheduler = Scheduler(db)
        assert scheduler.turn() == 60
        clock.now += 60 * SECOND
        assert scheduler.turn() == 300  # the lease must be renewed
        assert late(db) == [(1,)]


def test_one_process_at_a_time_has_the_role(path: str, clock: Clock) -> None:
    with harken.connect(path, clock=clock) as one, harken.connect(path, clock=clock) as two:
        first, second = Scheduler(one), Scheduler(two)
        first.turn()
        second.turn()
        assert (first.has_role, second.has_role) == (True, False)
        clock.now += 8 * SECOND
        first.turn()  # renews it
        clock.now += 8 * SECOND
        second.turn()
        assert (first.has_role, second.has_role) == (True, False)
        first.release()
        second.turn()
        assert (first.has_role, second.has_role) == (False, True)
        first.turn()
        assert (first.has_role, second.has_role) == (False, True)
        holder = first.holder()
        assert holder is not None
        assert not holder.is_gone()


def test_another_takes_over_when_a_lease_has_run_out(path: str, clock: Clock) -> None:
    with harken.connect(path, clock=clock) as one, harken.connect(path, clock=clock) as two:
        first, second = Scheduler(one), Scheduler(two)
        first.turn()
        clock.now += 60 * SECOND  # it hangs, and does not renew it
        second.turn()
        assert second.has_role
        assert late(two) == [(1,)]
        first.turn()
        assert not first.has_role


def test_another_takes_over_at_once_when_the_process_is_gone(path: str, clock: Clock) -> None:
    program = (
        "import sys, os, harken; from harken.api.scheduling import Scheduler\n"
        "import datetime; at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)\n"
        "Scheduler(harken.connect(sys.argv[1], clock=lambda: at)).turn(); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", program, path], check=False).returncode == 9
    with harken.connect(path, clock=clock) as db:
        scheduler = Scheduler(db)
        holder = scheduler.holder()
        assert holder is not None
        assert holder.until > clock.now
        assert holder.is_gone()
        scheduler.turn()
        assert scheduler.has_role


def test_it_notices_that_another_session_made_something_due_earlier(
    path: str, clock: Clock
) -> None:
    with harken.connect(path, clock=clock, settings={"scheduler_lease": 600}) as db:
        scheduler = Scheduler(db)
        assert scheduler.turn() == 60
        assert not scheduler.noticed()
        with harken.connect(path, clock=clock) as other:
            other.sql("INSERT INTO task VALUES (2, TIMESTAMP '2026-01-01 00:00:30')")
        assert scheduler.noticed()
        assert scheduler.turn() == 30
        assert not scheduler.noticed()


def test_what_fails_is_tried_again_after_a_while_and_stays_due(path: str, clock: Clock) -> None:
    with harken.connect(path, clock=clock) as db:
        db.sql("CREATE TABLE offer (until TIMESTAMP, n INT)")
        db.sql("CREATE MATERIALIZED VIEW f AS SELECT 1 DIV n AS x FROM offer WHERE until <= now()")
        db.sql("INSERT INTO offer VALUES (TIMESTAMP '2026-01-01 00:00:10', 0)")
        scheduler = Scheduler(db)
        scheduler.turn()
        clock.now += 10 * SECOND
        pauses = []
        for _ in range(4):
            pauses.append(scheduler.turn())
            clock.now += SECOND * pauses[-1]
        assert scheduler.last_error is not None
        assert scheduler.last_error.code == "division-by-zero"
        assert pauses == [1, 2, 4, 5]  # the lease is renewed after 5
        db.sql("UPDATE offer SET n = 2")
        clock.now += 60 * SECOND
        scheduler.turn()
        assert scheduler.last_error is None
        assert db.sql("SELECT x FROM f").rows == [(0,)]


def test_a_clock_that_was_set_back_does_not_keep_the_role_for_years(
    path: str, clock: Clock
) -> None:
    with harken.connect(path, clock=clock) as one, harken.connect(path, clock=clock) as two:
        clock.now += datetime.timedelta(days=4_000)
        Scheduler(one).turn()
        clock.now = START
        second = Scheduler(two)
        second.turn()
        assert second.has_role
        assert role_lease.ROLES.key == ("role",)


@pytest.mark.parametrize(
    "command", [["serve", "--port", "0"], ["pipeline", "run", "--watch"]], ids=["serve", "pipeline"]
)
def test_commands_do_what_is_due_and_end_cleanly(command: list[str], tmp_path: Path) -> None:
    """A row that another process inserts is due at once, and SIGTERM gives the role back."""
    path = str(tmp_path / "tasks.db")
    with harken.connect(path) as db:
        db.sql(OPENED)
        process = subprocess.Popen(
            [sys.executable, "-m", "harken", *command, "--db", path],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            until = time.monotonic() + PATIENCE
            db.sql("INSERT INTO task VALUES (1, now() + INTERVAL 1 SECOND)")
            while late(db) != [(1,)] and time.monotonic() < until:
                assert process.poll() is None
            assert late(db) == [(1,)]
            assert Scheduler(db).holder() is not None
        finally:
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode in (0, -signal.SIGTERM)
        assert said == ""
        assert Scheduler(db).holder() is None
