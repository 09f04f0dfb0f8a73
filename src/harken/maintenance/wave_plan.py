"""The decisions of one wave: how each node finds its change, and how long that may take.

A view is decided together with everything below it, when the wave reaches the first of those nodes:
either differentials, for which the nodes below are computed, or recomputation from the tables, for
which they are skipped. Differentials may take a little longer than recomputing is known to take,
the nodes below included; then they are broken off.

`decide` is a function of the graph, the sizes of the changes, what is kept, the measurements, and
how far the wave has come. It changes nothing, so that `explain` can ask as well. What follows from
a decision (totals to build, a plan that is still awaited) is part of it, and counts when the
decision is taken.

Law: a node whose change is not known is read by none: everything above it is recomputed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from harken.engines.protocol import BrokenOff, Connection
from harken.errors import HarkenError, SafetyFault
from harken.maintenance.chooser import SMALL_CHANGE, Chooser
from harken.maintenance.decisions import Because, Decision
from harken.maintenance.measurements import SPARE, Case, Experience
from harken.maintenance.nodes import DerivedNode, Node, TotalsNode, ViewNode
from harken.maintenance.recursive_nodes import RecursiveNode
from harken.maintenance.round_nodes import RoundsNode
from harken.maintenance.strategies import FROM_SCRATCH, Strategy
from harken.maintenance.watched import WatchedView
from harken.planner.network import Part, Reason

T = TypeVar("T")

WORTHWHILE = 0.001
"""What takes fewer seconds is not remembered, unless there is something to compare it with."""
PLANNING = 0.5
"""No plan takes so many seconds to make: what was broken off then took too long by itself."""
SEVERAL = 3
"""Plans for so many changed relations are long, and there are many combinations: each is made when
it is worth it. Those for one or two are made at once."""
LITERALS = 5e-6
"""To make a plan takes so many seconds, times the square of the literals in its statement."""
SHORT_PLAN = 0.1
"""What takes fewer seconds is done at once."""
BUILT_AGAIN = 3.0
"""Totals that were not followed are built again, and what reads them is recomputed twice."""

FORCED = Decision(Strategy.NAIVE, Because.FORCED)
CLOCK = Decision(Strategy.NAIVE, Because.CLOCK)
ONLY_WAY = Decision(Strategy.NAIVE, Because.ONLY_WAY)
BELOW_SKIPPED = Decision(Strategy.NAIVE, Because.BELOW_SKIPPED)
MOST_CHANGED = Decision(Strategy.NAIVE, Because.MOST_CHANGED)
TOO_LONG = Decision(Strategy.NAIVE, Because.STATEMENT_TOO_LONG)
NOT_NEEDED = Decision(Strategy.SKIPPED, Because.NOT_NEEDED)
UNCHANGED = Decision(Strategy.UNCHANGED, Because.NO_CHANGE)
FOLLOWED = Decision(Strategy.FOLLOWED, Because.KEPT)
IN_VAIN = frozenset({Because.TOTALS_MISSING, Because.MEASURED})
"""Recomputing for these reasons, though nodes below were followed for differentials."""


class TookTooLong(Exception):
    """The differentials of a node were broken off: recomputing takes less."""


class Nodes(Protocol):
    """The graph, as far as decisions depend on it."""

    @property
    def derived(self) -> Mapping[str, DerivedNode]: ...
    @property
    def affects(self) -> Mapping[str, Mapping[str, Node]]: ...
    def views_above(self, node: Node) -> Iterator[WatchedView]: ...
    def is_for_stored_views(self, node: Node, through_totals: bool = False) -> bool: ...


@dataclass(slots=True)
class WavePlan:
    connection: Connection
    chooser: Chooser
    graph: Nodes
    stored: dict[str, int]
    """The sizes of the Δ-sets of stored relations."""
    sizes: Mapping[str, int]
    """The sizes of all Δ-sets that are known so far."""
    is_timed: bool = False
    """Small changes are not worth looking at the clock, unless there is something to compare."""
    skipped: set[str] = field(default_factory=set)
    """Nodes whose change is not known, and totals that were not followed."""
    broken_off: set[str] = field(default_factory=set)
    """Nodes whose differentials took too long."""
    to_build: dict[str, TotalsNode | RoundsNode] = field(default_factory=dict)
    """Totals and rounds that are wanted and not kept: they are built when the wave has settled."""
    _incoming: frozenset[str] = frozenset()
    """The stored relations that had changed when the wave began."""
    _size: int = 0
    _started: float = 0.0
    _fetched: int = 0
    """The rows that had come from the lake before."""
    _is_settled: bool = False
    """Have changes like this one been followed faster than recomputing takes?"""
    _verdicts: dict[str, bool | None] = field(default_factory=dict)
    """For each node that was considered whether it is to be recomputed, by the measurements; None
    if there are none."""
    _considered: dict[str, Node] = field(default_factory=dict)
    _noted: set[str] = field(default_factory=set)
    """Nodes whose time is noted, or that were recomputed."""
    _below: dict[str, set[str]] = field(default_factory=dict)
    _strategies: dict[str, Strategy] = field(default_factory=dict)
    _known: dict[str, Experience | None] = field(default_factory=dict)
    _took: dict[str, float] = field(default_factory=dict)
    """The seconds of the differentials of each node, those broken off as well."""
    _shared: dict[str, float] = field(default_factory=dict)
    """The seconds of each node that went into what was done for several at once."""
    _fresh: set[str] = field(default_factory=set)
    """Nodes with a plan that ran for the first time: that takes longer."""

    def __post_init__(self) -> None:
        self._incoming = frozenset(self.stored)
        if self.chooser.forced is None:
            self._size = sum(self.stored.values())
            self._fetched = self.connection.fetched
            self._is_settled = self.chooser.is_settled(self.stored.keys(), self._size)
            is_worth_it = self._is_large or self.chooser.is_experienced
            self.is_timed = is_worth_it and not self._is_settled
            if self._is_settled:
                self._started = self.connection.working_time()

    def take_in(self, name: str, size: int) -> None:
        """The wave has changed a stored relation."""
        self.stored[name] = size

    @property
    def _is_large(self) -> bool:
        return self._size >= SMALL_CHANGE

    # --- deciding --------------------------------------------------------------------------

    def decide(self, node: Node) -> Decision:
        """How a node finds its change. A strategy of recomputing is NAIVE here; how both states are
        compared depends on what is stored of them."""
        if isinstance(node, TotalsNode):
            return self._decide_totals(node)
        if isinstance(node, DerivedNode):
            return self._decide_derived(node)
        return self._decide_plain(node)

    def decide_again(self, node: DerivedNode) -> Decision:
        """The decision about a node that has to be computed, since the first one was refused or
        broken off."""
        return self._decide_plain(node)

    def is_needed(self, node: DerivedNode) -> bool:
        """Does anything above use differentials, for all that is known?"""
        return any(self._needs_below(each) for each in self.graph.affects[node.id].values())

    def depends_on_skipped(self, node: Node) -> bool:
        return not self.skipped.isdisjoint(node.part.influents)

    def _decide_derived(self, node: DerivedNode) -> Decision:
        if self.chooser.forced == Strategy.NAIVE:
            return Decision(Strategy.SKIPPED, Because.FORCED)
        if self._is_flooded(node):
            return Decision(Strategy.SKIPPED, Because.MOST_CHANGED)
        if isinstance(node, RoundsNode) and node.refused is None:
            return self._decide_rounds(node)
        decision = self._decide_plain(node)
        if decision.strategy is Strategy.NAIVE and self.graph.is_for_stored_views(node):
            # In both states, only for views that have their old rows: these take one state.
            return Decision(Strategy.SKIPPED, Because.RECOMPUTED_ABOVE)
        if isinstance(node, RecursiveNode) and node.refused is None:
            return self._decide_recursion(node)
        return decision if self.is_needed(node) else NOT_NEEDED

    def _decide_rounds(self, node: RoundsNode) -> Decision:
        """By the stored rounds if they are up to date; otherwise they are stored afterwards."""
        if not self.is_needed(node):
            return NOT_NEEDED
        if any(each.strategy == Strategy.NAIVE for each in self.graph.views_above(node)):
            return FORCED
        if self.depends_on_skipped(node):
            return Decision(Strategy.NAIVE, Because.BELOW_SKIPPED, build=(node,))
        if not node.table.validity.holds():
            return Decision(Strategy.NAIVE, Because.NOT_BUILT, build=(node,))
        return Decision(Strategy.ROUNDS, Because.KEPT)

    def _decide_recursion(self, node: RecursiveNode) -> Decision:
        """AUTO leaves the choice to what changes of this recursion took before."""
        if self.depends_on_skipped(node):
            return BELOW_SKIPPED
        wanted = self._wanted_of(node)
        if wanted is not None:
            return Decision(wanted, Because.FORCED)
        return Decision(Strategy.EXTERNAL, Because.MEASURED) if self.is_needed(node) else NOT_NEEDED

    def _wanted_of(self, node: RecursiveNode) -> Strategy | None:
        """The strategy that the views above a recursive relation ask for, if they do."""
        if self.chooser.forced is not None:
            is_naive = self.chooser.forced != Strategy.INCREMENTAL
            return Strategy.NAIVE if is_naive else Strategy.EXTERNAL
        wanted = {each.strategy for each in self.graph.views_above(node)}
        in_order = (Strategy.NAIVE, Strategy.MATERIALIZED, Strategy.EXTERNAL)
        return next((each for each in in_order if each in wanted), None)

    def _decide_totals(self, node: TotalsNode) -> Decision:
        """Kept totals follow their members, unless that takes longer than doing without."""
        if self.chooser.forced == Strategy.NAIVE:
            return Decision(Strategy.SKIPPED, Because.FORCED)
        if not self.chooser.wants_totals(node):
            return Decision(Strategy.SKIPPED, Because.NOT_WORTH_KEEPING)
        flood = self._is_unknown(node) and self.chooser.is_flood(node, self.sizes)
        if flood and not self._is_followed_quickly(node):
            return Decision(Strategy.SKIPPED, Because.MOST_CHANGED)
        if not self.is_needed(node):
            return NOT_NEEDED
        if self.depends_on_skipped(node):
            return Decision(Strategy.SKIPPED, Because.BELOW_SKIPPED)
        if not node.table.validity.holds():
            return Decision(Strategy.SKIPPED, Because.NOT_BUILT, build=(node,))
        changed = frozenset(self.sizes.keys() & node.part.influents.keys())
        waited = self._awaited(node, Strategy.FOLLOWED, changed, BUILT_AGAIN)
        if waited is not None:
            return waited.instead(Strategy.SKIPPED)
        return FOLLOWED

    def _decide_plain(self, node: Node) -> Decision:
        if isinstance(node, ViewNode):
            if node.view.moves:
                return CLOCK
            if node.view.strategy == Strategy.NAIVE and not node.part.below:
                return FORCED
        if self.chooser.forced == Strategy.NAIVE:
            return FORCED
        if self.depends_on_skipped(node):
            return BELOW_SKIPPED
        if self._recomputes(node):
            return self._measured(Strategy.NAIVE, node, self._expected_strategy(node))
        if self._is_flooded(node):
            return MOST_CHANGED
        return self._decide_incremental(node)

    def _decide_incremental(self, node: Node) -> Decision:
        """By differentials, with what is kept for them, unless there is a reason not to."""
        part, incremental = node.part, Strategy.INCREMENTAL
        build: tuple[TotalsNode, ...] = ()
        for kept, strategy in ((node.counted, Strategy.COUNTING), (node.kept, Strategy.TOTALS)):
            if kept is not None and self._are_kept(kept):
                part, incremental = kept, strategy
                break
            build += self._missing(kept) if kept is not None else ()
        sizes = {name: size for name, size in self.sizes.items() if name in part.influents}
        decision = self._compared(node, sizes, incremental)
        if decision.strategy is Strategy.INCREMENTAL and self._are_coming(node, build):
            decision = Decision(Strategy.NAIVE, Because.TOTALS_MISSING, decision.numbers)
        changed = frozenset(sizes)
        if decision.strategy is not Strategy.NAIVE:
            if node.is_unwieldy(decision.strategy, changed):
                decision = TOO_LONG
            else:
                decision = self._awaited(node, decision.strategy, changed) or decision
        return decision.building(build) if build else decision

    def _compared(self, node: Node, sizes: Mapping[str, int], incremental: Strategy) -> Decision:
        """Differentials or recomputing, by the measurements, or else by the estimates."""
        chooser = self.chooser
        if node.part.relation.in_rounds:
            return ONLY_WAY
        if chooser.forced is not None:
            return Decision(incremental, Because.FORCED)
        if node.part.reason is Reason.RECURSIVE:
            is_followed = isinstance(node, RecursiveNode) and not node.refused
            return Decision(incremental, Because.MEASURED) if is_followed else ONLY_WAY
        known = self._prefers_recomputing(node, incremental)
        if known is None:
            return chooser.estimate(node, sizes, self.sizes, incremental)
        if not self.is_timed:
            return Decision(incremental, Because.SETTLED)
        return self._measured(Strategy.NAIVE if known else incremental, node, incremental)

    def _measured(self, chosen: Strategy, node: Node, incremental: Strategy) -> Decision:
        broken_off = chosen is Strategy.NAIVE and node.id in self.broken_off
        reason = Because.BROKEN_OFF if broken_off else Because.MEASURED
        known = self._experience(node)
        if known is None or known.naive_seconds is None:
            return Decision(chosen, reason)
        case, size = self._case(node, incremental)
        numbers = {
            "changed_rows": size,
            "expected_seconds": known.expected(case, size),
            "recompute_seconds": known.naive_seconds,
        }
        return Decision(chosen, reason, numbers)

    def _recomputes(self, node: Node) -> bool | None:
        """Do the measurements say that a node is to be recomputed, with all that lies below it?
        None if there are none."""
        if not self.is_timed:
            return False if self._is_settled else None
        if node.id in self.broken_off:
            return True
        if node.id not in self._verdicts:
            self._considered[node.id] = node
            self._verdicts[node.id] = self._verdict(node, self._expected_strategy(node))
        return self._verdicts[node.id]

    def _prefers_recomputing(self, node: Node, strategy: Strategy) -> bool | None:
        """The same, now that it is known whether there are totals. A node below a view that is
        being tried is tried as well: if it takes too long it is broken off."""
        verdict = self._recomputes(node)
        if verdict is False and self.is_timed and strategy is not self._expected_strategy(node):
            verdict = self._verdict(node, strategy)
        if verdict is None and self.is_timed and isinstance(node, DerivedNode):
            return False if self._left_above(node) < math.inf else None
        return verdict

    def _verdict(self, node: Node, strategy: Strategy) -> bool | None:
        known = None if isinstance(node, TotalsNode) else self._experience(node)
        return None if known is None else known.prefers_naive(*self._case(node, strategy))

    def _experience(self, node: Node) -> Experience | None:
        if node.id not in self._known:
            self._known[node.id] = self.chooser.experience(node)
        return self._known[node.id]

    def _expected_strategy(self, node: Node) -> Strategy:
        if node.id not in self._strategies:
            self._strategies[node.id] = self._expect(node)
        return self._strategies[node.id]

    def _expect(self, node: Node) -> Strategy:
        if isinstance(node, TotalsNode):
            return Strategy.FOLLOWED
        for part, strategy in ((node.counted, Strategy.COUNTING), (node.kept, Strategy.TOTALS)):
            totals = self._totals_of(part) if part is not None else None
            if totals is not None and all(map(self.chooser.wants_totals, totals)):
                return strategy
        return Strategy.INCREMENTAL

    def _needs_below(self, node: Node) -> bool:
        if self._recomputes(node):
            return False
        return not isinstance(node, DerivedNode) or self.is_needed(node)

    def _is_unknown(self, node: DerivedNode) -> bool:
        """Has nothing just above any measurements?"""
        return all(self._recomputes(n) is None for n in self.graph.affects[node.id].values())

    def _is_first(self, node: Node) -> bool:
        """Are there no measurements, neither of the node nor of anything above?"""
        above = self.graph.affects[node.id].values() if isinstance(node, DerivedNode) else ()
        return self._recomputes(node) is None and all(map(self._is_first, above))

    def _is_followed_quickly(self, node: TotalsNode) -> bool:
        """Do totals of lake relations take less to be followed than recomputing, as far as smaller
        changes tell? Those are evaluated here, and recomputing is Spark's."""
        known = self._experience(node) if self.chooser.is_of_far(node) else None
        if known is None or not known.taken:
            return False
        expected = known.expected(*self._case(node, Strategy.FOLLOWED))
        return expected < self.chooser.naive_seconds(node)

    def _is_flooded(self, node: Node) -> bool:
        """Is so much new that to recompute the views above takes less than to follow it? They have
        their old rows; totals between are built again when they are wanted again."""
        return (
            self.chooser.is_flood(node, self.sizes)
            and self._is_first(node)
            and self.graph.is_for_stored_views(node, through_totals=True)
        )

    def _awaited(
        self, node: Node, strategy: Strategy, changed: frozenset[str], times: float = 1.0
    ) -> Decision | None:
        """Is a plan for this combination of changed relations still to be made, and does that take
        longer than recomputing has taken for want of it, `times` this one included?"""
        if len(changed) < SEVERAL or node.is_planned(strategy, changed) or self._is_bound(node):
            return None
        to_plan = LITERALS * node.length(strategy, changed) ** 2
        waited = node.waited.get(changed, 0.0) + times * self.chooser.naive_seconds(node)
        if to_plan < SHORT_PLAN or waited >= to_plan:
            return None
        numbers = {"plan_seconds": to_plan, "waited_seconds": waited}
        return Decision(Strategy.NAIVE, Because.PLAN_TOO_LONG, numbers, awaited=changed)

    def _is_bound(self, node: Node) -> bool:
        """Is it settled how the change is found, or is it Spark that would evaluate it?"""
        settled = self.chooser.forced is not None or self.chooser.is_of_far(node)
        return settled or any(each.strategy != "auto" for each in self.graph.views_above(node))

    def _totals_of(self, part: Part) -> list[TotalsNode] | None:
        """What is kept for a part; None if a node reaches its rows in another way, and keeps
        none."""
        found = [self.graph.derived.get(each.relation.id) for each in part.totals]
        nodes = [node for node in found if isinstance(node, TotalsNode)]
        return nodes if len(nodes) == len(found) else None

    def _are_kept(self, part: Part) -> bool:
        """Are the totals that a part reads those of now?"""
        totals = self._totals_of(part)
        return totals is not None and all(each.table.validity.holds() for each in totals)

    def _missing(self, part: Part) -> tuple[TotalsNode, ...]:
        """The totals that are wanted for a part and not kept: they are there the next time."""
        return tuple(
            each
            for each in self._totals_of(part) or ()
            if not each.table.validity.holds()
            and each.id not in self.skipped
            and self.chooser.wants_totals(each)
        )

    def _are_coming(self, node: Node, build: tuple[TotalsNode, ...]) -> bool:
        """Are totals of a query of SQL wanted and not there yet? Without them its groups are looked
        at again, one by one in both states; recomputing takes no longer than building them."""
        if node.kept is None or node.part.relation.is_set or self.chooser.forced is not None:
            return False
        wanted = {each.relation.id for each in node.kept.totals}
        return any(each.id in wanted for each in build) or not wanted.isdisjoint(self.to_build)

    # --- taking decisions ------------------------------------------------------------------

    def take(self, node: Node, decision: Decision) -> None:
        """A decision is carried out: remember it, with what follows from it."""
        self.chooser.log.add(node.id, decision)
        for each in decision.build:
            self.to_build[each.id] = each
        if decision.awaited is not None:
            before = node.waited.get(decision.awaited, 0.0)
            node.waited[decision.awaited] = decision.numbers.get("waited_seconds", before)
        if decision.strategy in FROM_SCRATCH and decision.reason in IN_VAIN:
            self._note_in_vain(node)

    def _note_in_vain(self, node: Node) -> None:
        """What lies below a node was followed in vain: it is recomputed for another reason. Let it
        be remembered if that took too long."""
        if self.is_timed and not self._recomputes(node) and self._left(node) <= 0:
            self.break_off(node, self._expected_strategy(node))

    def skip(self, node: DerivedNode) -> None:
        """The change of a node is not known in this wave."""
        self.skipped.add(node.id)

    def share(self, nodes: Sequence[Node], work: Callable[[], object]) -> None:
        """Do what is done for several nodes at once; each of them takes its part of the time."""
        started = self.connection.working_time() if self.is_timed else 0.0
        work()
        if self.is_timed:
            took = self.connection.working_time() - started
            self._shared |= {node.id: took / len(nodes) for node in nodes}

    def run(self, node: Node, strategy: Strategy, work: Callable[[], T]) -> T:
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
            self.chooser.log.note_seconds(node.id, took)
            if not is_naive or isinstance(node, DerivedNode):  # it counts for what lies above
                self._took[node.id] = self._took.get(node.id, 0.0) + took
        if is_naive:
            self._note_naive(node, took)
        return found

    def _limit(self, node: Node, strategy: Strategy) -> float:
        """The seconds that it may take."""
        if strategy in FROM_SCRATCH:
            return self._left_above(node) if isinstance(node, DerivedNode) else math.inf
        if isinstance(node, DerivedNode) and not self._is_trial(node, strategy):
            return math.inf
        return self._left(node)

    def _is_trial(self, node: Node, strategy: Strategy) -> bool:
        """What is written is read first if it may be broken off, and that costs: it is limited
        only where it is not known how long it takes."""
        known = self._experience(node)
        is_measured = known is not None and known.is_measured(*self._case(node, strategy))
        return self._is_large and not is_measured

    def _left(self, node: Node) -> float:
        """The seconds that the differentials of a node may still take: those that recomputing
        takes, of itself or of what lies above it."""
        left = self._left_above(node) if isinstance(node, DerivedNode) else math.inf
        known = self._experience(node)
        if known is None or known.naive is None:
            return left
        return min(left, known.budget - self._spent(node))

    def _left_above(self, node: DerivedNode) -> float:
        longest = -math.inf
        for each in self.graph.affects[node.id].values():
            if not self._recomputes(each):
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
                if name in self.graph.derived:
                    names |= self._with_below(self.graph.derived[name])
            self._below[node.id] = names
        return names

    # --- breaking off ----------------------------------------------------------------------

    def break_off(self, node: Node, strategy: Strategy) -> None:
        """The differentials of a node have taken too long: it is recomputed, now and the next
        time."""
        self._note(node, strategy, self._spent(node), broken_off=True)
        self.broken_off.add(node.id)

    def break_off_above(self, node: DerivedNode) -> bool:
        """Let all that has no time left be recomputed; true if that is all there is above."""
        for each in self.graph.affects[node.id].values():
            if self._recomputes(each) or self._left(each) > 0:
                continue
            known = self._experience(each)
            if known is not None and known.naive is not None:
                self.break_off(each, self._expected_strategy(each))
            elif isinstance(each, DerivedNode):
                self.break_off_above(each)
        return not self.is_needed(node)

    # --- learning --------------------------------------------------------------------------

    def note(self, node: Node, strategy: Strategy) -> None:
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

    def _note(self, node: Node, strategy: Strategy, spent: float, broken_off: bool = False) -> None:
        known = self._experience(node) or self.chooser.begin_experience(node)
        too_long = broken_off and spent >= PLANNING
        if too_long or self._fresh.isdisjoint(self._with_below(node)):
            has_fetched = self.connection.fetched > self._fetched
            known.note(*self._case(node, strategy), spent, broken_off, has_fetched)
            self.chooser.learnt(node, known)

    def _note_naive(self, node: Node, took: float) -> None:
        known = self._experience(node)
        if known is None and took >= WORTHWHILE:
            known = self.chooser.begin_experience(node)
        if known is not None:
            known.note_naive(took)
            self.chooser.learnt(node, known)
            # Small changes of rules, which are short, are not to be held up by looking at this.
            if node.old_state is not None:
                self.chooser.note_experienced()

    def finish(self, query: Callable[[ViewNode], Callable[[], object]]) -> None:
        """The wave has come to its end: learn from it. `query` is the work of recomputing a
        view."""
        if self._is_settled:
            took = self.connection.working_time() - self._started
            self.chooser.note_settled(self._incoming, took)
        if not self.is_timed:
            return
        for node in self._considered.values():
            known = self._experience(node)
            if known is not None and not isinstance(node, TotalsNode):
                known.forget(*self._case(node, self._expected_strategy(node)))
            # Where no change reached a node, finding that out is what its differentials took.
            if node.id not in self._noted and self._recomputes(node) is False:
                self.note(node, self._expected_strategy(node))
        for node in self._considered.values():
            if isinstance(node, ViewNode):
                self._sample(node, query)
        if all(map(self._is_clear, self._considered.values())):
            measured = filter(None, map(self._experience, self._considered.values()))
            naive = [each.naive_seconds for each in measured if each.naive_seconds is not None]
            fastest = min(naive, default=math.inf)
            self.chooser.stop_measuring(self._incoming, self._size, fastest)

    def _sample(self, node: ViewNode, query: Callable[[ViewNode], Callable[[], object]]) -> None:
        """Where only the first evaluation of a view is known, and differentials took a part of it
        that counts, find out what recomputing takes, if it does not take longer than they."""
        known = self._experience(node)
        if known is None or self._recomputes(node):
            return
        spent = self._spent(node)
        if spent < WORTHWHILE or not known.wants_sample(spent):
            return
        try:
            work, fetched = query(node), self.connection.fetched
        except SafetyFault:  # there is no statement for it
            return
        known.is_first, node.is_fresh = node.is_fresh, False
        took = self._timed(SPARE * spent, work)
        if took is not None:  # with rows that had to come here it takes longer than without
            known.note_naive(took, is_first=self.connection.fetched > fetched)
            self.chooser.learnt(node, known)
        elif known.is_far:
            known.is_first, known.spent = True, 0.0

    def _timed(self, limit: float, work: Callable[[], object]) -> float | None:
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
        return not self._recomputes(node) and self._spent(node) < naive

    def _case(self, node: Node, strategy: Strategy) -> tuple[Case, int]:
        changed = self.stored.keys() & node.part.stored.keys()
        return (strategy, frozenset(changed)), sum(self.stored[name] for name in changed)
