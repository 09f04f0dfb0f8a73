"""The decisions of one wave: how each node finds its change.

A view is decided together with everything below it, when the wave reaches the first of those nodes:
either differentials, for which the nodes below are computed, or recomputation from the tables, for
which they are skipped.

`decide` is a function of the graph, the sizes of the changes, what is kept, the measurements, and
the nodes visited so far. It changes nothing, so `explain` can call it too. The consequences of a
decision (totals to build, a plan that is not made yet) are part of it, and take effect when it is
carried out.

Law: nothing reads a node whose change is not computed: everything above it is recomputed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from harken.engines.protocol import Connection
from harken.maintenance import tuning
from harken.maintenance.chooser import COUNTED, Chooser
from harken.maintenance.decisions import Decision, DecisionReason
from harken.maintenance.nodes import DerivedNode, Node, TotalsNode, ViewNode
from harken.maintenance.recursive_nodes import RecursiveNode
from harken.maintenance.round_nodes import RoundsNode
from harken.maintenance.strategies import FROM_SCRATCH, Strategy
from harken.maintenance.strategies.base import MaintenanceStrategy
from harken.maintenance.strategies.differentials import DIFFERENTIALS
from harken.maintenance.strategies.followed_totals import FOLLOWED_TOTALS
from harken.maintenance.strategies.recompute import RECOMPUTE
from harken.maintenance.strategies.registry import following
from harken.maintenance.wave_learning import WaveLearning
from harken.maintenance.wave_measurements import Nodes, WaveMeasurements
from harken.planner.network_nodes import Reason

T = TypeVar("T")


FORCED = Decision(Strategy.NAIVE, DecisionReason.FORCED)
CLOCK = Decision(Strategy.NAIVE, DecisionReason.CLOCK)
ONLY_WAY = Decision(Strategy.NAIVE, DecisionReason.ONLY_WAY)
BELOW_SKIPPED = Decision(Strategy.NAIVE, DecisionReason.BELOW_SKIPPED)
MOST_CHANGED = Decision(Strategy.NAIVE, DecisionReason.MOST_CHANGED)
TOO_LONG = Decision(Strategy.NAIVE, DecisionReason.STATEMENT_TOO_LONG)
NOT_NEEDED = Decision(Strategy.SKIPPED, DecisionReason.NOT_NEEDED)
UNCHANGED = Decision(Strategy.UNCHANGED, DecisionReason.NO_CHANGE)
FOLLOWED = Decision(Strategy.FOLLOWED, DecisionReason.KEPT)
WASTED_WORK = frozenset({DecisionReason.TOTALS_MISSING, DecisionReason.MEASURED})
"""When a node is recomputed for one of these reasons, the nodes below it were followed for
nothing."""


@dataclass(slots=True)
class WavePlan:
    connection: Connection
    chooser: Chooser
    graph: Nodes
    stored: dict[str, int]
    """The sizes of the Δ-sets of stored relations."""
    sizes: Mapping[str, int]
    """The sizes of all Δ-sets computed so far."""
    skipped: set[str] = field(default_factory=set)
    """Nodes whose change was not computed, and totals that were not updated."""
    to_build: dict[str, TotalsNode | RoundsNode] = field(default_factory=dict)
    """Totals and rounds that are worth keeping and not kept yet: built at the end of the wave."""
    measured: WaveMeasurements = field(init=False)
    learning: WaveLearning = field(init=False)

    def __post_init__(self) -> None:
        self.measured = WaveMeasurements(self.connection, self.chooser, self.graph, self.stored)
        self.learning = WaveLearning(self.measured)

    def note_changed(self, name: str, size: int) -> None:
        """The wave has changed a stored relation."""
        self.stored[name] = size

    @property
    def broken_off(self) -> set[str]:
        """Nodes whose differentials exceeded their time limit."""
        return self.measured.broken_off

    # --- deciding ----------------------------------------------------------------------------

    def decide(self, node: Node) -> Decision:
        """How a node finds its change. Recomputing is always NAIVE here; what both states are
        compared with is decided later, by what is stored."""
        if isinstance(node, TotalsNode):
            return self._decide_totals(node)
        if isinstance(node, DerivedNode):
            return self._decide_derived(node)
        return self._decide_plain(node)

    def decide_again(self, node: DerivedNode) -> Decision:
        """The new decision about a node whose first strategy was refused or interrupted."""
        return self._decide_plain(node)

    def depends_on_skipped(self, node: Node) -> bool:
        return not self.skipped.isdisjoint(node.part.influents)

    def _decide_derived(self, node: DerivedNode) -> Decision:
        if self.chooser.forced == Strategy.NAIVE:
            return Decision(Strategy.SKIPPED, DecisionReason.FORCED)
        if self.measured.skips_for_bulk_change(node, self.sizes):
            return Decision(Strategy.SKIPPED, DecisionReason.MOST_CHANGED)
        if isinstance(node, RoundsNode) and node.refused is None:
            return self._decide_rounds(node)
        if isinstance(node, RecursiveNode) and node.refused is None:
            return self._decide_recursion(node)
        decision = self._decide_plain(node)
        if decision.strategy is Strategy.NAIVE and self.graph.is_for_stored_views(node):
            # These views have their old rows stored and need one state only, not a change.
            return Decision(Strategy.SKIPPED, DecisionReason.RECOMPUTED_ABOVE)
        return decision if self.measured.is_needed(node) else NOT_NEEDED

    def _decide_rounds(self, node: RoundsNode) -> Decision:
        """Update the stored rounds if they are valid; otherwise they are stored after the wave."""
        if not self.measured.is_needed(node):
            return NOT_NEEDED
        if any(each.strategy == Strategy.NAIVE for each in self.graph.views_above(node)):
            return FORCED
        if not node.table.holds() and not self.chooser.budget.allows(node.table):
            return Decision(Strategy.NAIVE, DecisionReason.OVER_BUDGET)
        if self.depends_on_skipped(node):
            return Decision(Strategy.NAIVE, DecisionReason.BELOW_SKIPPED, build=(node,))
        if not node.table.holds():
            return Decision(Strategy.NAIVE, DecisionReason.NOT_BUILT, build=(node,))
        return Decision(Strategy.ROUNDS, DecisionReason.KEPT)

    def _decide_recursion(self, node: RecursiveNode) -> Decision:
        """If no strategy was requested, it is chosen by the times of earlier changes of this
        recursion."""
        if self.depends_on_skipped(node):
            if self.graph.is_for_stored_views(node):
                return Decision(Strategy.SKIPPED, DecisionReason.RECOMPUTED_ABOVE)
            return BELOW_SKIPPED
        wanted = self._wanted_of(node)
        if wanted is Strategy.MATERIALIZED and not self.chooser.budget.allows(node.kept_rows):
            return Decision(Strategy.EXTERNAL, DecisionReason.OVER_BUDGET)
        if wanted is not None:
            return Decision(wanted, DecisionReason.FORCED)
        return self._pick(node) if self.measured.is_needed(node) else NOT_NEEDED

    def _pick(self, node: RecursiveNode) -> Decision:
        """The strategy that is expected to be the fastest, by the times of earlier changes."""
        history, size = node.history, self.recursive_size(node)
        if history.repeats_last(size):
            return Decision(history.last, DecisionReason.SETTLED)
        known = self.measured.experience(node)
        if known is None:
            return Decision(Strategy.EXTERNAL, DecisionReason.MEASURED, {"changed_rows": size})
        stored = node.kept_rows if node.kept_rows.holds() else None
        pick = history.pick(known, self.recursive_case(node), size, stored)
        return Decision(
            pick.strategy, DecisionReason.MEASURED, pick.numbers(known, size), pick=pick
        )

    def recursive_size(self, node: RecursiveNode) -> int:
        """The number of changed rows in the relations that a recursion reads."""
        return sum(size for name, size in self.sizes.items() if name in node.part.influents)

    def recursive_case(self, node: RecursiveNode) -> frozenset[str]:
        """The changed relations, and which of them lost rows: following losses takes a different
        time."""
        changed = self.sizes.keys() & node.part.influents.keys()
        return frozenset(changed | {f"{each} lost" for each in changed if node.has_lost(each)})

    def _wanted_of(self, node: RecursiveNode) -> Strategy | None:
        """The strategy that the views above a recursive relation request, if any."""
        if self.chooser.forced is not None:
            is_naive = self.chooser.forced != Strategy.INCREMENTAL
            return Strategy.NAIVE if is_naive else Strategy.EXTERNAL
        wanted = {each.strategy for each in self.graph.views_above(node)}
        in_order = (Strategy.NAIVE, Strategy.MATERIALIZED, Strategy.EXTERNAL)
        return next((each for each in in_order if each in wanted), None)

    def _decide_totals(self, node: TotalsNode) -> Decision:
        """Kept totals are updated, unless recomputing without them is faster."""
        if self.chooser.forced == Strategy.NAIVE:
            return Decision(Strategy.SKIPPED, DecisionReason.FORCED)
        case, size = self.measured.case(node, Strategy.FOLLOWED)
        for each in ((case, size), (COUNTED, 1)):
            if self.chooser.ran_away(node, *each):
                return Decision(Strategy.SKIPPED, DecisionReason.RAN_AWAY)
        if not self.chooser.budget.allows(node.table):
            return Decision(Strategy.SKIPPED, DecisionReason.OVER_BUDGET)
        if not self.chooser.wants_totals(node):
            return Decision(Strategy.SKIPPED, DecisionReason.NOT_WORTH_KEEPING)
        if self.measured.drops_totals_for_bulk_change(node, self.sizes):
            return Decision(Strategy.SKIPPED, DecisionReason.MOST_CHANGED)
        if not self.measured.is_needed(node):
            return NOT_NEEDED
        if self.depends_on_skipped(node):
            return Decision(Strategy.SKIPPED, DecisionReason.BELOW_SKIPPED)
        if not node.table.holds():
            return Decision(Strategy.SKIPPED, DecisionReason.NOT_BUILT, build=(node,))
        changed = frozenset(self.sizes.keys() & node.part.influents.keys())
        interim = self._recompute_until_planned(node, FOLLOWED_TOTALS, changed)
        if interim is not None:
            return interim.instead(Strategy.SKIPPED)
        return FOLLOWED

    def _decide_plain(self, node: Node) -> Decision:
        if isinstance(node, ViewNode):
            if node.view.depends_on_time:
                return CLOCK
            if node.view.strategy == Strategy.NAIVE and not node.part.below:
                return FORCED
        if self.chooser.forced == Strategy.NAIVE:
            return FORCED
        if self.depends_on_skipped(node):
            return BELOW_SKIPPED
        if self.measured.prefers_recomputing(node):
            return self._measured(Strategy.NAIVE, node, self.measured.expected_strategy(node))
        if self.measured.skips_for_bulk_change(node, self.sizes):
            return MOST_CHANGED
        return self._decide_incremental(node)

    def _decide_incremental(self, node: Node) -> Decision:
        """By the first strategy that is ready, unless there is a reason to recompute."""
        method, build = self._first_ready(node)
        influents = method.influents(node)
        sizes = {name: size for name, size in self.sizes.items() if name in influents}
        decision = self._compared(node, sizes, method)
        if decision.strategy is Strategy.INCREMENTAL and self._are_totals_pending(node, build):
            decision = Decision(Strategy.NAIVE, DecisionReason.TOTALS_MISSING, decision.numbers)
        changed = frozenset(sizes)
        if decision.strategy is not Strategy.NAIVE:
            if method.is_too_long(node, changed, RECOMPUTE):
                decision = TOO_LONG
            else:
                decision = self._recompute_until_planned(node, method, changed) or decision
        return decision.building(build) if build else decision

    def _first_ready(self, node: Node) -> tuple[MaintenanceStrategy, tuple[TotalsNode, ...]]:
        """The first strategy whose totals are kept, and the totals that preferred strategies lack
        and that are worth keeping. They are built for the next change."""
        build: tuple[TotalsNode, ...] = ()
        for each in following(node):
            if each.is_ready(node, self.graph):
                return each, build
            build += self._missing(each.reads(node, self.graph))
        return DIFFERENTIALS, build

    def _compared(
        self, node: Node, sizes: Mapping[str, int], method: MaintenanceStrategy
    ) -> Decision:
        """Follow or recompute, by the measurements, or else by the estimates."""
        chooser = self.chooser
        if node.part.relation.in_rounds:
            return ONLY_WAY
        if chooser.forced is not None:
            return Decision(method.name, DecisionReason.FORCED)
        if node.part.reason is Reason.RECURSIVE:
            return ONLY_WAY
        known = self._prefers_recomputing(node, method.name)
        if known is None:
            return chooser.compare_costs(node, sizes, self.sizes, method)
        if not self.measured.is_timed:
            return Decision(method.name, DecisionReason.SETTLED)
        return self._measured(Strategy.NAIVE if known else method.name, node, method.name)

    def _measured(self, chosen: Strategy, node: Node, incremental: Strategy) -> Decision:
        broken_off = chosen is Strategy.NAIVE and node.id in self.broken_off
        reason = DecisionReason.BROKEN_OFF if broken_off else DecisionReason.MEASURED
        known = self.measured.experience(node)
        if known is None or known.naive_seconds is None:
            return Decision(chosen, reason)
        case, size = self.measured.case(node, incremental)
        numbers = {
            "changed_rows": size,
            "expected_seconds": known.expected(case, size),
            "recompute_seconds": known.naive_seconds,
        }
        return Decision(chosen, reason, numbers)

    def _prefers_recomputing(self, node: Node, strategy: Strategy) -> bool | None:
        """Whether recomputing is faster than this strategy, now that it is known which totals are
        kept. A node below a view that is on trial is tried as well, and interrupted if it takes too
        long."""
        verdict = self.measured.prefers_recomputing(node)
        if (
            verdict is False
            and self.measured.is_timed
            and strategy is not self.measured.expected_strategy(node)
        ):
            verdict = self.measured.verdict(node, strategy)
        if verdict is None and self.measured.is_timed and isinstance(node, DerivedNode):
            return False if self.measured.left_above(node) < math.inf else None
        return verdict

    def _recompute_until_planned(
        self, node: Node, method: MaintenanceStrategy, changed: frozenset[str]
    ) -> Decision | None:
        """The decision to recompute until a plan pays: planning for this combination of changed
        relations would take longer than all recomputing done for lack of a plan, this time
        included. None if the plan may be made."""
        if len(changed) < tuning.FEW or self._has_no_choice(node):
            return None
        to_plan = method.planning_seconds(node, changed)
        if to_plan < tuning.SHORT_PLANNING:
            return None
        waited = node.seconds_without_plan.get(changed, 0.0)
        without_plan = waited + self.chooser.naive_seconds(node)
        if without_plan >= to_plan:
            return None
        numbers = {"plan_seconds": to_plan, "waited_seconds": without_plan}
        return Decision(Strategy.NAIVE, DecisionReason.PLAN_TOO_LONG, numbers, awaited_plan=changed)

    def _has_no_choice(self, node: Node) -> bool:
        """Whether there is nothing to choose: a strategy is forced or requested, or Spark would
        evaluate the change."""
        settled = self.chooser.forced is not None or self.chooser.reads_lake(node)
        return settled or any(each.strategy != "auto" for each in self.graph.views_above(node))

    def _missing(self, wanted: list[TotalsNode]) -> tuple[TotalsNode, ...]:
        return tuple(
            each
            for each in wanted
            if not each.table.holds()
            and each.id not in self.skipped
            and self.chooser.wants_totals(each)
        )

    def _are_totals_pending(self, node: Node, build: tuple[TotalsNode, ...]) -> bool:
        """Whether a view of SQL waits for totals that are about to be built. Without them its
        groups are read one by one in both states; recomputing takes no longer than building
        them."""
        if node.kept is None or node.part.relation.is_set or self.chooser.forced is not None:
            return False
        wanted = {each.relation.id for each in node.kept.totals}
        return any(each.id in wanted for each in build) or not wanted.isdisjoint(self.to_build)

    # --- taking decisions --------------------------------------------------------------------

    def take(self, node: Node, decision: Decision) -> None:
        """A decision is carried out: log it, and apply its consequences."""
        self.chooser.log.add(node.id, decision)
        for each in decision.build:
            self.to_build[each.id] = each
        if decision.awaited_plan is not None:
            before = node.seconds_without_plan.get(decision.awaited_plan, 0.0)
            node.seconds_without_plan[decision.awaited_plan] = decision.numbers.get(
                "waited_seconds", before
            )
        if decision.strategy in FROM_SCRATCH and decision.reason in WASTED_WORK:
            self._note_wasted_work(node)

    def _note_wasted_work(self, node: Node) -> None:
        """The nodes below were followed although this node is recomputed for another reason. If
        that exceeded the limit, record it."""
        if (
            self.measured.is_timed
            and not self.measured.prefers_recomputing(node)
            and self.measured.left(node) <= 0
        ):
            self.break_off(node, self.measured.expected_strategy(node))

    def skip(self, node: DerivedNode) -> None:
        """The change of a node is not computed in this wave."""
        self.skipped.add(node.id)

    def break_off(self, node: Node, strategy: Strategy) -> None:
        """The differentials of a node exceeded their limit: it is recomputed in this wave, and the
        next time."""
        self.learning.note_broken_off(node, strategy)
        self.broken_off.add(node.id)

    def break_off_above(self, node: DerivedNode) -> bool:
        """Recompute all nodes above that have no time left. True if no node above needs this one
        any more."""
        for each in self.graph.affects[node.id].values():
            if self.measured.prefers_recomputing(each) or self.measured.left(each) > 0:
                continue
            known = self.measured.experience(each)
            if known is not None and known.naive is not None:
                self.break_off(each, self.measured.expected_strategy(each))
            elif isinstance(each, DerivedNode):
                self.break_off_above(each)
        return not self.measured.is_needed(node)

    # --- carrying decisions out --------------------------------------------------------------

    def share(self, nodes: Sequence[Node], work: Callable[[], object]) -> None:
        self.learning.share(nodes, work)

    def run(self, node: Node, strategy: Strategy, work: Callable[[], T]) -> T:
        return self.learning.run(node, strategy, work)

    def note(self, node: Node, strategy: Strategy) -> None:
        self.learning.note(node, strategy)

    def finish(self, query: Callable[[ViewNode], Callable[[], object]]) -> None:
        self.learning.finish(query)
