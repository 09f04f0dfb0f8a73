"""One row for each key: what a function needs of a table that others write, and that only we ask.

A change that brings a second row is refused as a whole, before anyone acts on it. When the input
has been mended, the next step takes in both changes, which together bring none.

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

if TYPE_CHECKING:
    from harken.engines.placement.far import FarRelation
    from harken.engines.spark.reader import LakeReader

Row = tuple[Any, ...]
Reader = Callable[[], "LakeReader"] | None
"""What reads through Spark, where there is Spark: made when it is first needed."""


def check_all(far: FarRelation, reader: Reader) -> None:
    """That the version which is read has one row for each key."""
    if not far.relation.key or not far.size():
        return
    if reader is not None and far.size() > limits.MOST_HELD:
        _check_on_spark(far, reader())
    else:
        _check_rows(far, far.rows(far.relation.key, _suspects(far)))


def _suspects(far: FarRelation) -> list[Row]:
    """Keys that may have several rows, by their columns alone: a NULL in the others is not seen."""
    assert far.relation.key is not None
    names = [far.columns[i] for i in far.relation.key]
    with faults.translated(far.place):
        rows = far.table.rows(far.place.version).select(names)
    groups = rows.group_by(names).aggregate([([], "count_all")])
    several = groups.filter(pc.greater(groups["count_all"], 1)).select(names)
    return conversion.from_arrow(several, [far.relation.columns[i] for i in far.relation.key])


def check_changes(far: FarRelation, changes: list[Row], reader: Reader) -> None:
    """That it still has, after these changes, which are in the version that is read."""
    if not far.relation.key:
        return
    come, gone = Counter[Row](), Counter[Row]()
    for *row, weight in changes:
        (come if weight > 0 else gone)[_key(far, row)] += abs(weight)
    for key, times in come.items():
        if times > 1:
            raise _repeated(far, key)
    # A row in place of another, or in a place that was empty: only then may there be two.
    new = [key for key in come if key not in gone]
    if not new:
        return
    if reader is not None and _rows_to_read(far, new) > limits.MOST_HELD:
        _check_on_spark(far, reader(), new)
    else:
        _check_rows(far, far.rows(far.relation.key, new))


def _rows_to_read(far: FarRelation, keys: list[Row]) -> int:
    assert far.relation.key is not None
    wanted = far.keys(far.relation.key, keys)
    return sum(file.rows for file in far.table.files(far.place.version, wanted))


def _check_rows(far: FarRelation, rows: list[Row]) -> None:
    for key, times in Counter(_key(far, row) for row in rows).items():
        if times > 1:
            raise _repeated(far, key)


def _check_on_spark(far: FarRelation, reader: LakeReader, keys: list[Row] | None = None) -> None:
    from harken.engines.spark.distributed import repeated_key

    assert far.relation.key is not None
    wanted = None if keys is None else far.keys(far.relation.key, keys)
    key = repeated_key(reader, far, wanted)
    if key is not None:
        raise _not_unique(far, key)


def _key(far: FarRelation, row: Any) -> Row:
    return tuple(row[i] for i in far.relation.key or ())


def _repeated(far: FarRelation, key: Row) -> IntegrityError:
    """With a key as it is stored."""
    types = [far.relation.columns[i].type for i in far.relation.key or ()]
    decoders = [decoder(type_) for type_ in types]
    pairs = zip(key, decoders, strict=True)
    return _not_unique(far, tuple(value if d is None else d(value) for value, d in pairs))


def _not_unique(far: FarRelation, key: Row) -> IntegrityError:
    names = [far.columns[i] for i in far.relation.key or ()]
    shown = ", ".join(f"{name} = {value!r}" for name, value in zip(names, key, strict=True))
    return IntegrityError(
        f"the key of {far.relation.name} is not unique: there are several rows with {shown}",
        code="not-unique",
        hint="mend the table where it comes from; or register it with more columns in the key, or "
        "with unique=False for a function with several values",
    )
