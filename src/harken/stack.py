"""Room on Python's stack, for what is nested deeper than Python thinks anything should be.

The limit is one for all threads: it stays up as long as any of them needs it.
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
    """What it was before anyone needed more."""
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
    """As much as there was, or for so many frames if that is more."""
    _limit.enter(frames)
    try:
        yield
    finally:
        _limit.leave()
