"""The measurements of the nodes of one wave, and the time that the wave has taken so far.

    prefers_recomputing(node)   whether recomputing is faster; None if not measured
    time_limit(node, strategy)  the seconds after which the work of a node is interrupted
    spent(node)                 the seconds that its differentials took, nodes below included

Differentials may take a little longer than the measured time of recomputing (`Experience.budget`).
The time of the nodes below a view counts for the view.

Law: these methods change nothing that a decision depends on.
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
    """The sizes of the Δ-sets of stored relations. The wave adds those of stored views."""
    is_timed: bool = False
    """Whether work is timed. Small changes are not, unless there is a measurement to compare
    with."""
    is_settled: bool = False
    """Whether earlier changes like this one were followed faster than recomputed."""
    has_runaway: bool = False
    """Whether a strategy was interrupted in its first run."""
    size: int = 0
    """The changed rows of all stored relations when the wave began."""
    incoming: frozenset[str] = frozenset()
    """The stored relations that had changed when the wave began."""
    broken_off: set[str] = field(default_factory=set)
    """Nodes whose differentials exceeded their time limit."""
    considered: dict[str, Node] = field(default_factory=dict)
    """Nodes whose measurements were compared."""
    took: dict[str, float] = field(default_factory=dict)
    """The seconds of the differentials of each node, interrupted or not."""
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

    # --- which strategy is faster ------------------------------------------------------------

    def prefers_recomputing(self, node: Node) -> bool | None:
        """Whether recomputing a node is faster than following the change through it and all nodes
        below; None if that is not measured."""
        if not self.is_timed:
            return False if self.is_settled else None
        if node.id in self.broken_off:
            return True
        if node.id not in self._verdicts:
            self.considered[node.id] = node
            self._verdicts[node.id] = self.verdict(node, self.expected_strategy(node))
        return self._verdicts[node.id]

    def begin_timing(self, node: Node, took: float) -> None:
        """A strategy ran away in a wave that was not timed. The rest of the wave is."""
        self.is_timed = self.has_runaway = True
        self.took[node.id] = self.took.get(node.id, 0.0) + took
        self._known.clear()
        self._verdicts.clear()

    def verdict(self, node: Node, strategy: Strategy) -> bool | None:
        """Whether recomputing is faster than this strategy; None if that is not measured."""
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
        """The measurements of a node, started if there are none."""
        known = self.experience(node)
        if known is None:
            known = self._known[node.id] = self.chooser.begin_experience(node)
        return known

    def case(self, node: Node, strategy: Strategy) -> tuple[Case, int]:
        """The case of a measurement (the strategy and the changed relations), and the number of
        changed rows."""
        changed = self.stored.keys() & node.part.stored.keys()
        return (strategy, frozenset(changed)), sum(self.stored[name] for name in changed)

    def expected_strategy(self, node: Node) -> Strategy:
        """The strategy that follows the changes of a node once all totals worth keeping are
        kept."""
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
        """Whether any node above will use differentials, by the measurements."""
        return any(self._needs_below(each) for each in self.graph.affects[node.id].values())

    def _needs_below(self, node: Node) -> bool:
        if self.prefers_recomputing(node):
            return False
        return not isinstance(node, DerivedNode) or self.is_needed(node)

    def skips_for_bulk_change(self, node: Node, sizes: Mapping[str, int]) -> bool:
        """Whether to skip a node because such a large share of a table changed that recomputing the
        views above is faster. Applies only to views that store their rows, and only before the
        first measurement."""
        return (
            self.chooser.is_bulk_change(node, sizes)
            and self._is_first(node)
            and self.graph.is_for_stored_views(node, through_totals=True)
        )

    def _is_first(self, node: Node) -> bool:
        """Whether neither the node nor anything above it has been measured."""
        above = self.graph.affects[node.id].values() if isinstance(node, DerivedNode) else ()
        return self.prefers_recomputing(node) is None and all(map(self._is_first, above))

    def drops_totals_for_bulk_change(self, node: TotalsNode, sizes: Mapping[str, int]) -> bool:
        """Whether to drop kept totals after a bulk change; only if the nodes just above have no
        measurements."""
        above = self.graph.affects[node.id].values()
        if any(self.prefers_recomputing(each) is not None for each in above):
            return False
        return self.chooser.is_bulk_change(node, sizes) and not self._is_followed_quickly(node)

    def _is_followed_quickly(self, node: TotalsNode) -> bool:
        """Whether smaller changes of totals over the lake were followed faster than recomputed.
        SQLite follows them, and Spark recomputes."""
        known = self.experience(node) if self.chooser.reads_lake(node) else None
        if known is None or not known.taken:
            return False
        expected = known.expected(*self.case(node, Strategy.FOLLOWED))
        return expected < self.chooser.naive_seconds(node)

    # --- how long a node may take ------------------------------------------------------------

    def time_limit(self, node: Node, strategy: Strategy) -> float:
        """The time limit of a node for a strategy, in seconds."""
        if strategy in FROM_SCRATCH:
            return self.left_above(node) if isinstance(node, DerivedNode) else math.inf
        if isinstance(node, DerivedNode) and not self._is_trial(node, strategy):
            return math.inf
        return self.left(node)

    def _is_trial(self, node: Node, strategy: Strategy) -> bool:
        """Whether this large change is the first of its case. Only then is work that writes
        limited: under a limit all rows are read before they are written, which is slower."""
        known = self.experience(node)
        is_measured = known is not None and known.is_measured(*self.case(node, strategy))
        return self.is_large and not is_measured

    def left(self, node: Node) -> float:
        """The remaining seconds of a node's differentials: together they may take as long as
        recomputing the node, or the nodes above it."""
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
        """The seconds that the differentials of a node and of all nodes below it took."""
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
