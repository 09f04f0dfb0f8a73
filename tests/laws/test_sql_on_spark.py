"""Law: the views of random SQL have the same rows and changes where Spark computes them.

The same scripts as in `test_sql.py`, their tables in the lake, and every differential Spark's. What
the views of a transaction ask on one level goes to Spark as one question, so a job stands for many
pairs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import harken
from tests.generators.sql_scripts import Script, Scripts
from tests.harness.sql_pairs import Pair

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

seeds = st.integers(0, 2**32 - 1)
as_found = [Phase.explicit, Phase.reuse, Phase.generate]
many = settings(max_examples=60, phases=as_found, suppress_health_check=list(HealthCheck))


class OnSpark:
    """A database in the lake; Spark works out what a commit changes in its views."""

    def __init__(self, database: harken.Database) -> None:
        self._database = database

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def sql(self, text: str) -> Any:
        engine = self._database.internals.engine
        engine.forced = "spark" if text == "COMMIT" else None
        try:
            return self._database.sql(text)
        finally:
            engine.forced = None


class SparkPair(Pair):
    def __init__(self, script: Script, database: harken.Database) -> None:
        super().__init__(script)
        self.harken.close()
        self.harken = OnSpark(database)  # type: ignore[assignment]


def follow(
    spark: SparkSession, directory: Path, seed: int, views: int, transactions: int
) -> Counter[str]:
    script = Scripts(Random(seed)).script(views=views, transactions=transactions)
    apart = tuple(replace(each, whole=False) for each in script.transactions)
    script = replace(script, transactions=apart, strategy="incremental")
    database = harken.connect(directory / f"{seed}.db", spark=spark, engine="lake")
    return SparkPair(script, database).run()


@pytest.mark.parametrize("seed", [0, 1, 2, pytest.param(3, marks=pytest.mark.nightly)])
def test_views_have_the_rows_and_changes_that_they_should(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    follow(spark, tmp_path, seed, views=1, transactions=2)


@pytest.mark.nightly
@pytest.mark.timeout(36000)
@given(seed=seeds)
@many
def test_views_have_the_rows_and_changes_that_they_should_all_night(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    follow(spark, tmp_path_factory.mktemp("lake"), seed, views=4, transactions=20)
