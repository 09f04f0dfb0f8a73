"""What rules remember between checks, in the file: parts of composite events that have happened,
and the tuples that a patient rule waits with.

Law: a rollback undoes what the transaction changed here.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from harken.engines.protocol import Connection, Field, RecordKind
from harken.values.encoding import decode_timestamp, encode_timestamp
from harken.values.rows import Row

EVENTS = RecordKind(
    "harken_rule_events",
    (
        Field("rule", "text"),
        Field("node", "integer"),
        Field("stage", "integer"),
        Field("about", "text"),
        Field("since", "integer"),
        Field("due", "integer"),
    ),
    key=("rule", "node", "stage", "about", "due"),
)
WAITING = RecordKind(
    "harken_rule_waiting", (Field("rule", "text"), Field("tuple", "text")), key=("rule", "tuple")
)
NEVER = -1


@dataclass(frozen=True, slots=True)
class Remembered:
    """A part of a composite event that happened, by the number of its node and its place there."""

    rule: str
    node: int
    stage: int
    about: frozenset[tuple[int, Any]]
    since: datetime.datetime
    due: datetime.datetime | None = None
    """When something is to be done about it, unless it is prevented."""


class EventMemory:
    def __init__(self, connection: Connection) -> None:
        self._records = connection.records

    def make_room(self) -> None:
        for kind in (EVENTS, WAITING):
            self._records.make_room(kind)

    def of(self, rule: str, node: int, stage: int) -> list[Remembered]:
        given = {"rule": rule, "node": node, "stage": stage}
        return [_remembered(row) for row in self._records.find(EVENTS, given)]

    def add(self, state: Remembered) -> None:
        due = NEVER if state.due is None else encode_timestamp(state.due)
        since = encode_timestamp(state.since)
        row = (state.rule, state.node, state.stage, _written(state.about), since, due)
        self._records.add(EVENTS, row, replace=True)

    def forget(self, state: Remembered) -> None:
        given = {
            "rule": state.rule,
            "node": state.node,
            "stage": state.stage,
            "about": _written(state.about),
            "due": NEVER if state.due is None else encode_timestamp(state.due),
        }
        self._records.remove(EVENTS, given)

    def next_due(self, rule: str) -> datetime.datetime | None:
        dues = [row[5] for row in self._records.find(EVENTS, {"rule": rule}) if row[5] != NEVER]
        return decode_timestamp(min(dues)) if dues else None

    # --- the tuples of patient rules -------------------------------------------------------

    def waiting(self, rule: str) -> list[Row]:
        return [tuple(json.loads(row[1])) for row in self._records.find(WAITING, {"rule": rule})]

    def wait(self, rule: str, rows: Iterable[Row]) -> None:
        for row in rows:
            self._records.add(WAITING, (rule, json.dumps(row)), replace=True)

    def wait_no_longer(self, rule: str, rows: Iterable[Row]) -> None:
        for row in rows:
            self._records.remove(WAITING, {"rule": rule, "tuple": json.dumps(row)})

    def clear(self, rule: str) -> None:
        for kind in (EVENTS, WAITING):
            if self._records.exist(kind):
                self._records.remove(kind, {"rule": rule})


def _written(about: frozenset[tuple[int, Any]]) -> str:
    return json.dumps(sorted(about))


def _remembered(row: Row) -> Remembered:
    rule, node, stage, about, since, due = row
    fixed = frozenset((place, value) for place, value in json.loads(about))
    at = None if due == NEVER else decode_timestamp(due)
    return Remembered(rule, node, stage, fixed, decode_timestamp(since), at)
