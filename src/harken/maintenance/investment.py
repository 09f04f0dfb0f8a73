"""Whether to build state that may make changes cheaper: the stored rows of a recursion, or counted
derivations.

The time that changes take without the state adds up. When the sum is many times the cost of
building, the state is built. State that was built and did not help is not built again until the
relations have changed considerably.

Law: a failed attempt costs no more than a fraction of the time already spent without the state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from harken.maintenance import tuning
from harken.maintenance.measurements import Experience


@dataclass(slots=True)
class Investment:
    spent: float = 0.0
    """The seconds that changes have taken without the state."""
    trial: float = field(default_factory=lambda: tuning.SHORT_RUN)
    was_useless: bool = False
    """Whether the state was built before, and dropped because it did not help."""
    known: Experience | None = None

    def experience(self, renew: Callable[[], Experience], memory: int | None = None) -> Experience:
        """The measurements, started over when the relations have changed considerably."""
        known = renew()
        if known is not self.known:
            known.memory = memory or known.memory
            self.known = known
            self.spent, self.was_useless = 0.0, False
            build_seconds = tuning.SECONDS_PER_ROW * known.now
            self.trial = max(tuning.SHORT_RUN, build_seconds / tuning.INVESTMENT)
        return known

    @property
    def is_worth_trying(self) -> bool:
        return not self.was_useless and self.spent >= self.trial

    @property
    def attempt_limit(self) -> float:
        """The time limit of an attempt to build, in seconds."""
        return tuning.INVESTMENT * self.spent

    def note_failed_attempt(self) -> None:
        self.trial = self.spent * tuning.DOUBLED
