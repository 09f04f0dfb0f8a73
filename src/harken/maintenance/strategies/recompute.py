"""Recomputing a node from the stored relations in both states, in one statement, and comparing.

Law: the rows now, minus the rows before, are the change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from harken.calculus.bags import recompute_bag
from harken.calculus.differentials import Change, recompute
from harken.ir.clauses import Program
from harken.ir.relations import Relation
from harken.maintenance import tuning
from harken.maintenance.nodes import Monitored, Node
from harken.maintenance.strategies.base import PlannedStrategy
from harken.maintenance.strategies.names import Strategy

if TYPE_CHECKING:
    from harken.maintenance.chooser import Chooser
    from harken.maintenance.wave_measurements import WaveMeasurements


class Recompute(PlannedStrategy):
    name: ClassVar[Strategy] = Strategy.NAIVE

    def applies(self, node: Node) -> bool:
        return True

    def influents(self, node: Monitored) -> Mapping[str, Relation]:
        return node.part.stored

    def estimate(self, node: Node, wave: WaveMeasurements) -> float | None:
        known = wave.experience(node)
        return None if known is None else known.naive_seconds

    def cost(self, node: Node, sizes: Mapping[str, int], chooser: Chooser) -> float:
        lake = chooser.lake_changes(node, sizes)
        if sum(lake.values()) > tuning.LARGE_LAKE_CHANGE:
            return sum(chooser.statistics.rows(node.part.influents[name]) for name in lake)
        return chooser.costs(node).whole

    def change(self, node: Monitored, changed: frozenset[str], checked: bool = True) -> Change:
        return recompute(node.part.program, changed)

    def weighted_change(self, node: Monitored, changed: frozenset[str]) -> Program:
        return recompute_bag(node.part.program, changed)


RECOMPUTE = Recompute()
