"""Expressions of many terms take as long as they are long: each part is translated once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import harken
from tests.harness.watched import Watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TERMS = 60

# a long expression over a = 3, x = 0.5, m = 1.25, s = 'ab', and its value
LONG = {
    " + ".join(["a"] * TERMS): 3 * TERMS,
    " - ".join(["x"] * TERMS): -0.5 * (TERMS - 2),
    "CAST(" + " + ".join(["m"] * TERMS) + " AS DOUBLE)": 1.25 * TERMS,
    " % ".join(["a"] * TERMS): 0,
    " DIV ".join(["a", *["1"] * TERMS]): 3,
    " / ".join(["x", *["1"] * TERMS]): 0.5,
    "abs(" * 30 + "-a" + ")" * 30: 3,
    f"a IN ({', '.join(map(str, range(800)))})": True,
    f"x NOT IN ({', '.join(map(str, range(800)))}, 0.25)": True,
    f"s IN ('ab', {', '.join(map(repr, map(str, range(800))))})": True,
    " OR ".join(f"a = {i + 3}" for i in range(400)): True,
    " AND ".join(f"a <> {i + 4}" for i in range(200)): True,
    "floor(" * 6 + "m" + ")" * 6 + " + 0e0": 1.0,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("expression", LONG, ids=lambda text: text[:12])
def test_it_takes_no_time(expression: str) -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT, x DOUBLE, m DECIMAL(5, 2), s STRING)")
        db.sql("INSERT INTO t VALUES (3, 0.5, 1.25, 'ab'), (NULL, NULL, NULL, NULL)")
        found = db.sql(f"SELECT {expression} FROM t WHERE a = 3 OR a IS NULL").rows
        assert sorted(found, key=repr) == sorted([(LONG[expression],), (None,)], key=repr)


def test_a_value_among_many_follows_changes() -> None:
    listed = ", ".join(str(3 * i) for i in range(50))
    query = (
        f"SELECT a FROM t WHERE a IN ({listed}) "
        "UNION ALL SELECT -a FROM t WHERE a NOT IN (7, NULL, 1)"
    )
    watched = Watched("CREATE TABLE t (a INT)", {"v": query}, "incremental")
    watched.run("INSERT INTO t VALUES (1), (3), (3), (NULL), (7)")
    assert watched.rows("v") == {(3,): 2}
    watched.run("UPDATE t SET a = a - 1 WHERE a = 7; DELETE FROM t WHERE a = 3")
    assert watched.rows("v") == {(6,): 1}


def test_a_text_that_is_nested_too_deeply_is_an_error_of_ours() -> None:
    with harken.connect() as db, pytest.raises(harken.HarkenError, match="too deeply"):
        db.sql(f"SELECT {'(' * 500}1{')' * 500}")


def test_what_is_divided_by_zero_is_an_error_however_long_it_is() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (0)")
        for sign in ("/", "%", "DIV"):
            with pytest.raises(harken.ArithmeticFault):
                db.sql(f"SELECT ({' + '.join(['a'] * TERMS)}) {sign} a FROM t")


def test_spark_gives_the_same(spark: SparkSession, tmp_path: Path) -> None:
    others = {"(x + 2) % 0.75": 0.25, "-m DIV 0.5": -2, "a IN (1, NULL, 2)": None}
    expected = {text: value for text, value in LONG.items() if " IN " in text} | others
    with harken.connect(tmp_path / "lake.db", spark=spark, engine="lake") as db:
        db.sql("CREATE TABLE t (a INT, x DOUBLE, m DECIMAL(5, 2), s STRING)")
        db.sql("INSERT INTO t VALUES (3, 0.5, 1.25, 'ab')")
        db.internals.engine.forced = "spark"
        columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(expected))
        assert db.sql(f"SELECT {columns} FROM t").rows == [tuple(expected.values())]
