"""What stands around the SELECT of some rows: a weighing (`engines.weighing`), values beside the
rows, or a sum of their weights."""

from __future__ import annotations

from harken.engines.sqlite.aggregates import exact_sum
from harken.engines.weighing import Weighing
from harken.ir.relations import Relation


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


def beside_rows(relation: Relation, beside: str) -> tuple[str, str]:
    """What stands around the rows of a relation to select them with something beside them."""
    columns = ", ".join(f"c{i}" for i in range(relation.arity))
    shown = f"{columns}{beside}" if columns else beside.removeprefix(", ")
    return f"SELECT {shown} FROM", "" if columns else "LIMIT 1"


def summed_by_row(relation: Relation) -> tuple[str, str]:
    """What stands around weighted rows to sum their weights, which are last."""
    row = ", ".join(f"c{i}" for i in range(relation.arity - 1))
    weight = f"sum(c{relation.arity - 1})"
    return f"SELECT {row}, {weight} FROM", f"GROUP BY {row} HAVING {weight} <> 0"
