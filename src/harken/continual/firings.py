"""Firings that wait to be executed: a trigger has fired, and the commit has queued it.

Law: a firing is there exactly if its transaction was committed and its query was not executed
since.
"""

from __future__ import annotations

from harken.continual.trigger_kinds import Cause, read_cause
from harken.engines.protocol import Connection, Field, RecordKind

FIRINGS = RecordKind(
    "harken_firings",
    (Field("number", "integer"), Field("query", "integer"), Field("cause", "text")),
    key=("number",),
    numbered=True,
    ordered_by="query",
)
MOST_WAITING = 100
"""How many firings of one query wait; the rows of later ones are not told."""


class Firings:
    def __init__(self, connection: Connection) -> None:
        self._records = connection.records

    def add(self, query: int, cause: Cause) -> None:
        self._records.make_room(FIRINGS)
        if len(self._records.find(FIRINGS, {"query": query}, limit=MOST_WAITING)) < MOST_WAITING:
            self._records.add(FIRINGS, (None, query, cause.as_json()))

    def of_query(self, query: int) -> list[Cause]:
        """What waits for a query, oldest first."""
        if not self._records.exist(FIRINGS):
            return []
        return [read_cause(text) for _, _, text in self._records.find(FIRINGS, {"query": query})]

    def clear(self, query: int) -> None:
        if self._records.exist(FIRINGS):
            self._records.remove(FIRINGS, {"query": query})


def merged(causes: list[Cause]) -> Cause:
    """Several firings are one execution, as of the first of them."""
    if len(causes) == 1:
        return causes[0]
    first = min(causes, key=lambda each: each.at)
    texts = "; ".join(dict.fromkeys(each.text for each in causes))
    rows = tuple(row for each in causes for row in each.rows)
    return Cause(first.kind, texts, first.at, rows, sum(each.missed for each in causes))
