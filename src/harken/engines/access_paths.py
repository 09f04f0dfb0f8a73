"""How the rows of lake relations are reached by a plan, for people to read."""

from __future__ import annotations

from dataclasses import dataclass

from harken.engines import fetch_limits as limits

KEYS, ROUNDS, WHOLE, SPARK = "keys", "rounds", "whole", "spark"


@dataclass(frozen=True, slots=True)
class Reach:
    """One demand of a plan: `how` is `keys`, `rounds`, `whole` or `spark`."""

    relation: str
    rows: int
    how: str
    columns: tuple[str, ...] = ()
    keys: str = ""
    """The clause that says which values the columns can have."""
    sources: tuple[str, ...] = ()
    """The relations in that clause; without any, the values are given."""

    def __str__(self) -> str:
        size = f"{self.relation}, {self.rows:,} rows:"
        if self.how == KEYS:
            origin = f"found in {', '.join(self.sources)}" if self.sources else "given"
            return f"{size} fetched by {', '.join(self.columns)}, with the values {origin}"
        if self.how == ROUNDS:
            return f"{size} fetched by what each round of the recursion finds"
        if self.how == SPARK:
            return f"{size} all of them are needed, which is too many to bring here: Spark answers"
        if self.columns:
            return f"{size} brought here as a whole, because they are few"
        return f"{size} all of them are needed, and brought here"


def described(found: tuple[Reach, ...]) -> list[str]:
    """The parts of an explanation about the lake. Of what is fetched in the same way for several
    reasons, the simplest is reported."""
    if not found:
        return []
    simplest = sorted(found, key=lambda each: len(each.sources), reverse=True)
    told = {(each.relation, each.columns, each.sources[:1]): each for each in simplest}
    lines = [str(each) for each in reversed(told.values())]
    if any(each.how in (KEYS, ROUNDS) for each in found):
        lines.append(f"for more than {limits.MOST_KEYS:,} keys, Spark answers")
    return ["Of what is in the lake:", "\n".join(lines)]
