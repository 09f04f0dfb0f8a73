"""What a running statement may use, and how another thread cancels it.

Each session has a Watch. The outermost statement starts its clock; whatever runs long asks it now
and then: SQLite every few thousand instructions, Python loops by `check()`.

Law: once `cancel` has returned True, the statement commits nothing any more. A limit that fires
raises a LimitFault, which undoes the statement; the session can be used afterwards. Whatever
undoes it, or must happen as a whole, is `shielded`; for the rest of the cleaning up the watch is
silent for `CLEANUP_SECONDS` after it has fired.
"""

from __future__ import annotations

import ctypes
import math
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, TypeVar

from harken.errors import LimitFault

T = TypeVar("T")

UNLIMITED: Mapping[str, Any] = {
    "statement_timeout": 0.0,
    "row_limit": 0,
    "memory_limit": 0,
    "text_limit": 1_000_000_000,
}

CLEANUP_SECONDS = 2.0
"""How long a stopped statement may take to undo its work before it is stopped again."""
LOOK_SECONDS = 0.05
"""How often a thread that waits for a foreign function checks for cancellation."""
BATCH = 1_000
"""Rows that are fetched before they are counted."""
VALUE_BYTES = 56
"""Assumed memory for a value in a Python row, without the characters of a text: measured on CPython
3.11 as the average of integers, floats and short texts with their slot in a tuple."""

_here = threading.local()


def check() -> None:
    """Raise if the statement that runs in this thread must stop."""
    watch = getattr(_here, "watch", None)
    if watch is not None:
        watch.check()


def current() -> Watch | None:
    """The watch of the statement that runs in this thread."""
    return getattr(_here, "watch", None)


def watched(rows: Iterable[T]) -> Iterator[T]:
    """The same rows, of which there may be infinitely many."""
    watch = current()
    if watch is None:
        yield from rows
        return
    size = 0
    for number, row in enumerate(rows, 1):
        if number % BATCH == 0:
            watch.check()
        if watch.most_bytes:
            values: tuple[Any, ...] = row if isinstance(row, tuple) else (row,)
            size += _row_bytes(values)
            watch.check_bytes(size)
        yield row


class _Running:
    """A block of a statement or a text. Written out, since each statement enters several."""

    __slots__ = ("_before", "_starts_clock", "_timed", "_watch")

    def __init__(self, watch: Watch, timed: bool) -> None:
        self._watch, self._timed = watch, timed

    def __enter__(self) -> None:
        self._before = current()
        self._starts_clock = self._timed and not self._watch.is_timed
        self._watch.enter(self._starts_clock)

    def __exit__(self, *error: object) -> None:
        _here.watch = self._before
        self._watch.leave(self._starts_clock)


class _Shield:
    """The block of `Watch.shielded`; it may be entered again inside itself."""

    __slots__ = ("_watch",)

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __enter__(self) -> None:
        self._watch.raise_shield()

    def __exit__(self, *error: object) -> None:
        self._watch.lower_shield()


class Watch:
    """The limits of one session. Only `cancel` may be called from another thread."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._depth = 0
        self._is_timed = False
        self._until = math.inf
        self._silent_until = 0.0
        self._reason: str | None = None
        self._is_committing = False
        self._caller: Caller | None = None
        self.when_started: Callable[[], None] | None = None
        """Called when an outermost statement begins; `when_ended` when it has ended."""
        self.when_ended: Callable[[], None] | None = None
        self.is_armed = False
        """Whether the statement has a time limit or was cancelled. If not, it never stops, and hot
        paths need not check."""
        self._shields = 0
        self._shield = _Shield(self)
        self._held = 0
        self.seconds = 0.0
        self.most_rows = 0
        self.most_bytes = 0

    def statement(self) -> AbstractContextManager[None]:
        """A statement runs in the block. Inside another it shares that one's limits."""
        return self._running(timed=True)

    def text(self) -> AbstractContextManager[None]:
        """Several statements run in the block, each with limits of its own; they are cancelled
        together."""
        return self._running(timed=False)

    def _running(self, timed: bool) -> AbstractContextManager[None]:
        return _Running(self, timed)

    def enter(self, starts_clock: bool) -> None:
        """A block of a statement or a text begins."""
        if starts_clock:
            self._start_clock()
        self._depth += 1
        _here.watch = self
        if starts_clock and self.when_started is not None:
            self.when_started()

    def leave(self, ends_clock: bool) -> None:
        """The block has ended."""
        if ends_clock and self.when_ended is not None:
            self.when_ended()
        with self._lock:
            self._depth -= 1
            if ends_clock:
                self._is_timed, self._until = False, math.inf
            if not self._depth:
                self._reason, self._silent_until = None, 0.0
            self.is_armed = self._reason is not None or self._until < math.inf

    @property
    def is_timed(self) -> bool:
        """Does a statement run that has limits of its own?"""
        return self._is_timed

    def _start_clock(self) -> None:
        self.seconds = self._settings["statement_timeout"]
        self.most_rows = self._settings["row_limit"]
        self.most_bytes = self._settings["memory_limit"]
        self._held, self._is_timed = 0, True
        with self._lock:
            if self.seconds:
                self._until, self.is_armed = time.monotonic() + self.seconds, True

    # --- stopping --------------------------------------------------------------------------

    def cancel(self, reason: str = "the statement was cancelled") -> bool:
        """Stop the running statement; False if none runs, or its commit has begun."""
        with self._lock:
            if not self._depth:
                return False
            self._reason = self._reason or reason
            self.is_armed = True
            return not self._is_committing

    @property
    def is_over(self) -> bool:
        """Whether the statement must stop."""
        if not self.is_armed or self._shields:
            return False
        now = time.monotonic()
        return (self._reason is not None or now > self._until) and now > self._silent_until

    def check(self) -> None:
        if self.is_over:
            raise self.stopped()

    def stopped(self) -> LimitFault:
        """Why the statement stops. It has time to undo what it did."""
        self._silent_until = time.monotonic() + CLEANUP_SECONDS
        if self._reason is not None:
            return LimitFault(
                f"{self._reason}; what it had not committed was rolled back", code="cancelled"
            )
        return LimitFault(
            f"the statement took longer than {self.seconds:g} s, and was rolled back",
            code="timeout",
            hint="ask for less; the setting statement_timeout is the limit",
        )

    def shielded(self) -> AbstractContextManager[None]:
        """No limit stops the block, because half of its work would be worse than waiting for it."""
        return self._shield

    def raise_shield(self) -> None:
        self._shields += 1
        if self._shields == 1 and self.when_ended is not None:
            self.when_ended()

    def lower_shield(self) -> None:
        try:
            if self._shields == 1 and self.when_started is not None and self._depth:
                self.when_started()
        finally:
            self._shields -= 1

    def begin_commit(self) -> None:
        """From now on, until `end_commit`, it is too late to cancel."""
        with self._lock:
            late = self._depth > 0 and self.is_over
            self._is_committing = not late
        if late:
            raise self.stopped()

    def end_commit(self) -> None:
        with self._lock:
            self._is_committing = False

    # --- rows and memory -------------------------------------------------------------------

    def fetch(self, rows: Iterator[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """All rows of a query, counted as they are fetched."""
        if self._shields or not (self.most_rows or self.most_bytes):
            return list(rows)
        found: list[tuple[Any, ...]] = []
        size = 0
        while batch := list(islice(rows, BATCH)):
            found += batch
            self.check_rows(len(found))
            if self.most_bytes:
                size += sum(map(_row_bytes, batch))
                self.check_bytes(size)
        return found

    def check_rows(self, count: int) -> None:
        if self.most_rows and count > self.most_rows and not self._shields:
            raise LimitFault(
                f"a query has more than {self.most_rows:,} rows",
                code="row-limit",
                hint=(
                    "restrict it with WHERE, or use count or sum; the setting row_limit "
                    "is the limit"
                ),
            )

    def check_bytes(self, size: int) -> None:
        if self.most_bytes and size > self.most_bytes and not self._shields:
            raise out_of_memory(self.most_bytes)

    def hold(self, row: tuple[Any, ...]) -> int:
        """An aggregate keeps a row of its group; returns the assumed bytes."""
        if not self.most_bytes:
            return 0
        size = _row_bytes(row)
        self._held += size
        self.check_bytes(self._held)
        return size

    def let_go(self, size: int) -> None:
        self._held -= size

    # --- foreign functions -----------------------------------------------------------------

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Call a function that may hang. Under a time limit another thread runs it, so that this
        one can stop waiting, undo its work and continue."""
        if not self.seconds or self._depth == 0:
            return function(*arguments)
        if self._caller is None or not self._caller.is_free:
            self._caller = Caller(self)
        try:
            return self._caller.call(function, arguments)
        except LimitFault:
            self._caller.abandon()
            self._caller = None
            raise


class Caller:
    """A thread that calls foreign functions. One that never returns is abandoned."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="harken-foreign", daemon=True)
        self._thread.start()
        self.is_free = True

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

        def task() -> None:
            try:
                answers.put((_complete(function(*arguments)), None))
            except BaseException as error:
                answers.put((None, error))

        self.is_free = False
        self._tasks.put(task)
        while True:
            try:
                found, error = answers.get(timeout=LOOK_SECONDS)
                break
            except queue.Empty:
                self._watch.check()
        self.is_free = True
        if error is not None:
            raise error
        return found

    def _run(self) -> None:
        _here.watch = self._watch
        while (task := self._tasks.get()) is not None:
            task()

    def abandon(self) -> None:
        """Python code can be interrupted between two instructions; a call into C cannot."""
        self._tasks.put(None)
        if self._thread.ident is not None and not self.is_free:
            identity = ctypes.c_ulong(self._thread.ident)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, ctypes.py_object(SystemExit))


def _complete(produced: Any) -> Any:
    """The rows of a generator are part of the call."""
    return list(watched(produced)) if isinstance(produced, Iterator) else produced


def _row_bytes(row: tuple[Any, ...]) -> int:
    return sum(len(value) + VALUE_BYTES if type(value) is str else VALUE_BYTES for value in row)


def out_of_memory(limit: int) -> LimitFault:
    return LimitFault(
        f"a statement needs more than {limit} bytes of memory, and was rolled back",
        code="memory-limit",
        hint="ask for less at once; the setting memory_limit is the limit",
    )
