"""A Spark DataFrame as a source: its current rows are compared with those of the last capture.

After reopening, the last rows stay until the user registers the DataFrame again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from harken.engines import arrow_rows
from harken.engines.delta.tables import LakeTable
from harken.sources.kept_table import KeptTable
from harken.sources.place import Place
from harken.sources.registry import Described, FreePath, Progress, Request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from harken.engines.spark.reader import LakeReader


class FrameSource(KeptTable):
    def __init__(
        self,
        table: LakeTable,
        reader: Callable[[], LakeReader] | None,
        frame: DataFrame | None,
    ) -> None:
        super().__init__(table)
        self._reader = reader
        self._frame = frame

    def capture(self, progress: Progress | None = None, *, set_aside: bool = False) -> int:
        version = self.kept.version
        if self._frame is None:
            return version
        assert self._reader is not None
        reader = self._reader()
        now = self._frame.select(*map(_quoted, self.schema.names))
        before = reader.frame(self.kept, version)
        # Each row as often as one side has more copies of it than the other.
        plus, minus = now.exceptAll(before), before.exceptAll(now)
        return self.kept.commit(
            reader.collect(plus, self.schema),
            reader.collect(minus, self.schema),
            expected_version=version,
        )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class FrameKind:
    name = "frame"
    title = "DataFrame"
    has_versions = False
    keeps_files = True

    def accepts(self, given: Any) -> bool:
        return hasattr(given, "toArrow")

    def describe(self, request: Request) -> Described:
        assert request.reader is not None
        schema = request.reader().collect(request.source.limit(0)).schema
        return Described(self, schema, frame=request.source)

    def make(
        self, described: Described, free: FreePath, columns: Sequence[str], keys: int, unique: bool
    ) -> tuple[str, int]:
        schema = arrow_rows.storable([described.schema.field(column) for column in columns])
        path = free()
        LakeTable.create(path, schema, key=list(columns[:keys]), bag=True)
        return path, 0

    def is_at(self, place: Place, given: Any) -> bool:
        return self.accepts(given)

    def open(
        self,
        place: Place,
        key: Sequence[str],
        reader: Callable[[], LakeReader] | None,
        frame: Any,
    ) -> FrameSource:
        return FrameSource(LakeTable.open(place.path), reader, frame)


KIND = FrameKind()
