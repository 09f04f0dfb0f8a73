"""What one wave measures: the seconds that its nodes took are recorded.

Runs that include planning are not recorded. If recomputing a view was only measured by its first
evaluation, it is timed once more when differentials took long enough for it to matter.

Law: measuring never changes an answer; timing a recomputation only reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TypeVar

from harken.engines.protocol import BrokenOff, Connection
from harken.errors import HarkenError, SafetyFault
from harken.maintenance import tuning
from harken.maintenance.chooser import Chooser
from harken.maintenance.nodes import DerivedNode, Node, TotalsNode, ViewNode
from harken.maintenance.strategies import FROM_SCRATCH, Strategy
from harken.maintenance.wave_measurements import WaveMeasurements

T = TypeVar("T")


class TookTooLong(Exception):
    """The differentials of a node were interrupted: recomputing is faster."""


@dataclass(slots=True)
class WaveLearning:
    measured: WaveMeasurements
    _started: float = 0.0
    _fetched: int = 0
    """The number of rows fetched from the lake before the wave."""
    _noted: set[str] = field(default_factory=set)
    """Nodes whose time was recorded, or that were recomputed."""
    _shared: dict[str, float] = field(default_factory=dict)
    """Each node's share of the seconds of work that was done for several nodes at once."""
    _fresh: set[str] = field(default_factory=set)
    """Nodes that ran a plan for the first time: their seconds include planning."""

    def __post_init__(self) -> None:
        if self.measured.chooser.forced is None:
            self._fetched = self._connection.fetched
            if self.measured.is_settled:
                self._started = self._connection.working_time()

    @property
    def _connection(self) -> Connection:
        return self.measured.connection

    @property
    def _chooser(self) -> Chooser:
        return self.measured.chooser

    # --- timing ------------------------------------------------------------------------------

    def share(self, nodes: Sequence[Node], work: Callable[[], object]) -> None:
        """Do work for several nodes at once; each is charged its part of the time."""
        if not self.measured.is_timed:
            work()
            return
        started = self._connection.working_time()
        work()
        took = self._connection.working_time() - started
        self._shared |= {node.id: took / len(nodes) for node in nodes}

    def run(self, node: Node, strategy: Strategy, work: Callable[[], T]) -> T:
        """Do the work of a node within its time limit, and record its time."""
        magnitude = (strategy, self.measured.size.bit_length())
        if not self.measured.is_timed and magnitude in node.finished:
            return work()
        found = self._run_limited(node, strategy, work)
        node.finished.add(magnitude)
        return found

    def _run_limited(self, node: Node, strategy: Strategy, work: Callable[[], T]) -> T:
        if not self.measured.is_timed:
            return self._run_first(node, strategy, work)
        is_fresh, node.is_fresh = node.is_fresh, False
        is_naive = strategy in FROM_SCRATCH
        if is_fresh and not is_naive:
            self._fresh.add(node.id)
        limit = self.measured.time_limit(node, strategy)
        if limit <= 0:  # Spark could not be interrupted, so it is not started
            raise TookTooLong
        clock = self._connection.working_time
        started = clock()
        try:
            with self._connection.limited(limit) if limit < math.inf else nullcontext():
                found = work()
        except BrokenOff:
            raise TookTooLong from None
        finally:
            took = clock() - started + self._shared.pop(node.id, 0.0)
            self._chooser.log.note_seconds(node.id, took)
            if not is_naive or isinstance(node, DerivedNode):  # its time counts for the nodes above
                self.measured.took[node.id] = self.measured.took.get(node.id, 0.0) + took
        if is_naive:
            self._note_naive(node, took)
        return found

    def _run_first(self, node: Node, strategy: Strategy, work: Callable[[], T]) -> T:
        """Do the work of a node that is not timed, for the first time. It is interrupted if it runs
        away, and then the rest of the wave is timed."""
        if strategy in FROM_SCRATCH:
            return work()
        started = self._connection.working_time()
        above = (
            self.measured.graph.affects[node.id].values() if isinstance(node, DerivedNode) else ()
        )
        try:
            with self._connection.limited(self._chooser.first_limit((node, *above))):
                return work()
        except BrokenOff:
            took = self._connection.working_time() - started
            case, size = self.measured.case(node, strategy)
            self._chooser.note_runaway(node, case, size, took)
            self.measured.begin_timing(node, took)
            raise TookTooLong from None

    # --- recording ---------------------------------------------------------------------------

    def note(self, node: Node, strategy: Strategy) -> None:
        """The change of a node was found: record its time."""
        measured = self.measured
        if not measured.is_timed:
            return
        self._noted.add(node.id)
        if strategy in FROM_SCRATCH:
            return
        spent = measured.spent(node)
        may_record = isinstance(node, DerivedNode) or measured.experience(node) is not None
        if spent >= tuning.SHORT_RUN or (measured.is_large and may_record):
            self._note(node, strategy, spent)

    def note_broken_off(self, node: Node, strategy: Strategy) -> None:
        self._note(node, strategy, self.measured.spent(node), broken_off=True)

    def _note(self, node: Node, strategy: Strategy, spent: float, broken_off: bool = False) -> None:
        known = self.measured.note_experience(node)
        too_long = broken_off and spent >= tuning.FIRST_RUN
        if too_long or self._fresh.isdisjoint(self.measured.with_below(node)):
            has_fetched = self._connection.fetched > self._fetched
            known.note(*self.measured.case(node, strategy), spent, broken_off, has_fetched)
            self._chooser.note_measured(node, known)

    def _note_naive(self, node: Node, took: float) -> None:
        known = self.measured.experience(node)
        if known is None and took >= tuning.SHORT_RUN:
            known = self.measured.note_experience(node)
        if known is not None:
            known.note_naive(took)
            self._chooser.note_measured(node, known)
            # Timing would slow down rules, whose small changes are short.
            if node.old_state is not None:
                self._chooser.note_experienced()

    # --- the end of the wave -----------------------------------------------------------------

    def finish(self, query: Callable[[ViewNode], Callable[[], object]]) -> None:
        """The wave has ended. `query` returns the work of recomputing a view."""
        measured = self.measured
        if measured.is_settled:
            took = self._connection.working_time() - self._started
            self._chooser.note_untimed_wave(measured.incoming, took)
        if not measured.is_timed:
            return
        considered = list(measured.considered.values())
        for node in considered:
            self._note_passed_over(node)
        for node in considered:
            if isinstance(node, ViewNode):
                self._sample(node, query)
        self._raise_version_if_turned()
        if not measured.has_runaway and all(map(self._is_clear, considered)):
            known = filter(None, map(measured.experience, considered))
            naive = [each.naive_seconds for each in known if each.naive_seconds is not None]
            fastest = min(naive, default=math.inf)
            self._chooser.stop_measuring(measured.incoming, measured.size, fastest)

    def _raise_version_if_turned(self) -> None:
        """Increase the version if the next wave like this one would decide differently."""
        measured = self.measured
        for node in measured.considered.values():
            verdict = measured.verdict(node, measured.expected_strategy(node))
            if verdict is not measured.prefers_recomputing(node):
                self._chooser.raise_version()
                return

    def _note_passed_over(self, node: Node) -> None:
        measured = self.measured
        known, expected = measured.experience(node), measured.expected_strategy(node)
        if known is not None and not isinstance(node, TotalsNode):
            known.forget(*measured.case(node, expected))
        # If no change reached a node, its time is that of finding this out.
        if node.id not in self._noted and measured.prefers_recomputing(node) is False:
            self.note(node, expected)

    def _sample(self, node: ViewNode, query: Callable[[ViewNode], Callable[[], object]]) -> None:
        """Time recomputing a view, if only its first evaluation is measured and differentials took
        a relevant share of that. The time limit is that of the differentials."""
        known = self.measured.experience(node)
        if known is None or self.measured.prefers_recomputing(node):
            return
        spent = self.measured.spent(node)
        if spent < tuning.SHORT_RUN or not known.wants_sample(spent):
            return
        try:
            work, fetched = query(node), self._connection.fetched
        except SafetyFault:  # there is no statement for it
            return
        known.is_first, node.is_fresh = node.is_fresh, False
        took = self._timed(tuning.TIME_LIMIT_FACTOR * spent, work)
        if took is not None:  # a run that fetched rows is slower than later ones
            known.note_naive(took, is_first=self._connection.fetched > fetched)
            self._chooser.note_measured(node, known)
        elif known.reads_lake:
            known.is_first, known.spent = True, 0.0

    def _timed(self, limit: float, work: Callable[[], object]) -> float | None:
        """The seconds that work takes; None if it fails or exceeds the limit."""
        started = self._connection.working_time()
        try:
            with self._connection.limited(limit):
                work()
        except (BrokenOff, HarkenError):
            return None
        return self._connection.working_time() - started

    def _is_clear(self, node: Node) -> bool:
        """Whether differentials were clearly faster. Small changes of nodes that were never
        measured count as fast."""
        measured = self.measured
        known = measured.experience(node)
        naive = known.naive_seconds if known is not None else None
        if naive is None:
            return not measured.is_large or isinstance(node, DerivedNode)
        return not measured.prefers_recomputing(node) and measured.spent(node) < naive
