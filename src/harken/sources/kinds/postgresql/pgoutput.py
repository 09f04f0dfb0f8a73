"""The messages of PostgreSQL's output plugin `pgoutput`, protocol version 1.

Each row of `pg_logical_slot_peek_binary_changes` is one message: its kind in the first byte, then
fields in network order. Values come as text.

Law: every byte of a message is accounted for, or it is an error.
"""

from __future__ import annotations

import datetime
import struct
from dataclasses import dataclass
from enum import Enum

EPOCH = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)


class Missing(Enum):
    """A value that was stored out of line and did not change, so the log does not repeat it."""

    UNCHANGED = "unchanged"


Values = tuple[str | Missing | None, ...]
MISSING = Missing.UNCHANGED


class DamagedLog(Exception):
    """A message that this module cannot read."""


@dataclass(frozen=True, slots=True)
class Begin:
    end: int
    """The place of the commit in the log."""
    at: datetime.datetime
    transaction: int
    """Its number, of which the log has the lower 32 bits."""


@dataclass(frozen=True, slots=True)
class Commit:
    end: int
    """Where the log goes on after the transaction."""
    at: datetime.datetime


@dataclass(frozen=True, slots=True)
class RelationColumn:
    name: str
    type: int
    modifier: int
    is_key: bool


@dataclass(frozen=True, slots=True)
class RelationMessage:
    """The columns of a table, as the following messages have them."""

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Insert:
    oid: int
    new: Values


@dataclass(frozen=True, slots=True)
class Update:
    oid: int
    old: Values | None
    """The whole old row, or one with only its key; None if the key stayed the same."""
    is_whole: bool
    new: Values


@dataclass(frozen=True, slots=True)
class Delete:
    oid: int
    old: Values
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    oids: tuple[int, ...]


Message = Begin | Commit | RelationMessage | Insert | Update | Delete | Truncate
_RELATION_ID = struct.Struct(">I")
_BEGIN = struct.Struct(">QqI")
_COMMIT = struct.Struct(">BQQq")
_COLUMN = struct.Struct(">Ii")
_SHORT = struct.Struct(">H")


def decode(data: bytes) -> Message | None:
    """The message; None for one that says nothing about rows."""
    try:
        return _decode(data)
    except (struct.error, IndexError, ValueError) as error:
        raise DamagedLog(f"a message {data[:1]!r} of {len(data)} bytes: {error}") from error


def _decode(data: bytes) -> Message | None:
    kind = data[:1]
    if kind == b"I":
        (oid,) = _RELATION_ID.unpack_from(data, 1)
        new, end = _tuple(data, _expect(data, 5, b"N"))
        _finish(data, end)
        return Insert(oid, new)
    if kind == b"U":
        return _update(data)
    if kind == b"D":
        (oid,) = _RELATION_ID.unpack_from(data, 1)
        is_whole = data[5:6] == b"O"
        old, end = _tuple(data, _expect(data, 5, b"KO"))
        _finish(data, end)
        return Delete(oid, old, is_whole)
    if kind == b"B":
        end, at, transaction = _BEGIN.unpack_from(data, 1)
        _finish(data, 1 + _BEGIN.size)
        return Begin(end, _moment(at), transaction)
    if kind == b"C":
        _, _, end, at = _COMMIT.unpack_from(data, 1)
        _finish(data, 1 + _COMMIT.size)
        return Commit(end, _moment(at))
    if kind == b"R":
        return _relation(data)
    if kind == b"T":
        (count,) = _RELATION_ID.unpack_from(data, 1)
        _finish(data, 6 + 4 * count)
        return Truncate(struct.unpack_from(f">{count}I", data, 6))
    if kind in (b"Y", b"O", b"M"):  # a type's name, an origin, a message of an extension
        return None
    raise ValueError("of an unknown kind")


def _update(data: bytes) -> Update:
    (oid,) = _RELATION_ID.unpack_from(data, 1)
    old, is_whole, place = None, False, 5
    if data[5:6] != b"N":
        is_whole = data[5:6] == b"O"
        old, place = _tuple(data, _expect(data, 5, b"KO"))
    new, end = _tuple(data, _expect(data, place, b"N"))
    _finish(data, end)
    return Update(oid, old, is_whole, new)


def _relation(data: bytes) -> RelationMessage:
    (oid,) = _RELATION_ID.unpack_from(data, 1)
    schema, place = _text(data, 5)
    name, place = _text(data, place)
    identity = chr(data[place])
    (count,) = _SHORT.unpack_from(data, place + 1)
    place += 3
    columns = []
    for _ in range(count):
        is_key = bool(data[place] & 1)
        column, place = _text(data, place + 1)
        type, modifier = _COLUMN.unpack_from(data, place)
        place += _COLUMN.size
        columns.append(RelationColumn(column, type, modifier, is_key))
    _finish(data, place)
    return RelationMessage(oid, schema or "pg_catalog", name, identity, tuple(columns))


def _tuple(data: bytes, place: int) -> tuple[Values, int]:
    (count,) = _SHORT.unpack_from(data, place)
    place += 2
    values: list[str | Missing | None] = []
    for _ in range(count):
        kind = data[place]
        place += 1
        if kind == 0x74:  # t
            (length,) = _RELATION_ID.unpack_from(data, place)
            place += 4
            if place + length > len(data):
                raise ValueError("a value is cut off")
            values.append(str(data[place : place + length], "utf-8"))
            place += length
        elif kind == 0x6E:  # n
            values.append(None)
        elif kind == 0x75:  # u
            values.append(MISSING)
        else:
            raise ValueError(f"a value of the kind {kind}")
    return tuple(values), place


def _text(data: bytes, place: int) -> tuple[str, int]:
    end = data.index(0, place)
    return str(data[place:end], "utf-8"), end + 1


def _expect(data: bytes, place: int, kinds: bytes) -> int:
    if data[place] not in kinds:
        raise ValueError(f"{data[place]} instead of {kinds!r}")
    return place + 1


def _finish(data: bytes, end: int) -> None:
    if end != len(data):
        raise ValueError(f"it ends at {end}")


def _moment(microseconds: int) -> datetime.datetime:
    return EPOCH + datetime.timedelta(microseconds=microseconds)
