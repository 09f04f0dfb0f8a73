"""Transactions of a session with the database file, and the limits of its statements."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from harken.engines.protocol.file_records import Records
from harken.limits import Watch


class TransactionEnd(Protocol):
    """What an engine does around a commit, beside the commit itself.

    Law: what is committed is committed everywhere, whatever happens after.
    """

    def before_commit(self) -> None: ...

    def after_commit(self) -> None:
        """Write what was committed to where it belongs, unless that is dear and may wait."""

    def after_undo(self) -> None:
        """After a rollback, also to a savepoint: drop what was cached about the undone state."""

    def forget(self) -> None:
        """Another process has committed: what is known of the file may be old."""

    def close(self) -> None: ...


SchemaVersions = tuple[int, int]
"""Numbers of the file's schema and of the session's own."""


class Transactions(Protocol):
    """One writer at a time; readers see one state.

    Law: a transaction happens as a whole or not at all; a savepoint undoes what came after it.
    """

    path: str
    in_memory: bool
    is_new: bool
    """Was the file made just now?"""
    read_only: bool
    only_reads: bool
    """Has the open transaction not taken the write lock yet?"""

    @property
    def in_transaction(self) -> bool: ...

    def begin(self, *, write: bool = True) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def savepoint(self, name: str = "step") -> AbstractContextManager[None]:
        """Undo the block if it fails."""

    def undone(self, name: str = "undone") -> AbstractContextManager[None]:
        """Undo the block, whatever happens."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Let all that is read in the block be of one state."""

    def set_savepoint(self, name: str) -> None: ...

    def undo_to(self, name: str) -> None:
        """Roll back to the savepoint, and release it."""

    def release(self, name: str) -> None:
        """Let go of it; what came after it stays."""

    def is_empty(self) -> bool:
        """Is there nothing in the file yet?"""

    def lock(self) -> None:
        """Take the right to write now, and not when the first row changes."""

    def without_waiting(self) -> AbstractContextManager[None]:
        """Fail at once in the block where another writer is at work."""

    def data_version(self) -> int:
        """A number that changes whenever someone else commits."""

    def seen_version(self) -> int:
        """The same as of the last read, without asking the file again."""

    def schema_versions(self) -> SchemaVersions | None:
        """Numbers that change with every table, index or trigger, and come back when that is
        undone; None if they cannot be told."""

    def commits_together(self) -> AbstractContextManager[None]:
        """Outside of transactions: the commits of the block become durable at its end. If the
        machine loses power before, it keeps the first ones of them."""

    def give_back_room(self) -> None:
        """Return free room to the file system."""

    def use(self, settings: Mapping[str, Any]) -> None: ...

    def mark_as_ours(self) -> None: ...

    def close(self) -> None: ...


class Limits(Protocol):
    """The time that statements see, and how much of it they may take."""

    watch: Watch
    """Stops statements that take too much."""
    asking: int
    """How many Python functions of running queries are at work; they may read, not change."""
    working_time: Callable[[], float]
    """The clock that queries are timed by."""
    work: int
    """Instructions that the engine has run, in units of about 10,000; counted, so that equal work
    counts the same on a busy machine."""
    rows_added: int
    """How many rows recursions have derived."""
    fetched: int
    """How often rows were fetched from elsewhere."""
    answered_elsewhere: int
    """How many queries were not answered here."""

    @property
    def is_limited(self) -> bool: ...

    def limited(self, seconds: float) -> AbstractContextManager[None]:
        """Break off (`BrokenOff`) what is read in the block and takes longer."""

    def now(self) -> datetime.datetime:
        """The time; fixed within a transaction, and within a query outside of one."""

    def at(self, moment: datetime.datetime) -> AbstractContextManager[None]:
        """In the block, let it be that time."""

    def fixed_time(self) -> AbstractContextManager[None]: ...


class Connection(Transactions, Limits, Protocol):
    """A session with the database file."""

    @property
    def records(self) -> Records:
        """What the file holds beside relations."""
