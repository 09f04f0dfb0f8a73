"""Storing relations, and whole numbers by name.

Law: what is stored belongs to the transaction that stored it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harken.errors import HarkenError, StorageError
from harken.ir.relations import Relation
from harken.values.rows import Row


def damaged(detail: str) -> StorageError:
    return StorageError(
        f"the database file is damaged ({detail})",
        code="not-a-database",
        hint="restore it from a copy",
    )


class Found(Protocol):
    """The rows that a statement is finding."""

    @property
    def get(self) -> Any:
        """The first row, as its only value if it has one; None without rows."""

    def fetchall(self) -> list[Row]: ...


@dataclass(frozen=True, slots=True)
class DirectAccess:
    """Reading and setting rows of one relation, bound once: the fast path, which asks nobody where
    the relation lies. It is bound again when the schema changes.

    Law: `set` is `Store.set_row`, `get` is `Store.results`, and `insert` is `Store.insert_many` of
    one row, but their errors are those in
    `raised`, which `fault` turns into ours.
    """

    set: Callable[[Row], object]
    get: Callable[[Row], Found]
    insert: Callable[[Row], object]
    raised: tuple[type[Exception], ...]
    fault: Callable[[Exception], HarkenError]


class Store(Protocol):
    """Keeps the rows of relations.

    Law: a relation has the rows that were put in and not taken out, with a key one for each key
    (all columns are the key of a set); a rollback puts back what there was.
    """

    def create(self, relation: Relation, supertypes: tuple[str, ...] = ()) -> None: ...

    def drop(self, relation: Relation) -> None: ...

    def exists(self, relation: Relation) -> bool: ...

    def create_temporary(self, relation: Relation) -> None:
        """A relation of this session alone, empty, in place of one that may be left over."""

    def drop_temporary(self, relation: Relation) -> None: ...

    def exists_temporary(self, relation: Relation) -> bool: ...

    def direct(self, relation: Relation) -> DirectAccess:
        """The fast path to a relation that is not in the lake."""

    def count(self, relation: Relation) -> int: ...

    def is_empty(self, relation: Relation) -> bool: ...

    def rows(self, relation: Relation) -> list[Row]: ...

    def contains(self, relation: Relation, row: Sequence[Any]) -> bool: ...

    def matching(self, relation: Relation, known: Mapping[int, Any]) -> list[Row]:
        """The rows that have these values in these columns."""

    def results(self, relation: Relation, arguments: Sequence[Any]) -> list[Row]:
        """What follows the arguments in the rows that begin with them."""

    def set_row(self, relation: Relation, row: Sequence[Any]) -> None:
        """Put a row in, in place of the one with its key."""

    def remove_row(self, relation: Relation, row: Sequence[Any]) -> None: ...

    def clear(self, relation: Relation, arguments: Sequence[Any]) -> None:
        """Take out the rows that begin with the arguments."""

    def insert_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None: ...

    def insert_column(self, relation: Relation, first: int, column: Sequence[Any]) -> None:
        """The rows (first, column[0]), (first + 1, column[1]), ..."""

    def add_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        """Put in those that are not there yet; all columns of the relation are its key."""

    def remove_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None: ...


class Numbers(Protocol):
    """Whole numbers of the database, by name. Law: a rollback undoes how they were set."""

    def create(self, first: Mapping[str, int]) -> None: ...

    def get(self, name: str) -> int | None: ...

    def set(self, name: str, value: int) -> None: ...

    def raise_to(self, name: str, value: int) -> None:
        """Set it, unless it is larger already."""
