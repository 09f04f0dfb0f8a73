"""Recomputing the rows, and comparing them with stored rows of the old state."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harken.calculus.bags import recompute_bag
from harken.calculus.differentials import Change, recompute
from harken.engines.protocol import Query
from harken.ir.clauses import Program
from harken.maintenance.nodes import DerivedNode, Monitored, Node, difference
from harken.maintenance.strategies.base import Found, Job
from harken.maintenance.strategies.names import Strategy
from harken.maintenance.strategies.recompute import Recompute

if TYPE_CHECKING:
    from harken.maintenance.wave_measurements import Nodes


class StoredCopy(Recompute):
    """Compares in the statement: with a copy, or with the table of a materialised view."""

    name: ClassVar[Strategy] = Strategy.COPIED

    def applies(self, node: Node) -> bool:
        if isinstance(node, DerivedNode):
            return node.copy is not None
        return node.old_state is not None

    def is_ready(self, node: Node, graph: Nodes) -> bool:
        return not isinstance(node, DerivedNode) or (node.copy is not None and node.copy.holds())

    def is_weighed(self, node: Monitored) -> bool:
        """A comparison with stored rows evaluates the view once."""
        return node.old_state is not None or not node.part.relation.is_set

    def change(self, node: Monitored, changed: frozenset[str], checked: bool = True) -> Change:
        return recompute(node.part.program, changed, copied=True)

    def weighted_change(self, node: Monitored, changed: frozenset[str]) -> Program:
        return recompute_bag(node.part.program, changed, stored=node.old_state)


class StoredRowsOfView(Recompute):
    """Compares in Python, because Spark computes the new rows."""

    name: ClassVar[Strategy] = Strategy.STORED

    def applies(self, node: Node) -> bool:
        return node.old_state is not None

    def queries(self, job: Job) -> tuple[Query, ...]:
        return (job.node.whole(job.planning),)

    def run(self, job: Job, queries: tuple[Query, ...]) -> Found:
        assert job.node.old_state is not None
        before = job.planning.engine.matching(job.node.old_state, {})
        return difference(queries[0].rows(()), before)


STORED_COPY = StoredCopy()
STORED_ROWS_OF_VIEW = StoredRowsOfView()
