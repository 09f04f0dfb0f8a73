"""Room on Python's stack, for what is nested deeper than Python thinks anything should be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

NESTED = 8_000
"""Frames for statements of some hundred operands, or some hundred parentheses."""


@contextmanager
def room_for(frames: int) -> Iterator[None]:
    """As much as there was, or for so many frames if that is more."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, frames))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
