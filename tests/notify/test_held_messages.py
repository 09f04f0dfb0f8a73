"""Digests, quiet hours, caps and groups: what waits, until when, and what is told then."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

import harken
from harken.database.messages import Message, Messages, Recipient, StoredMessage
from harken.errors import ValueFault
from harken.notify.channel_registry import Surroundings, register, withdraw
from harken.notify.pacing import pacing_of
from harken.notify.texts import built_in

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)


@dataclass
class Toy:
    name: str = "toy"
    accepted: list[StoredMessage] = field(default_factory=list)

    def check(self, recipient: Recipient, around: Surroundings) -> None:
        pass

    def send(self, message: StoredMessage, around: Surroundings) -> None:
        self.accepted.append(message)


class World:
    """A database with a clock to move, and a channel that keeps what it accepts."""

    def __init__(self, toy: Toy) -> None:
        self.now, self.toy = NOON, toy
        self.db = harken.connect(clock=lambda: self.now)
        self.messages = Messages(self.db.internals.runtime)

    def write(
        self, execution: int, query: str = "q", kind: str = "results", **options: Any
    ) -> None:
        payload = options.pop("payload", {"inserted": [{"n": execution}], "columns": ["n"]})
        to = Recipient("toy", "ann", options)
        with self.db.transaction():
            self.messages.write(Message(query, execution, kind, self.now, "ann", to, payload))

    def sent(self, hours: float = 0) -> list[Any]:
        """What arrives after some time: the numbers, or what else is told."""
        self.now += hours * HOUR
        self.db.run_due()
        found, self.toy.accepted = self.toy.accepted, []
        return [told(each) for each in found]

    @property
    def due(self) -> float | None:
        """Hours until something is due."""
        due = self.db.next_due()
        return None if due is None else (due - self.now) / HOUR


def told(message: StoredMessage) -> Any:
    about = message.message
    if about.kind != "results":
        return about.kind
    if "parts" in about.payload:
        return {
            part["query"]: [row["n"] for row in part["inserted"]] for part in about.payload["parts"]
        }
    return [row["n"] for row in about.payload["inserted"]]


@pytest.fixture
def world() -> Iterator[World]:
    toy = Toy()
    register(toy)
    made = World(toy)
    yield made
    made.db.close()
    withdraw("toy")


def test_a_digest_gathers_what_comes_in_an_interval(world: World) -> None:
    world.write(1, digest="2 hours")
    assert world.sent() == []
    assert world.due == 2
    world.now += HOUR
    world.write(2, digest="2 hours")
    assert world.sent() == []
    assert world.due == 1
    assert world.sent(1) == [[1, 2]]
    assert [each.state for each in world.messages.listed()] == ["delivered", "grouped"]
    world.write(3, digest="2 hours")
    assert world.sent(1) == []
    assert world.sent(1) == [[3]]


def test_rows_that_came_and_went_are_not_told(world: World) -> None:
    world.write(1, digest="1 hour", payload={"inserted": [{"n": 1}, {"n": 2}]})
    world.write(2, digest="1 hour", payload={"inserted": [{"n": 3}], "deleted": [{"n": 1}]})
    world.sent()
    world.now += HOUR
    world.db.run_due()
    (message,) = world.toy.accepted
    assert message.message.payload["inserted"] == [{"n": 2}, {"n": 3}]
    assert message.message.payload["deleted"] == []
    assert message.message.payload["gathered"] == 2


def test_errors_end_a_digest_early_and_nothing_overtakes(world: World) -> None:
    world.write(1, digest="1 day")
    world.write(2, digest="1 day")
    assert world.sent() == []
    world.write(3, kind="error", digest="1 day")
    assert world.sent() == [[1, 2], "error"]


def test_quiet_hours_hold_everything_but_the_operators_errors(world: World) -> None:
    quiet = {"quiet": "11:30-14:00"}
    world.write(1, **quiet)
    world.write(2, kind="stopped", **quiet)
    world.write(1, query="other", kind="operator_error", **quiet)
    assert world.sent() == ["operator_error"]
    assert world.due == 2
    assert world.sent(2) == [[1], "stopped"]


def test_a_cap_keeps_the_rest_for_later(world: World) -> None:
    for number in range(1, 8):
        world.write(number, at_most="2 per hour")
        world.now += 0.1 * HOUR
        world.db.run_due()
    assert [told(each) for each in world.toy.accepted] == [[1], [2]]
    world.toy.accepted.clear()
    assert world.sent(1) == [[3, 4, 5, 6, 7]]


def test_several_queries_become_one_message(world: World) -> None:
    for query in ("bayer", "ibm"):
        for number in (1, 2):
            world.write(number, query=query, group="stocks", digest="1 hour")
    world.write(9, query="alone", digest="1 hour")
    world.sent()
    world.now += HOUR
    world.db.run_due()
    first, second = world.toy.accepted
    assert [told(first), told(second)] == [{"bayer": [1, 2], "ibm": [1, 2]}, [9]]
    texts = built_in(first.message)
    assert texts.subject == "2 queries: bayer, ibm"
    assert "ibm: 2 new" in texts.text
    assert "<h2>ibm: 2 new</h2>" in texts.html


def test_a_long_digest_says_how_many_more_there_are(world: World) -> None:
    for number in range(3):
        rows = [{"n": f"{number} {i}"} for i in range(400)]
        world.write(
            number, digest="1 hour", payload={"inserted": rows, "left_out": {"inserted": 12}}
        )
    world.sent()
    world.now += HOUR
    world.db.run_due()
    (message,) = world.toy.accepted
    assert message.message.payload["left_out"] == {"inserted": 236}
    assert "and 1,136 more" in built_in(message.message).text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"digest": "often"}, "DIGEST cannot be 'often'"),
        ({"digest": "2 years"}, "DIGEST cannot be"),
        ({"quiet": "22-7"}, "QUIET cannot be"),
        ({"quiet": "25:00-07:00"}, "QUIET cannot be"),
        ({"quiet": "22:00-07:00 Europe/Atlantis"}, "QUIET cannot be"),
        ({"quiet": "07:00-07:00"}, "QUIET cannot be"),
        ({"at_most": "0 per day"}, "AT_MOST cannot be"),
        ({"at_most": 5}, "AT_MOST cannot be '5'"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueFault, match=said):
        pacing_of(options)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Oslo", "America/St_Johns", "Australia/Lord_Howe"])
def test_quiet_hours_end_at_their_time_of_day_through_a_year(zone: str) -> None:
    random = Random(zone)
    for text in (f"22:00-07:00 {zone}", f"12:15-13:45 {zone}", f"02:30-02:45 {zone}"):
        pacing = pacing_of({"quiet": text})
        assert pacing.quiet is not None
        for _ in range(500):
            at = NOON + datetime.timedelta(minutes=random.randrange(365 * 24 * 60))
            free = pacing.next_moment(at)
            assert at <= free <= at + 11 * HOUR
            assert pacing.next_moment(free) == free
            if free > at:
                assert pacing.quiet.end_after(free - datetime.timedelta(seconds=1)) is not None
