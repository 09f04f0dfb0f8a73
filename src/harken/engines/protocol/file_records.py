"""Records that Harken keeps for itself in the database file: logs, outboxes, measurements, moments.

They are no relations: no plan reads them, nothing watches them, and their rows are plain numbers
and texts. They are written in the open transaction, and a rollback takes them back with it.

Law: `find` gives the records that were added, changed and not removed, in the order of the key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from harken.values.rows import Row

Conditions = Mapping[str, Any]
"""Values that columns have to have; none for all records."""
Above = tuple[str, Any]
"""A column, and the value that it is above."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Literal["integer", "real", "text"]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class RecordKind:
    """What one kind of record holds, and where.

    A `numbered` kind has one integer as its key; a record that is added with None there gets the
    next number. A record goes when its `parent` does, whose key is then the first column of its
    own.
    """

    name: str
    fields: tuple[Field, ...]
    key: tuple[str, ...]
    numbered: bool = False
    unique: tuple[str, ...] = ()
    """Columns that are different together in all records, beside the key."""
    parent: RecordKind | None = None
    ordered_by: str | None = None
    """A column by which records are often read, beside the key."""
    temporary: bool = False
    """Are the records of this session only?"""


COUNTERS = RecordKind(
    "harken_meta", (Field("key", "text"), Field("value", "integer")), key=("key",)
)
"""Numbers that only grow. Every file has them."""


class Records(Protocol):
    def exist(self, kind: RecordKind) -> bool:
        """Is there room for them in the file?"""

    def make_room(self, kind: RecordKind) -> None:
        """Before the first is added. Does nothing where there is room."""

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
        """Whole records in the order of the key, or of the column that they are to be above."""

    def change(
        self,
        kind: RecordKind,
        conditions: Conditions,
        values: Conditions | None = None,
        *,
        add: Mapping[str, float] | None = None,
        if_none: Conditions | None = None,
    ) -> list[Row]:
        """Give columns new values, add to what they hold, or give them one where they have none;
        each column in one of these ways. The result is the records as they are then."""

    def remove(
        self, kind: RecordKind, conditions: Conditions, *, up_to: Above | None = None
    ) -> None:
        """Remove those with these values, perhaps only up to a value of a column."""

    def remove_oldest(self, kind: RecordKind, keep: int) -> None:
        """Leave about so many of those that were added last."""

    def size(
        self, kind: RecordKind, column: str, conditions: Conditions, *, up_to: Above | None = None
    ) -> tuple[int, int]:
        """How many there are, and how many bytes a column of text takes in them."""

    def count_up(self, key: str) -> int:
        """The next number of a counter, which begins with 1."""
