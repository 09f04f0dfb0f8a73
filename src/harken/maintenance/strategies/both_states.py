"""Recomputing one state after the other: where one statement for both is too long, or where the
state before is that of another moment.
"""

from __future__ import annotations

from typing import ClassVar

from harken.engines.protocol import Query
from harken.maintenance.nodes import DerivedNode, Node, ViewNode, difference
from harken.maintenance.strategies.base import Found, Job
from harken.maintenance.strategies.names import Strategy
from harken.maintenance.strategies.recompute import Recompute


class Apart(Recompute):
    """The changes of the tables are taken back for the second query."""

    name: ClassVar[Strategy] = Strategy.APART

    def applies(self, node: Node) -> bool:
        return node.compares_states_apart

    def queries(self, job: Job) -> tuple[Query, ...]:
        """Of a node below the views, what lies above finds the change."""
        return () if isinstance(job.node, DerivedNode) else (job.node.whole(job.planning),)

    def run(self, job: Job, queries: tuple[Query, ...]) -> Found:
        assert job.past is not None
        before = job.past.taken_back(queries[0], job.changed)
        return difference(queries[0].rows(()), before)


class Moved(Recompute):
    """A view over the clock, now and as of the last look."""

    name: ClassVar[Strategy] = Strategy.MOVED

    def applies(self, node: Node) -> bool:
        return isinstance(node, ViewNode) and node.view.depends_on_time and node.old_state is None

    def queries(self, job: Job) -> tuple[Query, ...]:
        assert isinstance(job.node, ViewNode)
        return job.node.whole(job.planning), job.node.rows_before(job.changed, job.planning)

    def run(self, job: Job, queries: tuple[Query, ...]) -> Found:
        """What it has gained and lost since it was looked at."""
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
