"""What it means to keep records beside relations, for every engine that does."""

from __future__ import annotations

from typing import Any

import pytest

from harken.engines.protocol import Field, RecordKind, Records

LOGS = RecordKind(
    "logs",
    (Field("id", "integer"), Field("view", "text"), Field("since", "real", optional=True)),
    key=("id",),
    numbered=True,
)
CHANGES = RecordKind(
    "changes",
    (Field("log", "integer"), Field("at", "integer"), Field("change", "text")),
    key=("log", "at"),
    parent=LOGS,
    ordered_by="at",
)


@pytest.fixture
def records(file_engine: Any) -> Records:
    found: Records = file_engine.connection.records
    if not found.exist(LOGS):
        found.make_room(LOGS)
        found.make_room(CHANGES)
    found.add(LOGS, (None, "low", None))
    found.add(LOGS, (None, "high", 2.5))
    for log, at, change in ((1, 1, "a"), (2, 2, "ü"), (1, 3, "ccc"), (1, 2, "bb")):
        found.add(CHANGES, (log, at, change))
    return found


def test_there_is_room_once_it_was_made(records: Records) -> None:
    assert records.exist(LOGS)
    records.make_room(LOGS)
    assert len(records.find(LOGS)) == 2
    assert not records.exist(RecordKind("moments", LOGS.fields, key=("id",)))


def test_records_come_in_the_order_of_their_key(records: Records) -> None:
    assert records.find(LOGS) == [(1, "low", None), (2, "high", 2.5)]
    assert records.find(CHANGES, {"log": 1}) == [(1, 1, "a"), (1, 2, "bb"), (1, 3, "ccc")]
    assert records.find(CHANGES, {"log": 1}, above=("at", 1), limit=1) == [(1, 2, "bb")]
    assert {row[1] for row in records.find(CHANGES, above=("at", 1))} == {2, 3}
    assert records.find(CHANGES, {"log": 7}) == []


def test_a_record_takes_the_place_of_the_one_with_its_key(records: Records) -> None:
    records.add(CHANGES, (1, 1, "new"), replace=True)
    assert records.find(CHANGES, {"log": 1, "at": 1}) == [(1, 1, "new")]


def test_a_change_sets_adds_and_fills_in(records: Records) -> None:
    assert records.change(LOGS, {"id": 1}, {"view": "lowest"}, if_none={"since": 1.5}) == [
        (1, "lowest", 1.5)
    ]
    assert records.change(LOGS, {"id": 2}, add={"since": 1}) == [(2, "high", 3.5)]
    assert records.change(LOGS, {"id": 2}, if_none={"since": 9.0}) == [(2, "high", 3.5)]
    assert records.change(LOGS, {"id": 3}, {"view": "none"}) == []


def test_a_record_goes_with_its_parent(records: Records) -> None:
    records.remove(LOGS, {"id": 1})
    assert records.find(CHANGES) == [(2, 2, "ü")]


def test_the_first_of_them_can_be_counted_and_removed(records: Records) -> None:
    assert records.size(CHANGES, "change", {"log": 1}, up_to=("at", 2)) == (2, 3)
    assert records.size(CHANGES, "change", {"log": 2}) == (1, 2)
    records.remove(CHANGES, {"log": 1}, up_to=("at", 2))
    assert records.find(CHANGES, {"log": 1}) == [(1, 3, "ccc")]
    records.remove_oldest(LOGS, 1)
    assert [row[1] for row in records.find(LOGS)] == ["high"]


def test_a_rollback_takes_records_back(file_engine: Any, records: Records) -> None:
    file_engine.connection.begin()
    records.remove(LOGS, {})
    file_engine.connection.rollback()
    assert len(file_engine.connection.records.find(LOGS)) == 2


def test_a_counter_counts_from_one(file_engine: Any) -> None:
    file_engine.numbers.create({})
    assert [file_engine.connection.records.count_up("turn") for _ in range(3)] == [1, 2, 3]
