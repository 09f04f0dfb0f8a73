"""Whether to keep something that may make changes cheaper: the rows of a recursion, counted
derivations.

What it takes to go without it adds up. When that is many times what it takes to make it, it is
made; what was kept and was of no use is not made again, until the relations have changed a good
deal.

Law: to try and fail costs no more than a part of what going without has cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harken.maintenance.measurements import Experience

FIRST_TRIAL = 0.004
"""When going without has taken so many seconds it is tried to make it, for as long as a share of
that."""
AGAIN = 2
"""If it takes longer, it is tried again when going without has taken so many times as long."""
ROW = 1e-6
"""Nor is it tried before it could be done if each row of the relations below took so long."""
LOOKED_AT = 16
"""After so many changes it is looked whether the relations have grown, so that all is different."""


@dataclass(slots=True)
class Outlay:
    share: float
    """Of the seconds that going without has taken, so many may go into making it."""
    spent: float = 0.0
    """The seconds that going without has taken."""
    trial: float = FIRST_TRIAL
    was_useless: bool = False
    """Was it kept before, and let go of because it was of no use?"""
    known: Experience | None = None
    _left: int = 0

    def experience(self, renew: Callable[[], Experience], memory: int = 2) -> Experience:
        """What is known, made anew when the relations have changed a good deal."""
        self._left -= 1
        if self.known is None or self._left < 0:
            known = renew()
            if known is not self.known:
                known.memory = memory
                self.spent, self.was_useless = 0.0, False
                self.trial = max(FIRST_TRIAL, ROW * known.now / self.share)
            self.known, self._left = known, LOOKED_AT
        return self.known

    @property
    def was_looked_at(self) -> bool:
        """Was it looked just now whether the relations have grown?"""
        return self._left == LOOKED_AT

    @property
    def is_worth_a_try(self) -> bool:
        return not self.was_useless and self.spent >= self.trial

    @property
    def most(self) -> float:
        """The seconds that a try may take."""
        return self.share * self.spent

    def took_too_long(self) -> None:
        self.trial = self.spent * AGAIN
