"""Many rows of a stored relation, put in or taken out by few statements.

A statement that fires triggers opens a journal of its own inside the open savepoint. SQLite keeps
it in memory, as a list that it walks from its start whenever such a statement ends: row by row, a
change that touches many pages takes time by the rows times the pages. So rows go in batches.

Law: the same as one row after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from harken.engines.sqlite import layout
from harken.engines.sqlite.connection import Connection
from harken.ir.relations import Relation

Row = Sequence[Any]

BATCH = 64
"""Rows of one statement. Larger ones are not faster, and those left over go one by one."""


def insert(connection: Connection, relation: Relation, rows: Iterable[Row]) -> None:
    _run(connection, _insertions(relation), rows)


def remove(connection: Connection, relation: Relation, rows: Iterable[Row]) -> None:
    """Of a bag, as many copies as are given."""
    _run(connection, _removals(relation), rows)


def _run(connection: Connection, statements: tuple[str, str], rows: Iterable[Row]) -> None:
    one, many = statements
    for batch in _batches(rows):
        if len(batch) < BATCH:
            connection.run_many(one, batch)
        else:
            connection.run(many, tuple(chain.from_iterable(batch)))


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    left = iter(rows)
    while batch := list(islice(left, BATCH)):
        yield batch


@lru_cache(maxsize=1024)
def _insertions(relation: Relation) -> tuple[str, str]:
    changes = layout.changes(relation)
    return changes.insert, layout.insertion(relation, BATCH)


@lru_cache(maxsize=1024)
def _removals(relation: Relation) -> tuple[str, str]:
    return layout.changes(relation).remove, layout.removal(relation, BATCH)
