"""The change between two versions of a source, where Spark reads it.

Law: the rows, summed by weight, are changes(before, after) of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from harken.engines.delta import weighted
from harken.engines.spark.inputs import ChangingTable
from harken.engines.spark.keyfilter import quoted
from harken.engines.spark.reader import LakeReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def change_frame(
    reader: LakeReader, source: ChangingTable, before: int, after: int, columns: Sequence[str]
) -> DataFrame:
    """What leads from one version to another, by Spark: the columns, and a weight."""
    from pyspark.sql import functions as F

    parts = source.change_parts(before, after)
    if parts is None:
        return reader.small(source.changes(before, after))
    frames = []
    for paths, weight, _ in parts:
        if not paths:
            continue
        if weight is None:
            schema = source.schema.append(pa.field(weighted.WEIGHT, pa.int64()))
            frames.append(reader.open(schema, paths))
        else:
            rows = reader.open(source.schema, paths)
            frames.append(rows.withColumn(weighted.WEIGHT, F.lit(weight).cast("long")))
    if not frames:
        return reader.small(weighted.empty(source.schema))
    found = frames[0]
    for other in frames[1:]:
        found = found.unionByName(other)
    is_net = len(parts) == 1 and set(columns) == set(source.schema.names)
    if is_net and parts[0][1] is None:
        return found
    names = [quoted(name) for name in columns]
    total = F.sum(weighted.WEIGHT).alias(weighted.WEIGHT)
    return found.groupBy(*names).agg(total).filter(F.col(weighted.WEIGHT) != 0)
