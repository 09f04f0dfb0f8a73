"""Changes of answers: what the network has found in a transaction, and what an execution takes.

Law: a difference is a sum of changes, without what has cancelled out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from harken.values.rows import Row


@dataclass(frozen=True, slots=True)
class Difference:
    """The change of an answer between two executions, as stored rows."""

    plus: list[Row]
    minus: list[Row]
    size: int | None = None
    """The rows of the whole answer, if they were counted."""


@dataclass(frozen=True, slots=True)
class Received:
    """A change that the network has found: the rows of each answer with their weights."""

    rows: dict[int, Counter[Row]]
    concerned: frozenset[int]
    """The queries whose answers it is about, also those of which no row has changed."""
    failed: bool
    """Whether the view cannot be computed."""
    whole: bool
    """Whether these are all rows, because those before are unknown."""

    def without(self, number: int) -> Received:
        if number not in self.concerned:
            return self
        rows = {each: found for each, found in self.rows.items() if each != number}
        return replace(self, rows=rows, concerned=self.concerned - {number})


def difference_of(weights: Counter[Row], size: int | None = None) -> Difference:
    plus = Counter({row: weight for row, weight in weights.items() if weight > 0})
    minus = Counter({row: -weight for row, weight in weights.items() if weight < 0})
    return Difference(in_order(plus), in_order(minus), size)


def in_order(rows: Counter[Row]) -> list[Row]:
    """Sorted rows, NULL first."""

    def place(row: Row) -> Row:
        return tuple((value is not None, value) for value in row)

    return sorted(rows.elements(), key=place)
