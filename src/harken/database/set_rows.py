"""Adds rows to a stored set; rows that it already has are ignored.

Law: afterwards the set has its old rows and the given ones and no others, or nothing happened.
"""

from __future__ import annotations

from collections.abc import Sequence

from harken.engines.protocol import Engine
from harken.errors import IntegrityError
from harken.ir.relations import Relation
from harken.values.rows import Row


def add_rows(engine: Engine, relation: Relation, rows: Sequence[Row], hint: str) -> None:
    """`hint` says what to do about a row whose key is taken."""
    if relation.key == tuple(range(relation.arity)):
        engine.add_many(relation, rows)
        return
    engine.expect(relation, rows)
    for row in dict.fromkeys(rows):
        key = relation.key
        if key is None:
            if not engine.contains(relation, row):
                engine.insert_many(relation, [row])
            continue
        there = engine.matching(relation, {i: row[i] for i in key})
        if row in there:
            continue
        if there:
            raise IntegrityError(
                f"{relation.name} already has a row with this key", code="row-exists", hint=hint
            )
        engine.insert_many(relation, [row])
