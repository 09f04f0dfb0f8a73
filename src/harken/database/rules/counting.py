"""Whether the derivations of a set are counted (`calculus.counting`), by what both ways have taken.

Differentials look in the other state for another derivation of each row that may have come or gone.
How long that takes depends on the data: it may be the first row that is looked at, or none of many.
Counting follows every derivation and looks for none. When differentials have taken a few times as
long as counting all derivations once does, that is done; if changes do not become faster by it, the
numbers are let go of.

Law: either way finds the same change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harken.database.rules.experience import Case, Experience

LEAST = 0.0002
"""Counting takes about so many seconds whatever changed: what takes fewer is not looked at."""
FIRST_TRIAL = 0.004
"""When differentials have taken so many seconds it is tried to count,"""
SHARE = 0.25
"""for as long as this part of that; if it takes longer, it is tried again after four times that."""
ROW = 1e-6
"""Nor is it tried before it could be done if each row of the relations below took so long."""
PATIENCE = 8
"""After so many changes in a row that differentials would have found sooner, it is ended."""
LOOKED_AT = 16
"""After so many changes it is looked whether the relations have grown, so that all is different."""


@dataclass(slots=True)
class Tally:
    is_counting: bool = False
    spent: float = 0.0
    """The seconds of differentials since nothing is counted."""
    trial: float = FIRST_TRIAL
    worse: int = 0
    """How many changes in a row took longer than by differentials."""
    was_counting: bool = False
    """Were they counted before, and that was of no use?"""
    known: Experience | None = None
    _left: int = 0

    def experience(self, renew: Callable[[], Experience]) -> Experience:
        """What is known, made anew when the relations have changed a good deal."""
        self._left -= 1
        if self.known is None or self._left < 0:
            known = renew()
            if known is not self.known:
                self.spent, self.was_counting = 0.0, False
                self.trial = max(FIRST_TRIAL, ROW * known.now / SHARE)
            self.known, self._left = known, LOOKED_AT
        return self.known

    def note_differentials(self, case: Case, size: int, seconds: float, is_fresh: bool) -> None:
        """What takes longer because plans are made in it is not remembered."""
        assert self.known is not None
        if not is_fresh:
            self.spent += seconds
            self.known.note(case, size, seconds)

    def note_counting(
        self, case: Case, other: Case, size: int, seconds: float, is_fresh: bool
    ) -> None:
        """`other` is the same change by differentials."""
        assert self.known is not None
        if is_fresh:
            return
        self.known.note(case, size, seconds)
        is_worse = self.known.expected(case, size) > self.known.expected(other, size) > 0
        self.worse = self.worse + 1 if is_worse else 0

    @property
    def wants_counting(self) -> bool:
        """Have differentials taken long enough to try whether numbers help?"""
        return not (self.is_counting or self.was_counting) and self.spent >= self.trial

    @property
    def wants_no_counting(self) -> bool:
        return self.is_counting and self.worse >= PATIENCE

    def begin(self) -> None:
        self.is_counting, self.worse = True, 0

    def end(self, took_too_long: bool = False) -> None:
        """The numbers are let go of; or they were never there, for it took too long."""
        self.is_counting = False
        if took_too_long:
            self.trial = self.spent / SHARE
        else:
            self.was_counting, self.spent = True, 0.0
