"""One run of delivery: each message that is due is offered once, and none overtakes another."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

import harken
from harken.database.delivery_log import DeliveryLog
from harken.database.messages import Message, Messages, Recipient, StoredMessage
from harken.errors import TypeFault
from harken.notify.channel_registry import (
    NotDelivered,
    Surroundings,
    channel_named,
    register,
    withdraw,
)
from harken.notify.delivery_run import FIRST_RETRY, LONGEST_RETRY, deliver_due

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


@dataclass
class Toy:
    """A channel that keeps what it accepts, and refuses addresses in `broken`."""

    name: str = "toy"
    accepted: list[str] = field(default_factory=list)
    broken: dict[str, NotDelivered] = field(default_factory=dict)

    def check(self, recipient: Recipient, around: Surroundings) -> None:
        pass

    def send(self, message: StoredMessage, around: Surroundings) -> None:
        to = message.message.recipient.address
        if to in self.broken:
            raise self.broken[to]
        self.accepted.append(f"{to} {message.message.execution}")


class World:
    """A database with a clock to move, and a toy channel."""

    def __init__(self, toy: Toy) -> None:
        self.now, self.toy = NOON, toy
        self.db = harken.connect(clock=lambda: self.now)
        self.messages = Messages(self.db.internals.runtime)

    def write(self, address: str, execution: int) -> None:
        to = Recipient("toy", address)
        with self.db.transaction():
            self.messages.write(Message("q", execution, "results", self.now, "ann", to, {}))

    def run(self, seconds: float = 0) -> list[str]:
        self.now += datetime.timedelta(seconds=seconds)
        around = Surroundings({}, str, lambda: self.now)
        transactions, log = self.db.internals.transactions, DeliveryLog(self.db.internals.runtime)
        outcomes = deliver_due(self.messages, transactions, around, log, lambda: 1.0)
        return [each.state for each in sorted(outcomes, key=lambda each: each.number)]


@pytest.fixture
def world() -> Iterator[World]:
    toy = Toy()
    register(toy)
    yield World(toy)
    withdraw("toy")


def test_a_failing_address_delays_only_its_own_messages(world: World) -> None:
    world.toy.broken["a"] = NotDelivered("busy")
    for execution in (1, 2):
        world.write("a", execution)
        world.write("b", execution)
    assert world.run() == ["failed", "delivered", "delivered"]
    assert world.toy.accepted == ["b 1", "b 2"]
    world.toy.broken.clear()
    assert world.run(FIRST_RETRY - 1) == []
    assert world.run(1) == ["delivered", "delivered"]
    assert world.toy.accepted[2:] == ["a 1", "a 2"]


def test_a_message_is_given_up_after_the_last_attempt(world: World) -> None:
    world.toy.broken["a"] = NotDelivered("busy")
    world.write("a", 1)
    states = [world.run(LONGEST_RETRY) for _ in range(12)]
    assert states == [["failed"]] * 11 + [["dead"]]
    assert world.run(LONGEST_RETRY) == []
    rows = world.db.sql("SELECT attempt, outcome, error FROM delivery_attempt ORDER BY 1").rows
    assert rows == [(n, "failed" if n < 12 else "dead", "busy") for n in range(1, 13)]


def test_the_wait_doubles_and_a_receiver_may_ask_for_more(world: World) -> None:
    world.toy.broken["a"] = NotDelivered("busy")
    world.write("a", 1)
    assert [world.run(30), world.run(29), world.run(1), world.run(59), world.run(1)] == [
        *(["failed"], [], ["failed"], [], ["failed"])
    ]
    world.toy.broken["a"] = NotDelivered("later", after=1000)
    assert [world.run(120), world.run(999), world.run(1)] == [["failed"], [], ["failed"]]


def test_a_slow_receiver_delays_no_other_line(world: World) -> None:
    """The slow one accepts its message only when the others have got theirs."""
    others, send = threading.Event(), world.toy.send

    def slow(message: StoredMessage, around: Surroundings) -> None:
        if message.message.recipient.address == "slow":
            assert others.wait(60)
        send(message, around)
        if len(world.toy.accepted) == 2:
            others.set()

    world.toy.send = slow  # type: ignore[method-assign]
    world.write("slow", 1)
    for execution in (1, 2):
        world.write("a", execution)
    assert world.run() == ["delivered"] * 3
    assert world.toy.accepted == ["a 1", "a 2", "slow 1"]


def test_another_run_takes_over_when_the_lease_has_ended(world: World) -> None:
    world.write("a", 1)
    world.write("a", 2)
    (first, _) = world.messages.ready(NOON)
    with world.db.transaction():
        assert world.messages.claim(first.number, "a run that died", NOON, 300)
    assert world.run(299) == []
    assert world.run(1) == ["delivered", "delivered"]
    with world.db.transaction():
        assert not world.messages.mark_delivered(first.number, "a run that died")


def test_a_channel_that_breaks_is_tried_again(world: World) -> None:
    world.toy.broken["a"] = ZeroDivisionError("oh")  # type: ignore[assignment]
    world.write("a", 1)
    assert world.run() == ["failed"]
    assert world.messages.listed()[0].error == "ZeroDivisionError: oh"


def test_what_cannot_work_later_is_given_up_at_once(world: World) -> None:
    world.toy.broken["a"] = NotDelivered("no such address", retry=False)
    world.write("a", 1)
    assert world.run() == ["dead"]


def test_an_unknown_channel_is_named() -> None:
    with pytest.raises(TypeFault, match="there is no channel PIGEON"):
        channel_named("pigeon")


def test_what_waits_behind_a_failed_message_is_not_due(world: World) -> None:
    """Else whoever does what is due would never sleep until the next attempt."""
    world.toy.broken["a"] = NotDelivered("busy")
    world.write("a", 1)
    world.write("a", 2)
    world.run()
    due = world.db.next_due()
    assert due is not None
    assert due >= NOON + datetime.timedelta(seconds=FIRST_RETRY / 2)
