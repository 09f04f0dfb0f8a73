"""Databases whose functions lie in the lake, as the tests need them: few rows that are sought as if
they were many, and what the lake holds, read past the engine."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from harken import Database
from harken.engines import fetch_limits as limits
from harken.engines.arrow_rows import from_arrow
from harken.engines.delta.tables import LakeTable
from harken.engines.placement.exchange import Exchange
from harken.engines.placement.placed_relation import PlacedRelation

Row = tuple[Any, ...]


def seek_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """No relation is so small that it is brought as a whole, and no file holds many rows."""
    monkeypatch.setattr(limits, "SMALL", -1)
    monkeypatch.setitem(LakeTable.create.__func__.__kwdefaults__, "rows_per_file", 4)


def write_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every commit waits for others: only `flush` writes to the lake."""
    monkeypatch.setattr(Exchange, "_may_wait", lambda self, lake_relation: True)


def lake_relations(db: Database) -> dict[str, PlacedRelation]:
    return db.internals.engine.lake_relations


def let_go(db: Database) -> None:
    """Nothing is at hand any more."""
    for lake_relation in lake_relations(db).values():
        lake_relation.cache.clear()


def pending(lake_relation: PlacedRelation) -> list[Row]:
    """What is committed and not in the table yet; of an input there is nothing."""
    return lake_relation.pending.rows() if lake_relation.place.is_own else []


def state(db: Database) -> dict[str, Counter[Row]]:
    """By definition: the table at the version the database stands on, and what is pending."""
    return {name: _state(lake_relation) for name, lake_relation in lake_relations(db).items()}


def _state(lake_relation: PlacedRelation) -> Counter[Row]:
    rows = Counter(lake_relation.rows())
    for *row, weight in pending(lake_relation):
        rows[tuple(row)] += weight
    return +rows


def written(db: Database) -> dict[str, Counter[Row]]:
    """The rows of the Delta tables as any other reader finds them."""
    return {name: _written(lake_relation) for name, lake_relation in lake_relations(db).items()}


def _written(lake_relation: PlacedRelation) -> Counter[Row]:
    if not lake_relation.is_written:
        return Counter()
    found = pa.table(DeltaTable(lake_relation.place.path).to_pyarrow_dataset().to_table())
    return Counter(from_arrow(found.select(lake_relation.columns), lake_relation.relation.columns))


def check(db: Database) -> None:
    """What is at hand is what the relation has, for every key that is; no row is there twice, and
    none less than never."""
    for lake_relation in lake_relations(db).values():
        rows = Counter(lake_relation.rows())
        for *row, weight in pending(lake_relation):
            rows[tuple(row)] += weight
        assert min(rows.values(), default=0) >= 0, lake_relation.relation.id
        cache, connection = lake_relation.cache, db.internals.connection
        if lake_relation.relation.is_set:
            assert max(rows.values(), default=0) <= 1, lake_relation.relation.id
        columns = ", ".join(f"c{i}" for i in range(lake_relation.relation.arity))
        at_hand = Counter(connection.rows(f"SELECT {columns} FROM {cache.table}"))
        present = cache.present_keys()
        wanted = Counter(
            {
                row: n
                for row, n in rows.items()
                if n and (cache.is_whole() or (cache.home and cache.key_of(row) in present))
            }
        )
        assert at_hand == wanted, lake_relation.relation.id


def disturb(db: Database, random: Random, commits: bool = True) -> None:
    """From now on, before each text and at random: cached rows are dropped, what is committed is
    written, and new functions go to the lake or stay. `commits`: an open transaction may be
    committed for that."""
    run = db.run_program
    runtime = db.internals.runtime

    def disturbed(language: str, *arguments: Any, **options: Any) -> None:
        if language != "amosql":
            run(language, *arguments, **options)
            return
        match random.randrange(12):
            case 0 | 1 | 2:
                let_go(db)
            case 3 if commits or not db.in_transaction:
                db.commit()
                db.flush()
            case 4 if lake_relations(db):
                random.choice(list(lake_relations(db).values())).cache.clear()
        runtime.all_in_lake = random.randrange(4) > 0
        run(language, *arguments, **options)

    db.run_program = disturbed  # type: ignore[method-assign]


def check_written(db: Database) -> None:
    """Once all is flushed, every reader of the lake finds exactly the rows."""
    db.commit()
    db.flush()
    check(db)
    assert written(db) == state(db)
    assert not any(map(pending, lake_relations(db).values()))
