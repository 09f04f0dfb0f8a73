"""Whether to keep something that may make changes cheaper: the rows of a recursion, counted
derivations.

What it takes to go without it adds up. When that is many times what it takes to make it, it is
made; what was kept and was of no use is not made again, until the relations have changed a good
deal.

Law: to try and fail costs no more than a part of what going without has cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from harken.maintenance import tuning
from harken.maintenance.measurements import Experience


@dataclass(slots=True)
class Outlay:
    share: float
    """Of the seconds that going without has taken, so many may go into making it."""
    spent: float = 0.0
    """The seconds that going without has taken."""
    trial: float = field(default_factory=lambda: tuning.FIRST_INVESTMENT)
    was_useless: bool = False
    """Was it kept before, and let go of because it was of no use?"""
    known: Experience | None = None
    _left: int = 0

    def experience(
        self, renew: Callable[[], Experience], memory: int = tuning.MEMORY
    ) -> Experience:
        """What is known, made anew when the relations have changed a good deal."""
        self._left -= 1
        if self.known is None or self._left < 0:
            known = renew()
            if known is not self.known:
                known.memory = memory
                self.spent, self.was_useless = 0.0, False
                build_seconds = tuning.BUILD_SECONDS_PER_ROW * known.now
                self.trial = max(tuning.FIRST_INVESTMENT, build_seconds / self.share)
            self.known, self._left = known, tuning.GROWTH_CHECK_INTERVAL
        return self.known

    @property
    def was_looked_at(self) -> bool:
        """Was it looked just now whether the relations have grown?"""
        return self._left == tuning.GROWTH_CHECK_INTERVAL

    @property
    def is_worth_a_try(self) -> bool:
        return not self.was_useless and self.spent >= self.trial

    @property
    def most(self) -> float:
        """The seconds that a try may take."""
        return self.share * self.spent

    def took_too_long(self) -> None:
        self.trial = self.spent * tuning.RETRY_FACTOR
