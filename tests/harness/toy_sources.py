"""A kind of source that tests hold in their hands: its tables are Python lists."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from harken.sources.kinds import OF_USERS, register_kind
from harken.sources.outside import Context, Opened, Option, OutsideSchema, Position, Snapshot

Row = tuple[Any, ...]
START = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)


@dataclass
class ToyTable:
    """What is outside. `fault` is raised by the next readings, `counted` says how many there
    were."""

    columns: pa.Schema
    rows: list[Row] = field(default_factory=list)
    key: tuple[str, ...] = ()
    fault: Exception | None = None
    set_aside: Mapping[str, str] = field(default_factory=dict)
    part_column: str | None = None
    counted: int = 0
    has_position: bool = True

    def batches(self) -> Iterator[pa.RecordBatch]:
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.columns)
        arrays = [pa.array(list(c), f.type) for c, f in zip(columns, self.columns, strict=True)]
        yield from pa.table(arrays, schema=self.columns).to_batches(max_chunksize=3)

    def position(self) -> Position:
        return json.dumps([self.rows, str(self.columns)], default=str)


@dataclass
class ToyPolled:
    table: ToyTable

    def schema(self) -> OutsideSchema:
        return OutsideSchema(self.table.columns, self.table.key)

    def snapshot(self, since: Position | None = None) -> Snapshot | None:
        table = self.table
        table.counted += 1
        if table.fault is not None:
            raise table.fault
        if table.has_position and since == table.position() and not table.set_aside:
            return None
        return Snapshot(
            self.schema(),
            table.batches(),
            table.position() if table.has_position else None,
            set_aside=dict(table.set_aside),
            part_column=table.part_column,
        )

    def close(self) -> None: ...


@dataclass
class ToyKind:
    name: str = "toy"
    title: str = "toy"
    is_whole: bool = False
    captures: tuple[str, ...] = ("poll",)
    options: tuple[Option, ...] = (
        Option("table", "Which table.", required=True),
        Option("password", "A secret.", secret=True),
        Option("size", "A number.", "integer", 10, least=1, most=99),
    )
    tables: dict[str, ToyTable] = field(default_factory=dict)
    contexts: list[Context] = field(default_factory=list)
    given: list[Mapping[str, Any]] = field(default_factory=list)

    def table(self, name: str, rows: list[Row] | None = None, **columns: pa.DataType) -> ToyTable:
        """A table, with `id` and `name` unless there are other columns."""
        schema = pa.schema(list((columns or {"id": pa.int64(), "name": pa.string()}).items()))
        made = self.tables[name] = ToyTable(schema, list(rows or []))
        return made

    def open(
        self, options: Mapping[str, Any], context: Context, capture: str | None = None
    ) -> Opened:
        self.contexts.append(context)
        self.given.append(options)
        return Opened(polled=ToyPolled(self.tables[options["table"]]), why="it is a toy")


@pytest.fixture
def toy() -> Iterator[ToyKind]:
    kind = ToyKind()
    register_kind(kind)
    yield kind
    del OF_USERS[kind.name]


class Clock:
    """Moved by hand."""

    def __init__(self) -> None:
        self.moment = START

    def __call__(self) -> datetime.datetime:
        return self.moment

    def forward(self, seconds: float) -> datetime.datetime:
        self.moment += datetime.timedelta(seconds=seconds)
        return self.moment


@pytest.fixture
def clock() -> Clock:
    return Clock()
