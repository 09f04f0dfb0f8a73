"""Room on Python's stack for deeply nested input.

The limit is one for all threads, and stays raised as long as any of them needs it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

NESTED = 8_000
"""Frames for statements of some hundred operands, or some hundred parentheses."""


@dataclass(slots=True)
class _Limit:
    lock: threading.Lock = field(default_factory=threading.Lock)
    before: int = 0
    """The limit before anyone needed more."""
    inside: int = 0

    def enter(self, frames: int) -> None:
        with self.lock:
            now = sys.getrecursionlimit()
            if not self.inside:
                self.before = now
            self.inside += 1
            if frames > now:
                sys.setrecursionlimit(frames)

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                sys.setrecursionlimit(self.before)


_limit = _Limit()


@contextmanager
def room_for(frames: int) -> Iterator[None]:
    """At least this many frames."""
    _limit.enter(frames)
    try:
        yield
    finally:
        _limit.leave()
