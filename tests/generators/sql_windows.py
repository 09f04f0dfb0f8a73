"""Random window functions, and orders that leave nothing open.

Where rows that are equal in the order are told apart (`row_number`, `lag`, frames of ROWS), two
engines agree only if such rows are equal in all that is shown: so the order is by all columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.generators.sql_expressions import Column, Columns, Expressions

ROWS = (
    "2 PRECEDING AND CURRENT ROW",
    "UNBOUNDED PRECEDING AND CURRENT ROW",
    "1 PRECEDING AND 1 FOLLOWING",
    "1 FOLLOWING AND UNBOUNDED FOLLOWING",
    "3 PRECEDING AND 1 PRECEDING",
)
RANGES = (
    "UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "CURRENT ROW AND CURRENT ROW",
    "CURRENT ROW AND UNBOUNDED FOLLOWING",
)
DISTANCES = (
    "1 PRECEDING AND CURRENT ROW",
    "1 PRECEDING AND 2 FOLLOWING",
    "UNBOUNDED PRECEDING AND 1 PRECEDING",
    "1 FOLLOWING AND UNBOUNDED FOLLOWING",
)
SUMMED = {"bigint": "bigint", "double": "double", "decimal": "decimal"}


@dataclass(frozen=True, slots=True)
class Over:
    """A partition, and an order of its rows by all their columns."""

    partition: str
    total: str

    @property
    def text(self) -> str:
        return f"{self.partition}ORDER BY {self.total}"


class Windows(Expressions):
    def ordered(self, names: Sequence[str]) -> str:
        """An order by all of these."""
        left, keys = list(names), []
        while left:
            name = left.pop(self.below(len(left)))
            keys.append(name + self.choose(("", " DESC", " NULLS LAST", " DESC NULLS FIRST")))
        return ", ".join(keys)

    def over(self, columns: Columns) -> Over:
        names = list(dict.fromkeys(each.text for each in columns))
        parts = [name for name in names if self.one_in(3)]
        return Over(
            f"PARTITION BY {', '.join(parts)} " if parts else "",
            self.ordered([name for name in names if name not in parts] or names),
        )

    def window(self, columns: Columns, over: Over) -> Column:
        """A window function of rows that show these columns."""
        match self.below(4):
            case 0:
                return self._placed(over)
            case 1:
                return self._of_row(columns, over)
            case 2:
                return self._aggregated(columns, f"{over.text} ROWS BETWEEN {self.choose(ROWS)}")
        return self._among_equals(columns, over)

    def _among_equals(self, columns: Columns, over: Over) -> Column:
        """What is the same for rows that are equal in an order."""
        by = self.choose(columns)
        if self.one_in(4):
            return self._aggregated(columns, over.partition)
        order = f"{over.partition}ORDER BY {self.ordered([by.text])}"
        if self.below(2):
            kind = self.choose(("rank", "dense_rank", "percent_rank", "cume_dist"))
            type_ = "ratio" if kind in ("percent_rank", "cume_dist") else "bigint"
            return Column(f"{kind}() OVER ({order})", type_)
        if self.one_in(4):
            order += f" GROUPS BETWEEN {self.choose((*DISTANCES, *RANGES))}"
        elif self.below(2):
            frames = DISTANCES if by.type in SUMMED else RANGES
            order += f" RANGE BETWEEN {self.choose((*frames, *RANGES))}"
        return self._aggregated(columns, order)

    def _placed(self, over: Over) -> Column:
        kind = self.choose(("row_number", "row_number", "rank"))
        if self.one_in(4):
            return Column(f"ntile({1 + self.below(4)}) OVER ({over.text})", "bigint")
        return Column(f"{kind}() OVER ({over.text})", "bigint")

    def _of_row(self, columns: Columns, over: Over) -> Column:
        of = self.choose(columns)
        kind = self.choose(("lag", "lead", "first_value", "last_value", "nth_value"))
        rest, frame = "", ""
        if kind == "nth_value":
            rest = f", {1 + self.below(3)}"
        elif kind in ("lag", "lead") and self.below(2):
            rest = f", {self.below(3)}"
            rest += f", {self.literal(of.type)}" if self.below(2) else ""
        if kind.endswith("value") and self.below(2):
            frame = f" ROWS BETWEEN {self.choose(ROWS)}"
        if kind.endswith("value") and self.one_in(6):
            frame = f" GROUPS BETWEEN {self.choose(DISTANCES)}"
        nulls = " IGNORE NULLS" if self.one_in(4) else ""
        return Column(f"{kind}({of.text}{rest}{nulls}) OVER ({over.text}{frame})", of.type)

    def _aggregated(self, columns: Columns, over: str) -> Column:
        of = self.choose(columns)
        if self.one_in(6):
            given = Expressions(self.random).condition(columns, 0)
            return Column(f"count(*) FILTER (WHERE {given}) OVER ({over})", "bigint")
        if of.type in SUMMED and self.below(2):
            distinct = "DISTINCT " if self.one_in(4) else ""
            return Column(f"sum({distinct}{of.text}) OVER ({over})", SUMMED[of.type])
        if self.below(2):
            return Column(f"{self.choose(('min', 'max'))}({of.text}) OVER ({over})", of.type)
        if of.type == "bigint" and self.below(2):
            return Column(f"avg({of.text}) OVER ({over})", "ratio")
        counted = self.choose(("*", of.text, f"DISTINCT {of.text}"))
        return Column(f"count({counted}) OVER ({over})", "bigint")
