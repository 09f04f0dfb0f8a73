"""What one transaction of a server did to one table, as changes of the mirror.

    mirror := (mirror, or nothing if truncated) − rows that went + rows that came

With a key, a row that comes replaces the one with its key, and takes from the mirror the values
that the server did not repeat. Without a key, rows are counted.

Law: applying the changes of a transaction once leads from the mirror before it to the one after it.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from harken.database.function_tables import table_of
from harken.database.runtime import Runtime
from harken.errors import HarkenError, SourceFault
from harken.intake.source_records import Layout
from harken.ir.relations import Relation
from harken.ir.schema import Function
from harken.sources.outside import UNCHANGED, TableChange
from harken.values.encoding import encoder
from harken.values.rows import Row
from harken.values.types import NUMBER, TIMESTAMP, Type

Encode = Callable[[Any], Any]


class MirrorChanges:
    """The changes of one mirror, as its relation is now."""

    def __init__(self, runtime: Runtime, function: Function, layout: Layout) -> None:
        assert function.relation is not None
        self._engine = runtime.engine
        self._name, self._relation = function.name, function.relation
        self._width = len(layout.key)
        table = table_of(function)
        types = {each.name: each.type for each in table.columns}
        given = {name: place for place, name in enumerate(layout.names)}
        by_position = dict(zip(table.positions, table.columns, strict=True))
        self._columns: list[tuple[int, Encode]] = []
        """Of each column of the relation: its place in the rows of the server, and its encoder."""
        for position in range(len(by_position)):
            name = by_position[position].name
            self._columns.append((given[name], _encoder(types[name])))

    @property
    def relation(self) -> Relation:
        return self._relation

    def apply(self, change: TableChange) -> tuple[int, int]:
        """In a transaction; returns how many rows came and went."""
        try:
            found = self._keyed(change) if self._width else self._counted(change)
        except HarkenError as error:
            if isinstance(error, SourceFault):
                raise
            raise SourceFault(
                f"a row of {self._name} does not fit its columns: {error.message}",
                code="source-changed",
                hint=f"REFRESH SOURCE {self._name} reads the table again",
            ) from error
        gone, come = found
        old, new = list((gone - come).elements()), list((come - gone).elements())
        self._engine.expect(self._relation, [*old, *new])
        self._engine.remove_many(self._relation, old)
        self._engine.insert_many(self._relation, new)
        return len(new), len(old)

    def _counted(self, change: TableChange) -> tuple[Counter[Row], Counter[Row]]:
        gone = Counter(map(self._row, change.minus))
        if change.truncated:
            gone = Counter(self._engine.matching(self._relation, {}))
        return gone, Counter(map(self._row, change.plus))

    def _keyed(self, change: TableChange) -> tuple[Counter[Row], Counter[Row]]:
        before: dict[Row, Row] = {}
        if change.truncated:
            before = {row[: self._width]: row for row in self._all()}
        else:
            keys = [*map(self._key, change.minus), *map(self._key, change.plus)]
            self._engine.expect(self._relation, [self._padded(each) for each in keys])
            for key in keys:
                row = self._with_key(key)
                if row is not None:
                    before[key] = row
        come = [self._whole(row, change, before) for row in change.plus]
        return Counter(before.values()), Counter(come)

    def _whole(self, row: Sequence[Any], change: TableChange, before: dict[Row, Row]) -> Row:
        """A row with the values of the mirror where the server did not repeat them."""
        if not any(value is UNCHANGED for value in row):
            return self._row(row)
        key = self._key(row)
        given = tuple(row[place] for place, _ in self._columns[: self._width])
        moved = change.moved.get(given)
        was = key if moved is None else self._encoded_key(moved)
        old = before.get(was) or self._with_key(was)
        if old is None:
            raise SourceFault(
                f"the server left out values of a row of {self._name} that is not in the mirror",
                code="source-lost",
                hint=f"REFRESH SOURCE {self._name} reads the table again",
            )
        return tuple(
            old[position] if row[place] is UNCHANGED else encode(row[place])
            for position, (place, encode) in enumerate(self._columns)
        )

    def _row(self, row: Sequence[Any]) -> Row:
        return tuple(encode(row[place]) for place, encode in self._columns)

    def _key(self, row: Sequence[Any]) -> Row:
        return tuple(encode(row[place]) for place, encode in self._columns[: self._width])

    def _encoded_key(self, key: Sequence[Any]) -> Row:
        columns = self._columns[: self._width]
        return tuple(encode(value) for value, (_, encode) in zip(key, columns, strict=True))

    def _padded(self, key: Row) -> Row:
        return (*key, *[None] * (len(self._columns) - self._width))

    def _with_key(self, key: Row) -> Row | None:
        found = self._engine.matching(self._relation, dict(enumerate(key)))
        return found[0] if found else None

    def _all(self) -> list[Row]:
        return self._engine.matching(self._relation, {})


def _encoder(type_: Type) -> Encode:
    encode = encoder(type_.or_null())
    if type_ == TIMESTAMP:
        return lambda value: encode(_in_utc(value))
    if type_ == NUMBER:
        return lambda value: encode(_finite(value))
    return encode


def _in_utc(value: Any) -> Any:
    is_naive = isinstance(value, datetime.datetime) and value.tzinfo is None
    return value.replace(tzinfo=datetime.UTC) if is_naive else value


def _finite(value: Any) -> Any:
    """A number that is not finite is NULL, and -0.0 is 0.0."""
    if not isinstance(value, float):
        return value
    return value + 0.0 if math.isfinite(value) else None
