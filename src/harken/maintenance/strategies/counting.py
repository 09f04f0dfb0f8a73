"""Counted derivations: a row exists while its count is positive, so none has to be searched for."""

from __future__ import annotations

from typing import ClassVar

from harken.maintenance.nodes import Monitored
from harken.maintenance.strategies.differentials import Differentials
from harken.maintenance.strategies.names import Strategy
from harken.planner.network_nodes import Part


class Counting(Differentials):
    name: ClassVar[Strategy] = Strategy.COUNTING

    def part(self, node: Monitored) -> Part | None:
        return node.counted


COUNTING = Counting()
