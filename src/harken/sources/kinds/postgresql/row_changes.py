"""What one transaction did to one table, collected row by row.

Law: the collected change, applied at once, does what the rows do one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from harken.sources.outside import UNCHANGED, TableChange

OutsideRow = tuple[Any, ...]


class RowChanges(Protocol):
    @property
    def count(self) -> int:
        """Of the rows that are held."""

    def insert(self, new: OutsideRow) -> None: ...

    def update(self, old: OutsideRow | None, new: OutsideRow) -> None:
        """`old` is whole, or has at least the key; None if the key stayed the same."""

    def delete(self, old: OutsideRow) -> None: ...

    def truncate(self) -> None: ...

    def change(self, table: str) -> TableChange: ...


class WholeRows:
    """Of rows that are always known whole, as a sum. Without a key each counts as often as it is
    there. Two rows may have one key for a moment, where the key is checked at the commit."""

    def __init__(self, key: Sequence[int] = ()) -> None:
        self._key = tuple(key)
        self._weights: dict[OutsideRow, int] = {}
        self._truncated = False

    @property
    def count(self) -> int:
        return len(self._weights)

    def insert(self, new: OutsideRow) -> None:
        self._add(new, 1)

    def update(self, old: OutsideRow | None, new: OutsideRow) -> None:
        assert old is not None
        self._add(old, -1)
        self._add(filled(new, old), 1)

    def delete(self, old: OutsideRow) -> None:
        self._add(old, -1)

    def truncate(self) -> None:
        self._weights.clear()
        self._truncated = True

    def change(self, table: str) -> TableChange:
        plus = [row for row, weight in self._weights.items() for _ in range(weight)]
        minus = [row for row, weight in self._weights.items() for _ in range(-weight)]
        if self._key:
            stay = {key_of(row, self._key) for row in plus}
            minus = [row for row in minus if key_of(row, self._key) not in stay]
        return TableChange(table, minus, plus, self._truncated)

    def _add(self, row: OutsideRow, weight: int) -> None:
        total = self._weights.pop(row, 0) + weight
        if total:
            self._weights[row] = total


class KeyedRows:
    """Of a table with a key, whose old rows have only the key: net. A row in `_plus` whose values
    are not all known has those of the row that the mirror has under `_origins` of its key."""

    def __init__(self, key: Sequence[int]) -> None:
        self._key = tuple(key)
        self._minus: dict[OutsideRow, OutsideRow] = {}
        self._plus: dict[OutsideRow, OutsideRow] = {}
        self._origins: dict[OutsideRow, OutsideRow] = {}
        self._new: set[OutsideRow] = set()
        """Keys that nobody had before."""
        self._truncated = False

    @property
    def count(self) -> int:
        return len(self._minus) + len(self._plus)

    def insert(self, new: OutsideRow) -> None:
        key = key_of(new, self._key)
        self._note_if_new(key)
        self._put(key, new, None)

    def update(self, old: OutsideRow | None, new: OutsideRow) -> None:
        if old is not None:  # a long value in the key is not repeated in the new row
            new = tuple(
                old[i] if i in self._key and value is UNCHANGED else value
                for i, value in enumerate(new)
            )
        after = key_of(new, self._key)
        before = after if old is None else key_of(old, self._key)
        origin: OutsideRow | None = before
        if before in self._plus:
            new = filled(new, self._plus[before])
            origin = self._origins.get(before)
        if before != after:
            self._remove(before, old or ())
            self._note_if_new(after)
        self._put(after, new, origin if UNCHANGED in new else None)

    def delete(self, old: OutsideRow) -> None:
        self._remove(key_of(old, self._key), old)

    def truncate(self) -> None:
        for each in (self._minus, self._plus, self._origins, self._new):
            each.clear()
        self._truncated = True

    def change(self, table: str) -> TableChange:
        moved = {key: origin for key, origin in self._origins.items() if key != origin}
        return TableChange(
            table, list(self._minus.values()), list(self._plus.values()), self._truncated, moved
        )

    def _note_if_new(self, key: OutsideRow) -> None:
        if self._truncated or key not in self._minus:
            self._new.add(key)

    def _put(self, key: OutsideRow, row: OutsideRow, origin: OutsideRow | None) -> None:
        self._minus.pop(key, None)
        self._plus.pop(key, None)  # an equal key may be written in another way: 0.0 and -0.0
        self._plus[key] = row
        if origin is None:
            self._origins.pop(key, None)
        else:
            self._origins[key] = origin

    def _remove(self, key: OutsideRow, row: OutsideRow) -> None:
        self._plus.pop(key, None)
        self._origins.pop(key, None)
        if key in self._new:
            self._new.discard(key)
        else:
            self._minus[key] = row


def key_of(row: OutsideRow, key: Sequence[int]) -> OutsideRow:
    return tuple([row[place] for place in key])


def filled(new: OutsideRow, old: OutsideRow) -> OutsideRow:
    """A row whose unknown values are those of another."""
    if UNCHANGED not in new:
        return new
    return tuple([old[i] if value is UNCHANGED else value for i, value in enumerate(new)])
