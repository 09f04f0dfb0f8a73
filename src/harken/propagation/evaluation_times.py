"""When conditions that ask for the time were last looked at.

Rows of such a condition come and go as time passes, and a commit that looks at it tells what is
different since the last look. Its old state is therefore that of the tables before the transaction,
at the moment of the last look.

A moment is a row of a temporary table, so a rollback takes it back with the look. What is told to
clients of other sessions, too (a durable monitor, a log), has its moment in the file.

Law: P(tables of now, now) − P(tables of before, last look) is what the last look did not tell.
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
"""Those of this session."""


class Moments:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.shared: set[str] = set()
        """The conditions that other sessions look at as well."""

    def last(self, condition: str) -> datetime.datetime:
        """When a condition was last looked at."""
        found = self._find(condition)
        return self._connection.now() if found is None else decode_timestamp(found)

    def begin(self, condition: str) -> None:
        """A condition is looked at from now on, if it has not been before."""
        if self._find(condition) is None:
            self._write(HERE, condition)

    def note(self, condition: str) -> None:
        """A condition is looked at, in an open transaction."""
        self._write(IN_FILE if condition in self.shared else HERE, condition)

    def share(self, condition: str) -> None:
        """Other sessions are going to look at a condition: from when it was last looked at here."""
        if condition not in self.shared:
            self._write(IN_FILE, condition, self.last(condition))

    def end(self, condition: str) -> None:
        """It is not looked at any longer in this session."""
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
