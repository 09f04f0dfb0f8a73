"""The files of one version of a Delta table, and which of them can hold given keys.

    a file without a candidate for a key does not hold the key

Only the bounds in the log are used, no file is opened. Spark is given the files that are left: it
would otherwise look up every file of the table before it reads one.
"""

from __future__ import annotations

import datetime
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harken.errors import StorageError


@dataclass(frozen=True)
class LakeFile:
    path: str
    uri: str
    size: int
    rows: int


@dataclass(frozen=True)
class Bounds:
    """The log's statistics for one column of one file; None where it has none."""

    lowest: Any
    highest: Any
    nulls: int | None
    rows: int

    @property
    def known(self) -> bool:
        return self.lowest is not None and self.highest is not None

    @property
    def only_nulls(self) -> bool:
        return self.nulls is not None and self.nulls == self.rows

    @property
    def may_be_null(self) -> bool:
        return self.nulls is None or self.nulls > 0


class Snapshot:
    def __init__(
        self,
        version: int,
        uri: str,
        actions: pa.Table,
        count: Callable[[str], int] | None = None,
    ) -> None:
        """`count` opens a file whose number of rows is not in the log: statistics are optional,
        and some writers omit them."""
        self.version = version
        self._count = count
        self._uri = uri.rstrip("/")
        self._actions = actions
        self._bounds: dict[str, list[Bounds]] = {}

    @cached_property
    def files(self) -> list[LakeFile]:
        paths, sizes = (self._actions[name].to_pylist() for name in ("path", "size_bytes"))
        values = zip(paths, sizes, self._records(), strict=True)
        return [
            LakeFile(path, f"{self._uri}/{path}", size, self._rows(path, rows))
            for path, size, rows in values
        ]

    def _records(self) -> list[int | None]:
        if "num_records" not in self._actions.column_names:
            return [None] * self._actions.num_rows
        found: list[int | None] = self._actions["num_records"].to_pylist()
        return found

    def _rows(self, path: str, logged: int | None) -> int:
        if logged is not None and logged >= 0:
            return logged
        if self._count is None:
            raise StorageError(
                f"the log of {self._uri} does not say how many rows {path} has",
                code="lake-damaged",
                hint="restore the directory from a backup of the same time as the database",
            )
        return self._count(path)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    def bounds(self, column: str) -> list[Bounds]:
        """For each file, in the order of `files`."""
        if column not in self._bounds:
            lowest, highest, nulls = (
                self._statistic(kind, column) for kind in ("min", "max", "null_count")
            )
            lowest = [_moved(each, -1) for each in lowest]
            highest = [_moved(each, 1) for each in highest]
            counts = [file.rows for file in self.files]
            parts = zip(lowest, highest, nulls, counts, strict=True)
            self._bounds[column] = [Bounds(*each) for each in parts]
        return self._bounds[column]

    def _statistic(self, kind: str, column: str) -> list[Any]:
        name = f"{kind}.{column}"
        if name not in self._actions.column_names:
            return [None] * self._actions.num_rows
        values: list[Any] = self._actions[name].to_pylist()
        return values

    def candidates(self, keys: pa.Table) -> list[Any]:
        """For each file, the positions of the keys that it may hold; `keys` is sorted."""
        if not keys.num_rows:
            return [np.empty(0, np.int64) for _ in self.files]
        first, *others = keys.column_names
        ordered = _Ordered(keys[first])
        places = [ordered.within(bounds) for bounds in self.bounds(first)]
        for name in others:
            column = keys[name].combine_chunks()
            bounds = self.bounds(name)
            places = [
                where[_may_hold(column.take(pa.array(where)), each)] if len(where) else where
                for where, each in zip(places, bounds, strict=True)
            ]
        return places

    def holding(self, keys: pa.Table) -> list[LakeFile]:
        """The files that can hold one of the keys; a key may be of any of the table's columns."""
        keys = keys.sort_by([(name, "ascending") for name in keys.column_names])
        return [
            file
            for file, places in zip(self.files, self.candidates(keys), strict=True)
            if len(places)
        ]

    def sequence(self, key: Sequence[str]) -> list[int]:
        """The files' positions in the order of their lowest keys."""
        return sorted(range(len(self.files)), key=lambda index: self.lowest(index, key))

    def lowest(self, index: int, key: Sequence[str]) -> tuple[Any, ...]:
        return tuple(orderable(self.bounds(name)[index].lowest) for name in key)


def _moved(bound: Any, milliseconds: int) -> Any:
    """Many writers truncate times to milliseconds in the log, though not in the file."""
    if not isinstance(bound, datetime.datetime):
        return bound
    try:
        return bound + datetime.timedelta(milliseconds=milliseconds)
    except OverflowError:
        return bound


def orderable(value: Any) -> tuple[bool, Any]:
    """NULL comes last, as Arrow sorts it."""
    return (value is None, value)


class _Ordered:
    """A sorted column, NULLs last, searched without converting all of it to Python values."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column.combine_chunks()
        self._length = len(column)
        self._filled = self._length - column.null_count

    def within(self, bounds: Bounds) -> Any:
        low, high = 0, self._filled
        if bounds.only_nulls:
            high = 0
        elif bounds.known:
            low = bisect_left(self, bounds.lowest, 0, self._filled)
            high = bisect_right(self, bounds.highest, low, self._filled)
        filled = np.arange(low, high)
        if not bounds.may_be_null:
            return filled
        return np.concatenate([filled, np.arange(self._filled, self._length)])

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        return self._column[index].as_py()


def _may_hold(column: Any, bounds: Bounds) -> Any:
    null = pc.is_null(column)
    if bounds.only_nulls:
        return null.to_numpy(zero_copy_only=False)
    inside: Any = pc.is_valid(column)
    if bounds.known:
        low, high = (pa.scalar(end, column.type) for end in (bounds.lowest, bounds.highest))
        between = pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))
        inside = pc.fill_null(between, False)
    held = pc.or_(inside, null) if bounds.may_be_null else inside
    return held.to_numpy(zero_copy_only=False)
