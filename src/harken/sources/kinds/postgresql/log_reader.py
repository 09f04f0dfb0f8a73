"""The messages of the log as transactions of Harken.

Law: a transaction has exactly the changes of the tables whose positions are before it; a row comes
in the columns that were expected, or its table is `altered`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harken.errors import SourceFault
from harken.sources.kinds.postgresql.copied_rows import reader_of
from harken.sources.kinds.postgresql.log_positions import LogPosition
from harken.sources.kinds.postgresql.pgoutput import (
    MISSING,
    Begin,
    Commit,
    DamagedLog,
    Delete,
    Insert,
    Message,
    RelationMessage,
    Truncate,
    Update,
    Values,
    decode,
)
from harken.sources.kinds.postgresql.postgres_values import ValueType
from harken.sources.kinds.postgresql.row_changes import KeyedRows, RowChanges, WholeRows
from harken.sources.outside import UNCHANGED, OutsideTransaction, TableChange

Types = Callable[[int, int], ValueType | None]
"""The type with a number and a modifier; None if the server has none."""


@dataclass(frozen=True, slots=True)
class FollowedTable:
    """A table as it was when its snapshot was taken."""

    name: str
    """As the source names it."""
    oid: int
    title: str
    columns: Mapping[str, str]
    """The type of ours of each column of the snapshot."""
    key: tuple[str, ...]
    identity: str
    """Of rows in the log, as in the catalog."""
    expected: tuple[str, ...] = ()
    """The columns of the mirror, where they are fewer."""

    @property
    def wanted(self) -> tuple[str, ...]:
        return self.expected or tuple(self.columns)


@dataclass(frozen=True, slots=True)
class ReadTransaction:
    """A transaction of ours, with its place in the log."""

    place: int
    transaction: OutsideTransaction


class _Shape:
    """How rows of one table are read, with the columns that the log has now."""

    def __init__(
        self, table: FollowedTable, message: RelationMessage, types: Types, *, refuse_odd: bool
    ) -> None:
        self.table = table
        self.problem = ""
        self._columns: list[tuple[int, Callable[[str], Any]]] = []
        found = {each.name: (i, each) for i, each in enumerate(message.columns)}
        self._key = [table.wanted.index(name) for name in table.key]
        self._is_whole = table.identity == "f"
        if message.identity != table.identity:
            self.problem = f"the replica identity of {table.title} was changed"
            return
        for name in table.wanted:
            place, column = found.get(name, (0, None))
            if column is None:
                self.problem = f"{table.title} lost its column {name}"
                return
            value = types(column.type, column.modifier)
            if value is None or str(value.arrow) != table.columns[name]:
                self.problem = f"the column {name} of {table.title} got another type"
                return
            self._columns.append((place, reader_of(name, value, refuse_odd=refuse_odd)))
        keys = {each.name for each in message.columns if each.is_key}
        if not self._is_whole and keys != set(table.key):
            self.problem = f"the key of {table.title} was changed"

    def collector(self) -> RowChanges:
        return WholeRows(self._key) if self._is_whole else KeyedRows(self._key)

    def row(self, values: Values, *, has_key: bool = True) -> tuple[Any, ...]:
        found = tuple(
            [
                None
                if (value := values[place]) is None
                else UNCHANGED
                if value is MISSING
                else read(value)
                for place, read in self._columns
            ]
        )
        if has_key:
            for place in self._key:
                if found[place] is None:
                    name = self.table.wanted[place]
                    raise SourceFault(
                        f"a row of {self.table.title} has a value in its key column {name} that no "
                        "type of Harken holds, such as NaN or an infinite date",
                        code="source-changed",
                    )
        return found


class LogReader:
    """Reads the messages of one pass over the log, from its beginning."""

    def __init__(
        self,
        tables: Iterable[FollowedTable],
        positions: Mapping[str, LogPosition],
        server: str,
        types: Types,
        *,
        refuse_odd: bool,
    ) -> None:
        self._tables = list(tables)
        self._positions = positions
        self._windows = {
            name: window for name, each in positions.items() if (window := each.windows.get(name))
        }
        self._server, self._types, self._refuse_odd = server, types, refuse_odd
        self._shapes: dict[int, list[_Shape]] = {}
        self._altered: dict[str, str] = {}

    @property
    def altered(self) -> Mapping[str, str]:
        """The tables that changed so that their rows cannot be read, and how."""
        return self._altered

    def position(self, place: int) -> LogPosition:
        windows = {name: each for name, each in self._windows.items() if each.end > place}
        return LogPosition(place, self._server, windows)

    def transactions(self, messages: Iterable[bytes]) -> Iterator[ReadTransaction | None]:
        """Those that concern a table here; None stands for another one."""
        begin: Begin | None = None
        held: list[Message] = []
        for data in messages:
            try:
                message = decode(data)
            except DamagedLog as error:
                raise SourceFault(
                    f"the log of the server cannot be read: {error}", code="source-lost"
                ) from error
            if isinstance(message, Begin):
                begin = message
            elif isinstance(message, Commit):
                assert begin is not None
                yield self._finished(begin, message, held)
                held = []
            elif message is not None:
                held.append(message)

    def _shapes_of(self, message: RelationMessage) -> list[_Shape]:
        return [
            _Shape(table, message, self._types, refuse_odd=self._refuse_odd)
            for table in self._tables
            if table.oid == message.oid
        ]

    def _finished(
        self, begin: Begin, commit: Commit, messages: Sequence[Message]
    ) -> ReadTransaction | None:
        collected: dict[str, RowChanges] = {}
        altered: dict[str, str] = {}
        for message in messages:
            if isinstance(message, RelationMessage):
                self._shapes[message.oid] = self._shapes_of(message)
                continue
            for oid in message.oids if isinstance(message, Truncate) else (_oid(message),):
                for shape in self._shapes.get(oid, ()):
                    name = shape.table.name
                    if name in self._altered or self._is_taken(name, begin, commit):
                        continue
                    if shape.problem:
                        self._altered[name] = altered[name] = shape.problem
                        collected.pop(name, None)
                        continue
                    rows = collected.get(name)
                    if rows is None:
                        rows = collected[name] = shape.collector()
                    _collect(rows, shape, message)
        if not collected and not altered:
            return None
        return ReadTransaction(
            commit.end,
            OutsideTransaction(
                self.position(commit.end).text,
                tuple(rows.change(name) for name, rows in collected.items()),
                commit.at,
                altered,
            ),
        )

    def _is_taken(self, name: str, begin: Begin, commit: Commit) -> bool:
        """Whether the table has this transaction already."""
        if commit.end <= self._positions[name].place:
            return True
        window = self._windows.get(name)
        return window is not None and window.skips(begin.transaction, commit.end)


def _oid(message: Message) -> int:
    assert isinstance(message, Insert | Update | Delete)
    return message.oid


def _collect(rows: RowChanges, shape: _Shape, message: Message) -> None:
    if isinstance(message, Insert):
        rows.insert(shape.row(message.new))
    elif isinstance(message, Update):
        old = None if message.old is None else shape.row(message.old)
        rows.update(old, shape.row(message.new))
    elif isinstance(message, Delete):
        rows.delete(shape.row(message.old))
    elif isinstance(message, Truncate):
        rows.truncate()


def with_quiet(last: ReadTransaction, quiet: Iterable[str]) -> ReadTransaction:
    """The same with an empty change of each quiet table, by which its position moves on."""
    given = last.transaction
    touched = {each.table for each in given.changes} | given.altered.keys()
    more = tuple(TableChange(name) for name in quiet if name not in touched)
    return ReadTransaction(last.place, replace(given, changes=(*given.changes, *more)))


def empty_transaction(
    place: int, position: LogPosition, quiet: Iterable[str], at: datetime.datetime | None = None
) -> ReadTransaction:
    """Tells only how far the log was read."""
    changes = tuple(TableChange(name) for name in quiet)
    return ReadTransaction(place, OutsideTransaction(position.text, changes, at))
