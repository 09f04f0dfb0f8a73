"""What it took to compute the change of a node, by the way it was computed: its experience.

Naive evaluation takes about as long whatever changed, and longer as the relations grow. What
differentials take depends on which relations changed, and on how many of their rows: it is known
for some sizes of change, and guessed between and beyond them. A guess is what they take at the
least, as far as anyone knows: they may be broken off, and then it is known that they take longer.

Law: what was found out about one size of change is never contradicted by a guess for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from harken.maintenance import tuning

Case: TypeAlias = tuple[str, frozenset[str]]
"""How the change was computed, and the stored relations that had changed."""


@dataclass(slots=True)
class Taken:
    """The seconds that a change of a given size took, or after which it was interrupted."""

    size: int
    seconds: float
    broken_off: bool = False
    times: int = 1
    """How many of the last it is the mean of; 0 if it is one for which rows had to be fetched."""
    credit: float = 0.0
    """The seconds that it may take longer than another way, to be tried again."""
    stored: float = 0.0
    """The seconds as they were last stored."""

    @property
    def at_least(self) -> float:
        return tuning.DOUBLED * self.seconds if self.broken_off else self.seconds


@dataclass(slots=True)
class Experience:
    rows: Mapping[str, float]
    """The rows of the stored relations, when the first of this was found out."""
    now: float = 0.0
    """The rows of all of them, as they are."""
    naive: float | None = None
    naive_rows: float = 0.0
    """The rows of all of them when naive evaluation was measured."""
    is_first: bool = False
    """Is that of the first evaluation of all?"""
    spent: float = 0.0
    """What differentials have taken since the first evaluation."""
    reads_lake: bool = False
    """Are any of the relations far away?"""
    by_spark: bool = True
    """If so, was the first evaluation Spark's? Otherwise rows had to come here for it."""
    memory: int = tuning.MEMORY
    """A change is expected to take the mean of this many of the last changes of its size: of more,
    where changes of one size may take very different times."""
    taken: dict[Case, dict[int, Taken]] = field(default_factory=dict)
    """For each case what was found out, one for each power of two rows."""
    is_news: bool = False
    """Was something learnt that is not stored yet?"""
    naive_stored: float = 0.0

    def note_naive(self, seconds: float, is_first: bool = False) -> None:
        self.is_news |= is_first != self.is_first or _is_news(seconds, self.naive_stored)
        self.naive, self.naive_rows, self.is_first = seconds, self.now, is_first

    def to_json(self) -> dict[str, Any]:
        """What is stored; from now on that is known."""
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
        """What naive evaluation takes, as far as is known."""
        if self.naive is None:
            return None
        return self.naive * (1 + self.now) / (1 + self.naive_rows)

    def wants_sample(self, spent: float) -> bool:
        """Is it worth finding out what naive evaluation takes, since differentials took so long?"""
        if not self.is_first or self.naive is None:
            return False
        if not self.reads_lake:
            return tuning.SAMPLE_FACTOR * spent > self.naive
        self.spent += spent
        factor = tuning.LAKE_SAMPLE_FACTOR if self.by_spark else tuning.SAMPLE_FACTOR
        return factor * self.spent > self.naive

    @property
    def budget(self) -> float:
        """How long differentials may take: somewhat longer, for of what is broken off close to
        its end, it is never known."""
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
        """Record what a change took, `has_fetched` if rows had to be fetched for it. The
        first time they may be there for all that follow; the second time they are not."""
        known = self.taken.setdefault(case, {})
        before = known.get(size.bit_length())
        times = 0 if has_fetched and before is None and not broken_off else 1
        if before is not None and not before.broken_off:
            if broken_off and self.memory > tuning.MEMORY:
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
        """Was it broken off each time that it was tried? Then it is not tried again before the
        relations have changed a good deal, when this experience is given up."""
        known = self.taken.get(case, {}).get(size.bit_length())
        return known is not None and known.broken_off and known.times >= tuning.MOST_ATTEMPTS

    def note_runaway(self, case: Case, size: int, seconds: float) -> None:
        """It took many times as long as another way, and was broken off."""
        self.taken.setdefault(case, {})[size.bit_length()] = Taken(
            size, seconds, broken_off=True, times=tuning.MOST_ATTEMPTS
        )
        self.is_news = True

    def expected(self, case: Case, size: int) -> float:
        """The seconds that differentials take at the least.

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
        """The way that may well be the fastest: what was tried once says less than what was tried
        often, and what was passed over is tried again when that adds little to the time. A trial
        is as many changes in a row as `trial` says for the expected seconds."""
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
        """The ways that were passed over may take a little longer the next time."""
        seconds = self.expected(taken, size)
        for case in cases:
            found = self.taken.get(case, {}).get(size.bit_length())
            if case != taken and found is not None:
                is_doubtful = found.times <= tuning.FEW_RUNS and not found.broken_off
                new, old = tuning.NEW_EXPLORATION_SHARE, tuning.EXPLORATION_SHARE
                found.credit += (new if is_doubtful else old) * seconds

    def try_again(self, case: Case, size: int) -> None:
        """A way that was passed over is being tried: what it took long ago counts for less."""
        found = self.taken.get(case, {}).get(size.bit_length())
        if found is not None:
            found.credit, found.times = 0.0, min(found.times, tuning.FEW_RUNS)

    def prefers_recomputing(self, case: Case, size: int) -> bool | None:
        """Is recomputing the faster way? None if that is not known."""
        naive = self.naive_seconds
        if naive is None:
            return None
        return self.assumed_seconds(case, size) > naive

    def assumed_seconds(self, case: Case, size: int) -> float:
        """The seconds that differentials are thought to take, for comparing them."""
        if self.ran_away(case, size):
            return math.inf
        known = self.taken.get(case, {}).get(size.bit_length())
        differentials = self.expected(case, size)
        if known is not None and known.times == 0:
            return tuning.FIRST_FETCH_DISCOUNT * differentials
        if known is None and self.reads_lake:
            return tuning.LAKE_GUESS_DISCOUNT * differentials
        return differentials

    def forget(self, case: Case, size: int) -> None:
        """The strategy that was passed over, and may well have been the faster one, is thought a
        little faster from now on."""
        naive = self.naive_seconds
        if naive is None or self.naive is None or self.ran_away(case, size):
            return
        differentials = self.assumed_seconds(case, size)
        known = self.taken.get(case, {}).get(size.bit_length())
        if differentials > naive:
            if known is not None:
                known.seconds *= tuning.DECAY
        elif differentials > tuning.CLOSE_RATIO * naive:
            self.naive *= tuning.DECAY

    def lines(self) -> Iterator[str]:
        """For `explain`."""
        if self.naive is not None:
            what = "the first evaluation" if self.is_first else "naive evaluation"
            yield f"{what} took {1e3 * self.naive:.1f} ms"
        for (strategy, changed), known in self.taken.items():
            of = ", ".join(sorted(changed))
            for _, each in sorted(known.items()):
                took = "was broken off after" if each.broken_off else "took"
                ms = 1e3 * each.seconds
                yield f"{strategy} {took} {ms:.1f} ms for {each.size} changed rows of {of}"


def _is_news(seconds: float, stored: float) -> bool:
    return not stored / tuning.DOUBLED <= seconds <= stored * tuning.DOUBLED


def _beyond(smaller: list[Taken], size: int, reads_lake: bool) -> float:
    """For more rows than ever: by how the seconds grew last, or no longer than the last time. Far
    away, what had to be broken off takes as much longer as there are more rows."""
    last, growing = smaller[-1], tuning.LAKE_GROWTH if reads_lake else tuning.GROWTH
    if last.broken_off:
        return last.at_least * (size / last.size if reads_lake else 1.0)
    slopes = [
        (after.seconds - before.seconds) / (after.size - before.size)
        for before, after in pairwise(smaller[-2:])
    ]
    return last.seconds + sum(growing * max(0.0, each) * (size - last.size) for each in slopes)
