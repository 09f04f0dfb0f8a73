"""The stored rounds of a recursion that counts derivations are updated (`calculus.rounds`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harken.maintenance.nodes import Node
from harken.maintenance.round_nodes import RoundsNode
from harken.maintenance.strategies.base import Found, Job
from harken.maintenance.strategies.differentials import Differentials
from harken.maintenance.strategies.names import Strategy

if TYPE_CHECKING:
    from harken.engines.protocol import Query
    from harken.maintenance.wave_measurements import Nodes


class FollowedRounds(Differentials):
    name: ClassVar[Strategy] = Strategy.ROUNDS

    def applies(self, node: Node) -> bool:
        return isinstance(node, RoundsNode) and node.refused is None

    def is_ready(self, node: Node, graph: Nodes) -> bool:
        return isinstance(node, RoundsNode) and node.table.holds()

    def queries(self, job: Job) -> tuple[Query, ...]:
        return ()

    def run(self, job: Job, queries: tuple[Query, ...] = ()) -> Found:
        assert isinstance(job.node, RoundsNode)
        job.node.follow(job.changed, job.planning)
        return [], []


FOLLOWED_ROUNDS = FollowedRounds()
