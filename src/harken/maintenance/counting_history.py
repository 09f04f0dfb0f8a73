"""Whether the derivations of a set are counted (`calculus.counting`), by the measured times of both
strategies.

For each row that may have come or gone, differentials search the other state for another
derivation. How long that takes depends on the data: the first row read may be one, or none of many.
Counting maintains the number of derivations of each row and searches for none. The counts are built
when differentials have taken a few times as long as building them takes, and dropped if changes do
not become faster.

Law: both find the same change.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harken.maintenance import tuning
from harken.maintenance.investment import Investment
from harken.maintenance.measurements import Case, Experience


@dataclass(slots=True)
class CountingHistory(Investment):
    is_counting: bool = False
    worse: int = 0
    """The number of changes in a row for which differentials would have been faster."""
    is_outdated: bool = False
    """Whether the measurements of differentials are out of date, because other relations are stored
    now."""
    same: int = 0
    """The number of changes in a row for which there was no reason to switch."""
    _untimed_left: int = 0
    _stored: frozenset[str] = frozenset()
    took: Experience = field(default_factory=lambda: Experience({}, memory=tuning.MANY_RUNS))

    def is_timed_now(self) -> bool:
        """Whether the next change is timed. Counts down the changes that are not."""
        if not self._untimed_left:
            return True
        self._untimed_left -= 1
        return False

    @property
    def is_paused(self) -> bool:
        """Whether the next changes are found by differentials and not timed."""
        return self._untimed_left > 0 and not self.is_counting

    def notice(self, stored: frozenset[str]) -> None:
        """Note which recursive relations below store their rows: differentials read these rows, or
        rederive them."""
        if stored != self._stored:
            self._stored, self.is_outdated = stored, self.is_counting
            self.spent, self.was_useless, self.same = 0.0, False, 0
            self.took.taken.clear()
            if self.known is not None:
                self.known.taken.clear()

    def note_differentials(self, case: Case, size: int, seconds: float, is_fresh: bool) -> None:
        """Record the time of differentials. Runs that include planning are not recorded."""
        if is_fresh:
            return
        self.took.note(case, size, seconds)
        if seconds > tuning.COUNTING_OVERHEAD:
            untimed = 0 if self.same < tuning.MANY_RUNS else tuning.MANY_RUNS
            self.spent += seconds * (1 + untimed)
        self._pause_timing()

    def note_counting(
        self, case: Case, other: Case, size: int, seconds: float, is_fresh: bool
    ) -> None:
        """Record the time of counting; `other` is the case of finding the same change by
        differentials."""
        if is_fresh:
            return
        self.took.note(case, size, seconds + tuning.COUNTING_OVERHEAD / tuning.DOUBLED)
        is_worse = self.took.expected(case, size) > self.took.expected(other, size) > 0
        self.worse = self.worse + 1 if is_worse else 0
        if is_worse:
            self.same = 0
        self._pause_timing()

    def _pause_timing(self) -> None:
        self.same += 1
        self._untimed_left = tuning.MANY_RUNS if self.same > tuning.MANY_RUNS else 0

    @property
    def should_start_counting(self) -> bool:
        """Whether differentials have taken long enough to try counting."""
        return not self.is_counting and self.is_worth_trying

    @property
    def should_stop_counting(self) -> bool:
        return self.is_counting and (self.is_outdated or self.worse >= tuning.MANY_RUNS)

    def begin(self) -> None:
        self.is_counting, self.worse, self.same = True, 0, 0

    def end(self, too_long: bool = False) -> None:
        """The counts are dropped, or building them took too long."""
        self.is_counting, self.same = False, 0
        if too_long:
            self.note_failed_attempt()
        else:
            self.was_useless, self.spent = not self.is_outdated, 0.0
        self.is_outdated = False
