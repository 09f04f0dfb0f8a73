"""Triggers that a session cannot compile, such as one whose Python function is missing there.

The session watches every change of the tables that such a trigger reads instead, and the first is
noted in the file. A session that can compile the trigger executes the query once for it, since
nobody knows what happened meanwhile; one that cannot tells the owner that the query fails.

Law: a change that might fire a trigger is looked at, or noted in its transaction.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from harken.continual.trigger_conditions import ReadRows
from harken.engines.protocol import Connection, Field, RecordKind
from harken.errors import HarkenError
from harken.propagation.consumer import Consumer
from harken.propagation.network import Network
from harken.values.encoding import decode_timestamp, encode_timestamp

NOTED = RecordKind(
    "harken_unwatched_triggers",
    (Field("query", "integer"), Field("at", "integer"), Field("why", "text")),
    key=("query",),
    ordered_by="at",
)
CAUSE = "what changed while its trigger could not be watched"


class UnwatchedTriggers:
    def __init__(self, connection: Connection, network: Network, consumer: Consumer) -> None:
        self._connection, self._network, self._consumer = connection, network, consumer
        self._records = connection.records
        self.problems: dict[int, HarkenError] = {}
        """Why this session cannot compile the triggers of these queries."""
        self.changed: set[int] = set()
        """Those of them whose tables the open transaction has changed."""
        self._blind: set[int] = set()
        """Those of them of which nothing can be watched, and which have not been noted yet."""
        self._readers: dict[str, set[int]] = {}
        """The queries that read what a view shows."""

    # --- what is watched -----------------------------------------------------------------------

    def watch(self, number: int, problem: HarkenError, views: Iterable[ReadRows]) -> None:
        """Watch the rows that a trigger reads."""
        self.leave(number)
        self.problems[number] = problem
        self._blind.add(number)
        with self._connection.watch.shielded():
            for view in views:
                self._blind.discard(number)
                if view.name not in self._readers:
                    self._network.graph.insert(view, self._consumer)
                self._readers.setdefault(view.name, set()).add(number)

    def leave(self, number: int) -> None:
        if self.problems.pop(number, None) is None:
            return
        self._blind.discard(number)
        with self._connection.watch.shielded():
            for name, readers in list(self._readers.items()):
                readers.discard(number)
                if not readers:
                    self._network.graph.remove(name)
                    del self._readers[name]

    def reset(self) -> None:
        """The network was cleared."""
        self.problems.clear()
        self._blind.clear()
        self._readers.clear()

    def follows(self, name: str) -> bool:
        return name in self._readers

    def receive(self, name: str) -> None:
        self.changed |= self._readers[name]

    # --- what is noted, in a transaction -------------------------------------------------------

    def write(self) -> None:
        """Note the queries whose tables have changed."""
        for number in self.changed & self.problems.keys():
            self.note(number)
        self.changed = set()

    def note(self, number: int) -> None:
        """Something happened that might have fired a query."""
        self._records.make_room(NOTED)
        if not self._records.find(NOTED, {"query": number}):
            now = encode_timestamp(self._connection.now())
            self._records.add(NOTED, (number, now, self.problems[number].message))

    def note_blind(self) -> None:
        for number in self._blind:
            self.note(number)
        self._blind.clear()

    @property
    def is_due(self) -> bool:
        """Whether something has to be noted that no change will tell."""
        return bool(self._blind)

    def noted(self) -> dict[int, datetime.datetime]:
        """The queries that may have missed something, each with the moment of the first change."""
        if not self._records.exist(NOTED):
            return {}
        return {int(row[0]): decode_timestamp(row[1]) for row in self._records.find(NOTED)}

    def clear(self, number: int) -> None:
        """It has been executed since, or waits for nothing any more."""
        if self._records.exist(NOTED):
            self._records.remove(NOTED, {"query": number})
