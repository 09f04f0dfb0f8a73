"""Window functions, frames, and aggregates with FILTER: maintained as recomputed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import harken
from tests.harness.watched import Watched

STRATEGIES = ("incremental", "naive", "adaptive")
ONE = "CREATE TABLE a (k INT, x INT)"

# title: schema, query, transactions, each with the rows of the view after it
CASES: dict[str, tuple[str, str, list[tuple[str, list[Any]]]]] = {
    "rows numbered in two orders": (
        ONE,
        "SELECT k, x, row_number() OVER (ORDER BY k) AS n, "
        "lag(k) OVER (ORDER BY x DESC) AS before FROM a",
        [
            ("INSERT INTO a VALUES (1, 5), (2, 7)", [(1, 5, 1, 2), (2, 7, 2, None)]),
            ("INSERT INTO a VALUES (0, 6)", [(0, 6, 1, 2), (1, 5, 2, 0), (2, 7, 3, None)]),
            ("DELETE FROM a WHERE k = 2", [(0, 6, 1, None), (1, 5, 2, 0)]),
        ],
    ),
    "lag and lead with a default": (
        ONE,
        "SELECT x, lag(x, 1, -1) OVER (PARTITION BY k ORDER BY x) AS l, "
        "lead(x, 2, k) OVER (PARTITION BY k ORDER BY x) AS r FROM a",
        [
            ("INSERT INTO a VALUES (9, NULL), (9, 1)", [(None, -1, 9), (1, None, 9)]),
            ("INSERT INTO a VALUES (9, 2)", [(None, -1, 2), (1, None, 9), (2, 1, 9)]),
            ("DELETE FROM a WHERE x IS NULL", [(1, -1, 9), (2, 1, 9)]),
        ],
    ),
    "the first, last and second of a frame": (
        ONE,
        "SELECT x, last_value(x) OVER (ORDER BY k) AS l, "
        "nth_value(x, 2) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s, "
        "first_value(x) OVER (ORDER BY k ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS f FROM a",
        [
            ("INSERT INTO a VALUES (1, 10), (2, 20)", [(10, 10, 20, None), (20, 20, 20, 10)]),
            (
                "INSERT INTO a VALUES (3, 30)",
                [(10, 10, 20, None), (20, 20, 20, 10), (30, 30, 30, 10)],
            ),
            ("DELETE FROM a WHERE k = 1", [(20, 20, 30, None), (30, 30, 30, 20)]),
        ],
    ),
    "tiles, and parts of the whole": (
        ONE,
        "SELECT x, ntile(2) OVER (ORDER BY x) AS t, percent_rank() OVER (ORDER BY x) AS p, "
        "cume_dist() OVER (ORDER BY x) AS c FROM a",
        [
            ("INSERT INTO a VALUES (1, 1)", [(1, 1, 0.0, 1.0)]),
            (
                "INSERT INTO a VALUES (1, 2), (1, 3), (1, 3)",
                [(1, 1, 0.0, 0.25), (2, 1, 1 / 3, 0.5), (3, 2, 2 / 3, 1.0), (3, 2, 2 / 3, 1.0)],
            ),
            ("DELETE FROM a WHERE x < 3", [(3, 1, 0.0, 1.0), (3, 2, 0.0, 1.0)]),
        ],
    ),
    "a frame of RANGE, with NULLs": (
        ONE,
        "SELECT x, count(*) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS n, "
        "sum(k) OVER (ORDER BY x DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS s "
        "FROM a",
        [
            ("INSERT INTO a VALUES (1, 1), (1, NULL)", [(1, 1, None), (None, 1, 2)]),
            (
                "INSERT INTO a VALUES (1, 3), (1, 4), (1, NULL)",
                [(1, 2, 2), (3, 2, 1), (4, 2, None), (None, 2, 5), (None, 2, 5)],
            ),
            ("DELETE FROM a WHERE x IS NULL", [(1, 2, 2), (3, 2, 1), (4, 2, None)]),
        ],
    ),
    "a frame of RANGE in days": (
        "CREATE TABLE a (d DATE, m DECIMAL(9, 2))",
        "SELECT d, sum(m) OVER (ORDER BY d RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW)"
        " - m AS before FROM a WHERE d IS NOT NULL",
        [
            (
                "INSERT INTO a VALUES (DATE '2024-02-28', 0.10), (DATE '2024-02-29', 0.20)",
                [("2024-02-28", Decimal("0.00")), ("2024-02-29", Decimal("0.10"))],
            ),
            (
                "INSERT INTO a VALUES (DATE '2024-03-01', 1)",
                [
                    ("2024-02-28", Decimal("0.00")),
                    ("2024-02-29", Decimal("0.10")),
                    ("2024-03-01", Decimal("0.20")),
                ],
            ),
        ],
    ),
    "FILTER, any_value, and DISTINCT of two columns": (
        "CREATE TABLE a (k INT, x INT, y INT)",
        "SELECT k, count(*) FILTER (WHERE x > 1) AS n, sum(x) FILTER (WHERE y = 1) AS s, "
        "count(DISTINCT x, y) AS d, any_value(k) AS v FROM a GROUP BY k HAVING n < 3",
        [
            ("INSERT INTO a VALUES (1, 1, 1), (1, 1, 1), (1, 2, NULL)", [(1, 1, 2, 1, 1)]),
            ("INSERT INTO a VALUES (1, 1, 2), (2, 5, 1)", [(1, 1, 2, 2, 1), (2, 1, 5, 1, 2)]),
            ("UPDATE a SET x = 2", [(2, 1, 2, 1, 2)]),
        ],
    ),
    "what can fail is not computed of rows of neither state": (
        ONE,
        "SELECT k, 10 / count(*) OVER (PARTITION BY k) AS r FROM a",
        [
            ("INSERT INTO a VALUES (1, 1)", [(1, 10.0)]),
            ("INSERT INTO a VALUES (1, 2), (2, 1)", [(1, 5.0), (1, 5.0), (2, 10.0)]),
            ("DELETE FROM a WHERE k = 1", [(2, 10.0)]),
        ],
    ),
    "nor of rows that were never there together": (
        "CREATE TABLE a (x INT); CREATE TABLE b (y INT)",
        "SELECT 6 DIV (a.x - b.y) AS q FROM a, b",
        [
            ("INSERT INTO a VALUES (1); INSERT INTO b VALUES (2)", [(-6,)]),
            ("UPDATE a SET x = 2; UPDATE b SET y = 4", [(-3,)]),
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
        shown = [tuple(map(_shown, row)) for row in watched.held["v"].elements()]
        assert sorted(shown, key=repr) == sorted(rows, key=repr)


def _shown(value: Any) -> Any:
    return str(value) if hasattr(value, "isoformat") else value


def test_names_of_the_select_list() -> None:
    """A name in HAVING is first a column that is grouped by; in ORDER BY first one of the result.
    In an aggregate it is always a column of FROM."""
    db = harken.connect()
    db.sql("CREATE TABLE a (k INT, x INT); INSERT INTO a VALUES (1, 10), (2, 20), (2, 30)")
    assert db.sql("SELECT sum(x) AS k FROM a GROUP BY a.k HAVING k > 1").rows == [(50,)]
    assert db.sql("SELECT k, max(x) AS x FROM a GROUP BY k HAVING x > 10 AND min(x) < 25").rows == [
        (2, 30)
    ]
    found = db.sql("SELECT k, -x AS x FROM a ORDER BY x + 0").rows
    assert found == [(2, -30), (2, -20), (1, -10)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT k, x FROM a GROUP BY k", "ungrouped"),
        ("SELECT k FROM a GROUP BY k HAVING x > 1", "ungrouped"),
        ("SELECT k FROM b WHERE EXISTS (SELECT max(a.y) FROM a GROUP BY k HAVING y > 1)",
         "ungrouped"),
        ("SELECT sum(k) OVER (PARTITION BY x GROUPS 1 PRECEDING) FROM a", "unsupported"),
        ("SELECT sum(k) OVER (ORDER BY k GROUPS 0.5 PRECEDING) FROM a", "unsupported"),
        ("SELECT sum(k) OVER (ORDER BY k, x RANGE 1 PRECEDING) FROM a", "unsupported"),
        ("SELECT sum(k) OVER (ORDER BY k RANGE 0.5 PRECEDING) FROM a", "type-mismatch"),
        ("SELECT sum(k) OVER (ORDER BY k ROWS 0.5 PRECEDING) FROM a", "unsupported"),
        ("SELECT row_number() IGNORE NULLS OVER (ORDER BY k) FROM a", "unsupported"),
        ("SELECT sum(k) IGNORE NULLS OVER (ORDER BY k) FROM a", "unsupported"),
        ("SELECT nth_value(k, 0) OVER (ORDER BY k) FROM a", "unsupported"),
        ("SELECT ntile(0) OVER (ORDER BY k) FROM a", "unsupported"),
        ("SELECT sum(DISTINCT k, x) OVER (ORDER BY k) FROM a", "unsupported"),
        ("SELECT k FROM a QUALIFY k", "type-mismatch"),
        ("SELECT * EXCEPT (z) FROM a", "unknown-column"),
        ("SELECT * EXCEPT (b.k) FROM a", "unknown-column"),
        ("SELECT * REPLACE (1 AS z) FROM a", "unknown-column"),
        ("SELECT * EXCEPT (k, x, y) FROM a", "unsupported"),
        ("SELECT count(* EXCEPT (k)) FROM a", "unsupported"),
        ("SELECT sum(DISTINCT k, x) FROM a", "unsupported"),
    ],
)  # fmt: skip
def test_refused(text: str, code: str) -> None:
    db = harken.connect()
    db.sql("CREATE TABLE a (k INT, x INT, y INT); CREATE TABLE b (k INT, y INT)")
    with pytest.raises(harken.HarkenError) as caught:
        db.sql(text)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("CASE WHEN x > 1 THEN x WHEN y = 2 THEN sum(y) OVER (ORDER BY x) END", [2, 2, 3]),
        ("CASE x WHEN 1 THEN y WHEN 2 THEN sum(y) OVER (ORDER BY x) ELSE 7 END", [2, 5, 7]),
        ("CASE WHEN sum(y) OVER () > 3 THEN x WHEN x = 2 THEN 5 END", [1, 2, 3]),
    ],
)
def test_some_branches_of_a_case_have_windows_and_some_have_none(
    query: str, rows: list[int]
) -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE c (x INT, y INT); INSERT INTO c VALUES (1, 2), (2, 3), (3, NULL)")
        assert sorted(row[0] for row in db.sql(f"SELECT {query} FROM c").rows) == rows
