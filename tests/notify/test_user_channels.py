"""Channels of a user's own."""

from __future__ import annotations

from typing import Any

import pytest

import harken
from harken.errors import HarkenError
from harken.notify.channel_registry import withdraw


def test_a_function_delivers_messages() -> None:
    got: list[harken.OutgoingMessage] = []

    @harken.channel("pigeon")
    def fly(message: harken.OutgoingMessage) -> None:
        if message.address == "ben":
            raise harken.NotDelivered("ben has no roof", retry=False)
        got.append(message)

    try:
        db = harken.connect()
        db.notifications.send("pigeon", "ann", "hello\nthere", options={"speed": 3})
        db.notifications.send("PIGEON", "ben", "hello")
        states = {each.number: each for each in db.notifications.run()}
        assert sorted(each.state for each in states.values()) == ["dead", "delivered"]
        (message,) = got
        assert (message.address, message.subject, message.options) == ("ann", "hello", {"speed": 3})
        assert message.text.startswith("hello\nthere")
        (dead,) = db.notifications.list("dead")
        assert dead.error == "ben has no roof"
        assert message.id != dead.id
    finally:
        withdraw("pigeon")


@pytest.mark.parametrize("name", ["", "file", "EMAIL", "two words", "1st", None, 3, "\ud800"])
def test_a_name_that_is_none_is_refused(name: Any) -> None:
    with pytest.raises(HarkenError):
        harken.channel(name)
    with pytest.raises(HarkenError):
        harken.channel("owl")(name)
