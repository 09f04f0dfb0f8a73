"""Slows down whoever tries passwords.

After a few failures in a row, an account and an address have to wait before the next attempt is
looked at, twice as long after each further one. A success forgives the account, not the address.

Law: in any hour an address makes at most about 60 attempts, and so does anybody at one account.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from harken.errors import LimitFault

FREE = 5
"""Failures that cost nothing: people mistype."""
FIRST_WAIT, LONGEST_WAIT = 2.0, 60.0
FORGOTTEN = 3_600.0
MOST = 10_000
"""Names and addresses that are remembered; the oldest are forgotten first."""


class Throttle:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def check(self, *names: str) -> None:
        """Refuse an attempt that comes too early."""
        left = max(self._left(name) for name in names)
        if left > 0:
            raise LimitFault(
                f"too many attempts: wait {left:.0f} s",
                code="too-many",
                hint="a forgotten password can be replaced at /forgotten",
            )

    def _left(self, name: str) -> float:
        failures, last = self._failures.get(name, (0, 0.0))
        if failures < FREE:
            return 0.0
        wait = min(FIRST_WAIT * 2.0 ** min(failures - FREE, 30), LONGEST_WAIT)
        return last + wait - self._clock()

    def fail(self, *names: str) -> None:
        for name in names:
            failures, last = self._failures.pop(name, (0, 0.0))
            if self._clock() - last > FORGOTTEN:
                failures = 0
            self._failures[name] = (failures + 1, self._clock())
        while len(self._failures) > MOST:
            self._failures.popitem(last=False)

    def succeed(self, name: str) -> None:
        self._failures.pop(name, None)
