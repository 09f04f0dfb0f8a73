"""What the measurements say about the nodes of one wave, and what the wave has taken so far.

    prefers_recomputing(node)   is recomputing faster than differentials? None if not measured
    time_limit(node, strategy)  the seconds that a node may take before it is broken off
    spent(node)                 the seconds that its differentials took, nodes below included

Differentials may take a little longer than recomputing is known to take (`Experience.budget`). The
time of the nodes below a view counts for the view.

Law: asking changes nothing that a decision depends on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harken.engines.protocol import Connection
from harken.maintenance import tuning
from harken.maintenance.chooser import Chooser
from harken.maintenance.measurements import Case, Experience
from harken.maintenance.nodes import DerivedNode, Node, TotalsNode
from harken.maintenance.strategies import FROM_SCRATCH, Strategy
from harken.maintenance.strategies.recompute import RECOMPUTE
from harken.maintenance.strategies.registry import find, following
from harken.maintenance.watched import WatchedView


class Nodes(Protocol):
    """The graph, as far as decisions depend on it."""

    @property
    def derived(self) -> Mapping[str, DerivedNode]: ...
    @property
    def affects(self) -> Mapping[str, Mapping[str, Node]]: ...
    def views_above(self, node: Node) -> Iterator[WatchedView]: ...
    def is_for_stored_views(self, node: Node, through_totals: bool = False) -> bool: ...


@dataclass(slots=True)
class WaveMeasurements:
    connection: Connection
    chooser: Chooser
    graph: Nodes
    stored: Mapping[str, int]
    """The sizes of the Δ-sets of stored relations, which grow as the wave changes some itself."""
    is_timed: bool = False
    """Small changes are not timed, unless there is a measurement to compare them with."""
    is_settled: bool = False
    """Were changes like this one followed faster than recomputing takes?"""
    has_runaway: bool = False
    """Was a strategy broken off that ran for the first time?"""
    size: int = 0
    """The changed rows of all stored relations when the wave began."""
    incoming: frozenset[str] = frozenset()
    """The stored relations that had changed when the wave began."""
    broken_off: set[str] = field(default_factory=set)
    """Nodes whose differentials took too long."""
    considered: dict[str, Node] = field(default_factory=dict)
    """Nodes whose measurements were looked at."""
    took: dict[str, float] = field(default_factory=dict)
    """The seconds of the differentials of each node, broken off or not."""
    _verdicts: dict[str, bool | None] = field(default_factory=dict)
    _strategies: dict[str, Strategy] = field(default_factory=dict)
    _known: dict[str, Experience | None] = field(default_factory=dict)
    _below: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.incoming = frozenset(self.stored)
        if self.chooser.forced is None:
            self.size = sum(self.stored.values())
            self.is_settled = self.chooser.is_settled(self.stored.keys(), self.size)
            is_worth_it = self.is_large or self.chooser.is_experienced
            self.is_timed = is_worth_it and not self.is_settled

    @property
    def is_large(self) -> bool:
        return self.size >= tuning.SMALL_CHANGE

    # --- which way is faster -----------------------------------------------------------------

    def prefers_recomputing(self, node: Node) -> bool | None:
        """Do the measurements say that recomputing a node is faster than following it, with all
        nodes below? None if there are none."""
        if not self.is_timed:
            return False if self.is_settled else None
        if node.id in self.broken_off:
            return True
        if node.id not in self._verdicts:
            self.considered[node.id] = node
            self._verdicts[node.id] = self.verdict(node, self.expected_strategy(node))
        return self._verdicts[node.id]

    def begin_timing(self, node: Node, took: float) -> None:
        """A strategy ran away, though nothing was to be timed: now it is."""
        self.is_timed = self.has_runaway = True
        self.took[node.id] = self.took.get(node.id, 0.0) + took
        self._known.clear()
        self._verdicts.clear()

    def verdict(self, node: Node, strategy: Strategy) -> bool | None:
        """The same, of differentials by one strategy."""
        following, recomputing = (
            each.estimate(node, self) for each in (find(strategy, node), RECOMPUTE)
        )
        if following is None or recomputing is None:
            return None
        return following > recomputing

    def experience(self, node: Node) -> Experience | None:
        if node.id not in self._known:
            self._known[node.id] = self.chooser.experience(node)
        return self._known[node.id]

    def note_experience(self, node: Node) -> Experience:
        """The measurements of a node, begun if there are none."""
        known = self.experience(node)
        if known is None:
            known = self._known[node.id] = self.chooser.begin_experience(node)
        return known

    def case(self, node: Node, strategy: Strategy) -> tuple[Case, int]:
        """What a measurement is about: the strategy, the changed relations, the changed rows."""
        changed = self.stored.keys() & node.part.stored.keys()
        return (strategy, frozenset(changed)), sum(self.stored[name] for name in changed)

    def expected_strategy(self, node: Node) -> Strategy:
        """The strategy of differentials, if the totals that are wanted are there."""
        if node.id not in self._strategies:
            self._strategies[node.id] = self._expect(node)
        return self._strategies[node.id]

    def _expect(self, node: Node) -> Strategy:
        if isinstance(node, TotalsNode):
            return Strategy.FOLLOWED
        for each in following(node):
            if each.is_wanted(node, self.graph, self.chooser):
                return each.name
        return Strategy.INCREMENTAL

    def is_needed(self, node: DerivedNode) -> bool:
        """Does any node above use differentials, as far as the measurements say?"""
        return any(self._needs_below(each) for each in self.graph.affects[node.id].values())

    def _needs_below(self, node: Node) -> bool:
        if self.prefers_recomputing(node):
            return False
        return not isinstance(node, DerivedNode) or self.is_needed(node)

    def skips_for_bulk_change(self, node: Node, sizes: Mapping[str, int]) -> bool:
        """Has so much changed that recomputing the views above is faster than following it? Only
        views that store their old rows, and only before the first measurement."""
        return (
            self.chooser.is_bulk_change(node, sizes)
            and self._is_first(node)
            and self.graph.is_for_stored_views(node, through_totals=True)
        )

    def _is_first(self, node: Node) -> bool:
        """Are there no measurements, neither of the node nor of anything above?"""
        above = self.graph.affects[node.id].values() if isinstance(node, DerivedNode) else ()
        return self.prefers_recomputing(node) is None and all(map(self._is_first, above))

    def drops_totals_for_bulk_change(self, node: TotalsNode, sizes: Mapping[str, int]) -> bool:
        """The same of kept totals, when the nodes just above have no measurements."""
        above = self.graph.affects[node.id].values()
        if any(self.prefers_recomputing(each) is not None for each in above):
            return False
        return self.chooser.is_bulk_change(node, sizes) and not self._is_followed_quickly(node)

    def _is_followed_quickly(self, node: TotalsNode) -> bool:
        """Are totals of lake relations followed faster than recomputed, by smaller changes? Those
        are evaluated in SQLite, and recomputing is left to Spark."""
        known = self.experience(node) if self.chooser.reads_lake(node) else None
        if known is None or not known.taken:
            return False
        expected = known.expected(*self.case(node, Strategy.FOLLOWED))
        return expected < self.chooser.naive_seconds(node)

    # --- how long a node may take ------------------------------------------------------------

    def time_limit(self, node: Node, strategy: Strategy) -> float:
        """The seconds that a node may take by a strategy."""
        if strategy in FROM_SCRATCH:
            return self.left_above(node) if isinstance(node, DerivedNode) else math.inf
        if isinstance(node, DerivedNode) and not self._is_trial(node, strategy):
            return math.inf
        return self.left(node)

    def _is_trial(self, node: Node, strategy: Strategy) -> bool:
        """Is this large change the first of its kind? Work that writes is limited only then:
        under a limit its rows are read first and written afterwards, which costs."""
        known = self.experience(node)
        is_measured = known is not None and known.is_measured(*self.case(node, strategy))
        return self.is_large and not is_measured

    def left(self, node: Node) -> float:
        """The seconds that the differentials of a node may still take: as many as recomputing the
        node takes, or the nodes above it."""
        left = self.left_above(node) if isinstance(node, DerivedNode) else math.inf
        known = self.experience(node)
        if known is None or known.naive is None:
            return left
        return min(left, known.budget - self.spent(node))

    def left_above(self, node: DerivedNode) -> float:
        longest = -math.inf
        for each in self.graph.affects[node.id].values():
            if not self.prefers_recomputing(each):
                longest = max(longest, self.left(each))
            if longest == math.inf:
                break
        return longest

    def spent(self, node: Node) -> float:
        """The seconds that the differentials of a node and of all below it took."""
        return sum(self.took.get(name, 0.0) for name in self.with_below(node))

    def with_below(self, node: Node) -> set[str]:
        names = self._below.get(node.id)
        if names is None:
            names = {node.id}
            for name in node.depends_on():
                if name in self.graph.derived:
                    names |= self.with_below(self.graph.derived[name])
            self._below[node.id] = names
        return names
