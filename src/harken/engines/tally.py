"""Counts of the work done to answer queries over the lake, for explanations and benchmarks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    seeks: int = 0
    files: int = 0
    row_groups: int = 0
    rows: int = 0
    """Rows fetched from the lake."""
    queries: int = 0
    """Queries answered by Spark."""

    def since(self, before: Tally) -> Tally:
        return Tally(*(getattr(self, name) - getattr(before, name) for name in Tally.__slots__))

    def copy(self) -> Tally:
        return self.since(Tally())

    def __str__(self) -> str:
        return (
            f"{self.seeks} seeks in {self.files} files and {self.row_groups} row groups brought "
            f"{self.rows} rows; Spark answered {self.queries} queries"
        )
