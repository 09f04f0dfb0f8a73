"""How the rows of a change are aggregated for state kept over all rows.

    by, Σ w              how often each combination of the columns `by` comes and goes
    by, Σ w, Σ w · v     with the sums of values

Law: every engine gives the same groups; groups whose weights cancel are omitted.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Weighing:
    by: tuple[int, ...]
    weight: str
    """The weight of each row: a number, or the column that holds it."""
    present: int | None = None
    """Only rows with a value in this column count."""
    values: tuple[int, ...] = ()
    """The summed columns; NULL is summed as 0."""
    is_keyed: bool = False
    """Is each row preceded by a 0, for the single group?"""

    @property
    def width(self) -> int:
        return self.is_keyed + len(self.by) + 1 + len(self.values)
