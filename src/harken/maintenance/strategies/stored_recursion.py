"""Maintaining the stored rows of a recursive relation by deletion and rederivation
(`calculus.stored_recursion`).
"""

from __future__ import annotations

from typing import ClassVar

from harken.maintenance.recursive_nodes import RecursiveNode
from harken.maintenance.strategies.base import Job
from harken.maintenance.strategies.names import Strategy
from harken.maintenance.strategies.recursions import RecursiveStrategy


class StoredRecursion(RecursiveStrategy):
    name: ClassVar[Strategy] = Strategy.MATERIALIZED

    def fill(self, node: RecursiveNode, job: Job) -> None:
        node.maintain(job.changed, job.stored, job.planning)


class RecomputedRecursion(RecursiveStrategy):
    """Recomputes all rows, and compares them with the stored rows of the old state."""

    name: ClassVar[Strategy] = Strategy.NAIVE

    def fill(self, node: RecursiveNode, job: Job) -> None:
        node.recompute(job.stored, job.planning)


STORED_RECURSION = StoredRecursion()
RECOMPUTED_RECURSION = RecomputedRecursion()
