"""Rederivation of a recursive relation on demand, with nothing stored (`calculus.rederivation`)."""

from __future__ import annotations

from typing import ClassVar

from harken.maintenance.recursive_nodes import RecursiveNode
from harken.maintenance.strategies.base import Job
from harken.maintenance.strategies.names import Strategy
from harken.maintenance.strategies.recursions import RecursiveStrategy


class Rederivation(RecursiveStrategy):
    name: ClassVar[Strategy] = Strategy.EXTERNAL

    def fill(self, node: RecursiveNode, job: Job) -> None:
        node.rederive(job.changed, job.planning)


REDERIVATION = Rederivation()
