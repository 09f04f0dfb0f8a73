"""How the difference of a view between two looks is found: followed, or recomputed at a look.

Who looks seldom can let the network follow the view in every transaction and add up, or recompute
it at the look and compare. The first costs something in each transaction that changes what the view
reads, the second costs once, however much has changed.

Law: both find the same difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harken.maintenance import tuning
from harken.maintenance.decisions import Decision, DecisionReason
from harken.maintenance.strategies import Strategy


@dataclass(slots=True)
class FollowingTimes:
    """How long it took to follow a view, wave by wave. The first wave makes plans, and counts only
    until there is another."""

    seconds: float = 0.0
    waves: int = 0
    _open: float = 0.0
    """The seconds of the nodes below it in the present wave."""

    def note(self, seconds: float, is_view: bool) -> None:
        """A node was visited: the view itself, which is the last of a wave, or one below it."""
        self._open += seconds
        if is_view:
            self.seconds = self._open if self.waves <= 1 else self.seconds + self._open
            self.waves += 1
            self._open = 0.0

    @property
    def mean(self) -> float:
        return self.seconds / max(1, self.waves - 1)


@dataclass(frozen=True, slots=True)
class Look:
    """What there was between two looks at a view that `sharers` share."""

    is_followed: bool
    transactions: Mapping[str, int]
    """How many changed each relation."""
    recompute_seconds: float
    following_seconds: float
    """Of one transaction, for all sharers."""
    is_measured: bool
    sharers: int = 1

    @property
    def changes(self) -> int:
        return max(self.transactions.values(), default=0)

    def decision(self) -> Decision:
        """Change the way only for one that takes half as long."""
        following = self.changes * self.following_seconds / max(1, self.sharers)
        recomputing = self.recompute_seconds
        numbers = {
            "changing_transactions": float(self.changes),
            "following_seconds": following,
            "recompute_seconds": recomputing,
        }
        now = Strategy.INCREMENTAL if self.is_followed else Strategy.COPIED
        if max(following, recomputing) < tuning.MANY_TIMES * tuning.SHORT_RUN:
            return Decision(now, DecisionReason.SMALL_CHANGE, numbers)
        chosen = now
        if following > tuning.DOUBLED * recomputing:
            chosen = Strategy.COPIED
        elif tuning.DOUBLED * following < recomputing:
            chosen = Strategy.INCREMENTAL
        why = DecisionReason.MEASURED if self.is_measured else DecisionReason.ESTIMATED
        return Decision(chosen, why, numbers)
