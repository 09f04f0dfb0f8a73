"""Records beside relations, in plain Python (`engines.protocol.file_records`): lists of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harken.engines.protocol import COUNTERS, RecordKind
from harken.values.rows import Row

Bound = tuple[str, Any]


class ReferenceRecords:
    """`stored` are the records of each kind, in the order in which they were added."""

    def __init__(self) -> None:
        self.stored: dict[RecordKind, list[Row]] = {COUNTERS: []}

    def exist(self, kind: RecordKind) -> bool:
        return kind in self.stored

    def make_room(self, kind: RecordKind) -> None:
        self.stored.setdefault(kind, [])

    def add(self, kind: RecordKind, record: Sequence[Any], *, replace: bool = False) -> None:
        row = tuple(record)
        if kind.numbered and row[0] is None:
            row = (1 + max((each[0] for each in self.stored[kind]), default=0), *row[1:])
        if replace:
            same = _key(kind, row)
            self._keep(kind, [each for each in self.stored[kind] if _key(kind, each) != same])
        self.stored[kind].append(row)

    def find(
        self,
        kind: RecordKind,
        conditions: Mapping[str, Any] | None = None,
        *,
        above: Bound | None = None,
        limit: int | None = None,
    ) -> list[Row]:
        found = [each for each in self.stored[kind] if _meets(kind, each, conditions or {})]
        if above is None:
            return sorted(found, key=lambda row: _key(kind, row))[:limit]
        at = _place(kind, above[0])
        return sorted([each for each in found if each[at] > above[1]], key=lambda r: r[at])[:limit]

    def change(
        self,
        kind: RecordKind,
        conditions: Mapping[str, Any],
        values: Mapping[str, Any] | None = None,
        *,
        add: Mapping[str, float] | None = None,
        if_none: Mapping[str, Any] | None = None,
    ) -> list[Row]:
        changed = []
        for i, row in enumerate(self.stored[kind]):
            if _meets(kind, row, conditions):
                named = dict(zip((each.name for each in kind.fields), row, strict=True))
                named |= values or {}
                named |= {name: named[name] + number for name, number in (add or {}).items()}
                named |= {n: v for n, v in (if_none or {}).items() if named[n] is None}
                self.stored[kind][i] = tuple(named.values())
                changed.append(self.stored[kind][i])
        return changed

    def remove(
        self, kind: RecordKind, conditions: Mapping[str, Any], *, up_to: Bound | None = None
    ) -> None:
        gone = self._up_to(kind, conditions, up_to)
        self._keep(kind, [row for row in self.stored[kind] if row not in gone])

    def remove_oldest(self, kind: RecordKind, keep: int) -> None:
        self._keep(kind, self.stored[kind][-keep:])

    def size(
        self,
        kind: RecordKind,
        column: str,
        conditions: Mapping[str, Any],
        *,
        up_to: Bound | None = None,
    ) -> tuple[int, int]:
        found = [row[_place(kind, column)] for row in self._up_to(kind, conditions, up_to)]
        return len(found), sum(len(text.encode()) for text in found)

    def count_up(self, key: str) -> int:
        counted = self.change(COUNTERS, {"key": key}, add={"value": 1}) or [(key, 1)]
        self.add(COUNTERS, counted[0], replace=True)
        return int(counted[0][1])

    def _up_to(
        self, kind: RecordKind, conditions: Mapping[str, Any], up_to: Bound | None
    ) -> list[Row]:
        found = self.find(kind, conditions)
        if up_to is None:
            return found
        at = _place(kind, up_to[0])
        return [row for row in found if row[at] <= up_to[1]]

    def _keep(self, kind: RecordKind, rows: list[Row]) -> None:
        """Let the others go, and the records of which they are the parents."""
        staying = {_key(kind, row) for row in rows}
        self.stored[kind] = rows
        for child in [each for each in self.stored if each.parent == kind]:
            children = [row for row in self.stored[child] if (_key(child, row)[0],) in staying]
            if len(children) < len(self.stored[child]):
                self._keep(child, children)


def _place(kind: RecordKind, column: str) -> int:
    return [each.name for each in kind.fields].index(column)


def _key(kind: RecordKind, row: Row) -> tuple[Any, ...]:
    return tuple(row[_place(kind, column)] for column in kind.key)


def _meets(kind: RecordKind, row: Row, conditions: Mapping[str, Any]) -> bool:
    return all(row[_place(kind, column)] == value for column, value in conditions.items())
