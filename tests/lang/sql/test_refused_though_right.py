"""Queries that Spark answers and Harken once refused."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest

import harken
from harken import Database, HarkenError


@pytest.fixture
def db() -> Iterator[Database]:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (id INT, ts TIMESTAMP, n INT, s STRING)")
        db.sql(
            "INSERT INTO t VALUES (1, TIMESTAMP '2026-01-01 00:00:00', NULL, 'abc'),"
            " (2, TIMESTAMP '2026-01-02 00:00:00', NULL, '7')"
        )
        yield db


def rows(db: Database, query: str) -> list[tuple[Any, ...]]:
    (result,) = db.sql(query)
    return result.rows


def moment(day: int, hour: int, minute: int = 0, second: int = 0) -> datetime.datetime:
    return datetime.datetime(2026, 1, day, hour, minute, second, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ("lag(ts) OVER (ORDER BY id) + INTERVAL '4' HOUR", [None, moment(1, 4)]),
        ("INTERVAL '4' HOUR + lag(ts) OVER (ORDER BY id)", [None, moment(1, 4)]),
        ("lead(ts) OVER (ORDER BY id) - INTERVAL 4 HOURS", [moment(1, 20), None]),
        ("lag(ts) OVER (ORDER BY id) + id * INTERVAL '4' HOUR", [None, moment(1, 8)]),
        ("lag(ts) OVER (ORDER BY id) + INTERVAL (id) HOUR", [None, moment(1, 2)]),
        (
            "lag(ts) OVER (ORDER BY id) + (INTERVAL '1 02:03:04' DAY TO SECOND - INTERVAL 1 DAY)",
            [None, moment(1, 2, 3, 4)],
        ),
        (
            "lag(ts) OVER (ORDER BY id) + row_number() OVER (ORDER BY id) * INTERVAL 1 HOUR",
            [None, moment(1, 2)],
        ),
    ],
)
def test_an_interval_moves_what_a_window_finds(
    db: Database, moved: str, expected: list[Any]
) -> None:
    assert rows(db, f"SELECT id, {moved} AS x FROM t ORDER BY id") == list(enumerate(expected, 1))
    db.sql(f"CREATE MATERIALIZED VIEW m AS SELECT id, {moved} AS x FROM t")
    db.sql("INSERT INTO t VALUES (3, TIMESTAMP '2026-01-03 00:00:00', 1, NULL)")
    query = f"SELECT id, {moved} AS x FROM t ORDER BY id"
    assert rows(db, "SELECT * FROM m ORDER BY id") == rows(db, query)


@pytest.mark.parametrize("key", ["id + (SELECT m FROM c)", "id % (SELECT c.m FROM c AS c)"])
def test_grouping_by_an_expression_over_a_common_table(db: Database, key: str) -> None:
    common = "WITH c AS (SELECT max(id) AS m FROM t)"
    grouped = f"{common} SELECT {key} AS g, count(*) AS n FROM t GROUP BY {key} ORDER BY g"
    by_name = f"{common} SELECT {key} AS g, count(*) AS n FROM t GROUP BY g ORDER BY g"
    assert rows(db, grouped) == rows(db, by_name)
    assert len(rows(db, grouped)) == 2


@pytest.mark.parametrize(
    "compared",
    [
        "n = s",
        "n < s",
        "n + s",
        "n = CAST(s AS INT)",
        "n IN (s, '1')",
        "n BETWEEN s AND s",
        "CAST(NULL AS INT) = 'abc'",
        "'abc' > CAST(NULL AS INT)",
        "NULL = 'abc'",
    ],
)
def test_what_is_compared_with_null_is_not_looked_at(db: Database, compared: str) -> None:
    assert rows(db, f"SELECT {compared} AS e FROM t") == [(None,), (None,)]


def test_a_text_that_is_no_number_fails_beside_a_number(db: Database) -> None:
    db.sql("UPDATE t SET n = 1 WHERE id = 1")
    with pytest.raises(HarkenError, match="is not an integer"):
        db.sql("SELECT n = s AS e FROM t")
    with pytest.raises(HarkenError, match="'abc' is not a BIGINT"):
        db.sql("SELECT n = 'abc' AS e FROM t")  # so does Spark, whatever the rows are
