"""One row per key: a function needs it of a table that others write and do not check.

A change that brings a second row is rejected as a whole, before anyone acts on it. Once the input
is repaired, the next step processes both changes, which cancel out.

Law: for each key, state + Δ has at most one row, if the state has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from harken.engines import arrow_rows as conversion
from harken.engines import fetch_limits as limits
from harken.engines.placement import faults
from harken.errors import IntegrityError
from harken.values.encoding import decoder
from harken.values.rows import Row

if TYPE_CHECKING:
    from harken.engines.placement.placed_relation import PlacedRelation
    from harken.engines.spark.reader import LakeReader

Reader = Callable[[], "LakeReader"] | None
"""Creates the reader through Spark, where there is Spark, at first use."""


def check_all(lake_relation: PlacedRelation, reader: Reader) -> None:
    """Check that the version that is read has one row per key."""
    if not lake_relation.relation.key or not lake_relation.size():
        return
    if reader is not None and lake_relation.size() > limits.MOST_HELD:
        _check_on_spark(lake_relation, reader())
    else:
        _check_rows(
            lake_relation, lake_relation.rows(lake_relation.relation.key, _suspects(lake_relation))
        )


def _suspects(lake_relation: PlacedRelation) -> list[Row]:
    """Keys that may have several rows, by the key columns alone: NULLs in other columns are not
    seen."""
    assert lake_relation.relation.key is not None
    names = [lake_relation.columns[i] for i in lake_relation.relation.key]
    with faults.translated(lake_relation.place):
        rows = lake_relation.table.rows(lake_relation.place.version).select(names)
    groups = rows.group_by(names).aggregate([([], "count_all")])
    several = groups.filter(pc.greater(groups["count_all"], 1)).select(names)
    return conversion.from_arrow(
        several, [lake_relation.relation.columns[i] for i in lake_relation.relation.key]
    )


def check_changes(lake_relation: PlacedRelation, changes: list[Row], reader: Reader) -> None:
    """Check that it still has one row per key after these changes, which the version includes."""
    if not lake_relation.relation.key:
        return
    come, gone = Counter[Row](), Counter[Row]()
    for *row, weight in changes:
        (come if weight > 0 else gone)[_key(lake_relation, row)] += abs(weight)
    for key, times in come.items():
        if times > 1:
            raise _repeated(lake_relation, key)
    # Only a row that replaces another, or is the first of its key, can be the second of two.
    new = [key for key in come if key not in gone]
    if not new:
        return
    if reader is not None and _rows_to_read(lake_relation, new) > limits.MOST_HELD:
        _check_on_spark(lake_relation, reader(), new)
    else:
        _check_rows(lake_relation, lake_relation.rows(lake_relation.relation.key, new))


def _rows_to_read(lake_relation: PlacedRelation, keys: list[Row]) -> int:
    assert lake_relation.relation.key is not None
    wanted = lake_relation.keys(lake_relation.relation.key, keys)
    return sum(file.rows for file in lake_relation.table.files(lake_relation.place.version, wanted))


def _check_rows(lake_relation: PlacedRelation, rows: list[Row]) -> None:
    for key, times in Counter(_key(lake_relation, row) for row in rows).items():
        if times > 1:
            raise _repeated(lake_relation, key)


def _check_on_spark(
    lake_relation: PlacedRelation, reader: LakeReader, keys: list[Row] | None = None
) -> None:
    from harken.engines.spark.distributed import repeated_key

    assert lake_relation.relation.key is not None
    wanted = None if keys is None else lake_relation.keys(lake_relation.relation.key, keys)
    key = repeated_key(reader, lake_relation, wanted)
    if key is not None:
        raise _not_unique(lake_relation, key)


def _key(lake_relation: PlacedRelation, row: Any) -> Row:
    return tuple(row[i] for i in lake_relation.relation.key or ())


def _repeated(lake_relation: PlacedRelation, key: Row) -> IntegrityError:
    """The error for a key in its stored form."""
    types = [lake_relation.relation.columns[i].type for i in lake_relation.relation.key or ()]
    decoders = [decoder(type_) for type_ in types]
    pairs = zip(key, decoders, strict=True)
    return _not_unique(lake_relation, tuple(value if d is None else d(value) for value, d in pairs))


def _not_unique(lake_relation: PlacedRelation, key: Row) -> IntegrityError:
    names = [lake_relation.columns[i] for i in lake_relation.relation.key or ()]
    shown = ", ".join(f"{name} = {value!r}" for name, value in zip(names, key, strict=True))
    return IntegrityError(
        f"the key of {lake_relation.relation.name} is not unique: "
        f"there are several rows with {shown}",
        code="not-unique",
        hint="mend the table where it comes from; or register it with more columns in the key, or "
        "with unique=False for a function with several values",
    )
