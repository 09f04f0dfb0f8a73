"""One run of delivery: each message that is due is offered once, and none overtakes another."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

import harken
from harken.database.messages import Message, Messages, Recipient, StoredMessage
from harken.errors import TypeFault
from harken.notify.channel_registry import (
    NotDelivered,
    Surroundings,
    channel_named,
    register,
    withdraw,
)
from harken.notify.delivery_run import FIRST_RETRY, MOST_ATTEMPTS, deliver_due

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
        return [e.state for e in deliver_due(self.messages, self.db.internals.transactions, around)]


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
    assert world.run() == ["waiting", "sent", "sent"]
    assert world.toy.accepted == ["b 1", "b 2"]
    world.toy.broken.clear()
    assert world.run(FIRST_RETRY - 1) == []
    assert world.run(1) == ["sent", "sent"]
    assert world.toy.accepted[2:] == ["a 1", "a 2"]


def test_a_message_is_given_up_after_the_last_attempt(world: World) -> None:
    world.toy.broken["a"] = NotDelivered("busy")
    world.write("a", 1)
    states = [world.run(3600) for _ in range(MOST_ATTEMPTS)]
    assert states == [["waiting"]] * (MOST_ATTEMPTS - 1) + [["dead"]]
    assert world.run(3600) == []


def test_what_cannot_work_later_is_given_up_at_once(world: World) -> None:
    world.toy.broken["a"] = NotDelivered("no such address", retry=False)
    world.write("a", 1)
    assert world.run() == ["dead"]


def test_an_unknown_channel_is_named() -> None:
    with pytest.raises(TypeFault, match="there is no channel PIGEON"):
        channel_named("pigeon")
