"""Kept totals are updated by the changes of their members, unless recomputing without them is
faster.

Law: updated totals equal those that would be computed now. Totals that cannot be kept exactly are
revoked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harken.maintenance.nodes import Monitored, Node, TotalsNode
from harken.maintenance.strategies.base import Found, Job
from harken.maintenance.strategies.differentials import DIFFERENTIALS, Differentials
from harken.maintenance.strategies.names import Strategy

if TYPE_CHECKING:
    from harken.engines.protocol import Query
    from harken.maintenance.wave_measurements import Nodes


class FollowedTotals(Differentials):
    name: ClassVar[Strategy] = Strategy.FOLLOWED

    def applies(self, node: Node) -> bool:
        return isinstance(node, TotalsNode)

    def is_ready(self, node: Node, graph: Nodes) -> bool:
        return isinstance(node, TotalsNode) and node.table.holds()

    def queries(self, job: Job) -> tuple[Query, ...]:
        """Prepares the queries for changed members. They are run by `follow`, so none is
        returned."""
        assert isinstance(job.node, TotalsNode)
        job.node.followers_of(job.changed, job.planning)
        return ()

    def run(self, job: Job, queries: tuple[Query, ...] = ()) -> Found:
        assert isinstance(job.node, TotalsNode)
        if not job.node.follow(job.node.followers_of(job.changed, job.planning)):
            job.node.table.revoke()
        return [], []

    def length(self, node: Monitored, changed: frozenset[str]) -> int:
        return DIFFERENTIALS.length(node, changed)

    def is_planned(self, node: Monitored, changed: frozenset[str]) -> bool:
        return isinstance(node, TotalsNode) and changed in node.followers


FOLLOWED_TOTALS = FollowedTotals()
