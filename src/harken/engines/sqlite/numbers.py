"""Named integers of the database: its version, the next object id, the time of the last step.

Law: they belong to the transaction that sets them.
"""

from __future__ import annotations

from collections.abc import Mapping

from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.table_names import META


class Numbers:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, first: Mapping[str, int]) -> None:
        run = self._connection.run
        run(f"CREATE TABLE {META} (key TEXT PRIMARY KEY, value INTEGER) STRICT")
        for name, value in first.items():
            run(f"INSERT INTO {META} VALUES (?, ?)", (name, value))

    def get(self, name: str) -> int | None:
        found = self._connection.value(f"SELECT value FROM {META} WHERE key = ?", (name,))
        return None if found is None else int(found)

    def set(self, name: str, value: int) -> None:
        self._connection.run(f"INSERT OR REPLACE INTO {META} VALUES (?, ?)", (name, value))

    def raise_to(self, name: str, value: int) -> None:
        sql = f"UPDATE {META} SET value = max(value, ?) WHERE key = ?"
        self._connection.run(sql, (value, name))
