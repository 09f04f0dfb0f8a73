"""The other side of each comparison: plain SQLite through apsw, tuned as Harken tunes its own."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw


def connect(path: str) -> apsw.Connection:
    connection = apsw.Connection(path)
    if path != ":memory:":
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full")
    connection.pragma("foreign_keys", True)
    connection.pragma("temp_store", 2)
    connection.pragma("cache_size", -64_000)
    return connection


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    """The directory for the files of a benchmark while it runs."""
    with tempfile.TemporaryDirectory(prefix="harken-bench-") as path:
        yield Path(path)
