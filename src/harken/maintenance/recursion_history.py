"""What is known of the ways in which a recursive relation finds its change, and which is next.

Rederivation is tried first. When it has taken many times as long as storing the rows does, that is
done as well; from then on each change takes the way that took the least. When that has taken as
much longer than without stored rows as it takes to store them, they are dropped.

Law: picking changes nothing; `take` notes what was picked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harken.engines.protocol import KeptRecursion
from harken.maintenance import tuning
from harken.maintenance.investment import Investment
from harken.maintenance.measurements import Case, Experience
from harken.maintenance.strategies.names import Strategy

REDERIVED_INTO_ROWS = "external, with a stored copy"
"""Rederivation does not need stored rows, but they have to be brought up to date with it."""


@dataclass(frozen=True, slots=True)
class Pick:
    """The next way: what it is measured as, and what was compared."""

    strategy: Strategy
    way: Case | None
    """None if the change goes the way of the one before, without comparing."""
    ways: tuple[Case, ...] = ()
    is_fastest: bool = True
    """If not, it is tried again, to correct an old measurement."""

    def numbers(self, known: Experience, size: int) -> dict[str, float]:
        """The seconds that the ways are expected to take."""
        found: dict[str, float] = {"changed_rows": size}
        for case in self.ways:
            name = "stored_external" if case[0] == REDERIVED_INTO_ROWS else str(case[0])
            found[f"{name}_seconds"] = known.expected(case, size)
        if known.naive_seconds is not None:
            found["recompute_seconds"] = known.naive_seconds
        return found


@dataclass(slots=True)
class Mean:
    """Of the last times."""

    seconds: float = 0.0
    times: int = 0

    def note(self, seconds: float) -> None:
        self.times = min(self.times + 1, tuning.LONG_MEMORY)
        self.seconds += (seconds - self.seconds) / self.times


@dataclass(slots=True)
class RecursionHistory(Investment):
    """Which way a node goes when it may choose, by what the ways have taken before. What may be
    kept are the rows; rederivation goes without."""

    share: float = field(default_factory=lambda: tuning.RECURSION_INVESTMENT)
    regret: float = 0.0
    """The seconds by which changes with stored rows have taken longer than without."""
    last: Strategy = Strategy.UNCHANGED
    """The way of the change before."""
    trial_changes_left: int = 0
    """So many more changes go the same way, whatever is thought the fastest."""
    same: int = 0
    """So many changes in a row have gone the way of the one before, and none to try it."""
    untimed_left: int = 0
    """So many more of them are not watched,"""
    largest: int = 0
    """if they are no larger than those."""
    above: dict[bool, Mean] = field(default_factory=dict)
    """The seconds that a change takes what reads the relation, if its rows are stored, or not."""

    def repeats_last(self, size: int) -> bool:
        """Does a change of this size go the way of the one before, whatever it takes?"""
        return self.untimed_left > 0 and size <= self.largest

    def note_strategy(self, strategy: Strategy, size: int, stored: bool) -> None:
        """A change was chosen for, and has gone this way."""
        settles = (
            stored and strategy == self.last != Strategy.EXTERNAL and not self.trial_changes_left
        )
        self.same = self.same + 1 if settles else 0
        self.largest = max(size, self.largest) if settles else 0
        self.untimed_left = tuning.UNTIMED_CHANGES if self.same >= tuning.SETTLED_AFTER else 0
        self.last = strategy

    def pick(
        self, known: Experience, changed: frozenset[str], size: int, stored: KeptRecursion | None
    ) -> Pick:
        """Of rows that are stored, the change has to bring them up to date."""
        if self.trial_changes_left and (self.last != Strategy.MATERIALIZED or stored is not None):
            return Pick(self.last, None)
        ways: list[Case] = [(Strategy.EXTERNAL, changed)]
        if stored is not None:
            into_rows = (REDERIVED_INTO_ROWS, changed)
            if not stored.can_apply or known.is_measured(into_rows, size):
                ways = [into_rows] if stored.can_apply else []
            ways.append((Strategy.MATERIALIZED, changed))
        naive, is_tried = known.naive_seconds, known.is_measured((Strategy.NAIVE, changed), size)
        if is_tried:
            ways.append((Strategy.NAIVE, changed))
        ways = [each for each in ways if not known.ran_away(each, size)]
        if not ways:
            return Pick(Strategy.NAIVE, (Strategy.NAIVE, changed))
        way = known.best_of(ways, size, _trial)
        longest = tuning.RECOMPUTE_TRIAL_FACTOR * known.expected(way, size)
        if not is_tried and naive is not None and naive < longest:
            return Pick(Strategy.NAIVE, (Strategy.NAIVE, changed), tuple(ways))
        best = Strategy.EXTERNAL if way[0] in (REDERIVED_INTO_ROWS, Strategy.EXTERNAL) else way[0]
        fastest = min(ways, key=lambda each: known.expected(each, size))
        return Pick(_named(best), way, tuple(ways), way == fastest)

    def take(self, pick: Pick, known: Experience, size: int) -> None:
        """A change goes the way that was picked."""
        if pick.way is None:
            self.trial_changes_left -= 1
            return
        known.credit_others(pick.ways, pick.way, size)
        if not pick.is_fastest:
            known.try_again(pick.way, size)
            if pick.strategy != self.last:
                self.trial_changes_left = _trial(known.expected(pick.way, size)) - 1

    def is_cold(self, strategy: str) -> bool:
        """Were the statements of this way not in use for a while?"""
        is_early = self.trial_changes_left >= tuning.WARM_TRIAL_CHANGES
        return bool(self.trial_changes_left) and (strategy != self.last or is_early)

    def rederivation_limit(
        self, known: Experience, changed: frozenset[str], size: int, stored: bool
    ) -> float:
        """How long rederivation may take before another way is gone instead."""
        naive = known.naive_seconds
        first = (
            tuning.FIRST_LAKE_REDERIVATION_LIMIT
            if known.reads_lake
            else tuning.FIRST_REDERIVATION_LIMIT
        )
        limit = first if naive is None else tuning.TIME_LIMIT_FACTOR * naive
        if stored and known.is_measured((Strategy.MATERIALIZED, changed), size):
            expected = known.expected((Strategy.MATERIALIZED, changed), size)
            limit = min(limit, tuning.TIME_LIMIT_FACTOR * expected)
        return max(limit, tuning.SHORTEST_LIMIT)

    def runaway_limit(
        self, known: Experience, changed: frozenset[str], size: int, way: str
    ) -> float:
        """How long a strategy that was asked for may run before it counts as running away: many
        times what the best other is known to take."""
        others = [
            known.expected((each, changed), size)
            for each in (Strategy.EXTERNAL, Strategy.MATERIALIZED, Strategy.NAIVE)
            if each != way and known.is_measured((each, changed), size)
        ]
        others += [known.naive_seconds] if known.naive_seconds is not None else []
        least = min(others, default=0.0)
        first = (
            tuning.FIRST_LAKE_REDERIVATION_LIMIT
            if known.reads_lake
            else (tuning.FIRST_REDERIVATION_LIMIT)
        )
        return tuning.RUNAWAY_FACTOR * max(least, first)

    def note_without_rows(self, seconds: float) -> None:
        """A change took so long without stored rows."""
        self.spent += seconds

    def note_with_rows(self, seconds: float, known: Experience, case: Case, size: int) -> None:
        """A change took so long with them, and is thought to take as long as `case` without."""
        seconds -= known.expected(case, size)
        if len(self.above) == 2:
            seconds += self.above[True].seconds - self.above[False].seconds
        self.regret += seconds

    def note_reader_seconds(self, seconds: float, stored: bool) -> None:
        """What reads the relation took so long."""
        self.above.setdefault(stored, Mean()).note(seconds)
        if not stored:
            self.spent += seconds

    def give_up_rows(self, known: Experience) -> None:
        """Stored rows were of no use: they are tried again when going without has taken longer."""
        enough = (known.naive_seconds or 0.0) / self.share
        self.regret, self.spent = 0.0, 0.0
        self.trial = tuning.DOUBLED * max(self.trial, enough)

    def should_drop_rows(self, known: Experience) -> bool:
        """Have stored rows cost as much more as it takes to store them again?"""
        return known.naive_seconds is not None and self.regret > known.naive_seconds


def _named(strategy: str) -> Strategy:
    ways = (Strategy.EXTERNAL, Strategy.MATERIALIZED, Strategy.NAIVE)
    return next(each for each in ways if each == strategy)


def _trial(seconds: float) -> int:
    """So many changes in a row are a trial of a way that is thought to take so long."""
    return tuning.TRIAL_CHANGES if seconds < tuning.COLD_STATEMENT_SECONDS else 1
