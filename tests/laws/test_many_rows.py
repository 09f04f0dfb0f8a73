"""Law: many rows at once are put in and taken out as they are one after the other.

Relations of every layout: keyed by a number, by two columns, by nothing, sets and bags, with NULLs
and copies. Half of the deleted rows are not there, or not in that many copies.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.engines.sqlite import many
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.engine import SQLiteEngine
from harken.ir.relations import Column, Kind, Relation, Semantics
from harken.values.types import INTEGER, NUMBER, TEXT

COLUMNS = (
    Column("a", INTEGER),
    Column("b", INTEGER),
    Column("c", TEXT.or_null()),
    Column("d", NUMBER.or_null()),
)
LAYOUTS = {
    "number": {"key": (0,)},
    "two": {"key": (0, 1)},
    "nothing": {"key": ()},
    "set": {"key": None},
    "bag": {"semantics": Semantics.BAG},
}


def random_row(random: Random, few: int) -> tuple[object, ...]:
    text = random.choice([None, "", "x", "it's", "1"])
    return (random.randrange(few), random.randrange(3), text, random.choice([None, 0.0, 1.5, 2.0]))


def without_repeated_keys(
    relation: Relation, rows: list[tuple[object, ...]]
) -> list[tuple[object, ...]]:
    if not relation.is_set:
        return rows
    key = range(relation.arity) if relation.key is None else relation.key
    return list({tuple(row[i] for i in key): row for row in rows}.values())


@given(st.randoms(use_true_random=False), st.sampled_from(sorted(LAYOUTS)))
@settings(max_examples=60)
def test_many_rows_are_as_one_by_one(random: Random, layout: str) -> None:
    relation = Relation("r", COLUMNS, 1, Kind.STORED, **LAYOUTS[layout])  # type: ignore[arg-type]
    count = random.choice([0, 1, many.BATCH - 1, many.BATCH, 3 * many.BATCH + 1])
    few = random.choice([3, 40, 1000])
    rows = without_repeated_keys(relation, [random_row(random, few) for _ in range(count)])
    going = random.sample(rows, len(rows) // 2) + [random_row(random, few) for _ in rows]
    random.shuffle(going)

    left = {}
    for way in ("many", "one by one"):
        engine = SQLiteEngine(Connection(":memory:"))
        engine.create(relation)
        if way == "many":
            engine.insert_many(relation, iter(rows))
            engine.remove_many(relation, iter(going))
        else:
            for row in rows:
                engine.insert_many(relation, [row])
            for row in going:
                engine.remove_row(relation, row)
        left[way] = Counter(engine.matching(relation, {}))
        engine.connection.close()
    assert left["many"] == left["one by one"]


@pytest.mark.parametrize("semantics", Semantics)
def test_rows_of_many_columns(semantics: Semantics) -> None:
    """A full batch of them would have more values than a statement takes."""
    columns = tuple(Column(f"a{i}", INTEGER) for i in range(600))
    relation = Relation("wide", columns, 1, Kind.STORED, semantics)
    rows = [(number,) * 600 for number in range(2 * many.BATCH)]
    engine = SQLiteEngine(Connection(":memory:"))
    engine.create(relation)
    engine.insert_many(relation, rows)
    assert engine.matching(relation, {}) == rows
    engine.connection.close()
