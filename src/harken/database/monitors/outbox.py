"""Durable monitors: kept in the file, with the changes that nobody has acknowledged yet.

Every session that opens the file attaches them, so whoever changes the data records the change, in
the transaction that makes it. The tables are made with the first durable monitor.

Law: the changes of a durable monitor are numbered 1, 2, 3, ..., and one is there exactly if its
transaction was committed and it was not acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass

from harken.database.monitors.changes import Change, StoredChange, read_change
from harken.database.monitors.view import Watched
from harken.engines.sqlite.connection import Connection

MONITORS, OUTBOX = "harken_monitors", "harken_outbox"
CREATE = (
    f"CREATE TABLE IF NOT EXISTS {MONITORS} (name TEXT PRIMARY KEY, view TEXT NOT NULL, "
    "function TEXT NOT NULL, last INTEGER NOT NULL) STRICT",
    f"CREATE TABLE IF NOT EXISTS {OUTBOX} (name TEXT NOT NULL REFERENCES {MONITORS} (name) "
    'ON DELETE CASCADE, number INTEGER NOT NULL, view TEXT NOT NULL, "transaction" INTEGER '
    "NOT NULL, change TEXT NOT NULL, PRIMARY KEY (name, number)) STRICT",
)


@dataclass(frozen=True, slots=True)
class Durable:
    """A durable monitor: `view` is the name that its changes give the function."""

    name: str
    view: str
    function: str

    @property
    def watched(self) -> Watched:
        return Watched(self.function)

    @property
    def title(self) -> str:
        return f"the durable monitor {self.name} of {self.function}"

    @property
    def ending(self) -> str:
        return f'db.monitor("{self.view}", durable="{self.name}").delete() in Python'


class Outbox:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def durables(self) -> dict[str, Durable]:
        """The durable monitors of the file, by name."""
        if not self._connection.has_table(MONITORS):
            return {}
        rows = self._connection.rows(f"SELECT name, view, function FROM {MONITORS} ORDER BY name")
        return {row[0]: Durable(*row) for row in rows}

    def add(self, durable: Durable) -> None:
        for sql in CREATE:
            self._connection.run(sql)
        self._connection.run(
            f"INSERT INTO {MONITORS} VALUES (?, ?, ?, 0)",
            (durable.name, durable.view, durable.function),
        )

    def remove(self, name: str) -> None:
        """With what it has not handed out."""
        self._connection.run(f"DELETE FROM {MONITORS} WHERE name = ?", (name,))

    def write(self, durable: Durable, transaction: int, change: StoredChange) -> None:
        number = self._connection.value(
            f"UPDATE {MONITORS} SET last = last + 1 WHERE name = ? RETURNING last", (durable.name,)
        )
        self._connection.run(
            f"INSERT INTO {OUTBOX} VALUES (?, ?, ?, ?, ?)",
            (durable.name, number, durable.view, transaction, change.text()),
        )

    def after(self, name: str, number: int, home: str) -> list[tuple[int, Change]]:
        """The changes that come after that number, each with its own."""
        rows = self._connection.rows(
            f'SELECT number, view, "transaction", change FROM {OUTBOX} '
            "WHERE name = ? AND number > ? ORDER BY number",
            (name, number),
        )
        return [
            (each, read_change(text).change(view, transaction, home))
            for each, view, transaction, text in rows
        ]

    def acknowledge(self, name: str, number: int) -> None:
        """Let go of the changes up to that number."""
        self._connection.run(f"DELETE FROM {OUTBOX} WHERE name = ? AND number <= ?", (name, number))
