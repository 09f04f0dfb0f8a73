"""The base of the strategies of recursive relations, which run many statements.

They fetch the rows that they need from the lake; `TooManyRows` is raised if there are too many.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harken.engines.protocol import Query
from harken.ir.relations import Relation
from harken.maintenance.nodes import Monitored, Node
from harken.maintenance.recursive_nodes import RecursiveNode
from harken.maintenance.strategies.base import Found, Job, MaintenanceStrategy

if TYPE_CHECKING:
    from harken.maintenance.chooser import Chooser
    from harken.maintenance.wave_measurements import WaveMeasurements


class RecursiveStrategy(MaintenanceStrategy):
    def applies(self, node: Node) -> bool:
        return isinstance(node, RecursiveNode) and node.refused is None

    def influents(self, node: Monitored) -> Mapping[str, Relation]:
        return node.part.influents

    def estimate(self, node: Node, wave: WaveMeasurements) -> float | None:
        known = wave.experience(node)
        return None if known is None else known.expected(*wave.case(node, self.name))

    def cost(self, node: Node, sizes: Mapping[str, int], chooser: Chooser) -> float:
        """The cost model has no estimate for recursion."""
        return 0.0

    def queries(self, job: Job) -> tuple[Query, ...]:
        return ()

    def run(self, job: Job, queries: tuple[Query, ...] = ()) -> Found:
        assert isinstance(job.node, RecursiveNode)
        self.fill(job.node, job)
        return [], []

    @abstractmethod
    def fill(self, node: RecursiveNode, job: Job) -> None:
        """Fill the Δ-set of a node."""
