"""How each node that a wave reaches computes its change.

The estimates of `maintenance.choices` and what `maintenance.chooser` learnt are put together with
what is kept: totals, counted derivations, and plans that are not made yet.

Law: a choice never changes an answer, only what it takes.
"""

from __future__ import annotations

from functools import partial

from harken.maintenance.choices import Choices
from harken.maintenance.nodes import DerivedNode, Node, TotalsNode, ViewNode
from harken.maintenance.round_nodes import RoundsNode
from harken.maintenance.strategies import Strategy
from harken.planner.network import Part
from harken.propagation.graph import Graph
from harken.propagation.wave import Wave

SEVERAL = 3
"""Plans for so many changed relations are long, and there are many combinations: each is made when
it is worth it. Those for one or two are made at once."""
LITERALS = 5e-6
"""To make a plan takes so many seconds, times the square of the literals in its statement."""
SHORT_PLAN = 0.1
"""What takes fewer seconds is done at once."""


class StrategyChoice:
    def __init__(self, graph: Graph, choices: Choices) -> None:
        self._graph = graph
        self._choices = choices

    def choose(self, node: Node, wave: Wave) -> str:
        ways = wave.ways
        if isinstance(node, ViewNode):
            is_naive = node.view.strategy == Strategy.NAIVE and not node.part.below
            if node.view.moves or is_naive:
                return Strategy.NAIVE
        if (
            self._choices.forced == Strategy.NAIVE
            or ways.depends_on_missed(node)
            or ways.goes_naive(node)
        ):
            return Strategy.NAIVE
        if self._is_flooded(node, wave):
            return Strategy.NAIVE
        part, incremental = node.part, Strategy.INCREMENTAL
        if node.counted is not None and self._are_kept(node.counted, wave):
            part, incremental = node.counted, Strategy.COUNTING
        elif node.kept is not None and self._are_kept(node.kept, wave):
            part, incremental = node.kept, Strategy.TOTALS
        sizes = {name: size for name, size in wave.sizes.items() if name in part.influents}
        known = partial(ways.prefers_naive, node, incremental)
        strategy = self._choices.strategy(node, sizes, wave.sizes, incremental, known)
        if strategy == Strategy.INCREMENTAL and self._are_coming(node, wave):
            ways.pass_over(node)
            return Strategy.NAIVE
        changed = frozenset(sizes)
        if strategy == Strategy.NAIVE or node.is_unwieldy(strategy, changed):
            return Strategy.NAIVE
        return Strategy.NAIVE if self.waits(node, strategy, changed, wave) else strategy

    def passes(self, node: DerivedNode, wave: Wave) -> bool:
        """Is the node to be evaluated as a whole, in both states, only for views that have their
        old rows? To evaluate the views takes one state."""
        if isinstance(node, TotalsNode):
            return False
        if self._is_flooded(node, wave):
            return True
        if isinstance(node, RoundsNode) and node.refused is None:
            return False
        return self._graph.is_for_stored_views(node) and self.choose(node, wave) == Strategy.NAIVE

    def waits(
        self, node: Node, strategy: str, changed: frozenset[str], wave: Wave, times: float = 1.0
    ) -> bool:
        """Is a plan for what has changed still to be made, and does that take longer than naive
        evaluation has for want of it, this time included? It takes `times` as long here."""
        if node.id in wave.waiting:
            return True
        if len(changed) < SEVERAL or node.is_planned(strategy, changed) or self._is_bound(node):
            return False
        to_plan = LITERALS * node.length(strategy, changed) ** 2
        waited = node.waited.get(changed, 0.0) + times * self._choices.naive_seconds(node)
        if to_plan < SHORT_PLAN or waited >= to_plan:
            return False
        node.waited[changed] = waited
        wave.waiting.add(node.id)
        return True

    def _is_bound(self, node: Node) -> bool:
        """Is it settled how its change is found, or is it Spark that would evaluate it?"""
        settled = self._choices.forced is not None or self._choices.is_of_far(node)
        return settled or any(each.strategy != "auto" for each in self._graph.views_above(node))

    def _is_flooded(self, node: Node, wave: Wave) -> bool:
        """Is so much new that to evaluate the views above takes less than to follow it? They have
        their old rows; totals between are made anew when they are wanted again."""
        return (
            self._choices.is_flood(node, wave.sizes)
            and wave.ways.is_first(node)
            and self._graph.is_for_stored_views(node, through_totals=True)
        )

    def _are_coming(self, node: Node, wave: Wave) -> bool:
        """Are totals of a query of SQL wanted and not there yet? Without them its groups are looked
        at again, one by one in both states; all of it from scratch takes no longer than they do
        to be built."""
        if node.kept is None or node.part.relation.is_set or self._choices.forced is not None:
            return False
        wanted = {each.relation.id for each in node.kept.totals}
        return any(each.id in wanted for each in wave.to_build)

    def _are_kept(self, part: Part, wave: Wave) -> bool:
        """Are the totals that a part reads those of now? Those whose members have not changed
        since they are wanted are there the next time."""
        found = [self._graph.derived.get(each.relation.id) for each in part.totals]
        nodes = [node for node in found if isinstance(node, TotalsNode)]
        if len(nodes) < len(found):
            return False  # a node between has another way to its rows, and keeps none
        missing = [node for node in nodes if not node.table.validity.holds()]
        for node in missing:
            known = node in wave.to_build or node.id in wave.flooded
            if not known and self._choices.wants_totals(node):
                wave.to_build.append(node)
        return not missing and not any(node in wave.to_build for node in nodes)
