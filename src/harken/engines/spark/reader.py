"""Lake tables as DataFrames, and small Arrow tables on their way to Spark and back.

    collect(frame(table, version, keys)) = collect(fetched(table, version, keys))
                                         = table.rows(version, keys)

Spark is given the Parquet files of a version with their schema, and for known keys only the files
that can hold one, with a condition that it pushes into them. Where the session has the Delta
connector, Spark reads the table itself, with the same condition.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from harken.engines.delta import weighted
from harken.engines.delta.snapshot import LakeFile
from harken.engines.spark import keyfilter
from harken.engines.spark.inputs import VersionedTable
from harken.engines.spark.spark_session import conditions, has_delta, listing_threshold
from harken.errors import StorageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

MOST_LITERALS = 2_000
"""More keys are joined with; as text they take longer to parse than the join to run."""
MOST_UNITED = 8
FRAMES_KEPT = 64

# A session may have any of these otherwise, and the same files would give other rows.
OPTIONS = {
    "mergeSchema": "false",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
}


class LakeReader:
    """Reads through a session that it neither configures nor stops; works under Spark Connect."""

    def __init__(self, session: SparkSession, *, native: bool | None = None) -> None:
        self.session = session
        self.native = has_delta(session) if native is None else native
        self.threshold = listing_threshold(session)
        self._kept: OrderedDict[tuple[str, int], DataFrame] = OrderedDict()

    def frame(
        self,
        table: VersionedTable,
        version: int | None = None,
        keys: pa.Array | pa.ChunkedArray | pa.Table | None = None,
    ) -> DataFrame:
        """The rows of a version, or those with one of the keys.

        Keys are values of the first key column, or a table of any of the columns. They are sought
        as values, not by SQL's equality: the rows whose key is NULL are those of the key NULL and
        of no other. Who joins by `=` leaves NULL out of the keys.
        """
        at = table.version if version is None else version
        if keys is None:
            return self._whole(table, at)
        wanted = keyfilter.distinct(_typed(table, keys))
        if not wanted.num_rows:
            return self.small(table.schema.empty_table())
        frame = self._holding(table, at, wanted)
        if wanted.num_rows <= MOST_LITERALS:
            return frame.filter(keyfilter.condition(wanted))
        return self._matching(frame.filter(keyfilter.covering(wanted)), wanted)

    def fetched(self, table: VersionedTable, version: int, keys: pa.Array | pa.Table) -> DataFrame:
        """The rows of `frame`, NULL keys included, but read by this process before it returns.

        For few keys that is sooner than any query of Spark, and what they join with then knows
        how few they are. The files that can hold one are read here, whole.
        """
        return self.small(table.rows(version, _typed(table, keys)))

    def small(self, rows: pa.Table) -> DataFrame:
        """Rows that travel to Spark, types kept: Δs, keys, small resident tables."""
        schema = _plain(rows.schema)
        # One chunk: behind an empty one Spark's reader of Arrow stops, and what follows is lost.
        whole = rows.cast(schema).combine_chunks()
        return self.session.createDataFrame(whole, spark_schema(schema))

    def collect(self, frame: DataFrame, schema: pa.Schema | None = None) -> pa.Table:
        """The rows of a DataFrame, as the columns of `schema` if it is given."""
        try:
            rows = frame.toArrow()
        except Exception as error:
            raise _ours(error) from error
        return weighted.positive_zeros(rows if schema is None else rows.cast(schema))

    def forget(self, table: VersionedTable, before: int | None = None) -> None:
        """Drop what is cached for the table, or for its versions before one."""
        for path, version in list(self._kept):
            if path == table.path and (before is None or version < before):
                del self._kept[path, version]

    def _whole(self, table: VersionedTable, version: int) -> DataFrame:
        """Kept, because Spark looks up every file of a DataFrame when it is made."""
        place = table.path, version
        frame = self._kept.pop(place, None)
        if frame is None:
            frame = self._make(table, version)
        self._kept[place] = frame
        while len(self._kept) > FRAMES_KEPT:
            self._kept.popitem(last=False)
        return frame

    def _make(self, table: VersionedTable, version: int) -> DataFrame:
        if self.native:
            reader = self.session.read.format("delta").option("versionAsOf", version)
            return reader.load(table.path)
        if not getattr(table, "plain_files", True):
            return self.small(table.rows(version))
        return self._read(table.schema, table.files(version))

    def _holding(self, table: VersionedTable, version: int, keys: pa.Table) -> DataFrame:
        if self.native or not getattr(table, "plain_files", True):
            return self._whole(table, version)
        return self._read(table.schema, table.files(version, keys))

    def _read(self, schema: pa.Schema, files: Sequence[LakeFile]) -> DataFrame:
        """Above a number of paths Spark starts a job to look them up; a few lots of fewer, united,
        it looks up sooner."""
        if not files:
            return self.small(schema.empty_table())
        paths = [file.uri for file in files]
        if not self.threshold < len(paths) <= MOST_UNITED * self.threshold:
            return self.open(schema, paths)
        starts = range(0, len(paths), self.threshold)
        lots = [paths[start : start + self.threshold] for start in starts]
        first, *others = (self.open(schema, lot) for lot in lots)
        for other in others:
            first = first.union(other)
        return first

    def open(self, schema: pa.Schema, paths: Sequence[str]) -> DataFrame:
        reader = self.session.read.options(**OPTIONS).schema(spark_schema(schema))
        try:
            return reader.parquet(*paths)
        except Exception as error:
            raise _ours(error) from error

    def _matching(self, frame: DataFrame, keys: pa.Table) -> DataFrame:
        from pyspark.sql import functions as F

        wanted = self.small(keys.rename_columns([f"_key_{name}" for name in keys.column_names]))
        same = [
            F.col(keyfilter.quoted(name)).eqNullSafe(F.col(keyfilter.quoted(f"_key_{name}")))
            for name in keys.column_names
        ]
        return frame.join(F.broadcast(wanted), same, "left_semi")


def spark_schema(schema: pa.Schema) -> StructType:
    """A timestamp without a zone stays one, whatever the session prefers."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema.remove_metadata(), prefer_timestamp_ntz=True)


def _typed(table: VersionedTable, keys: pa.Array | pa.ChunkedArray | pa.Table) -> pa.Table:
    if not isinstance(keys, pa.Table):
        keys = pa.table({table.key[0]: keys})
    fields = [table.schema.field(name) for name in keys.column_names]
    return weighted.positive_zeros(keys.cast(pa.schema(fields)))


def _plain(schema: pa.Schema) -> pa.Schema:
    """Spark has no unsigned integers, and few of its functions take Arrow's other layouts."""
    return pa.schema([field.with_type(_plain_type(field.type)) for field in schema])


def _plain_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type_):
        return _plain_type(type_.value_type)
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return pa.binary()
    if pa.types.is_unsigned_integer(type_):
        return {8: pa.int16(), 16: pa.int32()}.get(type_.bit_width, pa.int64())
    return type_


def _ours(error: Exception) -> Exception:
    """A file of an old version that someone removed; any other error stays what it is."""
    if not {"PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST"} & conditions(error):
        return error
    return StorageError(
        f"a file of the table is gone: {str(error).splitlines()[0]}",
        code="no-such-version",
        hint="its version was removed because nothing needed it any more",
    )
