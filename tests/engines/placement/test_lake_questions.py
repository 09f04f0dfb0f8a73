"""What is asked of tables in the lake: as little as the rows at hand allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import harken
from harken.engines import fetch_limits as limits
from harken.engines.placement.placed_relation import PlacedRelation
from harken.engines.protocol import TooManyRows

TABLES = """
CREATE TABLE customer (k INT NOT NULL, kind STRING NOT NULL, PRIMARY KEY (k)) USING lake;
CREATE TABLE purchase (n INT NOT NULL, k INT NOT NULL, PRIMARY KEY (n)) USING lake;
CREATE MATERIALIZED VIEW idle AS SELECT c.k FROM customer AS c
    WHERE upper(c.kind) = 'A' AND NOT EXISTS (SELECT 1 FROM purchase AS p WHERE p.k = c.k)
"""
CUSTOMERS = 10


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database whose tables are in the lake, with one customer of the kind `a`."""
    with harken.connect(tmp_path / "shop.db") as db:
        db.sql(TABLES)
        db.load("customer", [(k, "a" if k == 3 else "b") for k in range(CUSTOMERS)])
        db.load("purchase", [(n, n % CUSTOMERS) for n in range(2 * CUSTOMERS)])
        db.internals.engine.flush()
    return tmp_path / "shop.db"


def test_rows_that_are_looked_up_anyway_spare_questions(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SMALL", 0)
    asked: set[Any] = set()
    rows = PlacedRelation.rows

    def spy(
        lake_relation: PlacedRelation, columns: Any = (), values: Any = None, *rest: Any
    ) -> Any:
        if lake_relation.relation.name == "purchase" and tuple(columns) == (1,):
            asked.update(values)
        return rows(lake_relation, columns, values, *rest)

    monkeypatch.setattr(PlacedRelation, "rows", spy)
    with harken.connect(path) as db:
        db.sql("BEGIN")
        for n in range(CUSTOMERS):
            db.sql(f"DELETE FROM purchase WHERE n = {n}")
        db.sql("COMMIT")
        assert asked == {(3,)}
        assert db.sql("SELECT * FROM idle").rows == []
        db.sql(f"DELETE FROM purchase WHERE n = {CUSTOMERS + 3}")
        assert db.sql("SELECT * FROM idle").rows == [(3,)]


def test_a_far_relation_can_be_held_to_a_number_of_rows(path: Path) -> None:
    with harken.connect(path) as db:
        (lake_relation,) = [
            f for f in db.internals.engine.lake_relations.values() if f.relation.name == "customer"
        ]
        assert lake_relation.at_most(1).rows((1,), [("a",)]) == [(3, "a")]
        with pytest.raises(TooManyRows):
            lake_relation.at_most(CUSTOMERS - 2).rows((1,), [("b",)])
