"""Rows of a table that the function over it does not have.

A function has no NULL: a row with a NULL in one of its columns is left out, and so is a row with a
number that is not finite or a decimal of more than 64 bits. Registering the table reports how many
rows that concerns, and each step how many of the new ones.

Law: every row of the table is either in the function or left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from harken.engines import fetch_limits as limits
from harken.engines.delta import weighted
from harken.engines.placement import faults
from harken.engines.placement.keys import Reader
from harken.engines.representable import WIDE_DECIMAL, has_value
from harken.values.types import NUMBER, Type, decimal_digits, is_decimal

if TYPE_CHECKING:
    from harken.engines.placement.placed_relation import PlacedRelation


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many rows are left out of how many, and for each column in how many rows it is the
    cause. The rows are those of a table, or the `new` ones that a step found in it."""

    rows: int
    of: int
    causes: Mapping[str, int]
    new: bool = False

    def __str__(self) -> str:
        causes = " and ".join(f"{name} in {count}" for name, count in self.causes.items())
        are = "is" if self.rows == 1 else "are"
        what = ("new " if self.new else "") + ("row" if self.of == 1 else "rows")
        return (
            f"{self.rows:,} of {self.of:,} {what} {are} left out, because a function has no NULL, "
            f"no infinite number and no decimal beyond 64 bits: there are such in {causes}"
        )


def of_table(lake_relation: PlacedRelation, reader: Reader) -> LeftOut | None:
    """The rows left out of the version that is read; None if there are none."""
    names = _suspects(lake_relation, lake_relation.place.version)
    if not names or not lake_relation.size():
        return None
    if reader is not None and lake_relation.size() > limits.MOST_HELD:
        from harken.engines.spark.distributed import count_unsound

        return _found(*count_unsound(reader(), lake_relation, names))
    with faults.translated(lake_relation.place):
        rows = lake_relation.table.rows(lake_relation.place.version)
    return of_rows(rows.select(names))


def of_change(lake_relation: PlacedRelation, change: pa.Table) -> LeftOut | None:
    """The rows left out of a change that is held here."""
    required = [
        name
        for name, column in zip(lake_relation.columns, lake_relation.relation.columns, strict=True)
        if not column.type.nullable
    ]
    if not any(pc.any(_without_value(change[name])).as_py() for name in required):
        return None
    found = of_rows(weighted.plus_rows(change.select([*required, weighted.WEIGHT])))
    return None if found is None else replace(found, new=True)


def of_large_change(
    lake_relation: PlacedRelation, before: int, after: int, reader: Reader
) -> LeftOut | None:
    """The rows left out of a change that stays in the lake: Spark counts them, unless the
    table's log rules them out."""
    names = _suspects(lake_relation, after)
    if not names or reader is None:
        return None
    from harken.engines.spark.distributed import count_unsound

    found = _found(*count_unsound(reader(), lake_relation, names, (before, after)))
    return None if found is None else replace(found, new=True)


def of_rows(rows: pa.Table) -> LeftOut | None:
    """The rows left out of these columns."""
    without = {name: _without_value(rows[name]) for name in rows.column_names}
    causes = {name: pc.sum(each).as_py() or 0 for name, each in without.items()}
    anywhere: Any = None
    for each in without.values():
        anywhere = each if anywhere is None else pc.or_(anywhere, each)
    return _found(pc.sum(anywhere).as_py() or 0, rows.num_rows, causes)


def _without_value(column: pa.ChunkedArray) -> Any:
    return pc.invert(has_value(column))


def _found(rows: int, of: int, causes: Mapping[str, int]) -> LeftOut | None:
    return LeftOut(rows, of, {name: n for name, n in causes.items() if n}) if rows else None


def _suspects(lake_relation: PlacedRelation, version: int) -> list[str]:
    """The columns that must have a value and may lack one, by the table's log."""
    table = lake_relation.table
    return [
        name
        for name, column in zip(lake_relation.columns, lake_relation.relation.columns, strict=True)
        if not column.type.nullable
        and (column.type == NUMBER or _is_wide(column.type) or table.may_be_null(version, name))
    ]


def _is_wide(type_: Type) -> bool:
    return is_decimal(type_) and decimal_digits(type_)[0] >= WIDE_DECIMAL
