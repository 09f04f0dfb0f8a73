"""Differentials that read kept totals: a changed group is its totals, not all of its members."""

from __future__ import annotations

from typing import ClassVar

from harken.maintenance.nodes import Monitored
from harken.maintenance.strategies.differentials import Differentials
from harken.maintenance.strategies.names import Strategy
from harken.planner.network_nodes import Part


class KeptTotals(Differentials):
    name: ClassVar[Strategy] = Strategy.TOTALS

    def part(self, node: Monitored) -> Part | None:
        return node.kept


KEPT_TOTALS = KeptTotals()
