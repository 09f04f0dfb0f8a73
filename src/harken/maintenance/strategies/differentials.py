"""Differentials, with nothing stored: the rows that a change of each relation below adds and
removes.

Law: the differentials of the changed relations add up to the change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from harken.calculus.bags import count_terms, differentiate_bag
from harken.calculus.differentials import Change, differentiate
from harken.ir.clauses import Program
from harken.ir.relations import Relation
from harken.maintenance import tuning
from harken.maintenance.nodes import Monitored, Node, TotalsNode
from harken.maintenance.strategies.base import PlannedStrategy
from harken.maintenance.strategies.names import Strategy
from harken.planner.network_nodes import Part

if TYPE_CHECKING:
    from harken.maintenance.chooser import Chooser
    from harken.maintenance.wave_measurements import Nodes, WaveMeasurements


class Differentials(PlannedStrategy):
    name: ClassVar[Strategy] = Strategy.INCREMENTAL

    def part(self, node: Monitored) -> Part | None:
        """The part that is differentiated."""
        return node.part

    def applies(self, node: Node) -> bool:
        return self.part(node) is not None

    def is_ready(self, node: Node, graph: Nodes) -> bool:
        """Whether the totals that it reads are kept and up to date."""
        part = self.part(node)
        if part is None:
            return False
        totals = self.reads(node, graph)
        return len(totals) == len(part.totals) and all(each.table.holds() for each in totals)

    def reads(self, node: Node, graph: Nodes) -> list[TotalsNode]:
        part = self.part(node)
        found = [graph.derived.get(each.relation.id) for each in part.totals] if part else []
        return [each for each in found if isinstance(each, TotalsNode)]

    def is_wanted(self, node: Node, graph: Nodes, chooser: Chooser) -> bool:
        """Whether all totals that it reads are worth keeping."""
        part = self.part(node)
        totals = self.reads(node, graph)
        whole = part is not None and len(totals) == len(part.totals)
        return whole and all(map(chooser.wants_totals, totals))

    def influents(self, node: Monitored) -> Mapping[str, Relation]:
        part = self.part(node)
        assert part is not None
        return part.influents

    def estimate(self, node: Node, wave: WaveMeasurements) -> float | None:
        known = None if isinstance(node, TotalsNode) else wave.experience(node)
        return None if known is None else known.assumed_seconds(*wave.case(node, self.name))

    def cost(self, node: Node, sizes: Mapping[str, int], chooser: Chooser) -> float:
        """If Spark evaluates the change, the cost is proportional to the changed rows."""
        lake = chooser.lake_changes(node, sizes)
        if sum(lake.values()) > tuning.LARGE_LAKE_CHANGE:
            return tuning.LAKE_CHANGE_ROW_COST * sum(lake.values())
        return chooser.costs(node).by_differentials(sizes)

    def change(self, node: Monitored, changed: frozenset[str], checked: bool = True) -> Change:
        part = self.part(node)
        assert part is not None
        return differentiate(part.program, changed, checked, part.nodes)

    def weighted_change(self, node: Monitored, changed: frozenset[str]) -> Program:
        part = self.part(node)
        assert part is not None
        return differentiate_bag(part.program, changed, part.nodes)

    def term_count(self, node: Monitored, changed: frozenset[str]) -> int:
        part = self.part(node)
        assert part is not None
        if node.part.relation.is_set:
            return 0
        return count_terms(part.program, changed, part.nodes)


DIFFERENTIALS = Differentials()
