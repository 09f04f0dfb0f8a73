"""Firings that wait to be executed: a trigger has fired, and the commit has queued it.

A firing is executed at once, or later if its trigger says so.

Law: a firing is there exactly if its transaction was committed and its query was not executed
since it is due.
"""

from __future__ import annotations

import datetime

from harken.continual.trigger_kinds import Cause, read_cause
from harken.engines.protocol import Connection, Field, RecordKind
from harken.values.encoding import decode_timestamp, encode_timestamp

FIRINGS = RecordKind(
    "harken_firings",
    (
        Field("number", "integer"),
        Field("query", "integer"),
        Field("due", "integer"),
        Field("cause", "text"),
    ),
    key=("number",),
    numbered=True,
    ordered_by="query",
)
MOST_WAITING = 100
"""How many firings of one query wait; the rows of later ones are not told."""


class Firings:
    def __init__(self, connection: Connection) -> None:
        self._records = connection.records

    def add(self, query: int, cause: Cause, due: datetime.datetime) -> None:
        self._records.make_room(FIRINGS)
        if len(self._records.find(FIRINGS, {"query": query}, limit=MOST_WAITING)) < MOST_WAITING:
            self._records.add(FIRINGS, (None, query, encode_timestamp(due), cause.as_json()))

    def of_query(self, query: int, now: datetime.datetime | None = None) -> list[Cause]:
        """What waits for a query, oldest first: all of it, or what is due."""
        return [
            read_cause(cause)
            for _, _, due, cause in self._find(query)
            if now is None or decode_timestamp(due) <= now
        ]

    def next_due(self, query: int) -> datetime.datetime | None:
        return min((decode_timestamp(due) for _, _, due, _ in self._find(query)), default=None)

    def clear(self, query: int, now: datetime.datetime | None = None) -> None:
        """Forget what waits for a query: all of it, or what is due."""
        for number, _, due, _ in self._find(query):
            if now is None or decode_timestamp(due) <= now:
                self._records.remove(FIRINGS, {"number": number})

    def _find(self, query: int) -> list[tuple[int, int, int, str]]:
        if not self._records.exist(FIRINGS):
            return []
        return self._records.find(FIRINGS, {"query": query})


def merged(causes: list[Cause]) -> Cause:
    """Several firings are one execution, as of the first of them."""
    if len(causes) == 1:
        return causes[0]
    first = min(causes, key=lambda each: each.at)
    texts = "; ".join(dict.fromkeys(each.text for each in causes))
    rows = tuple(row for each in causes for row in each.rows)
    return Cause(first.kind, texts, first.at, rows, sum(each.missed for each in causes))
