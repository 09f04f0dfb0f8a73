"""A figure of a benchmark, and how it is measured.

Machines are noisy, so a ratio always comes from one run: both sides take turns, each goes first in
every other round, and the median of the rounds' ratios is reported.
"""

from __future__ import annotations

import gc
import operator
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harken.database.results import to_json

Work = Callable[[], object]
Clock = Callable[[], float]

cpu_time = time.thread_time
"""The clock for work in memory: other programs do not count."""

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {"<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a benchmark's report; `needs` is the target, as `<= 4`, if there is one.

    >>> Figure("point-write", "harken/apsw", 2.1, needs="<= 4").holds
    True
    """

    name: str
    measure: str
    value: float
    params: Mapping[str, Any] = field(default_factory=dict)
    needs: str | None = None

    @property
    def holds(self) -> bool | None:
        if self.needs is None:
            return None
        comparison, bound = self.needs.split()
        return _COMPARISONS[comparison](rounded(self.value), float(bound))

    def json_line(self) -> str:
        line = {
            "kind": "bench",
            "name": self.name,
            "params": dict(self.params),
            "measure": self.measure,
            "value": rounded(self.value),
        }
        if self.needs is not None:
            line |= {"needs": self.needs, "holds": self.holds}
        return to_json(line)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of ours and of theirs, and ours/theirs: the medians of the rounds."""

    ours: float
    theirs: float
    ratio: float


def seconds(work: Work, clock: Clock = time.perf_counter) -> float:
    gc.collect()
    start = clock()
    work()
    return clock() - start


def median_seconds(work: Work, rounds: int) -> float:
    return statistics.median(seconds(work) for _ in range(rounds))


def compare(ours: Work, theirs: Work, rounds: int, clock: Clock = time.perf_counter) -> Timing:
    """Time both sides in turns."""
    pairs = []
    for index in range(rounds):
        if index % 2:
            theirs_took, ours_took = seconds(theirs, clock), seconds(ours, clock)
        else:
            ours_took, theirs_took = seconds(ours, clock), seconds(theirs, clock)
        pairs.append((ours_took, theirs_took))
    return Timing(
        statistics.median(ours_took for ours_took, _ in pairs),
        statistics.median(theirs_took for _, theirs_took in pairs),
        statistics.median(ours_took / theirs_took for ours_took, theirs_took in pairs),
    )


def rounded(value: float) -> float:
    """Three significant digits; whole numbers stay whole.

    >>> rounded(2.14159), rounded(123456.7), rounded(0.0001234)
    (2.14, 123457, 0.000123)
    """
    if isinstance(value, int) or abs(value) >= 100:
        return round(value)
    return float(f"{value:.3g}")
