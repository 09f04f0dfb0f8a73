"""A loop over the changes of a view, which waits for the next one.

    for change in db.monitor("total").follow(timeout=60): ...
    async for change in db.monitor("total"): ...

Law: a change counts as delivered when the loop gets it. After a `break`, the rest is still there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Protocol

from harken.database.changes import Change

INTERVAL = 0.05
"""Seconds between two looks at the file."""


class Followed(Protocol):
    """What a subscription is to its loop."""

    @property
    def is_closed(self) -> bool: ...

    @property
    def has_others(self) -> bool: ...

    def hear_others(self) -> None: ...

    def waiting(self) -> list[tuple[int, Change]]: ...

    def deliver(self, number: int, change: Change) -> None: ...


class Following:
    def __init__(self, followed: Followed, timeout: float | None) -> None:
        self._followed = followed
        self._timeout = timeout

    def __iter__(self) -> Iterator[Change]:
        for change in self._changes(waits=self._followed.has_others):
            if change is None:
                time.sleep(INTERVAL)
            else:
                yield change

    async def __aiter__(self) -> AsyncIterator[Change]:
        for change in self._changes(waits=True):
            if change is None:
                await asyncio.sleep(INTERVAL)
            else:
                yield change

    def _changes(self, *, waits: bool) -> Iterator[Change | None]:
        """The changes; None where the loop is to wait a moment. Other tasks of an asyncio program
        commit while it waits, also to a database in memory; a `for` loop would wait forever."""
        followed = self._followed
        quiet_since = time.monotonic()
        while not followed.is_closed:
            found = followed.waiting()
            for number, change in found:
                if followed.is_closed:
                    return
                followed.deliver(number, change)
                yield change
            if found:
                quiet_since = time.monotonic()
                continue
            followed.hear_others()
            if not waits or self._is_over(quiet_since):
                return
            yield None

    def _is_over(self, quiet_since: float) -> bool:
        return self._timeout is not None and time.monotonic() - quiet_since >= self._timeout
