"""Several DataFrames of different columns as one, so that one job computes them all.

Every value goes into the first free column of its type; the first column says whose row it is.

Law: rows(frames)[i] are the rows of frames[i].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harken.engines.spark import functions
from harken.values.rows import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rows(frames: Sequence[DataFrame]) -> list[list[Row]]:
    """The rows of each, as stored values."""
    from pyspark.sql import functions as F

    places = [_places(frame) for frame in frames]
    columns = {name: type_ for each in places for name, type_ in each}
    position = {name: i for i, name in enumerate(columns, start=1)}
    stack: DataFrame | None = None
    for number, (frame, given) in enumerate(zip(frames, places, strict=True)):
        values = {
            name: F.col(field.name)
            for (name, _), field in zip(given, frame.schema.fields, strict=True)
        }
        layer = frame.select(
            F.lit(number).alias("whose"),
            *(
                values.get(name, F.lit(None)).cast(type_).alias(name)
                for name, type_ in columns.items()
            ),
        )
        stack = layer if stack is None else stack.unionAll(layer)
    found: list[list[Row]] = [[] for _ in frames]
    picked = [[position[name] for name, _ in each] for each in places]
    for row in stack.collect() if stack is not None else ():
        whose = row[0]
        found[whose].append(tuple(functions.to_stored(row[i]) for i in picked[whose]))
    return found


def _places(frame: DataFrame) -> list[tuple[str, Any]]:
    """For each column of a frame, the name and the type of the column of the stack it goes to."""
    seen: Counter[str] = Counter()
    places = []
    for field in frame.schema.fields:
        kind = field.dataType.simpleString()
        places.append((f"{kind} {seen[kind]}", field.dataType))
        seen[kind] += 1
    return places
