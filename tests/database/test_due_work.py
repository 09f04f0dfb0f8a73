"""Due work runs when its time has come: in order, once, and none in the way of another."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import harken
from harken.database.due_work import Agenda, Timers
from harken.errors import HarkenError, ValueFault

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)


@dataclass
class Alarm:
    """Rings at some moments, each once."""

    name: str
    moments: list[datetime.datetime]
    rung: list[str]
    breaks: bool = False
    sets: dict[str, Alarm] = field(default_factory=dict)

    def next_due(self) -> datetime.datetime | None:
        return min(self.moments, default=None)

    def run(self, now: datetime.datetime) -> Iterable[str]:
        if self.breaks:
            raise ValueFault("it is broken", code="bad-value")
        self.moments = [each for each in self.moments if each > now]
        self.rung.append(self.name)
        for other in self.sets.values():
            other.moments.append(now)
        return [self.name]


def test_what_is_due_runs_in_order_of_registration() -> None:
    rung: list[str] = []
    agenda = Agenda()
    agenda.register(Alarm("late", [NOON + SECOND], rung))
    agenda.register(Alarm("first", [NOON], rung))
    agenda.register(Alarm("second", [NOON - SECOND, NOON], rung))
    assert agenda.next_due() == NOON - SECOND
    assert agenda.run(lambda: NOON).done == {"first": ["first"], "second": ["second"]}
    assert rung == ["first", "second"]
    assert agenda.next_due() == NOON + SECOND


def test_work_that_makes_earlier_work_due_lets_it_run_again() -> None:
    rung: list[str] = []
    first = Alarm("first", [NOON], rung)
    agenda = Agenda()
    agenda.register(first)
    agenda.register(Alarm("second", [NOON], rung, sets={"first": first}))
    agenda.run(lambda: NOON)
    assert rung == ["first", "second", "first"]


def test_work_that_fails_keeps_no_other_from_running() -> None:
    rung: list[str] = []
    agenda = Agenda()
    agenda.register(Alarm("broken", [NOON], rung, breaks=True))
    agenda.register(Alarm("sound", [NOON], rung))
    found = agenda.run(lambda: NOON)
    assert [error.message for error in found.errors] == ["it is broken"]
    assert rung == ["sound"]


def test_timers_survive_the_session_and_roll_back_with_their_transaction(tmp_path: Path) -> None:
    path = tmp_path / "timers.db"
    with harken.connect(path) as db:
        timers = Timers(db.internals.connection, "tea")
        assert timers.next() is None
        with db.transaction():
            timers.set("green", NOON + SECOND)
            timers.set("black", NOON)
            Timers(db.internals.connection, "eggs").set("green", NOON - SECOND)
        db.begin()
        timers.clear("black")
        db.rollback()
    with harken.connect(path) as db:
        timers = Timers(db.internals.connection, "tea")
        assert timers.next() == NOON
        assert timers.due(NOON) == [("black", NOON)]
        with db.transaction():
            timers.clear("black")
            timers.set("green", NOON + 2 * SECOND)
        assert timers.at("black") is None
        assert timers.at("green") == timers.next() == NOON + 2 * SECOND


def test_a_session_delivers_its_messages_when_they_are_due(tmp_path: Path) -> None:
    now, out = NOON, tmp_path / "out.jsonl"
    db = harken.connect(clock=lambda: now)
    assert db.next_due() is None
    assert db.run_due() == []
    number = db.notifications.send("FILE", str(out), "tea is ready")
    assert db.next_due() == NOON
    assert db.run_due() == []
    assert [(each.number, each.state) for each in db.notifications.list()] == [
        (number, "delivered")
    ]
    assert db.next_due() is None
    with pytest.raises(HarkenError, match="transactions of its own"), db.transaction():
        db.run_due()
