"""Aggregates of a whole group: variances, percentiles, joined texts, the value at an extreme."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import harken
from tests.generators.shaken import SCHEMA, row, shake
from tests.harness.watched import Watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = """
    (1, 1, 1.5, 1.25, 'a', DATE '2020-01-01', true), (1, 2, 2.5, 2.25, 'b', NULL, false),
    (1, 4, NULL, NULL, 'c', NULL, true), (1, 2, 2.5, 2.25, 'b', NULL, false),
    (NULL, 7, 3.0, 3.00, NULL, DATE '2020-01-05', NULL)
"""
# what it is of group 1, and of the group NULL, which has one row
MEANT: dict[str, tuple[Any, Any]] = {
    "var_samp(x)": (19 / 12, None),
    "variance(x)": (19 / 12, None),
    "var_pop(x)": (1.1875, 0.0),
    "stddev(x)": (math.sqrt(19 / 12), None),
    "std(x)": (math.sqrt(19 / 12), None),
    "stddev_pop(x)": (math.sqrt(1.1875), 0.0),
    "var_samp(m)": (1 / 3, None),
    "var_samp(DISTINCT x)": (7 / 3, None),
    "covar_pop(x, y)": (2 / 9, 0.0),
    "covar_samp(x, m)": (1 / 3, None),
    "corr(x, y)": (1.0, None),
    "skewness(y)": (-math.sqrt(0.5), None),
    "kurtosis(y)": (-1.5, None),
    "regr_count(y, x)": (3, 1),
    "regr_avgx(y, x)": (5 / 3, 7.0),
    "regr_avgy(m, x)": (Decimal("1.916667"), Decimal("3.000000")),
    "regr_sxx(y, x)": (2 / 3, 0.0),
    "regr_syy(m, x)": (2 / 3, 0.0),
    "regr_sxy(y, x)": (2 / 3, 0.0),
    "regr_slope(y, x)": (1.0, None),
    "regr_intercept(y, x)": (0.5, None),
    "regr_r2(y, x)": (1.0, None),
    "try_sum(x)": (9, 7),
    "try_sum(m)": (Decimal("5.75"), Decimal("3.00")),
    "try_sum(coalesce(nullif(x, 4), 9223372036854775807))": (None, 7),
    "try_avg(m)": (Decimal("1.916667"), Decimal("3.000000")),
    "median(x)": (2.0, 7.0),
    "median(m)": (2.25, 3.0),
    "percentile(x, 0.25)": (1.75, 7.0),
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY x DESC)": (2.5, 7.0),
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY x)": (2.0, 7.0),
    "percentile_disc(0.9) WITHIN GROUP (ORDER BY s)": ("c", None),
    "approx_percentile(x, 0.5)": (2, 7),
    "mode(s)": ("b", None),
    "mode() WITHIN GROUP (ORDER BY f DESC)": (True, None),
    "mode() WITHIN GROUP (ORDER BY f)": (False, None),
    "bit_and(x)": (0, 7),
    "bit_or(x)": (7, 7),
    "bit_xor(x)": (5, 7),
    "max_by(s, x)": ("c", None),
    "min_by(x, s)": (1, None),
    "max_by(d, x)": (None, datetime.date(2020, 1, 5)),
    "max_by(s, x) FILTER (WHERE x < 4)": ("b", None),
    "string_agg(s, ', ')": ("a, b, b, c", None),
    "string_agg(s)": ("abbc", None),
    "string_agg(s, '''' ORDER BY x DESC)": ("c'b'b'a", None),
    "string_agg(DISTINCT s, '-' ORDER BY s DESC)": ("c-b-a", None),
    "listagg(s, '/') WITHIN GROUP (ORDER BY f, x DESC)": ("b/b/c/a", None),
    "listagg(s, '/') FILTER (WHERE f)": ("a/c", None),
    "listagg(DISTINCT s, '/' ORDER BY s DESC) FILTER (WHERE x > 1)": ("c/b", None),
    "listagg(DISTINCT 'k', '/' ORDER BY 'k') FILTER (WHERE x > 1)": ("k", "k"),
    "first(s)": ("a", None),
    "last(s) IGNORE NULLS": ("c", None),
    "any_value(s)": ("a", None),
    "approx_count_distinct(x)": (3, 1),
    "count_if(x > 1)": (3, 1),
}
LIST = ", ".join(f"{text} AS c{place}" for place, text in enumerate(MEANT))


def test_each_of_them() -> None:
    db = harken.connect()
    db.sql(f"{SCHEMA}; INSERT INTO t VALUES {ROWS}")
    found = {g: values for g, *values in db.sql(f"SELECT g, {LIST} FROM t GROUP BY g").rows}
    assert dict(zip(MEANT, found[1], strict=True)) == {t: one for t, (one, _) in MEANT.items()}
    assert dict(zip(MEANT, found[None], strict=True)) == {t: none for t, (_, none) in MEANT.items()}
    (nothing,) = db.sql(f"SELECT {LIST} FROM t WHERE false").rows
    assert set(nothing) == {None, 0}


def test_the_same_in_a_window() -> None:
    db = harken.connect()
    db.sql(f"{SCHEMA}; INSERT INTO t VALUES {ROWS}")
    assert db.sql(
        "SELECT x, string_agg(s, ',' ORDER BY x DESC) OVER w AS names, median(x) OVER w AS middle,"
        " max_by(s, x) OVER (PARTITION BY s) AS own FROM t WHERE g = 1"
        " WINDOW w AS (ORDER BY x) ORDER BY x"
    ).rows == [
        (1, "a", 1.0, "a"),
        (2, "b,b,a", 2.0, "b"),
        (2, "b,b,a", 2.0, "b"),
        (4, "c,b,b,a", 2.0, "c"),
    ]


VIEWS = {
    "moments": "SELECT g, stddev(y) AS a, var_pop(m) AS b, corr(x, y) AS c, kurtosis(y) AS d,"
    " regr_slope(x, y) AS e, try_sum(x) AS f FROM t GROUP BY g",
    "places": "SELECT g, median(y) AS a, mode(s) AS b, sum(x) AS c,"
    " percentile_disc(0.3) WITHIN GROUP (ORDER BY d DESC) AS d FROM t GROUP BY g",
    "texts": "SELECT x, string_agg(s, ',' ORDER BY y DESC, d) AS a, min_by(s, y) AS b,"
    " listagg(DISTINCT s, '') AS c FROM t GROUP BY x HAVING bit_xor(g) IS NOT NULL OR x > 0",
    "whole": "SELECT stddev_pop(x) AS a, string_agg(s, '-') AS b, bit_or(x) AS c, count(*) AS n"
    " FROM t WHERE f",
    "sets": "SELECT g, f, median(x) AS a, max_by(d, x) AS b FROM t GROUP BY CUBE (g, f)",
    "framed": "SELECT g, x, var_samp(y) OVER (PARTITION BY g ORDER BY x) AS a,"
    " string_agg(s, ',' ORDER BY s DESC) OVER (PARTITION BY g) AS b FROM t",
    "computed": "SELECT g, max_by(x + 1, y * 2) AS a, string_agg(s || '.', '' ORDER BY -x) AS b,"
    " covar_pop(x + 1, y) AS c FROM t GROUP BY g",
    "correlated": "SELECT x, (SELECT median(u.y) FROM t AS u WHERE u.g = t.g) AS a FROM t",
}


@pytest.mark.parametrize("strategy", ["incremental", "adaptive", "naive"])
@pytest.mark.parametrize("seed", range(2))
def test_the_changes_are_exact(strategy: str, seed: int) -> None:
    shake(Watched(SCHEMA, VIEWS, strategy), seed, 12)


def test_what_is_computed_for_them_is_read() -> None:
    db = harken.connect()
    db.sql(f"{SCHEMA}; INSERT INTO t VALUES {ROWS}")
    query = "SELECT max_by(x + 1, y * 2) AS a, string_agg(s || '.', ',' ORDER BY -x) AS b FROM t"
    assert db.sql(query).rows == [(8, "c.,b.,b.,a.")]


def test_a_variance_does_not_drift() -> None:
    watched = Watched("CREATE TABLE a (x DOUBLE)", {"v": "SELECT var_pop(x) AS v FROM a"})
    watched.run("INSERT INTO a VALUES (0.1), (0.2), (0.3)")
    (before,) = watched.rows("v")
    watched.run("INSERT INTO a VALUES (1e15), (-1e15)")
    watched.run("DELETE FROM a WHERE abs(x) > 1")
    assert list(watched.rows("v")) == [before]


def test_an_average_is_finite() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE a (x DOUBLE); INSERT INTO a VALUES (1e308), (1e308)")
    for query in (
        "avg(x) FROM a",
        "x FROM a GROUP BY x HAVING avg(x) > 0",
        "avg(x) OVER () FROM a",
    ):
        with pytest.raises(harken.HarkenError) as caught:
            db.sql(f"SELECT {query}")
        assert caught.value.code == "overflow", query


REFUSED = {
    "stddev(s)": "type-mismatch",
    "median(f)": "type-mismatch",
    "string_agg(DISTINCT x, ',')": "type-mismatch",
    "bit_and(y)": "type-mismatch",
    "percentile(x, 1.5)": "unsupported",
    "percentile(x, y)": "unsupported",
    "string_agg(s, s)": "unsupported",
    "string_agg(DISTINCT s, ',' ORDER BY x)": "unsupported",
    "max_by(x)": "unsupported",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_they_do_not_take_is_refused(text: str) -> None:
    db = harken.connect()
    db.sql(SCHEMA)
    with pytest.raises(harken.HarkenError) as caught:
        db.sql(f"SELECT {text} FROM t")
    assert caught.value.code == REFUSED[text]


def test_spark_gives_the_same_bytes(spark: SparkSession, tmp_path: Path) -> None:
    random = Random(5)
    rows = ", ".join([ROWS, *(row(random) for _ in range(40))])
    few = "stddev(y) AS e, corr(y, m) AS r, median(x) AS d, string_agg(s, ',' ORDER BY x, s) AS l"
    with harken.connect(tmp_path / "lake.db", spark=spark, engine="lake") as db:
        db.sql(f"{SCHEMA}; INSERT INTO t VALUES {rows}")
        db.sql(f"CREATE VIEW v AS SELECT g, {few} FROM t GROUP BY g")
        monitor, engine = db.monitor("v"), db.internals.engine
        before, query = set(db.sql("SELECT * FROM v").rows), f"SELECT g, {LIST} FROM t GROUP BY g"
        by_sqlite = set(db.sql(query).rows)
        engine.forced = "spark"
        assert set(db.sql(query).rows) == by_sqlite
        engine.forced = None
        db.sql("BEGIN; DELETE FROM t WHERE g = 1 AND x > 1; INSERT INTO t VALUES " + ROWS)
        engine.forced = "spark"
        db.sql("COMMIT")
        engine.forced = None
        (change,) = monitor.changes()
        now = set(db.sql("SELECT * FROM v").rows)
        assert (set(change.plus), set(change.minus)) == (now - before, before - now)
