"""A kind of source for tests: a list of rows in this process, compared with those of last time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from harken.engines.delta.tables import LakeTable
from harken.sources.kept_table import KeptTable
from harken.sources.place import Place
from harken.sources.registry import Described, FreePath, Progress, Request

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])


@dataclass
class Toy:
    rows: list[tuple[int, int]] = field(default_factory=list)


class ToySource(KeptTable):
    def __init__(self, table: LakeTable, toy: Toy | None) -> None:
        super().__init__(table)
        self._toy = toy

    def capture(self, progress: Progress | None = None, *, set_aside: bool = False) -> int:
        version = self.kept.version
        if self._toy is None:
            return version
        known = self.kept.rows(version)
        before = Counter((row["k"], row["v"]) for row in known.to_pylist())
        now = Counter(self._toy.rows)
        plus, minus = (_table(list((a - b).elements())) for a, b in ((now, before), (before, now)))
        return self.kept.commit(plus, minus, expected_version=version)


def _table(rows: list[tuple[int, int]]) -> pa.Table:
    return pa.Table.from_pylist([{"k": k, "v": v} for k, v in rows], SCHEMA)


class ToyKind:
    name = "toy"
    title = "list of rows"
    has_versions = False
    keeps_files = True

    def accepts(self, given: Any) -> bool:
        return isinstance(given, Toy)

    def describe(self, request: Request) -> Described:
        return Described(self, SCHEMA, frame=request.source)

    def make(
        self, described: Described, free: FreePath, columns: Sequence[str], keys: int, unique: bool
    ) -> tuple[str, int]:
        path = free()
        LakeTable.create(path, SCHEMA, key=list(columns[:keys]), bag=True)
        return path, 0

    def is_at(self, place: Place, given: Any) -> bool:
        return self.accepts(given)

    def open(self, place: Place, key: Sequence[str], reader: Any, frame: Any) -> ToySource:
        return ToySource(LakeTable.open(place.path), frame)


KIND = ToyKind()
