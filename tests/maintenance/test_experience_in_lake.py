"""What it takes to follow a view in the lake is known by experience, as it is elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import harken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_what_a_view_in_the_lake_took_is_known(spark: SparkSession, tmp_path: Path) -> None:
    with harken.connect(tmp_path / "a.db", spark=spark) as db:
        db.sql("""
            CREATE TABLE sale (id INT PRIMARY KEY, shop INT, amount INT) USING lake;
            INSERT INTO sale SELECT id, id % 7, id % 11 FROM (VALUES (1), (2), (3), (4)) AS v (id);
            COMMIT;
            CREATE MATERIALIZED VIEW large AS SELECT shop, amount FROM sale WHERE amount > 2;
            COMMIT;
        """)
        assert "the first evaluation took" in str(db.explain("large", verbose=True))
        for start in (100, 1100):
            db.sql(
                f"INSERT INTO sale SELECT {start} + a.id * 10 + b.id, b.id, a.id FROM sale a "
                "CROSS JOIN sale b WHERE a.id < 10 AND b.id < 10; COMMIT"
            )
        assert sorted(db.sql("SELECT * FROM large").rows) == sorted(
            db.sql("SELECT shop, amount FROM sale WHERE amount > 2").rows
        )
