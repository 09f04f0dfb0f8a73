"""The strategies of a recursive relation, with the time that each has taken, and which to run next.

Rederivation is tried first. When it has taken many times as long as storing the rows does, the rows
are stored; from then on each change uses the strategy that has been fastest. The rows are dropped
when the time lost by storing them adds up to the cost of storing them again.

Law: `pick` changes nothing; `take` records the choice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harken.engines.protocol import KeptRecursion
from harken.maintenance import tuning
from harken.maintenance.investment import Investment
from harken.maintenance.measurements import Case, Experience
from harken.maintenance.strategies.names import Strategy

REDERIVED_INTO_ROWS = "stored-external"
"""The case of rederivation while rows are stored, which have to be updated as well."""


@dataclass(frozen=True, slots=True)
class Pick:
    """The strategy to run next, the case that it is measured as, and the cases that were
    compared."""

    strategy: Strategy
    case: Case | None
    """None if the strategy of the last change is repeated without comparing."""
    cases: tuple[Case, ...] = ()
    is_fastest: bool = True
    """If not, it is being tried again, to correct an old measurement."""

    def numbers(self, known: Experience, size: int) -> dict[str, float]:
        """The expected seconds of the compared strategies."""
        found: dict[str, float] = {"changed_rows": size}
        for case in self.cases:
            name = "stored_external" if case[0] == REDERIVED_INTO_ROWS else str(case[0])
            found[f"{name}_seconds"] = known.expected(case, size)
        if known.naive_seconds is not None:
            found["recompute_seconds"] = known.naive_seconds
        return found


@dataclass(slots=True)
class Mean:
    """The mean of the last `MANY_RUNS` times."""

    seconds: float = 0.0
    times: int = 0

    def note(self, seconds: float) -> None:
        self.times = min(self.times + 1, tuning.MANY_RUNS)
        self.seconds += (seconds - self.seconds) / self.times


@dataclass(slots=True)
class RecursionHistory(Investment):
    """The times of each strategy of a recursive node, and the time that storing its rows has saved
    or cost. Rederivation needs no stored rows."""

    regret: float = 0.0
    """The seconds that changes with stored rows have taken longer than without."""
    last: Strategy = Strategy.UNCHANGED
    """The strategy of the last change."""
    trial_changes_left: int = 0
    """A trial runs the same strategy for this many more changes, even if another seems faster."""
    same: int = 0
    """The number of changes in a row that were found by the same strategy, not counting trials."""
    untimed_left: int = 0
    """The last strategy is repeated for this many more changes without timing them,"""
    largest: int = 0
    """if they have at most this many rows."""
    above: dict[bool, Mean] = field(default_factory=dict)
    """The mean seconds that the nodes above take for a change, by whether the rows are stored."""

    def repeats_last(self, size: int) -> bool:
        """Whether the last strategy is repeated for a change of this size, without comparing."""
        return self.untimed_left > 0 and size <= self.largest

    def note_strategy(self, strategy: Strategy, size: int, stored: bool) -> None:
        """A change was found by this strategy, after comparing."""
        settles = (
            stored and strategy == self.last != Strategy.EXTERNAL and not self.trial_changes_left
        )
        self.same = self.same + 1 if settles else 0
        self.largest = max(size, self.largest) if settles else 0
        self.untimed_left = tuning.MANY_RUNS if self.same >= tuning.MANY_RUNS else 0
        self.last = strategy

    def pick(
        self, known: Experience, changed: frozenset[str], size: int, stored: KeptRecursion | None
    ) -> Pick:
        """Choose the next strategy. Stored rows have to be updated by the change."""
        if self.trial_changes_left and (self.last != Strategy.MATERIALIZED or stored is not None):
            return Pick(self.last, None)
        cases: list[Case] = [(Strategy.EXTERNAL, changed)]
        if stored is not None:
            into_rows = (REDERIVED_INTO_ROWS, changed)
            if not stored.can_apply or known.is_measured(into_rows, size):
                cases = [into_rows] if stored.can_apply else []
            cases.append((Strategy.MATERIALIZED, changed))
        naive, is_tried = known.naive_seconds, known.is_measured((Strategy.NAIVE, changed), size)
        if is_tried:
            cases.append((Strategy.NAIVE, changed))
        cases = [each for each in cases if not known.ran_away(each, size)]
        if not cases:
            return Pick(Strategy.NAIVE, (Strategy.NAIVE, changed))
        case = known.best_of(cases, size, _trial)
        longest = tuning.SEVERAL_TIMES * known.expected(case, size)
        if not is_tried and naive is not None and naive < longest:
            return Pick(Strategy.NAIVE, (Strategy.NAIVE, changed), tuple(cases))
        best = Strategy.EXTERNAL if case[0] in (REDERIVED_INTO_ROWS, Strategy.EXTERNAL) else case[0]
        fastest = min(cases, key=lambda each: known.expected(each, size))
        return Pick(_named(best), case, tuple(cases), case == fastest)

    def take(self, pick: Pick, known: Experience, size: int) -> None:
        """Record that a change is found by the picked strategy."""
        if pick.case is None:
            self.trial_changes_left -= 1
            return
        known.credit_others(pick.cases, pick.case, size)
        if not pick.is_fastest:
            known.try_again(pick.case, size)
            if pick.strategy != self.last:
                self.trial_changes_left = _trial(known.expected(pick.case, size)) - 1

    def is_cold(self, strategy: str) -> bool:
        """Whether the statements of this strategy have not run for a while, so that SQLite prepares
        them again."""
        is_early = self.trial_changes_left >= tuning.FEW // 2
        return bool(self.trial_changes_left) and (strategy != self.last or is_early)

    def rederivation_limit(
        self, known: Experience, changed: frozenset[str], size: int, stored: bool
    ) -> float:
        """The time limit of rederivation, in seconds, after which another strategy is used
        instead."""
        naive = known.naive_seconds
        first = tuning.first_run_limit(known.reads_lake)
        limit = first if naive is None else tuning.TIME_LIMIT_FACTOR * naive
        if stored and known.is_measured((Strategy.MATERIALIZED, changed), size):
            expected = known.expected((Strategy.MATERIALIZED, changed), size)
            limit = min(limit, tuning.TIME_LIMIT_FACTOR * expected)
        return max(limit, tuning.SHORT_RUN)

    def runaway_limit(
        self, known: Experience, changed: frozenset[str], size: int, requested: str
    ) -> float:
        """The seconds after which a requested strategy counts as running away: a multiple of the
        best measured time of the others."""
        others = [
            known.expected((each, changed), size)
            for each in (Strategy.EXTERNAL, Strategy.MATERIALIZED, Strategy.NAIVE)
            if each != requested and known.is_measured((each, changed), size)
        ]
        others += [known.naive_seconds] if known.naive_seconds is not None else []
        least = min(others, default=0.0)
        first = tuning.first_run_limit(known.reads_lake)
        return tuning.MANY_TIMES * max(least, first)

    def note_without_rows(self, seconds: float) -> None:
        """A change took this many seconds without stored rows."""
        self.spent += seconds

    def note_with_rows(self, seconds: float, known: Experience, case: Case, size: int) -> None:
        """A change took this many seconds with stored rows; without them it would be measured as
        `case`."""
        seconds -= known.expected(case, size)
        if len(self.above) == 2:
            seconds += self.above[True].seconds - self.above[False].seconds
        self.regret += seconds

    def note_reader_seconds(self, seconds: float, stored: bool) -> None:
        """The nodes above took this many seconds for a change."""
        self.above.setdefault(stored, Mean()).note(seconds)
        if not stored:
            self.spent += seconds

    def give_up_rows(self, known: Experience) -> None:
        """Stored rows did not pay. They are tried again when changes without them have taken
        longer."""
        enough = (known.naive_seconds or 0.0) / tuning.INVESTMENT
        self.regret, self.spent = 0.0, 0.0
        self.trial = tuning.DOUBLED * max(self.trial, enough)

    def should_drop_rows(self, known: Experience) -> bool:
        """Whether stored rows have cost more time than storing them again would."""
        return known.naive_seconds is not None and self.regret > known.naive_seconds


def _named(strategy: str) -> Strategy:
    strategies = (Strategy.EXTERNAL, Strategy.MATERIALIZED, Strategy.NAIVE)
    return next(each for each in strategies if each == strategy)


def _trial(seconds: float) -> int:
    """The number of changes in a trial of a strategy that is expected to take this many seconds."""
    return tuning.FEW if seconds < tuning.SHORT_RUN else 1
