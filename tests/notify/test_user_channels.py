"""Channels of a user's own."""

from __future__ import annotations

import sys
from pathlib import Path
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


MODULE = """
import harken

SHOWN = []


@harken.channel("board")
def show(message):
    SHOWN.append(message.text)
"""


def test_a_module_that_the_operator_names_registers_channels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_board.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    with harken.connect(settings={"channel_modules": "own_board"}) as db:
        db.notifications.send("board", "hall", "Closed on Monday")
        db.run_due()
    assert "Closed on Monday" in sys.modules.pop("own_board").SHOWN[0]
    withdraw("board")


def test_a_module_that_is_not_there() -> None:
    with harken.connect(settings={"channel_modules": "no_such_board"}) as db:
        with pytest.raises(harken.HarkenError, match="no_such_board of the setting"):
            db.notifications.send("board", "hall", "Closed on Monday")
        assert db.run_due() == []
