"""IGNORE NULLS, frames of GROUPS, DISTINCT in a window, QUALIFY, and `*` without some columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import harken
from tests.generators.shaken import SCHEMA, shake
from tests.harness.watched import Watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = "(1, 1, 'a'), (1, 2, NULL), (1, 2, 'b'), (1, 5, NULL), (2, 7, NULL)"
IN_ORDER = "OVER (PARTITION BY g ORDER BY x, s)"
MEANT: dict[str, list[Any]] = {
    f"first_value(s) IGNORE NULLS {IN_ORDER}": ["a", "a", "a", "a", None],
    f"last_value(s IGNORE NULLS) {IN_ORDER}": ["a", "a", "b", "b", None],
    f"last(s, true) {IN_ORDER}": ["a", "a", "b", "b", None],
    f"nth_value(s, 2) IGNORE NULLS {IN_ORDER}": [None, None, "b", "b", None],
    f"lag(s) IGNORE NULLS {IN_ORDER}": [None, "a", "a", "b", None],
    f"lag(s, 2, '-') IGNORE NULLS {IN_ORDER}": ["-", "-", "-", "a", "-"],
    f"lead(s) IGNORE NULLS {IN_ORDER}": ["b", "b", None, None, None],
    "sum(x) OVER (PARTITION BY g ORDER BY x GROUPS 1 PRECEDING)": [1, 5, 5, 9, 7],
    "count(*) OVER (ORDER BY x GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)": [3, 2, 2, 1, 0],
    "max(s) OVER (ORDER BY g GROUPS CURRENT ROW)": ["b", "b", "b", "b", None],
    "last_value(x) OVER (ORDER BY x, s GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING)": [
        2,
        2,
        5,
        7,
        7,
    ],
    "first_value(x) OVER (ORDER BY x RANGE 3 PRECEDING)": [1, 1, 1, 2, 5],
    "count(DISTINCT x) OVER (PARTITION BY g)": [3, 3, 3, 3, 1],
    "sum(DISTINCT x) OVER (ORDER BY x)": [1, 3, 3, 8, 15],
    "count(DISTINCT g, s) OVER ()": [2, 2, 2, 2, 2],
}


@pytest.fixture
def db() -> harken.Database:
    db = harken.connect()
    db.sql(f"CREATE TABLE t (g INT, x INT, s STRING); INSERT INTO t VALUES {ROWS}")
    return db


@pytest.mark.parametrize("text", MEANT)
def test_windows(db: harken.Database, text: str) -> None:
    found = db.sql(f"SELECT {text} AS w FROM t ORDER BY g, x, s").rows
    assert [value for (value,) in found] == MEANT[text]


SHOWN = {
    "SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY x DESC) = 1": [
        (1, 5, None),
        (2, 7, None),
    ],
    "SELECT x AS y, rank() OVER (ORDER BY x) AS r FROM t QUALIFY r = 2 AND y > 0": [(2, 2), (2, 2)],
    "SELECT DISTINCT g FROM t QUALIFY count(*) OVER (PARTITION BY g) > 1": [(1,)],
    "SELECT g, sum(x) AS s FROM t GROUP BY g QUALIFY rank() OVER (ORDER BY sum(x)) = 1": [(2, 7)],
    "SELECT * EXCEPT (s) FROM t WHERE x > 2": [(1, 5), (2, 7)],
    "SELECT * EXCLUDE (g) REPLACE (x * 2 AS x), 1 AS one FROM t WHERE g = 2": [(14, None, 1)],
    "SELECT a.* EXCEPT (s), b.s FROM t AS a JOIN t AS b ON a.x = b.x - 1": [
        (1, 1, None),
        (1, 1, "b"),
    ],
    "SELECT * EXCEPT (b.s, b.x) FROM t AS a JOIN t AS b USING (g) WHERE g = 2": [(2, 7, None)],
}


@pytest.mark.parametrize("query", SHOWN)
def test_queries(db: harken.Database, query: str) -> None:
    assert sorted(db.sql(query).rows, key=repr) == sorted(SHOWN[query], key=repr)


VIEWS = {
    "ignoring": "SELECT g, x, last_value(s) IGNORE NULLS OVER (PARTITION BY g ORDER BY x) AS a,"
    " lag(y, 2) IGNORE NULLS OVER (PARTITION BY g ORDER BY x) AS b FROM t",
    "grouped": "SELECT g, sum(m) OVER (PARTITION BY g ORDER BY x GROUPS 1 PRECEDING) AS a,"
    " nth_value(s, 2) OVER (PARTITION BY g ORDER BY x GROUPS 1 PRECEDING) AS b FROM t",
    "different": "SELECT g, count(DISTINCT s) OVER (PARTITION BY g ORDER BY x) AS a,"
    " sum(DISTINCT x) OVER (PARTITION BY g) AS b FROM t",
    "qualified": "SELECT DISTINCT * EXCEPT (f) REPLACE (x + 1 AS x) FROM t"
    " QUALIFY dense_rank() OVER (PARTITION BY g ORDER BY x DESC) < 3",
    "at_a_distance": "SELECT x, first_value(s) OVER (ORDER BY x RANGE 2 PRECEDING) AS a FROM t",
}


@pytest.mark.parametrize(("strategy", "seed"), [("incremental", 0), ("adaptive", 1)])
def test_the_changes_are_exact(strategy: str, seed: int) -> None:
    shake(Watched(SCHEMA, VIEWS, strategy), seed, 8)


ON_SPARK = (
    f"SELECT g, x, last_value(s) IGNORE NULLS {IN_ORDER} AS a FROM t",
    "SELECT g, count(DISTINCT s) OVER (PARTITION BY g ORDER BY x) AS a FROM t",
    "SELECT * EXCEPT (s) FROM t QUALIFY sum(x) OVER (ORDER BY x GROUPS 1 PRECEDING) > 4",
)


def test_spark_gives_the_same(spark: SparkSession, tmp_path: Path) -> None:
    with harken.connect(tmp_path / "lake.db", spark=spark, engine="lake") as db:
        db.sql(f"CREATE TABLE t (g INT, x INT, s STRING); INSERT INTO t VALUES {ROWS}")
        for query in ON_SPARK:
            db.internals.engine.forced = None
            by_sqlite = sorted(db.sql(query).rows, key=repr)
            db.internals.engine.forced = "spark"
            assert sorted(db.sql(query).rows, key=repr) == by_sqlite
