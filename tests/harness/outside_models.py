"""A small model of an intake: what Harken's mirror of an outside table must be, kept by the letter
of `harken.sources.outside`. Kinds are tested with it.

    mirror = the rows of a snapshot + every transaction after its position, each once
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from harken.sources.kinds import outside_kind
from harken.sources.outside import (
    UNCHANGED,
    Context,
    Followed,
    Opened,
    OutsideSchema,
    OutsideTransaction,
    TableChange,
)

Row = tuple[Any, ...]
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def context(name: str = "s", **more: Any) -> Context:
    given = {"database": "tests", "allow_private_addresses": True, **more}
    return Context(now=lambda: NOW, name=name, **given)


def opened(
    kind: str, options: Mapping[str, Any], capture: str | None = None, **more: Any
) -> Opened:
    found = outside_kind(kind)
    defaults = {each.name: each.default for each in found.options}
    return found.open({**defaults, **options}, context(**more), capture)


def batch_rows(batches: Iterator[pa.RecordBatch]) -> list[Row]:
    return [
        tuple(row)
        for batch in batches
        for row in zip(*(each.to_pylist() for each in batch), strict=True)
    ]


def polled_rows(given: Opened) -> list[Row]:
    assert given.polled is not None
    snapshot = given.polled.snapshot()
    assert snapshot is not None
    return batch_rows(snapshot.batches)


class MirrorModel:
    """The mirrors of tables that a `Followed` server tells of, and how far each was read. `commit`
    keeps them, and whatever is not committed a crash forgets."""

    def __init__(self, tables: Sequence[str]) -> None:
        self.tables = tuple(tables)
        self.schemas: dict[str, OutsideSchema] = {}
        self.rows: dict[str, Counter[Row]] = {}
        self.positions: dict[str, str] = {}
        self.altered: dict[str, str] = {}
        self.taken: list[OutsideTransaction] = []

    def start(self, followed: Followed, tables: Sequence[str] | None = None) -> None:
        for name, snapshot in followed.start(self.tables if tables is None else tables).items():
            assert snapshot.position is not None
            self.schemas[name] = snapshot.schema
            self.rows[name] = Counter(batch_rows(snapshot.batches))
            self.positions[name] = snapshot.position
            self.altered.pop(name, None)

    def expect(self, followed: Followed) -> None:
        for name, schema in self.schemas.items():
            followed.expect(name, schema.columns.names)

    def take_in(self, followed: Followed, limit: int = 10_000, most: int = 1 << 30) -> int:
        """The next transactions, at most so many. How many there were."""
        followed_tables = {
            name: each for name, each in self.positions.items() if name not in self.altered
        }
        found = followed.transactions(followed_tables, limit)
        number = 0
        for number, each in enumerate(found, 1):
            self.apply(each)
            if number == most:
                break
        return number

    def take_all(self, followed: Followed, *, release: bool = True) -> None:
        while self.take_in(followed):
            if release and self.taken:
                followed.release(self.taken[-1].position)

    def apply(self, transaction: OutsideTransaction) -> None:
        self.taken.append(transaction)
        self.altered.update(transaction.altered)
        for change in transaction.changes:
            assert change.table not in transaction.altered
            self._apply(change)
            self.positions[change.table] = transaction.position

    def _apply(self, change: TableChange) -> None:
        schema, rows = self.schemas[change.table], self.rows[change.table]
        key = [schema.columns.names.index(name) for name in schema.key]
        if not key:
            if change.truncated:
                rows.clear()
            rows.update(change.plus)
            rows.subtract(change.minus)
            assert min(rows.values(), default=0) >= 0, (change, rows)
            for row in [row for row, number in rows.items() if not number]:
                del rows[row]
            return
        before = {_key_of(row, key): row for row in rows}
        assert len(before) == len(rows)
        after = {} if change.truncated else dict(before)
        for row in change.minus:
            assert after.pop(_key_of(row, key), None) is not None, (change, rows)
        for row in change.plus:
            own = _key_of(row, key)
            other = before.get(change.moved.get(own, own), ())
            filled = tuple(other[i] if value is UNCHANGED else value for i, value in enumerate(row))
            after[own] = filled
        keys = [_key_of(row, key) for row in change.plus]
        assert len(set(keys)) == len(keys), change
        self.rows[change.table] = Counter(after.values())

    def saved(self) -> MirrorModel:
        found = MirrorModel(self.tables)
        found.schemas, found.positions = dict(self.schemas), dict(self.positions)
        found.rows = {name: Counter(rows) for name, rows in self.rows.items()}
        found.altered, found.taken = dict(self.altered), list(self.taken)
        return found


def _key_of(row: Row, key: Sequence[int]) -> Row:
    return tuple(row[place] for place in key)
