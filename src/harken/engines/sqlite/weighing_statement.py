"""A weighing as a statement of SQLite: see `engines.weighing`."""

from __future__ import annotations

from harken.engines.sqlite.aggregates import exact_sum
from harken.engines.weighing import Weighing


def around(weighing: Weighing) -> tuple[str, str]:
    """The text before and after the rows in a statement of SQLite."""
    by = [*("0" * weighing.is_keyed), *(f"c{i}" for i in weighing.by)]
    there = "1" if weighing.present is None else f"c{weighing.present} IS NOT NULL"
    shown, changed = f"sum({weighing.weight}) AS n", "n <> 0"
    for value in weighing.values:
        shown += f", {exact_sum(f'c{value}', weighing.weight)} AS s{value}"
        changed += f" OR s{value} <> 0"
    places = ", ".join(str(i + 1) for i in range(len(by)))
    return (
        f"SELECT {', '.join(by)}, {shown} FROM",
        f"WHERE {there} GROUP BY {places} HAVING {changed}",
    )
