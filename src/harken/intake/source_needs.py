"""What a statement needs of a source that is asked when it is read."""

from __future__ import annotations

from dataclasses import dataclass

from harken.sources.outside import Condition, Order


@dataclass(frozen=True, slots=True)
class Need:
    """In the names of the relation; without `columns`, all of them. With a `limit` the first rows
    suffice, in this order, of those that satisfy the conditions."""

    columns: tuple[str, ...] | None = None
    conditions: tuple[Condition, ...] = ()
    may_fail: bool = False
    """If it cannot be read, it has no rows, rather than the statement an error."""
    why_not: str = ""
    """Why nothing is asked of it: the statement wants none of its rows."""
    limit: int | None = None
    order: tuple[Order, ...] = ()
