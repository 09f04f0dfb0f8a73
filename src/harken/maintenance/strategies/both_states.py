"""Recomputing each state separately: when one statement for both is too long, or when the old state
is that of an earlier moment.
"""

from __future__ import annotations

from typing import ClassVar

from harken.engines.protocol import Query
from harken.maintenance.nodes import DerivedNode, Node, ViewNode, difference
from harken.maintenance.strategies.base import Found, Job
from harken.maintenance.strategies.names import Strategy
from harken.maintenance.strategies.recompute import Recompute


class Apart(Recompute):
    """Runs the query twice; for the old state the changes of the tables are undone."""

    name: ClassVar[Strategy] = Strategy.APART

    def applies(self, node: Node) -> bool:
        return node.compares_states_apart

    def queries(self, job: Job) -> tuple[Query, ...]:
        """A node below the views is skipped: the views above find their change."""
        return () if isinstance(job.node, DerivedNode) else (job.node.whole(job.planning),)

    def run(self, job: Job, queries: tuple[Query, ...]) -> Found:
        assert job.past is not None
        before = job.past.taken_back(queries[0], job.changed)
        return difference(queries[0].rows(()), before)


class Moved(Recompute):
    """A time-dependent view, as of now and as of its last evaluation."""

    name: ClassVar[Strategy] = Strategy.MOVED

    def applies(self, node: Node) -> bool:
        return isinstance(node, ViewNode) and node.view.depends_on_time and node.old_state is None

    def queries(self, job: Job) -> tuple[Query, ...]:
        assert isinstance(job.node, ViewNode)
        return job.node.whole(job.planning), job.node.rows_before(job.changed, job.planning)

    def run(self, job: Job, queries: tuple[Query, ...]) -> Found:
        """The gains and losses since the last evaluation."""
        assert isinstance(job.node, ViewNode)
        assert job.past is not None
        now, before = queries
        name = job.node.view.name
        with job.planning.engine.connection.at(job.past.last_evaluation(name)):
            rows = before.rows(())
        found = difference(now.rows(()), rows)
        job.past.note_evaluation(name)
        return found


APART = Apart()
MOVED = Moved()
