"""The outbox for people: a message is there exactly if its transaction was committed."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

import harken
from harken.database.messages import (
    DEAD,
    DELIVERED,
    MUTED,
    WAITING,
    Message,
    Messages,
    Recipient,
)
from harken.errors import IntegrityError, NameFault

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)


def message(**values: object) -> Message:
    to = Recipient("file", "out.jsonl", {"template": "short"})
    usual = {
        "query": "low",
        "execution": 1,
        "kind": "results",
        "at": NOON,
        "owner": "ann",
        "recipient": to,
        "payload": {"inserted": [{"item": "pen"}]},
    }
    return Message(**{**usual, **values})  # type: ignore[arg-type]


def test_a_message_survives_with_all_its_parts(tmp_path: Path) -> None:
    with harken.connect(tmp_path / "a.db", clock=lambda: NOON) as db, db.transaction():
        Messages(db.internals.runtime).write(message())
    with harken.connect(tmp_path / "a.db") as db:
        (found,) = Messages(db.internals.runtime).listed()
        assert (found.message.query, found.message.payload) == ("low", message().payload)
        assert found.message.recipient == message().recipient
        assert (found.state, found.attempts, found.due, found.tried) == (WAITING, 0, NOON, None)
        rows = db.sql("SELECT query, channel, address, state FROM delivery").rows
        assert rows == [("low", "file", "out.jsonl", "waiting")]


def test_a_message_of_a_transaction_that_is_undone_is_not_there() -> None:
    db = harken.connect()
    messages = Messages(db.internals.runtime)
    db.begin()
    messages.write(message())
    db.rollback()
    assert messages.listed() == []


def test_a_message_that_is_not_due_keeps_back_the_later_ones_of_its_line() -> None:
    db = harken.connect(clock=lambda: NOON)
    messages = Messages(db.internals.runtime)
    with db.transaction():
        first = messages.write(message(due=NOON + SECOND))
        second = messages.write(message())
        other = messages.write(message(query="high"))
    assert [each.number for each in messages.ready(NOON)] == [other]
    assert [each.number for each in messages.ready(NOON + SECOND)] == [first, second, other]
    assert messages.next_due() == NOON


def test_the_id_stays_whatever_becomes_of_the_message() -> None:
    db = harken.connect(clock=lambda: NOON)
    messages = Messages(db.internals.runtime)
    with db.transaction():
        number = messages.write(message())
    (before,) = messages.listed()
    with db.transaction():
        assert messages.claim(number, "run", NOON, 0)
        assert messages.mark_failed(number, "run", "no route", NOON + SECOND)
    assert messages.ready(NOON) == []
    with db.transaction():
        assert messages.claim(number, "run", NOON + SECOND, 0)
        assert not messages.mark_delivered(number, "another run")
        assert messages.mark_failed(number, "run", "no such address", None)
    (dead,) = messages.listed(DEAD)
    assert (dead.id, dead.attempts, dead.error) == (before.id, 2, "no such address")
    with db.transaction():
        messages.resend(number)
        assert messages.claim(number, "run", NOON, 0)
        assert messages.mark_delivered(number, "run")
    (sent,) = messages.listed(DELIVERED)
    assert (sent.id, sent.attempts, sent.error) == (before.id, 1, "")
    with db.transaction():
        messages.set_aside(number, MUTED, "nobody listens")
    assert [each.error for each in messages.listed(MUTED)] == ["nobody listens"]
    with db.transaction():
        messages.remove(number)
    with pytest.raises(IntegrityError, match=f"there is no message {number}"):
        messages.resend(number)


def test_a_table_of_the_same_name_is_in_the_way() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE delivery (id INT PRIMARY KEY)")
    with pytest.raises(NameFault, match="another table of that name"), db.transaction():
        Messages(db.internals.runtime).write(message())
