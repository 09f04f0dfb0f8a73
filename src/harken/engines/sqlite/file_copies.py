"""Copying a database file while others use it, and checking that a file is whole.

Law: a copy holds exactly one committed state, whatever others commit meanwhile.
"""

from __future__ import annotations

import os

import apsw

from harken.engines.sqlite import faults
from harken.engines.sqlite.connection import Connection
from harken.errors import StorageError

MOST_PROBLEMS = 100
"""The number of problems after which SQLite stops looking for more."""


def copy_file(connection: Connection, path: str) -> None:
    """Write the present state to a new file. Writers are not kept waiting: the copy is made from
    one snapshot."""
    if os.path.exists(path):
        raise StorageError(f"{path} exists already", code="exists", hint="give another path")
    with faults.translated():
        target = apsw.Connection(path)
        try:
            with target.backup("main", connection.raw, "main") as copying:
                while not copying.done:
                    copying.step(-1)
        finally:
            target.close()


def make_single(connection: Connection) -> None:
    """Rewrite the file without the room of deleted records, and without a log beside it."""
    connection.run("PRAGMA temp_store = 1")  # a large file would not fit into memory
    connection.run("VACUUM")
    with faults.translated():
        connection.raw.pragma("journal_mode", "delete")


def problems_of(connection: Connection) -> list[str]:
    """What is wrong with the file itself: pages, indexes, and references between tables."""
    found = [text for (text,) in connection.rows(f"PRAGMA integrity_check({MOST_PROBLEMS})")]
    problems = [] if found == ["ok"] else found
    rows = connection.rows("PRAGMA foreign_key_check")
    return problems + [
        f"a row of {table} refers to a row of {parent} that is not there"
        for table, _, parent, _ in rows[:MOST_PROBLEMS]
    ]
