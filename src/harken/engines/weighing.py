"""How the rows of a change are put together, for what is kept of all rows.

    by, Σ w              how often what comes and goes does, by some columns
    by, Σ w, Σ w · v     and the sum of a value, if it is summed

Law: whichever engine has the rows gives the same groups; one that comes to nothing is none.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Weighing:
    by: tuple[int, ...]
    weight: str
    """What each row counts: a number, or the column that says it."""
    present: int | None = None
    """Only rows with something in this column count."""
    is_summed: bool = False
    value: int | None = None
    """What is summed; nothing is summed as 0."""
    is_keyed: bool = False
    """Does a 0 stand before each, for the one group that there is?"""

    @property
    def width(self) -> int:
        return self.is_keyed + len(self.by) + 1 + self.is_summed
