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

from harken.database.rules.experience import Case
from harken.database.rules.outlay import Outlay

SHARE = 0.25
"""When counting all derivations once takes no more than this part of what differentials took, it
is done: it rarely takes longer than they, so little is lost."""
LEAST = 0.0002
"""Counting takes about so many seconds whatever changed: what takes fewer is not looked at."""
PATIENCE = 8
"""After so many changes in a row that differentials would have found sooner, it is ended."""


@dataclass(slots=True)
class Tally(Outlay):
    share: float = field(default_factory=lambda: SHARE)
    is_counting: bool = False
    worse: int = 0
    """How many changes in a row took longer than by differentials."""
    is_outdated: bool = False
    """Is what differentials took not what they take now?"""
    _stored: frozenset[str] = frozenset()

    def notice(self, stored: frozenset[str]) -> None:
        """These relations below are stored now: differentials read them, or derive them again."""
        if stored != self._stored:
            self._stored, self.is_outdated = stored, self.is_counting
            self.spent, self.was_useless = 0.0, False
            if self.known is not None:
                self.known.taken.clear()

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
        return not self.is_counting and self.is_worth_a_try

    @property
    def wants_no_counting(self) -> bool:
        return self.is_counting and (self.is_outdated or self.worse >= PATIENCE)

    def begin(self) -> None:
        self.is_counting, self.worse = True, 0

    def end(self, too_long: bool = False) -> None:
        """The numbers are let go of; or they were never there, for it took too long."""
        self.is_counting = False
        if too_long:
            self.took_too_long()
        else:
            self.was_useless, self.spent = not self.is_outdated, 0.0
        self.is_outdated = False
