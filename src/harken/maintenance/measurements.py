"""The measurements of one node: how long finding its change took, for each strategy.

Recomputing takes about as long whatever changed, and longer as the relations grow. The time of
differentials depends on which relations changed, and on how many of their rows: it is measured for
some sizes of change, and estimated between and beyond them. An estimate is a lower bound.
Differentials that exceed their limit are interrupted, and then it is known that they take longer.

Law: an estimate never contradicts a measurement of the same size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from harken.maintenance import tuning

Case: TypeAlias = tuple[str, frozenset[str]]
"""The strategy, and the stored relations that had changed."""


@dataclass(slots=True)
class Taken:
    """The seconds that a change of a given size took, or after which it was interrupted."""

    size: int
    seconds: float
    broken_off: bool = False
    times: int = 1
    """The number of runs that this is the mean of; 0 for a first run that fetched rows from the
    lake."""
    credit: float = 0.0
    """The number of seconds by which it may be slower than another strategy and still be tried
    again."""
    stored: float = 0.0
    """The seconds in the last stored version of the measurement."""

    @property
    def at_least(self) -> float:
        return tuning.DOUBLED * self.seconds if self.broken_off else self.seconds


@dataclass(slots=True)
class Experience:
    rows: Mapping[str, float]
    """The sizes of the stored relations at the first measurement."""
    now: float = 0.0
    """The present total of these sizes."""
    naive: float | None = None
    naive_rows: float = 0.0
    """The total of these sizes when recomputing was last measured."""
    is_first: bool = False
    """Whether recomputing was only measured by the first evaluation, which includes planning."""
    spent: float = 0.0
    """The seconds of all differentials since the first evaluation."""
    reads_lake: bool = False
    """Whether any of the relations is in the lake."""
    by_spark: bool = True
    """Whether Spark did the first evaluation of a node that reads the lake. Otherwise its rows were
    fetched."""
    memory: int = field(default_factory=lambda: tuning.FEW)
    """The expected time is the mean of this many runs of the same size. It is larger where changes
    of one size can take very different times."""
    taken: dict[Case, dict[int, Taken]] = field(default_factory=dict)
    """For each case a measurement per power of two of changed rows."""
    is_news: bool = False
    """Whether there is a measurement that is not stored yet."""
    naive_stored: float = 0.0

    def note_naive(self, seconds: float, is_first: bool = False) -> None:
        self.is_news |= is_first != self.is_first or _is_news(seconds, self.naive_stored)
        self.naive, self.naive_rows, self.is_first = seconds, self.now, is_first

    def to_json(self) -> dict[str, Any]:
        """The measurements as JSON. They count as stored from now on."""
        self.naive_stored = self.naive or 0.0
        taken = []
        for (strategy, changed), known in self.taken.items():
            for each in known.values():
                each.stored = each.seconds
                measured = [each.size, each.seconds, each.broken_off, each.times]
                taken.append([strategy, sorted(changed), *measured])
        return {
            "rows": dict(self.rows),
            "naive": self.naive,
            "naive_rows": self.naive_rows,
            "is_first": self.is_first,
            "is_far": self.reads_lake,
            "by_spark": self.by_spark,
            "memory": self.memory,
            "taken": taken,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Experience:
        """
        >>> known = Experience({"f": 10.0}, now=10.0)
        >>> known.note_naive(0.5)
        >>> known.note(("incremental", frozenset({"f"})), 4, 0.25)
        >>> again = Experience.from_json(known.to_json())
        >>> again.expected(("incremental", frozenset({"f"})), 4), again.naive, again.rows
        (0.25, 0.5, {'f': 10.0})
        """
        taken, reads_lake = stored.pop("taken"), stored.pop("is_far")
        found = cls(**stored, reads_lake=reads_lake, naive_stored=stored["naive"] or 0.0)
        for strategy, changed, size, seconds, broken_off, times in taken:
            known = found.taken.setdefault((strategy, frozenset(changed)), {})
            known[size.bit_length()] = Taken(size, seconds, broken_off, times, stored=seconds)
        return found

    @property
    def naive_seconds(self) -> float | None:
        """The expected seconds of recomputing, scaled to the present sizes; None if not
        measured."""
        if self.naive is None:
            return None
        return self.naive * (1 + self.now) / (1 + self.naive_rows)

    def wants_sample(self, spent: float) -> bool:
        """Whether to time recomputing once more, because differentials took a relevant share of its
        first measurement."""
        if not self.is_first or self.naive is None:
            return False
        if not self.reads_lake:
            return tuning.MANY_TIMES * spent > self.naive
        self.spent += spent
        factor = tuning.SEVERAL_TIMES if self.by_spark else tuning.MANY_TIMES
        return factor * self.spent > self.naive

    @property
    def budget(self) -> float:
        """The time limit of differentials, in seconds. It exceeds the time of recomputing, because
        an interrupted run does not tell how long it would have taken."""
        naive = self.naive_seconds
        return tuning.TIME_LIMIT_FACTOR * naive if naive is not None else math.inf

    def note(
        self,
        case: Case,
        size: int,
        seconds: float,
        broken_off: bool = False,
        has_fetched: bool = False,
    ) -> None:
        """Record the time of a change; `has_fetched` if rows were fetched from the lake for it.
        After a first fetch the rows may be cached for later changes, so that run does not count
        fully."""
        known = self.taken.setdefault(case, {})
        before = known.get(size.bit_length())
        times = 0 if has_fetched and before is None and not broken_off else 1
        if before is not None and not before.broken_off:
            if broken_off and self.memory > tuning.FEW:
                seconds, broken_off = tuning.DOUBLED * seconds, False
            if not broken_off:
                times = min(before.times + 1, self.memory)
                mean = before.seconds * size / before.size
                seconds = mean + (seconds - mean) / times
        elif broken_off and before is not None:
            times = before.times + 1
        stored = before.stored if before is not None else 0.0
        turned = before is not None and before.broken_off != broken_off
        self.is_news |= turned or _is_news(seconds, stored)
        known[size.bit_length()] = Taken(size, seconds, broken_off, times, stored=stored)

    def is_measured(self, case: Case, size: int) -> bool:
        known = self.taken.get(case, {}).get(size.bit_length())
        return known is not None and not known.broken_off

    def ran_away(self, case: Case, size: int) -> bool:
        """Whether every run was interrupted, often enough to give up. Then the strategy is not
        tried again until the sizes of the relations have doubled and these measurements are
        dropped."""
        known = self.taken.get(case, {}).get(size.bit_length())
        return known is not None and known.broken_off and known.times >= tuning.FEW

    def note_runaway(self, case: Case, size: int, seconds: float) -> None:
        """A run took many times as long as another strategy, and was interrupted."""
        self.taken.setdefault(case, {})[size.bit_length()] = Taken(
            size, seconds, broken_off=True, times=tuning.FEW
        )
        self.is_news = True

    def expected(self, case: Case, size: int) -> float:
        """The expected seconds of differentials, a lower bound where it is not measured.

        >>> known = Experience({})
        >>> case = ("incremental", frozenset({"f"}))
        >>> known.note(case, 10, 1.0)
        >>> known.expected(case, 5), known.expected(case, 9), known.expected(case, 1000)
        (0.5, 0.9, 1.0)
        >>> known.note(case, 1000, 3.0, broken_off=True)
        >>> known.expected(case, 1000), known.expected(case, 5000)
        (6.0, 6.0)
        """
        known = self.taken.get(case, {})
        same = known.get(size.bit_length())
        if same is not None:
            return same.at_least * size / same.size
        points = sorted(known.values(), key=lambda each: each.size)
        smaller = [each for each in points if each.size < size]
        larger = next((each for each in points if each.size > size), None)
        if not smaller:
            unknown = larger is None or larger.broken_off
            return 0.0 if larger is None or unknown else larger.seconds * size / larger.size
        if larger is None or larger.broken_off:
            return _beyond(smaller, size, self.reads_lake)
        last = smaller[-1]
        part = (size - last.size) / (larger.size - last.size)
        return last.at_least + part * max(0.0, larger.seconds - last.at_least)

    def best_of(
        self, cases: Sequence[Case], size: int, trial: Callable[[float], int] = lambda _: 1
    ) -> Case:
        """The case that is worth running next: usually the fastest. Few measurements count for less
        than many, and a slower case is tried again when its credit covers the extra time. A trial
        is a series of changes, whose number `trial` computes from the expected seconds."""
        place = size.bit_length()

        def optimistic_seconds(case: Case) -> float:
            found = self.taken.get(case, {}).get(place)
            if found is None:
                return self.expected(case, size)
            tried = 1.0 if found.broken_off else found.times / (found.times + 1)
            seconds = self.expected(case, size)
            return seconds * tried - found.credit / trial(seconds)

        return min(cases, key=optimistic_seconds)

    def credit_others(self, cases: Sequence[Case], taken: Case, size: int) -> None:
        """Give the other cases credit: they may take a little longer than this one when they are
        tried again."""
        seconds = self.expected(taken, size)
        for case in cases:
            found = self.taken.get(case, {}).get(size.bit_length())
            if case != taken and found is not None:
                is_doubtful = found.times <= tuning.FEW and not found.broken_off
                new, old = tuning.INVESTMENT, tuning.SMALL_SHARE
                found.credit += (new if is_doubtful else old) * seconds

    def try_again(self, case: Case, size: int) -> None:
        """A slower case is being tried again: its old measurements count for less."""
        found = self.taken.get(case, {}).get(size.bit_length())
        if found is not None:
            found.credit, found.times = 0.0, min(found.times, tuning.FEW)

    def prefers_recomputing(self, case: Case, size: int) -> bool | None:
        """Whether recomputing is faster; None if that is not measured."""
        naive = self.naive_seconds
        if naive is None:
            return None
        return self.assumed_seconds(case, size) > naive

    def assumed_seconds(self, case: Case, size: int) -> float:
        """The seconds of differentials to compare with recomputing: the expected ones, reduced
        where that is to encourage a trial."""
        if self.ran_away(case, size):
            return math.inf
        known = self.taken.get(case, {}).get(size.bit_length())
        differentials = self.expected(case, size)
        if known is not None and known.times == 0:
            return differentials / tuning.DOUBLED
        if known is None and self.reads_lake:
            return differentials / tuning.TIME_LIMIT_FACTOR
        return differentials

    def forget(self, case: Case, size: int) -> None:
        """Let the measurement of the slower strategy decay a little, so that a wrong one is
        corrected one day."""
        naive = self.naive_seconds
        if naive is None or self.naive is None or self.ran_away(case, size):
            return
        differentials = self.assumed_seconds(case, size)
        known = self.taken.get(case, {}).get(size.bit_length())
        if differentials > naive:
            if known is not None:
                known.seconds *= tuning.DECAY
        elif differentials > naive / tuning.DOUBLED:
            self.naive *= tuning.DECAY

    def lines(self) -> Iterator[str]:
        """The measurements in words, for `explain`."""
        if self.naive is not None:
            what = "the first evaluation" if self.is_first else "recomputing"
            yield f"{what} took {1e3 * self.naive:.1f} ms"
        for (strategy, changed), known in self.taken.items():
            of = ", ".join(sorted(changed))
            for _, each in sorted(known.items()):
                took = "was interrupted after" if each.broken_off else "took"
                ms = 1e3 * each.seconds
                yield f"{strategy} {took} {ms:.1f} ms for {each.size} changed rows of {of}"


def _is_news(seconds: float, stored: float) -> bool:
    return not stored / tuning.DOUBLED <= seconds <= stored * tuning.DOUBLED


def _beyond(smaller: list[Taken], size: int, reads_lake: bool) -> float:
    """The estimate beyond the largest measured size. It continues the last growth. In the lake an
    interrupted run is scaled by the number of rows."""
    last = smaller[-1]
    if last.broken_off:
        return last.at_least * (size / last.size if reads_lake else 1.0)
    slopes = [
        (after.seconds - before.seconds) / (after.size - before.size)
        for before, after in pairwise(smaller[-2:])
    ]
    return last.seconds + sum(max(0.0, each) * (size - last.size) for each in slopes)
