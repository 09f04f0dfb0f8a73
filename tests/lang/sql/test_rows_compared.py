"""ANY and ALL, rows as values, and LATERAL: maintained as recomputed."""

from __future__ import annotations

from typing import Any

import pytest

import harken
from tests.harness.watched import Watched

STRATEGIES = ("incremental", "naive", "adaptive")
TWO = "CREATE TABLE a (k INT, x INT); CREATE TABLE b (k INT, y INT)"

# title: schema, query, transactions, each with the rows of the view after it
CASES: dict[str, tuple[str, str, list[tuple[str, list[Any]]]]] = {
    "more than all, with NULLs": (
        TWO,
        "SELECT x, x > ALL (SELECT y FROM b WHERE b.k = a.k) AS more FROM a",
        [
            ("INSERT INTO a VALUES (1, 5), (2, NULL)", [(5, True), (None, True)]),
            ("INSERT INTO b VALUES (1, 3), (2, 1)", [(5, True), (None, None)]),
            ("INSERT INTO b VALUES (1, NULL)", [(5, None), (None, None)]),
            ("INSERT INTO b VALUES (1, 6)", [(5, False), (None, None)]),
            ("DELETE FROM b", [(5, True), (None, True)]),
        ],
    ),
    "less than any, as a condition": (
        TWO,
        "SELECT x FROM a WHERE x < ANY (SELECT y FROM b) AND x <> ALL (SELECT k FROM b)",
        [
            ("INSERT INTO a VALUES (1, 1), (1, 2), (1, NULL)", []),
            ("INSERT INTO b VALUES (1, 3), (0, 2)", [(2,)]),
            ("UPDATE b SET k = 7", [(1,), (2,)]),
            ("UPDATE b SET k = NULL WHERE y = 3", []),
        ],
    ),
    "all and some of queries in parentheses": (
        TWO,
        "SELECT x FROM a WHERE x >= ALL ((SELECT y FROM b) INTERSECT (SELECT x FROM a)) "
        "AND x = SOME ((SELECT y FROM b) UNION ALL (SELECT k FROM b))",
        [
            ("INSERT INTO a VALUES (1, 1), (1, 2), (1, 3)", []),
            ("INSERT INTO b VALUES (3, 2)", [(2,), (3,)]),
            ("INSERT INTO b VALUES (4, 3)", [(3,)]),
            ("DELETE FROM a WHERE x = 3", [(2,)]),
        ],
    ),
    "rows in a query, as a value": (
        TWO,
        "SELECT k, x, (k, x) IN (SELECT k, y FROM b) AS i FROM a",
        [
            (
                "INSERT INTO a VALUES (1, 1), (NULL, 1), (2, 9)",
                [(1, 1, False), (None, 1, False), (2, 9, False)],
            ),
            (
                "INSERT INTO b VALUES (1, 1), (2, NULL)",
                [(1, 1, True), (None, 1, None), (2, 9, None)],
            ),
            ("UPDATE b SET k = 3", [(1, 1, False), (None, 1, None), (2, 9, False)]),
        ],
    ),
    "rows not in a query": (
        TWO,
        "SELECT k, x FROM a WHERE (k, x) NOT IN (SELECT k, y FROM b)",
        [
            ("INSERT INTO a VALUES (1, 1), (NULL, 1), (2, 9)", [(1, 1), (None, 1), (2, 9)]),
            ("INSERT INTO b VALUES (1, 1), (2, NULL)", []),
            ("DELETE FROM b WHERE y = 1", [(1, 1)]),
            ("UPDATE b SET y = 1", [(1, 1), (2, 9)]),
        ],
    ),
    "a lateral count of nothing": (
        TWO,
        "SELECT a.x, s.n FROM a, LATERAL (SELECT count(*) AS n FROM b WHERE b.k = a.k) AS s",
        [
            ("INSERT INTO a VALUES (1, 5), (NULL, 6)", [(5, 0), (6, 0)]),
            ("INSERT INTO b VALUES (1, 1), (1, 2), (NULL, 3)", [(5, 2), (6, 0)]),
            ("DELETE FROM b WHERE y = 1; INSERT INTO a VALUES (1, 5)", [(5, 1), (5, 1), (6, 0)]),
        ],
    ),
    "the first of each, or nothing": (
        TWO,
        "SELECT a.x, s.y FROM a LEFT JOIN LATERAL "
        "(SELECT y FROM b WHERE b.k = a.k ORDER BY y DESC LIMIT 1) AS s ON true",
        [
            ("INSERT INTO a VALUES (1, 5), (2, 6)", [(5, None), (6, None)]),
            ("INSERT INTO b VALUES (1, 1), (1, 2), (2, 0)", [(5, 2), (6, 0)]),
            ("DELETE FROM b WHERE y = 2; DELETE FROM b WHERE k = 2", [(5, 1), (6, None)]),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("title", CASES)
def test_each(title: str, strategy: str) -> None:
    schema, query, transactions = CASES[title]
    watched = Watched(schema, {"v": query}, strategy)
    for text, rows in transactions:
        watched.run(text)
        assert sorted(watched.held["v"].elements(), key=repr) == sorted(rows, key=repr)


def test_rows_that_are_written_out() -> None:
    db = harken.connect()
    assert db.sql("SELECT (1, 2) IN ((3, 4), (1, 2)), (1, NULL) = (2, NULL)").rows == [
        (True, False)
    ]
    assert db.sql("SELECT (1, NULL) NOT IN ((1, 2)), (1, 2) <> (1, 2)").rows == [(None, False)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x FROM a WHERE x > ANY (1, 2)",
        "SELECT (1, 2) = (1, 2, 3)",
        "SELECT * FROM a RIGHT JOIN LATERAL (SELECT y FROM b WHERE b.k = a.k) AS s ON true",
        "SELECT * FROM a, LATERAL (SELECT y FROM b WHERE b.y > a.x ORDER BY y LIMIT 1) AS s",
        "SELECT * FROM a LATERAL VIEW explode(x) AS y",
    ],
)
def test_refused(text: str) -> None:
    db = harken.connect()
    db.sql(TWO)
    with pytest.raises(harken.HarkenError) as caught:
        db.sql(text)
    assert caught.value.code == "unsupported"
