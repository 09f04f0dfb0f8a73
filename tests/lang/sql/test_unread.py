"""What nobody reads is not computed: a value that would be an error is none where it is not asked
for, in a query and in a view."""

from __future__ import annotations

import random

import pytest

import harken
from tests.harness.watched import Watched

SCHEMA = "CREATE TABLE t (a INT, b INT); CREATE TABLE u (a INT, c INT)"
FILL = "INSERT INTO t VALUES (1, 0), (2, 5), (2, 5), (NULL, NULL); INSERT INTO u VALUES (1, 0)"

QUERIES = {
    "a column of a derived table": "SELECT a FROM (SELECT a, 10 / b AS q FROM t) AS d",
    "in both parts of a union": (
        "SELECT a FROM (SELECT a, 10 / b AS q FROM t UNION ALL SELECT a, 10 / c FROM u) AS d"
    ),
    "below a count": "SELECT a, count(*) AS n FROM (SELECT a, 10 / b AS q FROM t) AS d GROUP BY a",
    "on the side of an outer join that may be missing": (
        "SELECT u.a, d.b FROM u LEFT JOIN (SELECT a, b, 10 / b AS q FROM t) AS d ON u.a = d.a"
    ),
    "an aggregate": "SELECT a FROM (SELECT a, avg(10 / b) AS q FROM t GROUP BY a) AS d",
    "a window": (
        "SELECT a, n FROM (SELECT a, count(*) OVER (PARTITION BY a) AS n, "
        "sum(10 / b) OVER (ORDER BY a) AS s FROM t) AS d"
    ),
    "what EXISTS selects": "SELECT a FROM u WHERE EXISTS (SELECT 10 / b FROM t WHERE t.a = u.a)",
    "a query of one value that has several": (
        "SELECT a FROM (SELECT a, (SELECT b FROM t) AS q FROM u) AS d"
    ),
}


@pytest.fixture(params=QUERIES)
def query(request: pytest.FixtureRequest) -> str:
    return QUERIES[request.param]


def test_what_is_not_read_does_not_fail(query: str) -> None:
    watched = Watched(f"{SCHEMA}; {FILL}", {"v": query})
    choice = random.Random(7)
    for _ in range(12):
        table, b = choice.choice("tu"), choice.choice(["NULL", 0, 1, 2])
        watched.run(
            choice.choice(
                (
                    f"INSERT INTO {table} VALUES ({choice.choice(['NULL', 1, 2, 3])}, {b})",
                    f"DELETE FROM {table} WHERE a = {choice.randrange(4)}",
                    f"UPDATE {table} SET a = {choice.randrange(4)} WHERE a IS NULL OR a = 1",
                )
            )
        )


def test_what_is_read_fails() -> None:
    db = harken.connect()
    db.sql(f"{SCHEMA}; {FILL}")
    for text in (
        "SELECT a FROM (SELECT a, 10 / b AS q FROM t) AS d WHERE q > 1",
        "SELECT DISTINCT a, 10 / b AS q FROM t",
        "SELECT q FROM (SELECT a, 10 / b AS q FROM t) AS d",
    ):
        with pytest.raises(harken.ArithmeticFault):
            db.sql(text)
