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

from harken.engines.protocol import Connection
from harken.values.encoding import decode_timestamp, encode_timestamp

TABLE = "harken_moments"
COLUMNS = "(condition TEXT PRIMARY KEY, moment INTEGER NOT NULL) STRICT"


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
            self._write(self._here(), condition)

    def note(self, condition: str) -> None:
        """A condition is looked at, in an open transaction."""
        self._write(self._in_file() if condition in self.shared else self._here(), condition)

    def share(self, condition: str) -> None:
        """Other sessions are going to look at a condition: from when it was last looked at here."""
        if condition not in self.shared:
            self._write(self._in_file(), condition, self.last(condition))

    def end(self, condition: str) -> None:
        """It is not looked at any longer in this session."""
        self._connection.run(f"DELETE FROM {self._here()} WHERE condition = ?", (condition,))

    def _find(self, condition: str) -> int | None:
        is_shared = condition in self.shared and self._connection.has_table(TABLE)
        table = f"main.{TABLE}" if is_shared else self._here()
        moment = self._connection.value(
            f"SELECT moment FROM {table} WHERE condition = ?", (condition,)
        )
        return None if moment is None else int(moment)

    def _write(self, table: str, condition: str, moment: datetime.datetime | None = None) -> None:
        at = encode_timestamp(moment or self._connection.now())
        self._connection.run(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", (condition, at))

    def _here(self) -> str:
        self._connection.run(f"CREATE TEMP TABLE IF NOT EXISTS {TABLE} {COLUMNS}")
        return f"temp.{TABLE}"

    def _in_file(self) -> str:
        self._connection.run(f"CREATE TABLE IF NOT EXISTS main.{TABLE} {COLUMNS}")
        return f"main.{TABLE}"
