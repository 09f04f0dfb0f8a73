"""What is remembered of the events of content triggers, in the file.

A state belongs to a node of the tree of a query's trigger, by its number, and to a key: the row
that it is about, or a part of the node. `since` says when it began, `last` when it was last
renewed, `due` when there is something to do for it next.

Law: a rollback undoes what the transaction changed here.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass

from harken.engines.protocol import Connection, Field, RecordKind
from harken.values.encoding import decode_timestamp, encode_timestamp
from harken.values.rows import Row

STATES = RecordKind(
    "harken_event_states",
    (
        Field("query", "integer"),
        Field("node", "integer"),
        Field("key", "text"),
        Field("since", "integer"),
        Field("last", "integer", optional=True),
        Field("due", "integer", optional=True),
        Field("told", "integer"),
    ),
    key=("query", "node", "key"),
    ordered_by="due",
)
BEFORE_ALL = -(2**62)


@dataclass(frozen=True, slots=True)
class EventState:
    node: int
    key: str
    since: datetime.datetime
    last: datetime.datetime | None = None
    due: datetime.datetime | None = None
    told: bool = False
    """Whether it has happened."""


def written(key: Row) -> str:
    return json.dumps(key)


def read(key: str) -> Row:
    return tuple(json.loads(key))


class EventStates:
    def __init__(self, connection: Connection) -> None:
        self._records = connection.records

    def make_room(self) -> None:
        self._records.make_room(STATES)

    def of_node(self, query: int, node: int) -> list[EventState]:
        if not self._records.exist(STATES):
            return []
        return [_state(row) for row in self._records.find(STATES, {"query": query, "node": node})]

    def find(self, query: int, node: int, key: str) -> EventState | None:
        if not self._records.exist(STATES):
            return None
        given = {"query": query, "node": node, "key": key}
        rows = self._records.find(STATES, given)
        return _state(rows[0]) if rows else None

    def set(self, query: int, state: EventState) -> None:
        self._records.make_room(STATES)
        row = (
            query,
            state.node,
            state.key,
            encode_timestamp(state.since),
            None if state.last is None else encode_timestamp(state.last),
            None if state.due is None else encode_timestamp(state.due),
            int(state.told),
        )
        self._records.add(STATES, row, replace=True)

    def clear(self, query: int, node: int | None = None, key: str | None = None) -> None:
        if not self._records.exist(STATES):
            return
        given: dict[str, object] = {"query": query}
        if node is not None:
            given["node"] = node
        if key is not None:
            given["key"] = key
        self._records.remove(STATES, given)

    def next_due(self) -> datetime.datetime | None:
        found = self._first(1)
        return decode_timestamp(found[0][5]) if found else None

    def due(self, now: datetime.datetime, limit: int) -> dict[int, list[EventState]]:
        """The states whose moment has come, by query, at most some."""
        found: dict[int, list[EventState]] = {}
        for row in self._first(limit):
            state = _state(row)
            if state.due is not None and state.due <= now:
                found.setdefault(row[0], []).append(state)
        return found

    def _first(self, limit: int) -> list[Row]:
        if not self._records.exist(STATES):
            return []
        return self._records.find(STATES, above=("due", BEFORE_ALL), limit=limit)


def _state(row: Row) -> EventState:
    _, node, key, since, last, due, told = row
    return EventState(
        node,
        key,
        decode_timestamp(since),
        None if last is None else decode_timestamp(last),
        None if due is None else decode_timestamp(due),
        bool(told),
    )
