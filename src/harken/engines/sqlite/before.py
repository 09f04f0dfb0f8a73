"""A query of the tables as they were before a change.

A statement that reads the old state of a table writes it out, as what is there without what came
and with what went, at each mention. That can be too much for SQLite, or for anyone's patience.
Then the change itself is taken back, the plain query asked, and the change is there again.

Law: the rows are those of the query when the Δ-sets were last cleared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from harken.engines.protocol import Connection, Query
from harken.engines.sqlite import many
from harken.engines.sqlite.events import Capture
from harken.engines.sqlite.selectable import selectable
from harken.ir.relations import Relation


def can_be_taken_back(relation: Relation) -> bool:
    """Not where objects are: SQLite takes what refers to an object along with it. And what has no
    columns, as whether a rule is active, may have no table."""
    return relation.arity > 0 and not any(column.type.surrogate for column in relation.columns)


@dataclass(frozen=True, slots=True)
class Before:
    query: Query
    changes: Sequence[Capture]
    """The Δ-sets of all that has changed, of tables that are here."""

    def rows(self, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        connection = selectable(self.query).connection
        with connection.undone():
            take_back(connection, self.changes)
            return self.query.rows(values)


def take_back(connection: Connection, changes: Iterable[Capture]) -> None:
    """Of a row that was changed, only the side that passed its screener may be in the Δ-set: one
    that comes back takes the place of another with its key."""
    for change in changes:
        plus, minus = change.copies()
        many.remove(connection, change.relation, plus)
        many.add(connection, change.relation, minus)
