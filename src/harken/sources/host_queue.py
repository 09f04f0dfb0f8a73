"""Requests to one host follow each other, with a pause between them.

Law: at most one request to a host is under way in this process, and none starts before the pause
after the last one is over, or before the moment that the host asked for (`Retry-After`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from harken.limits import check

MOST_HOSTS = 1_000
"""Hosts that are remembered before those that are free again are forgotten."""
LOOK_SECONDS = 0.2
"""How often a request that waits checks whether its statement was cancelled."""


@dataclass(eq=False, slots=True)
class HostPlace:
    """The place at which one host is served. A request that has it says how it went."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    not_before: float = 0.0

    def pause_until(self, moment: float) -> None:
        self.not_before = max(self.not_before, moment)


class Busy(Exception):
    """A request would have to wait too long; `seconds` is how long at least."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class HostQueue:
    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.clock = clock
        self._sleep = sleep
        self._places: dict[str, HostPlace] = {}
        self._guard = threading.Lock()

    @contextmanager
    def place(self, host: str, patience: float) -> Iterator[HostPlace]:
        """Wait for the host, for about `patience` seconds at most; then raises `Busy`."""
        place = self._place(host)
        gives_up = self.clock() + patience
        while not place.lock.acquire(timeout=LOOK_SECONDS):
            check()
            if self.clock() >= gives_up:
                raise Busy(LOOK_SECONDS)
        try:
            while (left := place.not_before - self.clock()) > 0:
                if place.not_before > gives_up:
                    raise Busy(left)
                check()
                self._sleep(min(left, LOOK_SECONDS))
            yield place
        finally:
            place.lock.release()

    def _place(self, host: str) -> HostPlace:
        with self._guard:
            if len(self._places) >= MOST_HOSTS and host not in self._places:
                now = self.clock()
                self._places = {
                    name: place
                    for name, place in self._places.items()
                    if place.lock.locked() or place.not_before > now
                }
            return self._places.setdefault(host, HostPlace())


SHARED = HostQueue()
"""The queue of this process."""
