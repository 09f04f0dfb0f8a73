"""What was done to answer questions about the lake: for explanations and benchmarks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    seeks: int = 0
    files: int = 0
    row_groups: int = 0
    rows: int = 0
    """Those that were brought here."""
    queries: int = 0
    """Those that Spark answered."""

    def since(self, before: Tally) -> Tally:
        return Tally(*(getattr(self, name) - getattr(before, name) for name in Tally.__slots__))

    def copy(self) -> Tally:
        return self.since(Tally())

    def __str__(self) -> str:
        return (
            f"{self.seeks} seeks in {self.files} files and {self.row_groups} row groups brought "
            f"{self.rows} rows; Spark answered {self.queries} queries"
        )
