"""The same in the lake: tables there mean what resident ones mean, and Spark what SQLite means."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import harken
from sql.test_where_engines_go_wrong import CASES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOME = (
    "NULL in a group column is a group",
    "sums do not drift",
    "the match of an outer join appears and disappears",
    "a row leaves the top",
    "NOT IN, with NULLs",
)


def follow(spark: SparkSession, directory: Path, title: str, on_spark: bool) -> None:
    """Run a case in the lake; its view is asked of both, and watched."""
    schema, query, transactions = CASES[title]
    with harken.connect(directory / "lake.db", spark=spark, engine="lake") as db:
        engine = db._runtime.engine
        db.sql(f"{schema}; CREATE VIEW v AS {query}")
        held = Counter(db.sql("SELECT * FROM v").rows)
        monitor = db.monitor("v")
        for text, rows in transactions:
            db.sql(f"BEGIN; {text}")
            engine.forced = "spark" if on_spark else None
            db.sql("COMMIT")
            for change in monitor.changes():
                held.update(change.plus)
                held.subtract(change.minus)
            assert +held == Counter(rows)
            engine.forced = None
            assert Counter(db.sql("SELECT * FROM v").rows) == Counter(rows)
        engine.forced = "spark"
        assert Counter(db.sql("SELECT * FROM v").rows) == Counter(transactions[-1][1])
        engine.forced = None
        monitor.close()


@pytest.mark.parametrize("title", SOME)
def test_some(spark: SparkSession, tmp_path: Path, title: str) -> None:
    follow(spark, tmp_path, title, on_spark=False)


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("title", CASES)
def test_each_with_its_differentials_on_spark(
    spark: SparkSession, tmp_path: Path, title: str
) -> None:
    follow(spark, tmp_path, title, on_spark=True)
