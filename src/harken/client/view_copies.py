"""A copy of a view that a client keeps up to date with its changes.

Law: after each change, the copy has the rows that the view had at its position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harken.database.changes import Change
from harken.errors import ValueFault
from harken.values.rows import Row


class Copy:
    """The rows of a view at a position: `copy.apply(change)`.

    >>> copy = Copy()
    >>> copy.apply(Change("v", [(1,), (2,)], [], 3, fresh=True))
    >>> copy.apply(Change("v", [(5,)], [(1,)], 4))
    >>> sorted(copy), copy.position
    ([(2,), (5,)], 4)
    """

    def __init__(self) -> None:
        self._rows: Counter[Row] = Counter()
        self.position = 0

    def apply(self, change: Change) -> None:
        if change.fresh:
            self._rows.clear()
        for row in change.plus:
            self._rows[row] += 1
        for row in change.minus:
            if self._rows[row] <= 0:
                raise ValueFault(
                    f"{row} is not in the copy, so it cannot be removed",
                    code="bad-value",
                    hint="a copy starts with a fresh change, and takes each change once",
                )
            self._rows[row] -= 1
            if not self._rows[row]:
                del self._rows[row]
        self.position = change.position

    def __iter__(self) -> Iterator[Row]:
        """Each row as many times as the view has it."""
        return self._rows.elements()

    def __len__(self) -> int:
        return self._rows.total()

    def __contains__(self, row: object) -> bool:
        return row in self._rows
