"""The memory that SQLite may take. SQLite has one heap for the whole process, so the sessions share
one limit: the largest that any of them has."""

from __future__ import annotations

import threading

import apsw

_lock = threading.Lock()
_limits: dict[int, int] = {}


def limit(session: int, size: int) -> None:
    """Give a session a limit in bytes; 0 takes its limit away."""
    with _lock:
        if size:
            _limits[session] = size
        else:
            _limits.pop(session, None)
        apsw.hard_heap_limit(largest())


def largest() -> int:
    """The limit of the process; 0 is none."""
    return max(_limits.values(), default=0)
