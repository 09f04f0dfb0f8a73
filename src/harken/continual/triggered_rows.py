"""The relation `triggered` of a continual query: the rows for which its condition became true.

It has the columns of all tables of the trigger, each name once, and exists while the query is
executed. A query that reads it has an answer for each firing, so what it delivers is that answer,
and not a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from harken.database.json_values import reader
from harken.engines.protocol import Engine
from harken.ir.relations import Column, Kind, Relation, Role
from harken.values.encoding import encoder
from harken.values.rows import Row

NAME = "triggered"


def triggered_relation(query: int, columns: Sequence[Column]) -> Relation:
    return Relation(
        NAME, tuple(columns), 0, Kind.STORED, role=Role.PREVIOUS, of=f"continual query {query}"
    )


@contextmanager
def holding(
    engine: Engine, relation: Relation, rows: Sequence[Mapping[str, Any]]
) -> Iterator[None]:
    """In the block, the relation has these rows, which are those of a cause."""
    engine.create_temporary(relation)
    try:
        engine.insert_many(relation, _stored(relation, rows))
        yield
    finally:
        engine.drop_temporary(relation)


def _stored(relation: Relation, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    found: dict[Row, None] = {}
    for row in rows:
        values = []
        for column in relation.columns:
            value = reader(column.type)(row.get(column.name))
            values.append(None if value is None else encoder(column.type)(value))
        found[tuple(values)] = None
    return list(found)
