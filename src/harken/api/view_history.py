"""What is kept of the past of a view: its changes since a position, and its rows at each.

Law: the rows at a position plus the changes after it are the rows now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harken.database.changes import Change
from harken.errors import ValueFault
from harken.ir.relations import Column
from harken.values.rows import Row


@dataclass(frozen=True, slots=True)
class ViewHistory:
    view: str
    columns: tuple[Column, ...]
    key: tuple[int, ...]
    """The positions of the columns that identify a row; empty if equal rows are counted."""
    floor: int
    """The first position at which the rows are known; `position` if nothing is kept."""
    position: int
    rows: Sequence[Row]
    """The rows now."""
    changes: Sequence[Change]
    """What is kept, oldest first."""
    is_kept: bool

    def rows_at(self, position: int) -> list[Row]:
        """The rows as of a position: those of now without what came later."""
        if not self.floor <= position <= self.position:
            raise ValueFault(
                f"the rows of {self.view} at position {position:,} are not known",
                code="bad-value",
                hint=f"positions from {self.floor:,} to {self.position:,} are kept",
            )
        weights = Counter(self.rows)
        for change in self.changes:
            if change.position > position:
                weights.subtract(change.plus)
                weights.update(change.minus)
        return [row for row, weight in weights.items() for _ in range(weight)]
