"""The times at which time-dependent views were last evaluated.

Rows of such a view come and go as time passes, and a commit that evaluates it reports the
difference since the last evaluation. Its old state is therefore that of the tables before the
transaction, at the time of the last evaluation.

A moment is a row of a temporary table, so a rollback undoes it with the evaluation. If changes are
delivered to clients of other sessions too (a durable monitor, a log), the moment is stored in the
file.

Law: P(tables of now, now) − P(tables of before, last evaluation) is the change not yet reported.
"""

from __future__ import annotations

import datetime
from dataclasses import replace

from harken.engines.protocol import Connection, Field, RecordKind
from harken.values.encoding import decode_timestamp, encode_timestamp

IN_FILE = RecordKind(
    "harken_moments", (Field("condition", "text"), Field("moment", "integer")), key=("condition",)
)
HERE = replace(IN_FILE, temporary=True)
"""The moments of this session."""


class Moments:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.shared: set[str] = set()
        """The views that other sessions evaluate as well."""

    def last(self, condition: str) -> datetime.datetime:
        """When a view was last evaluated."""
        found = self._find(condition)
        return self._connection.now() if found is None else decode_timestamp(found)

    def begin(self, condition: str) -> None:
        """A view is evaluated from now on, unless it has been before."""
        if self._find(condition) is None:
            self._write(HERE, condition)

    def note(self, condition: str) -> None:
        """A view is evaluated, in an open transaction."""
        self._write(IN_FILE if condition in self.shared else HERE, condition)

    def share(self, condition: str) -> None:
        """Other sessions will evaluate a view, starting from its last evaluation here."""
        if condition not in self.shared:
            self._write(IN_FILE, condition, self.last(condition))

    def end(self, condition: str) -> None:
        """A view is not evaluated any longer in this session."""
        self._connection.records.make_room(HERE)
        self._connection.records.remove(HERE, {"condition": condition})

    def _find(self, condition: str) -> int | None:
        records = self._connection.records
        kind = IN_FILE if condition in self.shared and records.exist(IN_FILE) else HERE
        if kind is HERE:
            records.make_room(HERE)
        found = records.find(kind, {"condition": condition})
        return int(found[0][1]) if found else None

    def _write(
        self, kind: RecordKind, condition: str, moment: datetime.datetime | None = None
    ) -> None:
        at = encode_timestamp(moment or self._connection.now())
        self._connection.records.make_room(kind)
        self._connection.records.add(kind, (condition, at), replace=True)
