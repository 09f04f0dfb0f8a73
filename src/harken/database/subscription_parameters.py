"""The constants of subscriptions that share a condition, in a temporary table of the session.

A subscription is a row, so subscribing and unsubscribing changes a row, and neither a plan nor a
node. Rows change between transactions, before there are changes that they could miss, so this is no
event. A rollback may undo it, like everything a transaction did to temporary tables.

Law: the table holds exactly the rows of the present subscriptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harken.engines.protocol import Engine
from harken.ir.relations import Relation


@dataclass(slots=True)
class Parameters:
    """`looked_up` are the columns that get an index."""

    engine: Engine
    relation: Relation
    looked_up: Sequence[int]
    rows: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    """The stored constants of each subscription."""

    def create(self) -> None:
        """A table of that name may exist already: a rollback can undo its being dropped."""
        self.engine.create_temporary(self.relation)
        self.engine.indexes.ensure([(self.relation, (each,)) for each in self.looked_up])

    def drop(self) -> None:
        self.engine.drop_temporary(self.relation)

    def add(self, subscription: int, constants: tuple[Any, ...]) -> None:
        self.rows[subscription] = constants
        self.engine.set_row(self.relation, (subscription, *constants))
        self.engine.statistics.tell(self.relation, len(self.rows))

    def remove(self, subscription: int) -> None:
        del self.rows[subscription]
        self.engine.clear(self.relation, (subscription,))
        self.engine.statistics.tell(self.relation, len(self.rows))

    def restore(self) -> None:
        """After a rollback: make the table hold the right rows again."""
        if not self.engine.exists_temporary(self.relation):
            self.create()
        stored = {number for number, *_ in self.engine.matching(self.relation, {})}
        for number in stored - self.rows.keys():
            self.engine.clear(self.relation, (number,))
        for number in self.rows.keys() - stored:
            self.engine.set_row(self.relation, (number, *self.rows[number]))
