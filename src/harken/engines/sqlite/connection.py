"""A connection to the one SQLite file (or memory) that holds a database.

One writer at a time: a write transaction begins with `BEGIN IMMEDIATE` and waits for another writer
no longer than `timeout`. Readers see the last committed state and are never blocked (write-ahead
log). A transaction may begin read-only and take the write lock later (`lock`), as long as nobody
has committed since its first read. A file made by another program is rejected and left untouched.

Law: a successful commit is in the file at `path`. If that file was removed or replaced since it
was opened, the commit is refused.
"""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import apsw

from harken.engines.protocol import BrokenOff, SchemaVersions
from harken.engines.sqlite import faults, functions, heap
from harken.engines.sqlite.commit_groups import CommitGroups
from harken.engines.sqlite.file_records import RecordTables
from harken.engines.sqlite.opened_files import (
    APPLICATION_ID,
    FORMAT,
    OpenedFiles,
    check_path,
    identify,
)
from harken.engines.sqlite.table_names import META
from harken.errors import HarkenError, SafetyFault, StorageError
from harken.limits import UNLIMITED, Watch

STATEMENT_CACHE = 1024
INSTRUCTIONS_BETWEEN_LOOKS = 10_000
"""SQLite instructions between two checks of the limits: about 0.1 ms, of which the check takes
less than 1 %."""
SHORT_PATTERN = 1_000
"""The longest LIKE pattern, in bytes, in a session with a time limit: matching takes time
proportional to the pattern times the text and cannot be interrupted."""
BUSY_SECONDS = (0.001, 0.05)
"""The first and the longest pause between two checks for another writer's end."""
LOCK_POLL = 0.002
"""Seconds between two attempts to take a lock where SQLite does not wait by itself."""
HAS_TABLE = "SELECT EXISTS (SELECT 1 FROM pragma_table_info(?, ?))"
ROOM_KEPT = 1_024
"""Free pages (of 4 KiB) that stay in the file for later writes. Any more are returned to the
file system; fewer are not worth moving other pages for."""
PAGES_MOVED = 4_096
"""The most free pages returned in one transaction, so that other writers get a turn."""


class Connection:
    """Wraps apsw: opening, transactions, and SQLite's errors as Harken errors."""

    def __init__(
        self,
        path: str,
        *,
        read_only: bool = False,
        timeout: float = 5.0,
        clock: Callable[[], datetime.datetime] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.path = path
        self.watch = watch or Watch(UNLIMITED)
        """Stops statements that exceed their limits."""
        self._waiting_since = 0.0
        self.in_memory = path in ("", ":memory:")
        self.read_only = read_only
        self.timeout = timeout
        self._clock = clock or (lambda: datetime.datetime.now(datetime.UTC))
        self._now: datetime.datetime | None = None
        self.foreign: dict[str, Any] = {}
        """The Python functions that statements call, by module name."""
        self.asking = 0
        """Number of Python functions running inside queries; they may read but not write."""
        self.working_time: Callable[[], float] = time.thread_time
        """The clock that times queries: processor time, so that other programs do not count."""
        self.work = 0
        """How often the progress handler was called."""
        self._most_work: float = math.inf
        self.rows_added = 0
        """Rows derived by recursions."""
        self.fetched = 0
        """Number of fetches of rows from another engine."""
        self.answered_elsewhere = 0
        """Number of queries answered by another engine."""
        self._until = math.inf
        """The deadline of the current work, on that clock."""
        self._not_before = 0.0
        """The deadline cannot have passed before this moment on the wall clock, which is cheaper
        to read and never slower than processor time."""
        self._is_reading = False
        self._was_over = False
        self.only_reads = False
        """Is the open transaction still read-only?"""
        self.records = RecordTables(self)
        """What the file holds beside relations."""
        if not self.in_memory:
            check_path(path, read_only)
        with faults.translated():
            flags = (
                apsw.SQLITE_OPEN_READONLY
                if read_only
                else (apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
            )
            self.raw = apsw.Connection(path, flags=flags, statementcachesize=STATEMENT_CACHE)
        try:
            with faults.translated():
                self.is_new = self._configure()
        except BaseException:
            self.raw.close()
            raise
        self._files = OpenedFiles(self.raw, self.in_memory)
        self.commits_together = CommitGroups(self.raw, self.in_memory).together
        self.execute = self.raw.execute
        """The raw statement runner, for hot paths that translate errors themselves."""

    def _configure(self) -> bool:
        """Set the pragmas; true if the database is new and empty."""
        self.raw.set_busy_handler(self._wait)
        with self.snapshot():  # another process may be creating the database
            is_new = identify(self.raw)
        if not self.in_memory and not self.read_only:
            if is_new:  # cannot be changed once a table exists
                self.raw.pragma("auto_vacuum", "incremental")
            self._use_write_ahead_log()
            self.raw.pragma("synchronous", "full")
        self.raw.pragma("foreign_keys", True)
        self.raw.pragma("case_sensitive_like", True)
        self.raw.pragma("temp_store", 2)
        self.raw.pragma("cache_size", -64_000)
        # Python handles Ctrl-C only while it runs Python code: let it do so now and then.
        self.raw.set_progress_handler(self.is_over, INSTRUCTIONS_BETWEEN_LOOKS)
        functions.register(self.raw, self.now, self.watch)
        return is_new

    def use(self, settings: Mapping[str, Any]) -> None:
        """Apply the settings' limits to SQLite.

        The memory limit is lifted at once: SET itself runs under the old limit, which may be too
        small for anything else, and so does the end of its statement.
        """
        heap.end(id(self))
        self.raw.limit(apsw.SQLITE_LIMIT_LENGTH, settings["text_limit"])
        longest = SHORT_PATTERN if settings["statement_timeout"] else settings["text_limit"]
        self.raw.limit(apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, min(longest, 50_000))
        size = settings["memory_limit"]
        self.watch.when_started = partial(heap.begin, id(self), size) if size else None
        self.watch.when_ended = partial(heap.end, id(self)) if size else None
        if settings["statement_timeout"]:
            functions.use_linear(self.raw, self.watch)

    def _wait(self, times: int) -> bool:
        """Pause before the next attempt to take the lock, unless the statement must stop."""
        now = time.monotonic()
        if times == 0:
            self._waiting_since = now
        self.watch.check()
        if now - self._waiting_since >= self.timeout:
            return False
        first, most = BUSY_SECONDS
        time.sleep(min(first * 2 ** min(times, 10), most))
        return True

    def _use_write_ahead_log(self) -> None:
        """Switch to the write-ahead log; another process may be creating the database at the
        same time."""
        self.retry_while_busy(lambda: self.raw.pragma("journal_mode", "wal"))

    def retry_while_busy(self, work: Callable[[], object]) -> None:
        """Retry for at most `timeout` seconds, where SQLite does not wait by itself."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                work()
                return
            except apsw.BusyError as error:
                if faults.is_stale(error) or time.monotonic() >= deadline:
                    raise
                self.watch.check()
                time.sleep(LOCK_POLL)

    def mark_as_ours(self) -> None:
        self.raw.pragma("application_id", APPLICATION_ID)
        self.raw.pragma("user_version", FORMAT)

    def close(self) -> None:
        heap.end(id(self))
        if self._files.lost() is not None:
            # The last connection to a file removes its log, and the path may now hold another
            # file's log.
            self.raw.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self.raw.close()

    # --- statements ------------------------------------------------------------------------

    def run(self, sql: str, values: Any = ()) -> None:
        if self.watch.is_armed:
            self.watch.check()
        try:
            self.raw.execute(sql, values)
        except faults.RAISED as error:
            raise faults.fault(error) from error

    def change(self, sql: str, values: Any = ()) -> int:
        """Run a statement that adds rows to a temporary table and return their number. It may be
        broken off once it has ended, see `limited`."""
        self.run(sql, values)
        if self.is_limited and self._is_late():
            raise BrokenOff
        added = self.raw.changes()
        self.rows_added += added
        return added

    def insert_many(self, sql: str, values: Iterable[Any]) -> int:
        """Insert rows into a temporary table; how many of them were new to it."""
        before = self.raw.total_changes()
        self.run_many(sql, values)
        added = self.raw.total_changes() - before
        self.rows_added += added
        return added

    def rows(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        if self.watch.is_armed:
            self.watch.check()
        try:
            return self.watch.fetch(self.raw.execute(sql, values))
        except faults.RAISED as error:
            raise faults.fault(error) from error

    def read(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        """The rows of a read-only statement, which may be broken off, see `limited`."""
        return self._read(sql, values) if self.is_limited else self.rows(sql, values)

    def attempt(self, sql: str, values: Any, most: int) -> list[tuple[Any, ...]] | None:
        """The rows of a read-only statement; None if it takes more than this much work."""
        before, self._most_work = self._most_work, self.work + most
        try:
            return self._read(sql, values)
        except BrokenOff:
            if self._is_late():
                raise
            return None
        finally:
            self._most_work = before

    def _read(self, sql: str, values: Any) -> list[tuple[Any, ...]]:
        was_reading, self._is_reading, self._was_over = self._is_reading, True, False
        try:
            return self.watch.fetch(self.raw.execute(sql, values))
        except faults.RAISED as error:
            # A statement broken off while SQLite prepared it fails with a meaningless message.
            if self._was_over:
                raise BrokenOff from None
            raise faults.fault(error) from error
        finally:
            self._is_reading = was_reading

    def run_many(self, sql: str, values: Iterable[Any]) -> None:
        with faults.translated():
            self.raw.executemany(sql, values)

    def value(self, sql: str, values: Any = ()) -> Any:
        try:
            return self.raw.execute(sql, values).get
        except faults.RAISED as error:
            raise faults.fault(error) from error

    def has_table(self, name: str, schema: str = "main") -> bool:
        """Is there a table of this name? SQLite looks names up in its in-memory catalog, at the
        same cost for any number of tables; a SELECT from `sqlite_schema` would read all of it."""
        return bool(self.value(HAS_TABLE, (name, schema)))

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """Limit the block to this many seconds. Reads are broken off; writes first run to their
        end, because SQLite rolls back the whole transaction when it interrupts one."""
        before = self._until, self._not_before
        self._until = self.working_time() + seconds
        is_real = self.working_time in (time.thread_time, time.perf_counter)
        self._not_before = time.perf_counter() + seconds if is_real else 0.0
        try:
            yield
        finally:
            self._until, self._not_before = before

    def _is_late(self) -> bool:
        return time.perf_counter() > self._not_before and self.working_time() > self._until

    @property
    def is_limited(self) -> bool:
        return self._until < math.inf

    def is_over(self) -> bool:
        """Called by SQLite now and then. A Python function that itself reads is not broken off,
        because it might remember the failure."""
        self.work += 1
        if self.watch.is_armed:
            self.watch.check()
        if not self._is_reading or self.asking:
            return False
        self._was_over = self.work > self._most_work or self._is_late()
        return self._was_over

    # --- transactions ----------------------------------------------------------------------

    def schema_versions(self) -> SchemaVersions | None:
        """Numbers that change whenever a table, index or trigger is created or dropped, in the
        file and among the temporary ones; undoing the change restores them. None if SQLite
        cannot tell."""
        try:
            return self.value("PRAGMA main.schema_version"), self.value(
                "PRAGMA temp.schema_version"
            )
        except HarkenError:
            return None

    def data_version(self) -> int:
        """A number that changes whenever another connection commits."""
        with faults.translated():
            if self.in_memory:
                return 0 * self.raw.in_transaction  # nobody else commits, but it may be closed
            return int(self.raw.pragma("data_version"))

    def seen_version(self) -> int:
        return self.raw.data_version()

    def is_empty(self) -> bool:
        return bool(self.value("SELECT count(*) FROM sqlite_schema") == 0)

    @property
    def in_transaction(self) -> bool:
        """False if the connection is closed, too; the next statement reports that."""
        try:
            return self.raw.in_transaction
        except apsw.ConnectionClosedError:
            return False

    def now(self) -> datetime.datetime:
        """The current time; fixed within a transaction, and within a query outside of one."""
        return self._now if self._now is not None else self._clock()

    @contextmanager
    def fixed_time(self) -> Iterator[None]:
        """Keep `now()` constant throughout a query."""
        with self.at(self.now()):
            yield

    def hold_time(self) -> datetime.datetime | None:
        """From now on `now()` is constant, until `let_time_pass` is given what this returned."""
        before = self._now
        if before is None:
            self._now = self._clock()
        return before

    def let_time_pass(self, before: datetime.datetime | None) -> None:
        self._now = before

    @contextmanager
    def at(self, moment: datetime.datetime) -> Iterator[None]:
        """Let `now()` return another time."""
        before, self._now = self._now, moment
        try:
            yield
        finally:
            self._now = before

    def begin(self, *, write: bool = True) -> None:
        """Begin a write transaction, or a read-only one that `lock` may turn into a write
        transaction."""
        self._refuse_changes_while_asking()
        self.run("BEGIN IMMEDIATE" if write else "BEGIN")
        self.only_reads = not write
        self._now = self._clock()

    def lock(self) -> None:
        """Take the write lock for the open transaction. That fails if it has read and another
        process has committed since: its changes would be based on an outdated state.

        SQLite takes the lock at the first statement that could write, so a statement on any
        table will do.
        """
        self._refuse_changes_while_asking()
        with faults.translated():
            self.retry_while_busy(lambda: self.raw.execute(f"DELETE FROM main.{META} WHERE 0"))
        self.only_reads = False

    def commit(self) -> None:
        if not self.only_reads:
            self._files.check()
        self.watch.begin_commit()
        try:
            self.raw.execute("COMMIT")
        except faults.RAISED as error:
            raise faults.fault(error) from error
        finally:
            self.watch.end_commit()
        self._now = None
        self.only_reads = False

    def rollback(self) -> None:
        """Undo everything; safe to call when SQLite already has, on a full disk for instance."""
        self._now = None
        self.only_reads = False
        if self.in_transaction:
            with self.watch.shielded(), faults.translated():
                self.raw.execute("ROLLBACK")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let several statements read one state, with or without a transaction."""
        if self.in_transaction:
            yield
            return
        self.run("BEGIN")
        try:
            yield
        finally:
            if self.in_transaction:
                with self.watch.shielded():
                    self.run("COMMIT")

    @contextmanager
    def savepoint(self, name: str = "step") -> Iterator[None]:
        """Keep all of a block's changes or none, inside the open transaction."""
        self.set_savepoint(name)
        try:
            yield
        except BaseException:
            if self.in_transaction:
                self.undo_to(name)
            raise
        self.release(name)

    def set_savepoint(self, name: str) -> None:
        self._refuse_changes_while_asking()
        self.run(f"SAVEPOINT {name}")

    def release(self, name: str) -> None:
        with self.watch.shielded():
            self.run(f"RELEASE {name}")

    def undo_to(self, name: str) -> None:
        """Undo everything since a savepoint and release it."""
        with self.watch.shielded():
            self.run(f"ROLLBACK TO {name}")
            self.run(f"RELEASE {name}")

    @contextmanager
    def undone(self, name: str = "undone") -> Iterator[None]:
        """Undo the block's changes at its end, inside the open transaction."""
        self.run(f"SAVEPOINT {name}")
        try:
            yield
        finally:
            if self.in_transaction:
                self.undo_to(name)

    def _refuse_changes_while_asking(self) -> None:
        """A query whose functions change what it reads might never end, or see its own changes."""
        if self.asking:
            raise SafetyFault(
                "a Python function in a query can read the database, but not change it",
                code="side-effect",
                hint="call it as a statement of its own",
            )

    def give_back_room(self) -> None:
        """Shrink the file if much of it is free. Skipped for files of earlier versions, which
        cannot shrink, and while others write."""
        if self.in_memory or self.read_only or self.in_transaction:
            return
        free = int(self.value("PRAGMA freelist_count"))
        try:
            with self.without_waiting():
                while free > ROOM_KEPT:
                    self.rows(f"PRAGMA incremental_vacuum({min(free - ROOM_KEPT, PAGES_MOVED)})")
                    before, free = free, int(self.value("PRAGMA freelist_count"))
                    if free >= before:
                        return
                    self.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        except StorageError as error:
            if error.code not in ("locked", "disk-full", "disk-error"):
                raise

    @contextmanager
    def without_waiting(self) -> Iterator[None]:
        """For optional work: fail at once if another writer is active."""
        self.raw.set_busy_timeout(0)
        try:
            yield
        finally:
            self.raw.set_busy_handler(self._wait)
