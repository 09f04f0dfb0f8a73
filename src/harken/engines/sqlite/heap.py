"""The memory that SQLite may take while a statement with a limit runs.

SQLite has one heap per process, so statements that run at the same time, in several threads, share
one limit: the largest of theirs. It also applies to statements without a limit that run beside
them.

Law: while no statement with a limit runs, there is no limit.
"""

from __future__ import annotations

import threading

import apsw

_lock = threading.Lock()
_running: dict[int, tuple[int, int]] = {}
"""For each session the largest heap its statement may lead to, and the statement's own limit."""


def begin(session: int, size: int) -> None:
    """A statement of the session begins; it may allocate `size` bytes on top of the current
    heap."""
    with _lock:
        _running[session] = (apsw.memory_used() + size, size)
        apsw.hard_heap_limit(max(_running.values())[0])


def end(session: int) -> None:
    with _lock:
        if _running.pop(session, None) is not None:
            apsw.hard_heap_limit(max(_running.values(), default=(0, 0))[0])


def limit() -> int:
    """The limit that applies now; 0 if there is none."""
    return max(_running.values(), default=(0, 0))[1]
