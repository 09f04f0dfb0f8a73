"""The outbox of a durable monitor whose subscriber does not acknowledge: limits, alarms, room."""

from __future__ import annotations

import datetime
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import harken
from harken import Change, Copy, Database, HarkenError

SCHEMA = """
CREATE TABLE stock (item STRING PRIMARY KEY, quantity INT);
CREATE VIEW low AS SELECT item, quantity FROM stock WHERE quantity < 10;
INSERT INTO stock VALUES ('pen', 0);
"""
MEGABYTE = 2**20


class Clock:
    def __init__(self) -> None:
        self.now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

    def __call__(self) -> datetime.datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += datetime.timedelta(seconds=seconds)


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "shop.db")
    with harken.connect(path) as db:
        db.sql(SCHEMA)
    return path


@contextmanager
def opened(path: str, **limits: Any) -> Iterator[Database]:
    clock = limits.pop("clock", None)
    with harken.connect(path, settings=limits, clock=clock) as db:
        yield db


def put(db: Database, *quantities: int) -> None:
    for quantity in quantities:
        db.sql(f"UPDATE stock SET quantity = {quantity} WHERE item = 'pen'")


def test_a_full_outbox_is_emptied_and_its_subscriber_gets_all_rows(path: str) -> None:
    with opened(path, outbox_changes=3) as db:
        sub = db.monitor("low", durable="reports")
        put(db, 1, 2, 3)
        assert len(sub.changes()) == 3
        put(db, 4)  # nothing was acknowledged
        (fresh,) = sub.changes()
        assert fresh == Change("low", [("pen", 4)], [], 4, fresh=True)
        assert sub.changes() == []
        put(db, 5)
        assert [change.plus for change in sub.changes()] == [[("pen", 5)]]


def test_a_drop_is_reported_until_it_is_acknowledged(path: str) -> None:
    with opened(path, outbox_changes=2) as db:
        db.monitor("low", durable="reports")
        put(db, 1, 2, 3)
    for last in (3, 4):
        with opened(path, outbox_changes=2) as db:
            sub = db.monitor("low", durable="reports")
            assert [(c.fresh, c.plus) for c in sub.changes()] == [(True, [("pen", last)])]
            put(db, last + 1)
            assert [(c.fresh, c.plus) for c in sub.changes()] == [(False, [("pen", last + 1)])]
    with opened(path, outbox_changes=2) as db:
        sub = db.monitor("low", durable="reports")
        sub.changes()
        sub.acknowledge()
        (status,) = db.outboxes()
        assert (status.changes, status.bytes, status.lost, status.alarm) == (0, 0, 0, None)
    with opened(path) as db:
        assert db.monitor("low", durable="reports").changes() == []


@pytest.mark.parametrize(
    ("limits", "waits"),
    [({"outbox_bytes": 2_000}, True), ({"outbox_seconds": 60}, True), ({}, False)],
    ids=["bytes", "seconds", "defaults"],
)
def test_limits_are_settings(path: str, limits: dict[str, Any], waits: bool) -> None:
    clock = Clock()
    with opened(path, clock=clock, **limits) as db:
        sub = db.monitor("low", durable="reports")
        for i in range(30):
            put(db, i % 9 + 1)
            clock.advance(3)
        assert any(change.fresh for change in sub.changes()) is waits
        assert bool(db.outboxes()[0].lost) is waits


def test_who_acknowledges_never_meets_a_limit(path: str) -> None:
    clock = Clock()
    with opened(path, clock=clock, outbox_changes=3, outbox_seconds=20) as db:
        sub = db.monitor("low", durable="reports")
        for i in range(20):
            put(db, i % 9 + 1, i % 9)
            clock.advance(15)
            assert [change.fresh for change in sub.changes()] == [False, False]
            sub.acknowledge()


def test_zero_is_no_limit(path: str) -> None:
    clock = Clock()
    none = {"outbox_bytes": 0, "outbox_changes": 0, "outbox_seconds": 0}
    with opened(path, clock=clock, **none) as db:
        sub = db.monitor("low", durable="reports")
        put(db, *range(1, 6))
        clock.advance(1e9)
        put(db, 0)
        assert len(sub.changes()) == 6
        assert db.outboxes()[0].filled == 0


def test_an_alarm_is_raised_before_and_after(path: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "harken.monitors"), opened(path, outbox_changes=5) as db:
        db.monitor("low", durable="reports")
        put(db, 1, 2, 3)
        assert (db.outboxes()[0].alarm, caplog.messages) == (None, [])
        put(db, 4, 5)
        assert "100% full" in str(db.outboxes()[0].alarm)
        assert caplog.messages == ["the outbox of the durable monitor reports of low() is 80% full"]
        put(db, 6)
        (status,) = db.outboxes()
        assert (status.lost, status.changes) == (6, 0)
        assert "6 changes were dropped" in str(status.alarm)
        assert "6 of them were dropped" in caplog.messages[-1]
        assert "6 changes were dropped" in str(db.explain("low", verbose=True))
        put(db, 7)
        (status,) = db.outboxes()
        assert (status.name, status.view, status.changes, status.lost) == ("reports", "low", 1, 6)


def test_what_is_rolled_back_drops_nothing(path: str) -> None:
    with opened(path, outbox_changes=2) as db:
        sub = db.monitor("low", durable="reports")
        put(db, 1, 2)
        with suppress(ZeroDivisionError), db.transaction():
            put(db, 3)
            raise ZeroDivisionError
        assert [change.fresh for change in sub.changes()] == [False, False]


def test_a_listener_receives_all_rows(path: str) -> None:
    seen: list[Change] = []
    fails = [True]

    def listen(change: Change) -> None:
        if fails.pop():
            fails.append(True)
            raise ValueError("not now")
        fails.append(False)
        seen.append(change)

    with opened(path, outbox_changes=2) as db:
        db.monitor("low", listen, durable="reports")
        for quantity in (1, 2, 3):
            with suppress(HarkenError):
                put(db, quantity)
        fails[:] = [True]
        with suppress(HarkenError):
            put(db, 4)
        fails[:] = [False]
        put(db, 5)
    assert [(change.fresh, change.plus) for change in seen] == [(True, [("pen", 5)])]


def test_all_rows_are_not_taken_in_a_transaction(path: str) -> None:
    with opened(path, outbox_changes=1) as db:
        sub = db.monitor("low", durable="reports")
        put(db, 1, 2)
        with (
            pytest.raises(HarkenError, check=lambda error: error.code == "transaction"),
            db.transaction(),
        ):
            sub.changes()
        assert [change.fresh for change in sub.changes()] == [True]


def test_a_file_of_an_earlier_version_gets_its_limits(path: str) -> None:
    with opened(path) as db:
        db.monitor("low", durable="reports")
        put(db, 1, 2)
        db.internals.connection.run("DROP TABLE harken_outboxes")
        assert db.outboxes() == []
    with opened(path, outbox_changes=3) as db:
        sub = db.monitor("low", durable="reports")
        assert len(sub.changes()) == 2
        put(db, 3)
        assert db.outboxes()[0].changes == 3
        put(db, 4)
        assert [change.fresh for change in sub.changes()] == [True]


# --- room in the file ----------------------------------------------------------------------


@pytest.fixture
def large(tmp_path: Path) -> str:
    path = str(tmp_path / "large.db")
    with harken.connect(path) as db:
        db.sql("CREATE TABLE notes (id INT PRIMARY KEY, text STRING)")
        db.sql("INSERT INTO notes VALUES (1, '')")
    return path


def write(db: Database, times: int) -> None:
    """Each is a change of two megabytes: what was there, and what is."""
    for i in range(times):
        db.function("notes")[1] = str(i % 10) * MEGABYTE


def size(path: str) -> int:
    return sum(os.path.getsize(each) for each in (path, f"{path}-wal") if os.path.exists(each))


def test_the_file_becomes_smaller_when_an_outbox_is_emptied(large: str) -> None:
    with opened(large, outbox_bytes=20 * MEGABYTE) as db:
        db.monitor("notes", durable="reports")
        write(db, 10)
        assert size(large) > 18 * MEGABYTE
        write(db, 1)
        assert db.outboxes()[0].lost == 11
        assert size(large) < 8 * MEGABYTE
        write(db, 40)
        assert size(large) < 35 * MEGABYTE


def test_the_file_becomes_smaller_when_changes_are_acknowledged(large: str) -> None:
    with opened(large) as db:
        sub = db.monitor("notes", durable="reports")
        write(db, 10)
        assert size(large) > 18 * MEGABYTE
        sub.changes()
        sub.acknowledge()
        assert size(large) < 8 * MEGABYTE
        assert db.sql("SELECT length(text) FROM notes")[0].rows == [(MEGABYTE,)]


def test_the_file_shrinks_when_a_log_is_deleted(large: str) -> None:
    with opened(large) as db:
        sub = db.monitor("notes", keep=True)
        write(db, 7)
        sub.delete()
        assert size(large) < 8 * MEGABYTE


# --- the law -------------------------------------------------------------------------------

ACTS = st.lists(
    st.one_of(
        *[st.tuples(st.just("write"), st.lists(st.integers(0, 12), min_size=1, max_size=4))] * 3,
        st.tuples(st.just("follow"), st.none()),
        st.tuples(st.just("acknowledge"), st.none()),
        st.tuples(st.just("reopen"), st.none()),
        st.tuples(st.just("another session"), st.lists(st.integers(0, 12), max_size=3)),
    ),
    max_size=20,
)
relaxed = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)


class Subscriber:
    """Applies what it has not had: after reopening, what was not acknowledged comes again."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.copy = Copy()
        self.open()
        self.copy.apply(self.sub.snapshot())

    def open(self) -> None:
        self.db = harken.connect(self._path, settings={"outbox_changes": 3})
        self.sub = self.db.monitor("low", durable="reports")

    def write(self, quantities: list[int]) -> None:
        put(self.db, *quantities)

    def another_session(self, quantities: list[int]) -> None:
        with opened(self._path, outbox_changes=3) as other:
            put(other, *quantities)

    def follow(self, _: None) -> None:
        for change in self.sub.changes():
            if change.fresh or change.position > self.copy.position:
                self.copy.apply(change)
        assert list(self.copy) == self.sub.rows()

    def acknowledge(self, _: None) -> None:
        self.sub.acknowledge()

    def reopen(self, _: None) -> None:
        self.db.close()
        self.open()


@settings(max_examples=30, suppress_health_check=relaxed)
@given(acts=ACTS)
def test_a_subscriber_never_misses_a_change_unnoticed(
    path: str, tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, Any]]
) -> None:
    own = str(tmp_path_factory.mktemp("law") / "x.db")
    shutil.copy(path, own)
    subscriber = Subscriber(own)
    try:
        for name, what in acts:
            getattr(subscriber, name.replace(" ", "_"))(what)
        subscriber.follow(None)
        assert subscriber.db.outboxes()[0].changes <= 3
    finally:
        subscriber.db.close()
