"""What is kept in tables: whether it is valid, its size, a list of it.

Most of it lies in temporary tables of a session. What says that something kept is valid is a row of
a temporary table, so a rollback takes that back as well. When another process has committed, what
is kept missed it, and is not valid any more.

What materialised views need lies in the file and is listed there, with what it was made from. Every
session that writes follows it, so it stays valid; one that cannot takes it off the list.

Law: while it holds, what is kept is what would be built now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harken.engines.protocol import Row, Size
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.sql_expressions import quote

VALID = "harken_copies"
CREATE_VALID = (
    f"CREATE TEMP TABLE IF NOT EXISTS {VALID} "
    "(name TEXT PRIMARY KEY, data_version INTEGER NOT NULL) WITHOUT ROWID"
)
LISTED = "harken_kept"
CREATE_LISTED = (
    f"CREATE TABLE IF NOT EXISTS main.{LISTED} "
    "(name TEXT PRIMARY KEY, definition TEXT NOT NULL) STRICT, WITHOUT ROWID"
)
SAMPLE = 200
"""Rows of a table that are looked at to estimate how many bytes each takes."""
ROW_OVERHEAD = 12
"""Bytes that SQLite adds to the values of a row, about: its header, and its share of the page."""


class Validity:
    """Whether what is kept under a name still fits the tables."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name

    def holds(self) -> bool:
        self._connection.run(CREATE_VALID)
        known = self._connection.value(
            f"SELECT data_version FROM temp.{VALID} WHERE name = ?", (self._name,)
        )
        return known is not None and known == self._connection.data_version()

    def declare(self) -> None:
        version = self._connection.data_version()
        self._connection.run(
            f"INSERT OR REPLACE INTO temp.{VALID} VALUES (?, ?)", (self._name, version)
        )

    def revoke(self) -> None:
        self._connection.run(CREATE_VALID)
        self._connection.run(f"DELETE FROM temp.{VALID} WHERE name = ?", (self._name,))


class ListedInFile:
    """Whether what is kept in the file under a name is what this session would keep there."""

    def __init__(self, connection: Connection, name: str, define: Callable[[], str]) -> None:
        self._connection = connection
        self.name = name
        self._define = define
        self._definition: str | None = None
        self.is_revoked = False
        """Is it to be taken off the list by the next transaction that asks?"""

    @property
    def definition(self) -> str:
        """What it is made from, worked out when it is first wanted: not for all views at once."""
        if self._definition is None:
            self._definition = self._define()
        return self._definition

    @property
    def may_write(self) -> bool:
        """Only a session that writes anyway changes what is kept in the file."""
        connection = self._connection
        return connection.in_transaction and not connection.only_reads

    def _listed(self) -> str | None:
        if not self._connection.has_table(LISTED):
            return None
        found: str | None = self._connection.value(
            f"SELECT definition FROM main.{LISTED} WHERE name = ?", (self.name,)
        )
        return found

    def holds(self) -> bool:
        if self.is_revoked:
            self.revoke()
            return False
        return self._listed() == self.definition

    @property
    def is_of_another(self) -> bool:
        """Has another session kept something else under this name by now?"""
        return self._listed() not in (None, self.definition)

    def declare(self) -> None:
        self._connection.run(CREATE_LISTED)
        self.is_revoked = False
        row = (self.name, self.definition)
        self._connection.run(f"INSERT OR REPLACE INTO main.{LISTED} VALUES (?, ?)", row)

    def revoke(self) -> None:
        self.is_revoked = not self.may_write
        if self.may_write and self._listed() == self.definition:
            self._connection.run(f"DELETE FROM main.{LISTED} WHERE name = ?", (self.name,))


class Ledger:
    """All that is kept for a connection."""

    def __init__(self) -> None:
        self.built: dict[str, KeptTables] = {}


class KeptTables:
    """One thing that is kept, in tables of which the first has the rows to be read: temporary ones,
    or in the file, if `define` says what it is made from."""

    def __init__(
        self,
        connection: Connection,
        ledger: Ledger,
        name: str,
        tables: Sequence[str],
        define: Callable[[], str] | None = None,
    ) -> None:
        self.name = name
        self.connection = connection
        self.validity = (
            Validity(connection, name) if define is None else ListedInFile(connection, name, define)
        )
        self._ledger = ledger
        schema = "temp" if define is None else "main"
        self._tables = [f"{schema}.{quote(each)}" for each in tables]

    @property
    def in_file(self) -> bool:
        return isinstance(self.validity, ListedInFile)

    def holds(self) -> bool:
        holds = self.validity.holds()
        if holds and self.in_file:
            self._ledger.built[self.name] = self
        return holds

    def revoke(self) -> None:
        self.validity.revoke()

    def declare_built(self) -> None:
        """It is there, and is that of now."""
        self.validity.declare()
        self._ledger.built[self.name] = self

    def drop(self) -> None:
        self._ledger.built.pop(self.name, None)
        listed = self.validity if isinstance(self.validity, ListedInFile) else None
        if listed is not None and (not listed.may_write or listed.is_of_another):
            return
        self.validity.revoke()
        for table in self._tables:
            self.connection.run(f"DROP TABLE IF EXISTS {table}")

    def size(self) -> int:
        return int(self.connection.value(f"SELECT count(*) FROM {self._tables[0]}"))

    def measure(self) -> Size:
        found = Size()
        for table in self._tables:
            rows = int(self.connection.value(f"SELECT count(*) FROM {table}"))
            found += Size(0, rows * self._bytes_of_row(table) if rows else 0)
        return Size(self.size(), found.bytes)

    def _bytes_of_row(self, table: str) -> int:
        """About, by the first rows of a table."""
        sample = self.connection.rows(f"SELECT * FROM {table} LIMIT {SAMPLE}")
        return ROW_OVERHEAD + sum(map(_bytes, sample)) // len(sample)


def _bytes(row: Row) -> int:
    """What SQLite takes for the values of a row, about."""
    return sum(
        len(value.encode()) if isinstance(value, str) else 0 if value is None else 8
        for value in row
    )
