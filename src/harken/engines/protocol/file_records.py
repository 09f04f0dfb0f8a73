"""Harken's own records in the database file: logs, outboxes, measurements, moments.

They are not relations: no plan reads them, nothing watches them, and their rows are plain numbers
and texts. They are written in the open transaction, and a rollback undoes them.

Law: `find` returns the records that were added, changed and not removed, in the order of the
key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from harken.values.rows import Row

Conditions = Mapping[str, Any]
"""The values that columns must have; none selects all records."""
Above = tuple[str, Any]
"""A column and a bound on its value."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Literal["integer", "real", "text"]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class RecordKind:
    """The columns of one kind of record, and where it is stored.

    A `numbered` kind has one integer as its key; a record added with None there gets the next
    number. A record is deleted with the record of its `parent`, whose key is its first column.
    """

    name: str
    fields: tuple[Field, ...]
    key: tuple[str, ...]
    numbered: bool = False
    unique: tuple[str, ...] = ()
    """Columns that are together unique, besides the key."""
    parent: RecordKind | None = None
    ordered_by: str | None = None
    """A column that records are often read by, besides the key."""
    temporary: bool = False
    """Whether the records exist for this session only."""


COUNTERS = RecordKind(
    "harken_meta", (Field("key", "text"), Field("value", "integer")), key=("key",)
)
"""Counters that only increase. Every file has them."""


class Records(Protocol):
    def exist(self, kind: RecordKind) -> bool:
        """Whether the table of this kind exists."""

    def make_room(self, kind: RecordKind) -> None:
        """Create the table of this kind, unless it exists."""

    def add(self, kind: RecordKind, record: Sequence[Any], *, replace: bool = False) -> None:
        """Add a record, or replace the one with its key."""

    def find(
        self,
        kind: RecordKind,
        conditions: Conditions | None = None,
        *,
        above: Above | None = None,
        limit: int | None = None,
    ) -> list[Row]:
        """Complete records in the order of the key, or of the column in `above`."""

    def change(
        self,
        kind: RecordKind,
        conditions: Conditions,
        values: Conditions | None = None,
        *,
        add: Mapping[str, float] | None = None,
        if_none: Conditions | None = None,
    ) -> list[Row]:
        """Set columns to new values, add to them, or set them if they are NULL; each column in one
        of these three. Returns the changed records."""

    def remove(
        self, kind: RecordKind, conditions: Conditions, *, up_to: Above | None = None
    ) -> None:
        """Remove the records with these values, perhaps only those up to a value of a column."""

    def remove_oldest(self, kind: RecordKind, keep: int) -> None:
        """Remove all but about the last `keep` records that were added."""

    def size(
        self, kind: RecordKind, column: str, conditions: Conditions, *, up_to: Above | None = None
    ) -> tuple[int, int]:
        """The number of records, and the bytes that a text column takes in them."""

    def count_up(self, key: str) -> int:
        """The next number of a counter, which starts at 1."""
