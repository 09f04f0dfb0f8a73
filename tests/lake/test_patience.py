"""What Spark is asked may be broken off, and what differentials take in the lake is remembered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import harken
from harken.engines.spark.patience import limited
from harken.engines.sqlite.connection import BrokenOff, Connection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENDLESS = "select sum(id % 7) from range(100000000000)"
"""A minute or more."""


def test_spark_is_broken_off_when_its_time_is_over(spark: SparkSession) -> None:
    connection = Connection(":memory:")
    with (
        connection.limited(0.2),
        pytest.raises(BrokenOff),
        limited(spark, connection),
    ):
        spark.sql(ENDLESS).collect()
    with connection.limited(60.0), limited(spark, connection):
        assert spark.sql("select 1").collect() == [(1,)]
    connection.close()


def test_an_error_of_spark_is_told_though_its_time_is_limited(spark: SparkSession) -> None:
    connection = Connection(":memory:")
    with (
        connection.limited(60.0),
        pytest.raises(Exception, match="DIVIDE_BY_ZERO"),
        limited(spark, connection),
    ):
        spark.sql("select 1 / 0").collect()
    connection.close()


def test_what_spark_took_counts_as_time_that_was_spent(spark: SparkSession) -> None:
    connection = Connection(":memory:")
    with connection.limited(0.2):
        with pytest.raises(BrokenOff), limited(spark, connection):
            spark.sql(ENDLESS).collect()
        connection.working_time = iter([0.0, 0.0, 1.0, 1.0]).__next__
        with connection.spending() as left:
            assert left is not None
            assert left < 0.2
    connection.close()


def test_what_a_view_in_the_lake_took_is_known(spark: SparkSession, tmp_path: Path) -> None:
    with harken.connect(tmp_path / "a.db", spark=spark) as db:
        db.sql("""
            CREATE TABLE sale (id INT PRIMARY KEY, shop INT, amount INT) USING lake;
            INSERT INTO sale SELECT id, id % 7, id % 11 FROM (VALUES (1), (2), (3), (4)) AS v (id);
            COMMIT;
            CREATE MATERIALIZED VIEW large AS SELECT shop, amount FROM sale WHERE amount > 2;
            COMMIT;
        """)
        assert "the first evaluation took" in db.explain("large")
        for start in (100, 1100):
            db.sql(
                f"INSERT INTO sale SELECT {start} + a.id * 10 + b.id, b.id, a.id FROM sale a "
                "CROSS JOIN sale b WHERE a.id < 10 AND b.id < 10; COMMIT"
            )
        assert sorted(db.sql("SELECT * FROM large").rows) == sorted(
            db.sql("SELECT shop, amount FROM sale WHERE amount > 2").rows
        )
