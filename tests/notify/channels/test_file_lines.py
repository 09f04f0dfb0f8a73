"""NOTIFY FILE: one JSON object a line."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from harken.database.messages import Message, Recipient, StoredMessage
from harken.errors import ValueFault
from harken.notify.channel_registry import NotDelivered, Surroundings
from harken.notify.channels.file_lines import FileLines

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
AROUND = Surroundings({}, str, lambda: NOON)


def message(address: Path) -> StoredMessage:
    to = Recipient("file", str(address))
    said = Message("low", 3, "results", NOON, "ann", to, {"inserted": [{"item": "pen"}]})
    return StoredMessage(7, "msg_1", said, "waiting", 0, NOON, None, "")


def test_each_message_is_a_line(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    FileLines().send(message(out), AROUND)
    FileLines().send(message(out), AROUND)
    first, second = map(json.loads, out.read_text("utf-8").splitlines())
    assert first == second
    assert first == {
        "id": "msg_1",
        "query": "low",
        "kind": "results",
        "at": "2026-03-01T12:00:00+00:00",
        "execution": 3,
        "inserted": [{"item": "pen"}],
    }


def test_a_directory_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueFault, match="there is no directory"):
        FileLines().check(Recipient("file", str(tmp_path / "none" / "out.jsonl")), AROUND)


def test_a_file_that_cannot_be_written_can_be_tried_again(tmp_path: Path) -> None:
    with pytest.raises(NotDelivered, match="directory"):
        FileLines().send(message(tmp_path), AROUND)
