"""A database in a hurry: what it computes is broken off at any moment.

The clock jumps, and of every node it is thought that naive evaluation takes now long, now no time.
So differentials are tried, broken off and not tried, without any sense.
"""

from __future__ import annotations

from random import Random

from harken import Database
from harken.maintenance.nodes import Node

INSTRUCTIONS = 20


class Haste:
    def __init__(self, db: Database, random: Random) -> None:
        self.random = random
        self._network = db.internals.network
        self._now = 0.0
        connection = db.internals.connection
        connection.working_time = self._time
        connection.raw.set_progress_handler(connection.is_over, INSTRUCTIONS)
        self._connection = connection

    def _time(self) -> float:
        self._now += self.random.random()
        return self._now

    def forget(self) -> None:
        """Think otherwise of every node than before."""
        nodes: list[Node] = [
            *self._network.graph.nodes.values(),
            *self._network.graph.derived.values(),
        ]
        for node in nodes:
            node.experience = None
            if self.random.random() < 0.8:
                took, by_spark = self.random.expovariate(0.1), self.random.random() < 0.5
                self._network.chooser.note_first(node, took, by_spark)
