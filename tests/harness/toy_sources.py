"""A kind of source that tests hold in their hands: its tables are Python lists."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from harken.errors import SourceFault
from harken.sources.kinds import OF_USERS, register_kind
from harken.sources.outside import (
    UNCHANGED,
    Context,
    Opened,
    Option,
    OutsideSchema,
    OutsideTransaction,
    Position,
    Snapshot,
    TableChange,
)

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
        return json.dumps([self.rows, str(self.columns), dict(self.set_aside)], default=str)


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

    def table(
        self, name: str, rows: list[Row] | None = None, /, **columns: pa.DataType
    ) -> ToyTable:
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


# --- a server whose transactions are followed ----------------------------------------------------


@dataclass
class Server:
    """Tables with a log. What was released is gone; a position is a number in the log."""

    tables: dict[str, ToyTable] = field(default_factory=dict)
    log: dict[int, OutsideTransaction] = field(default_factory=dict)
    last: int = 0
    released: int = 0
    followed: set[str] = field(default_factory=set)
    started: list[str] = field(default_factory=list)
    fault: Exception | None = None
    crash: Callable[[str], None] = lambda where: None
    """Called at each step of a reading; a test lets it die there."""

    def run(self, *changes: TableChange, altered: Mapping[str, str] | None = None) -> None:
        """A transaction there."""
        for change in changes:
            self._change(self.tables[change.table], change)
        self.last += 1
        self.log[self.last] = OutsideTransaction(
            str(self.last), tuple(changes), START, dict(altered or {})
        )

    def _change(self, table: ToyTable, change: TableChange) -> None:
        rows = [] if change.truncated else list(table.rows)
        places = [table.columns.names.index(each) for each in table.key]
        if not places:
            for row in change.minus:
                if row in rows:
                    rows.remove(row)
            table.rows = [*rows, *change.plus]
            return
        by_key = {tuple(row[i] for i in places): row for row in rows}
        for row in change.minus:
            by_key.pop(tuple(row[i] for i in places), None)
        for row in change.plus:
            key = tuple(row[i] for i in places)
            old = by_key.get(key)
            by_key[key] = tuple(
                o if n is UNCHANGED else n for n, o in zip(row, old or row, strict=True)
            )
        table.rows = list(by_key.values())


@dataclass
class ToyFollowed:
    server: Server
    expected: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def schema(self, table: str) -> OutsideSchema:
        found = self.server.tables[table]
        return OutsideSchema(found.columns, found.key)

    def expect(self, table: str, columns: Sequence[str]) -> None:
        self.expected[table] = tuple(columns)

    def start(self, tables: Sequence[str]) -> Mapping[str, Snapshot]:
        self._look("start")
        self.server.followed |= set(tables)
        self.server.started += tables
        return {
            name: Snapshot(
                self.schema(name), self.server.tables[name].batches(), str(self.server.last)
            )
            for name in tables
        }

    def stop(self, table: str) -> None:
        self._look("stop")
        self.server.followed.discard(table)

    def transactions(
        self, positions: Mapping[str, Position], limit: int = 10_000
    ) -> Iterator[OutsideTransaction]:
        self._look("read")
        first = min(int(each) for each in positions.values())
        if first < self.server.released and any(
            change.table in positions and int(positions[change.table]) < number
            for number, each in self.server.log.items()
            if number <= self.server.released
            for change in each.changes
        ):
            raise SourceFault("the log is gone", code="source-lost")
        for number in range(first + 1, self.server.last + 1):
            whole = self.server.log[number]
            changes = tuple(
                self._projected(each)
                for each in whole.changes
                if each.table in positions and int(positions[each.table]) < number
            )
            altered = {t: why for t, why in whole.altered.items() if t in positions}
            yield OutsideTransaction(whole.position, changes, whole.at, altered)

    def _projected(self, change: TableChange) -> TableChange:
        names = self.server.tables[change.table].columns.names
        places = [names.index(each) for each in self.expected.get(change.table, names)]
        return dataclasses.replace(
            change,
            minus=[tuple(row[i] for i in places) for row in change.minus],
            plus=[tuple(row[i] for i in places) for row in change.plus],
        )

    def release(self, position: Position) -> None:
        self._look("release")
        assert int(position) >= self.server.released
        self.server.released = int(position)

    def lag(self, position: Position) -> float | None:
        return float(self.server.last - int(position))

    def close(self) -> None: ...

    def _look(self, where: str) -> None:
        if self.server.fault is not None:
            raise self.server.fault
        self.server.crash(where)


@dataclass
class ToyServerKind:
    name: str = "log"
    title: str = "toy with a log"
    is_whole: bool = True
    captures: tuple[str, ...] = ("log",)
    options: tuple[Option, ...] = (
        Option("server", "Which server.", default="one"),
        Option("table", "Which table.", required=True),
    )
    servers: dict[str, Server] = field(default_factory=dict)

    def table(self, name: str, rows: list[Row], *key: str, server: str = "one") -> ToyTable:
        schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("n", pa.float64())])
        made = ToyTable(schema, rows, key)
        self.servers.setdefault(server, Server()).tables[name] = made
        return made

    def open(
        self, options: Mapping[str, Any], context: Context, capture: str | None = None
    ) -> Opened:
        server = options["server"]
        return Opened(
            followed=ToyFollowed(self.servers[server]),
            server=f"toy {server}",
            table=options["table"],
            capture="log",
            scripts=lambda: (f"create {context.name}", f"drop {context.name}"),
        )


@pytest.fixture
def logs() -> Iterator[ToyServerKind]:
    kind = ToyServerKind()
    register_kind(kind)
    yield kind
    del OF_USERS[kind.name]
