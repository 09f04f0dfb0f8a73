"""Whether the derivations of a set are counted (`calculus.counting`), by what both ways have taken.

Differentials look in the other state for another derivation of each row that may have come or gone.
How long that takes depends on the data: it may be the first row that is looked at, or none of many.
Counting follows every derivation and looks for none. When differentials have taken a few times as
long as counting all derivations once does, that is done; if changes do not become faster by it, the
numbers are let go of.

Law: either way finds the same change.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harken.maintenance.investment import Outlay
from harken.maintenance.measurements import Case, Experience

SHARE = 0.25
"""When counting all derivations once takes no more than this part of what differentials took, it
is done: it rarely takes longer than they, so little is lost."""
LEAST, BESIDE = 0.0002, 0.0001
"""Counting takes about so many seconds whatever changed: differentials that take fewer are no
reason to count. About so many of them are not in what it is measured to take."""
PATIENCE = 8
"""After so many changes in a row that differentials would have found sooner, it is ended."""
SETTLED, UNWATCHED = 16, 7
"""When as many changes have gone the same way, so many are not watched between those that are: to
watch takes time, too."""
REMEMBERED = 16
"""One change may take many times as long as another: what they take is the mean of so many."""


@dataclass(slots=True)
class Tally(Outlay):
    share: float = field(default_factory=lambda: SHARE)
    is_counting: bool = False
    worse: int = 0
    """How many changes in a row took longer than by differentials."""
    is_outdated: bool = False
    """Is what differentials took not what they take now?"""
    same: int = 0
    """How many changes have gone the same way, and there was no reason to leave it."""
    _unwatched: int = 0
    _stored: frozenset[str] = frozenset()
    _took: Experience = field(default_factory=lambda: Experience({}, memory=REMEMBERED))

    def is_watched(self) -> bool:
        """Is it remembered what the next change takes?"""
        if not self._unwatched:
            return True
        self._unwatched -= 1
        return False

    def notice(self, stored: frozenset[str]) -> None:
        """These relations below are stored now: differentials read them, or derive them again."""
        if stored != self._stored:
            self._stored, self.is_outdated = stored, self.is_counting
            self.spent, self.was_useless, self.same = 0.0, False, 0
            self._took.taken.clear()
            if self.known is not None:
                self.known.taken.clear()

    def note_differentials(self, case: Case, size: int, seconds: float, is_fresh: bool) -> None:
        """What takes longer because plans are made in it is not remembered."""
        if is_fresh:
            return
        self._took.note(case, size, seconds)
        if seconds > LEAST:
            self.spent += seconds * (1 if self.same < SETTLED else 1 + UNWATCHED)
        self._go_on()

    def note_counting(
        self, case: Case, other: Case, size: int, seconds: float, is_fresh: bool
    ) -> None:
        """`other` is the same change by differentials."""
        if is_fresh:
            return
        self._took.note(case, size, seconds + BESIDE)
        is_worse = self._took.expected(case, size) > self._took.expected(other, size) > 0
        self.worse = self.worse + 1 if is_worse else 0
        if is_worse:
            self.same = 0
        self._go_on()

    def _go_on(self) -> None:
        self.same += 1
        self._unwatched = UNWATCHED if self.same > SETTLED else 0

    @property
    def wants_counting(self) -> bool:
        """Have differentials taken long enough to try whether numbers help?"""
        return not self.is_counting and self.is_worth_a_try

    @property
    def wants_no_counting(self) -> bool:
        return self.is_counting and (self.is_outdated or self.worse >= PATIENCE)

    def begin(self) -> None:
        self.is_counting, self.worse, self.same = True, 0, 0

    def end(self, too_long: bool = False) -> None:
        """The numbers are let go of; or they were never there, for it took too long."""
        self.is_counting, self.same = False, 0
        if too_long:
            self.took_too_long()
        else:
            self.was_useless, self.spent = not self.is_outdated, 0.0
        self.is_outdated = False
