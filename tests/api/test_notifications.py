"""`db.notifications`: messages are written with a transaction, and delivered after it."""

from __future__ import annotations

import contextlib
import datetime
import json
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.errors import HarkenError

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


def test_a_message_is_sent_after_the_commit(tmp_path: Path) -> None:
    db, out = harken.connect(clock=lambda: NOON), tmp_path / "out.jsonl"
    db.begin()
    number = db.notifications.send("FILE", str(out), "the shop is open")
    with pytest.raises(HarkenError, match="after the commit"):
        db.notifications.run()
    db.commit()
    assert not out.exists()
    assert [(each.number, each.state) for each in db.notifications.run()] == [(number, "delivered")]
    (line,) = out.read_text("utf-8").splitlines()
    assert json.loads(line)["text"] == "the shop is open"
    assert db.notifications.run() == []


def test_a_dead_letter_is_inspected_and_sent_again(tmp_path: Path) -> None:
    now = NOON
    db = harken.connect(clock=lambda: now, settings={"notification_attempts": 2})
    number = db.notifications.send("file", str(tmp_path), "hello")
    for _ in range(2):
        db.notifications.run()
        now += datetime.timedelta(seconds=30)
    (dead,) = db.notifications.list("dead")
    assert (dead.number, dead.attempts) == (number, 2)
    assert "directory" in dead.error
    assert [each.outcome for each in db.notifications.attempts(number)] == ["failed", "dead"]
    tmp_path.rmdir()
    db.notifications.resend([number])
    assert [each.state for each in db.notifications.run()] == ["delivered"]
    (sent,) = db.notifications.list()
    assert (sent.id, sent.state) == (dead.id, "delivered")


VALUES: tuple[Any, ...] = (
    None,
    1,
    -1,
    10**30,
    1.5,
    "",
    "\ud800",
    b"x",
    [],
    [None],
    {},
    {1: 2},
    object(),
)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value).split(" at ")[0])
def test_wrong_arguments_are_errors_of_ours(value: Any, tmp_path: Path) -> None:
    db = harken.connect()
    good = {
        "send": {
            "channel": "file",
            "address": str(tmp_path / "o"),
            "text": "t",
            "options": {},
            "owner": "ann",
        },
        "list": {"state": None, "limit": 1},
        "attempts": {"number": 1},
        "resend": {"numbers": []},
        "run": {"no_such": 1},
    }
    for method, arguments in good.items():
        for name in arguments:
            given: dict[str, Any] = {**arguments, name: value}
            with contextlib.suppress(HarkenError):
                getattr(db.notifications, method)(**given)
    assert db.sql("SELECT 1").rows == [(1,)]
