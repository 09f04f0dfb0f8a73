"""Committed changes not delivered yet: one queue for all receivers of the same view.

Each reader has a place in it, so the writer's cost of a change does not depend on the number of
readers. The queue holds a limited number of changes; a reader that falls further behind finds them
gone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

from harken.database.changes import Change

CAPACITY = 10_000


class Queue:
    def __init__(self, room: int = CAPACITY) -> None:
        self._room = room
        self._changes: deque[Change] = deque()
        self.end = 0
        """The number of the last change; they are numbered 1, 2, 3, ..."""

    @property
    def kept(self) -> int:
        """How many changes are in memory."""
        return len(self._changes)

    def put(self, change: Change) -> None:
        self._changes.append(change)
        self.end += 1
        if len(self._changes) > self._room:
            self._changes.popleft()

    def after(self, place: int) -> list[tuple[int, Change]] | None:
        """The changes after this number, each with its own; None if some are gone."""
        skipped = place - (self.end - len(self._changes))
        if skipped < 0:
            return None
        return list(enumerate(islice(self._changes, skipped, None), start=place + 1))

    def forget(self, places: Iterable[int]) -> None:
        """Discard what all of these readers have read."""
        kept = self.end - min(places, default=self.end)
        while len(self._changes) > kept:
            self._changes.popleft()
