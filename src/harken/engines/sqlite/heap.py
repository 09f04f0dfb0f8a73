"""The memory that SQLite may take while a statement with a limit runs.

SQLite has one heap for the whole process, so statements that run at the same time, in several
threads, share one limit: the largest that any of them has. A statement without a limit that runs
beside them is under it, too.

Law: while no statement with a limit runs, there is no limit.
"""

from __future__ import annotations

import threading

import apsw

_lock = threading.Lock()
_running: dict[int, int] = {}


def begin(session: int, size: int) -> None:
    """A statement of a session begins, which may take so many bytes."""
    with _lock:
        _running[session] = size
        apsw.hard_heap_limit(max(_running.values()))


def end(session: int) -> None:
    with _lock:
        if _running.pop(session, None) is not None:
            apsw.hard_heap_limit(max(_running.values(), default=0))


def limit() -> int:
    """The bytes that may be taken now; 0 if there is no limit."""
    return max(_running.values(), default=0)
