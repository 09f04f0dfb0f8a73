"""Which way the nodes go in one propagation, by experience, and how long they may take.

The way of a condition is chosen for all that lies below it, when the first of that is come to:
differentials, for which the nodes below have to be computed, or naive evaluation from the tables,
for which they are passed by. Where naive evaluation is known to take so long, differentials may
take as long, the nodes below counted; then they are broken off.

Law: a node whose change is not known is read by none: what lies above it goes naive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TypeVar

from harken.engines.protocol import BrokenOff, Connection
from harken.errors import HarkenError, SafetyFault
from harken.maintenance.choices import SMALL_CHANGE, Choices
from harken.maintenance.measurements import SPARE, Case, Experience
from harken.maintenance.nodes import DerivedNode, Node, TotalsNode, ViewNode
from harken.maintenance.strategies import FROM_SCRATCH, Strategy

T = TypeVar("T")

WORTHWHILE = 0.001
"""What takes fewer seconds is not remembered, unless there is something to compare it with."""


PLANNING = 0.5
"""No plan takes so many seconds to make: what was broken off then took too long by itself."""


class TookTooLong(Exception):
    """The differentials of a node were broken off: all from scratch takes less."""


@dataclass(slots=True)
class Ways:
    connection: Connection
    choices: Choices
    derived: Mapping[str, DerivedNode]
    affects: Mapping[str, Mapping[str, Node]]
    stored: Mapping[str, int]
    """The sizes of the Δ-sets of stored relations."""
    is_timed: bool = False
    """Small changes are not worth looking at the clock, unless there is something to compare."""
    _size: int = 0
    _started: float = 0.0
    _fetched: int = 0
    """The rows that had come from the lake before."""
    _is_calm: bool = False
    """Have changes like this one been followed quicker than naive evaluation takes?"""
    missed: set[str] = field(default_factory=set)
    """Nodes that were passed by: their change is not known."""
    _naive: dict[str, bool | None] = field(default_factory=dict)
    """For each node whether it goes naive, by experience; None if there is none to tell."""
    _asked: dict[str, Node] = field(default_factory=dict)
    """The nodes that experience was asked about."""
    _noted: set[str] = field(default_factory=set)
    """Those of which it is noted what they took, or that went naive."""
    _below: dict[str, set[str]] = field(default_factory=dict)
    _strategies: dict[str, str] = field(default_factory=dict)
    _known: dict[str, Experience | None] = field(default_factory=dict)
    _took: dict[str, float] = field(default_factory=dict)
    """The seconds of the differentials of each node, those broken off as well."""
    _shared: dict[str, float] = field(default_factory=dict)
    """The seconds of each node that went into what was done for several at once."""
    _fresh: set[str] = field(default_factory=set)
    """Nodes with a plan that ran for the first time: that takes longer."""

    def __post_init__(self) -> None:
        if self.choices.forced is None:
            self._size = sum(self.stored.values())
            self._fetched = self.connection.fetched
            self._is_calm = self.choices.is_calm(self.stored.keys(), self._size)
            is_worth_it = self._is_large or self.choices.is_experienced
            self.is_timed = is_worth_it and not self._is_calm
            if self._is_calm:
                self._started = self.connection.working_time()

    @property
    def _is_large(self) -> bool:
        return self._size >= SMALL_CHANGE

    # --- choosing --------------------------------------------------------------------------

    def goes_naive(self, node: Node) -> bool | None:
        """Does experience say that a node goes naive, with all that lies below it?"""
        if not self.is_timed:
            return False if self._is_calm else None
        if node.id not in self._naive:
            self._asked[node.id] = node
            self._naive[node.id] = self._says_experience(node, None)
        return self._naive[node.id]

    def prefers_naive(self, node: Node, strategy: str) -> bool | None:
        """The same, now that it is known whether there are totals. A node below a condition that
        is being tried is tried as well: if it takes too long it is broken off."""
        said = self.goes_naive(node)
        if said is False and self.is_timed and strategy != self._expected_strategy(node):
            said = self._says_experience(node, strategy)
            if said:  # what was computed below was computed in vain
                self.give_up(node)
        if said is None and self.is_timed and isinstance(node, DerivedNode):
            return False if self._left_above(node) < math.inf else None
        return said

    def _says_experience(self, node: Node, strategy: str | None) -> bool | None:
        known = None if isinstance(node, TotalsNode) else self._experience(node)
        if known is None:
            return None
        return known.prefers_naive(*self._case(node, strategy or self._expected_strategy(node)))

    def _experience(self, node: Node) -> Experience | None:
        if node.id not in self._known:
            self._known[node.id] = self.choices.experience(node)
        return self._known[node.id]

    def _expected_strategy(self, node: Node) -> str:
        if node.id not in self._strategies:
            self._strategies[node.id] = self._strategy(node)
        return self._strategies[node.id]

    def _strategy(self, node: Node) -> str:
        if isinstance(node, TotalsNode):
            return Strategy.FOLLOWED
        for part, strategy in ((node.counted, Strategy.COUNTING), (node.kept, Strategy.TOTALS)):
            below = [self.derived.get(each.relation.id) for each in part.totals] if part else []
            kept = all(isinstance(t, TotalsNode) and self.choices.wants_totals(t) for t in below)
            if part is not None and kept:
                return strategy
        return Strategy.INCREMENTAL

    def depends_on_missed(self, node: Node) -> bool:
        return not self.missed.isdisjoint(node.part.influents)

    def is_needed(self, node: DerivedNode) -> bool:
        """Does anything above go by differentials, for all that is known?"""
        return any(self._needs_below(each) for each in self.affects[node.id].values())

    def _needs_below(self, node: Node) -> bool:
        if self.goes_naive(node):
            return False
        return not isinstance(node, DerivedNode) or self.is_needed(node)

    def is_unknown(self, node: DerivedNode) -> bool:
        """Has nothing just above any experience to go by?"""
        return all(self.goes_naive(each) is None for each in self.affects[node.id].values())

    def is_followed_quickly(self, node: TotalsNode) -> bool:
        """Do totals of what is far away take less to be followed than all from scratch, as far as
        smaller changes tell? Those are evaluated here, and all from scratch is not."""
        known = self._experience(node) if self.choices.is_of_far(node) else None
        if known is None or not known.taken:
            return False
        return known.expected(*self._case(node, Strategy.FOLLOWED)) < self.choices.naive_seconds(
            node
        )

    def is_first(self, node: Node) -> bool:
        """Is there no experience to go by, neither of the node nor of anything above?"""
        above = self.affects[node.id].values() if isinstance(node, DerivedNode) else ()
        return self.goes_naive(node) is None and all(map(self.is_first, above))

    # --- trying ----------------------------------------------------------------------------

    def share(self, nodes: Sequence[Node], work: Callable[[], object]) -> None:
        """Do what is done for several nodes at once; each of them takes its part of the time."""
        started = self.connection.working_time() if self.is_timed else 0.0
        work()
        if self.is_timed:
            took = self.connection.working_time() - started
            self._shared |= {node.id: took / len(nodes) for node in nodes}

    def run(self, node: Node, strategy: str, work: Callable[[], T]) -> T:
        """Do the work of a node, for as long as it may take; remember how long it took."""
        is_fresh, node.is_fresh = node.is_fresh, False
        if not self.is_timed:
            return work()
        is_naive = strategy in FROM_SCRATCH
        if is_fresh and not is_naive:
            self._fresh.add(node.id)
        limit = self._limit(node, strategy)
        if limit <= 0:  # Spark would begin, and could not be broken off
            raise TookTooLong
        clock = self.connection.working_time
        started = clock()
        try:
            with self.connection.limited(limit) if limit < math.inf else nullcontext():
                found = work()
        except BrokenOff:
            raise TookTooLong from None
        finally:
            took = clock() - started + self._shared.pop(node.id, 0.0)
            if not is_naive or isinstance(node, DerivedNode):  # it counts for what lies above
                self._took[node.id] = self._took.get(node.id, 0.0) + took
        if is_naive:
            self._note_naive(node, took)
        return found

    def _limit(self, node: Node, strategy: str) -> float:
        """The seconds that it may take."""
        if strategy in FROM_SCRATCH:
            return self._left_above(node) if isinstance(node, DerivedNode) else math.inf
        if isinstance(node, DerivedNode) and not self._is_trial(node, strategy):
            return math.inf
        return self._left(node)

    def _is_trial(self, node: Node, strategy: str) -> bool:
        """What is written is read first if it may be broken off, and that costs: it is limited
        only where it is not known how long it takes."""
        return self._is_large and not self._is_measured(node, strategy)

    def _is_measured(self, node: Node, strategy: str) -> bool:
        known = self._experience(node)
        return known is not None and known.is_measured(*self._case(node, strategy))

    def _left(self, node: Node) -> float:
        """The seconds that the differentials of a node may still take: those that naive
        evaluation takes, of itself or of what lies above it."""
        left = self._left_above(node) if isinstance(node, DerivedNode) else math.inf
        known = self._experience(node)
        if known is None or known.naive is None:
            return left
        return min(left, known.budget - self._spent(node))

    def _left_above(self, node: DerivedNode) -> float:
        longest = -math.inf
        for each in self.affects[node.id].values():
            if not self.goes_naive(each):
                longest = max(longest, self._left(each))
            if longest == math.inf:
                break
        return longest

    def _spent(self, node: Node) -> float:
        return sum(self._took.get(name, 0.0) for name in self._with_below(node))

    def _with_below(self, node: Node) -> set[str]:
        names = self._below.get(node.id)
        if names is None:
            names = {node.id}
            for name in node.depends_on():
                if name in self.derived:
                    names |= self._with_below(self.derived[name])
            self._below[node.id] = names
        return names

    # --- remembering -----------------------------------------------------------------------

    def note(self, node: Node, strategy: str) -> None:
        """The differentials of a node came to their end."""
        if not self.is_timed:
            return
        self._noted.add(node.id)
        if strategy in FROM_SCRATCH:
            return
        spent = self._spent(node)
        is_told = isinstance(node, DerivedNode) or self._experience(node) is not None
        if spent >= WORTHWHILE or (self._is_large and is_told):
            self._note(node, strategy, spent)

    def finish(self) -> None:
        """The wave has come to its end. Where no change reached a node, what it took to find that
        out is what its differentials took."""
        if not self.is_timed:
            return
        for node in self._asked.values():
            if node.id not in self._noted and self.goes_naive(node) is False:
                self.note(node, self._expected_strategy(node))

    def sample(self, query: Callable[[ViewNode], Callable[[], object]]) -> None:
        """Where only the first evaluation of a view is known, and differentials took a part of it
        that counts, find out what naive evaluation takes, if it does not take longer than they."""
        for node in self._asked.values() if self.is_timed else ():
            known = self._experience(node)
            if not isinstance(node, ViewNode) or known is None or self.goes_naive(node):
                continue
            spent = self._spent(node)
            if spent >= WORTHWHILE and known.wants_sample(spent):
                try:
                    work, fetched = query(node), self.connection.fetched
                except SafetyFault:  # there is no statement for it
                    continue
                known.is_first, node.is_fresh = node.is_fresh, False
                took = self._sample(SPARE * spent, work)
                if took is not None:  # with rows that had to come here it takes longer than without
                    known.note_naive(took, is_first=self.connection.fetched > fetched)
                elif known.is_far:
                    known.is_first, known.spent = True, 0.0

    def calm_down(self) -> None:
        """Where differentials were the faster way, changes like this one are not looked at."""
        changed = self.stored.keys()
        if self._is_calm:
            took = self.connection.working_time() - self._started
            self.choices.note_calm(changed, took)
        elif self.is_timed and all(map(self._is_clear, self._asked.values())):
            known = filter(None, map(self._experience, self._asked.values()))
            naive = [each.naive_seconds for each in known if each.naive_seconds is not None]
            self.choices.calm_down(changed, self._size, min(naive, default=math.inf))

    def _sample(self, limit: float, work: Callable[[], object]) -> float | None:
        """The seconds that it takes, if that is not too long; nothing more depends on it."""
        started = self.connection.working_time()
        try:
            with self.connection.limited(limit):
                work()
        except (BrokenOff, HarkenError):
            return None
        return self.connection.working_time() - started

    def _is_clear(self, node: Node) -> bool:
        """Were differentials the faster way, for all that is known? Of a small change they are
        where nothing is."""
        known = self._experience(node)
        naive = known.naive_seconds if known is not None else None
        if naive is None:
            return not self._is_large or isinstance(node, DerivedNode)
        return not self.goes_naive(node) and self._spent(node) < naive

    def _note(self, node: Node, strategy: str, spent: float, broken_off: bool = False) -> None:
        known = self._experience(node) or self.choices.begin_experience(node)
        too_long = broken_off and spent >= PLANNING
        if too_long or self._fresh.isdisjoint(self._with_below(node)):
            has_fetched = self.connection.fetched > self._fetched
            known.note(*self._case(node, strategy), spent, broken_off, has_fetched)

    def _note_naive(self, node: Node, took: float) -> None:
        known = self._experience(node)
        if known is None and took >= WORTHWHILE:
            known = self.choices.begin_experience(node)
        if known is not None:
            known.note_naive(took)
            # Small changes of rules, which are short, are not to be held up by looking at this.
            self.choices.is_experienced |= node.old_state is not None

    def give_up(self, node: Node, strategy: str | None = None) -> None:
        """The differentials of a node have taken too long: it goes naive, and so the next time."""
        strategy = strategy or self._expected_strategy(node)
        self._note(node, strategy, self._spent(node), broken_off=True)
        self._naive[node.id] = True

    def pass_over(self, node: Node) -> None:
        """What lies below a node was followed in vain: it goes naive for another reason. Let it be
        remembered if that took too long."""
        if self.is_timed and not self.goes_naive(node) and self._left(node) <= 0:
            self.give_up(node)

    def give_up_above(self, node: DerivedNode) -> bool:
        """Let all that has no time left go naive; true if that is all there is above."""
        for each in self.affects[node.id].values():
            if self.goes_naive(each) or self._left(each) > 0:
                continue
            known = self._experience(each)
            if known is not None and known.naive is not None:
                self.give_up(each)
            elif isinstance(each, DerivedNode):
                self.give_up_above(each)
        return not self.is_needed(node)

    def _case(self, node: Node, strategy: str) -> tuple[Case, int]:
        changed = self.stored.keys() & node.part.stored.keys()
        return (strategy, frozenset(changed)), sum(self.stored[name] for name in changed)
