"""Many rows of a stored relation, inserted or removed by few statements.

A statement that fires triggers opens a journal inside the open savepoint. SQLite keeps it in memory
as a list and walks it from the start whenever such a statement ends: row by row, a change that
touches many pages takes time proportional to rows times pages. So rows go in batches.

Law: the result is that of one row after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from harken.engines.sqlite import layout
from harken.engines.sqlite.connection import Connection
from harken.ir.relations import Relation

Values = Sequence[Any]

BATCH = 64
"""Rows per statement. Larger batches are not faster, and the remainder goes row by row."""
MOST_VALUES = 32_766
"""The most values in one SQLite statement."""


def insert(connection: Connection, relation: Relation, rows: Iterable[Values]) -> None:
    _run(connection, relation, _insertions(relation), rows)


def add(connection: Connection, relation: Relation, rows: Iterable[Values]) -> None:
    """Insert rows, each replacing the one with its key, if any."""
    _run(connection, relation, _additions(relation), rows)


def remove(connection: Connection, relation: Relation, rows: Iterable[Values]) -> None:
    """Remove rows; of a bag, as many copies as given."""
    _run(connection, relation, _removals(relation), rows)


def _run(
    connection: Connection, relation: Relation, statements: tuple[str, str], rows: Iterable[Values]
) -> None:
    one, many = statements
    size = _size(relation)
    for batch in _batches(rows, size):
        if len(batch) < size:
            connection.run_many(one, batch)
        else:
            connection.run(many, tuple(chain.from_iterable(batch)))


def _batches(rows: Iterable[Values], size: int) -> Iterator[list[Values]]:
    left = iter(rows)
    while batch := list(islice(left, size)):
        yield batch


def _size(relation: Relation) -> int:
    return max(1, min(BATCH, MOST_VALUES // max(1, relation.arity)))


@lru_cache(maxsize=1024)
def _insertions(relation: Relation) -> tuple[str, str]:
    changes = layout.changes(relation)
    return changes.insert, layout.insertion(relation, _size(relation))


@lru_cache(maxsize=1024)
def _additions(relation: Relation) -> tuple[str, str]:
    return layout.changes(relation).set, layout.addition(relation, _size(relation))


@lru_cache(maxsize=1024)
def _removals(relation: Relation) -> tuple[str, str]:
    return layout.changes(relation).remove, layout.removal(relation, _size(relation))
