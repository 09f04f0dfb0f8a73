"""Whether to build something that may make changes cheaper: the stored rows of a recursion, counted
derivations.

The time that changes take without it adds up. When the sum is many times the cost of building, it
is built. Something that was built and did not help is not built again until the relations have
changed considerably.

Law: a failed attempt costs no more than a fraction of the time already spent without.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from harken.maintenance import tuning
from harken.maintenance.measurements import Experience


@dataclass(slots=True)
class Investment:
    share: float
    """The fraction of the time spent without that building may cost."""
    spent: float = 0.0
    """The seconds that changes have taken without."""
    trial: float = field(default_factory=lambda: tuning.FIRST_INVESTMENT)
    was_useless: bool = False
    """Whether it was built before, and dropped because it did not help."""
    known: Experience | None = None

    def experience(
        self, renew: Callable[[], Experience], memory: int = tuning.MEMORY
    ) -> Experience:
        """The measurements, started over when the relations have changed considerably."""
        known = renew()
        if known is not self.known:
            known.memory = memory
            self.known = known
            self.spent, self.was_useless = 0.0, False
            build_seconds = tuning.BUILD_SECONDS_PER_ROW * known.now
            self.trial = max(tuning.FIRST_INVESTMENT, build_seconds / self.share)
        return known

    @property
    def is_worth_trying(self) -> bool:
        return not self.was_useless and self.spent >= self.trial

    @property
    def attempt_limit(self) -> float:
        """The seconds that an attempt may take."""
        return self.share * self.spent

    def note_failed_attempt(self) -> None:
        self.trial = self.spent * tuning.DOUBLED
