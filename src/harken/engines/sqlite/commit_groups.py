"""Commits that become durable together, so that the disk is waited for once and not for each.

Law: a process that dies loses no commit. A machine that loses power keeps a beginning of the
commits of an open group; after its end, all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from harken.errors import StorageError


class CommitGroups:
    def __init__(self, raw: apsw.Connection, in_memory: bool) -> None:
        self._raw, self._in_memory = raw, in_memory

    @contextmanager
    def together(self) -> Iterator[None]:
        """Outside of transactions: those of the block become durable at its end."""
        if self._in_memory or self._raw.readonly("main") or not self._raw.get_autocommit():
            yield
            return
        self._raw.pragma("synchronous", "normal")
        try:
            yield
        finally:
            self._raw.pragma("synchronous", "full")
            self._synchronise()

    def _synchronise(self) -> None:
        """What is no longer in the log is in the file: SQLite waited for the disk when it moved
        it there."""
        try:
            with open(self._raw.filename_wal, "r+b") as log:
                os.fsync(log.fileno())
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(
                f"the disk did not confirm what was committed: {error}", code="disk-error"
            ) from error
