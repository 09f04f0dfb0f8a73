"""DESIGN.md lists bugs that incremental engines have shipped: a case for each, in SQL."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.harness.watched import Watched

STRATEGIES = ("incremental", "naive", "adaptive")
TWO = "CREATE TABLE a (k INT, x INT); CREATE TABLE b (k INT, y INT)"
KEYED = "CREATE TABLE a (k INT PRIMARY KEY, x INT)"

# title: schema, query, transactions, each with the rows of the view after it
CASES: dict[str, tuple[str, str, list[tuple[str, list[Any]]]]] = {
    "NULL in a join column joins nothing": (
        TWO,
        "SELECT a.x, b.y FROM a JOIN b ON a.k = b.k",
        [
            ("INSERT INTO a VALUES (NULL, 1), (1, 2); INSERT INTO b VALUES (NULL, 3)", []),
            ("INSERT INTO b VALUES (1, 4)", [(2, 4)]),
            ("UPDATE a SET k = NULL", []),
            ("UPDATE a SET k = 1 WHERE x = 1", [(1, 4)]),
        ],
    ),
    "NULL in a group column is a group": (
        TWO,
        "SELECT k, count(*) AS n, sum(x) AS s FROM a GROUP BY k",
        [
            (
                "INSERT INTO a VALUES (NULL, 1), (NULL, NULL), (1, NULL)",
                [(None, 2, 1), (1, 1, None)],
            ),
            ("DELETE FROM a WHERE x = 1", [(None, 1, None), (1, 1, None)]),
            ("DELETE FROM a WHERE k IS NULL", [(1, 1, None)]),
        ],
    ),
    "one of several copies goes": (
        TWO,
        "SELECT a.k, b.y FROM a, b WHERE a.k = b.k",
        [
            (
                "INSERT INTO a VALUES (1, 1), (1, 1), (1, 2); INSERT INTO b VALUES (1, 7), (1, 7)",
                [(1, 7)] * 6,
            ),
            ("UPDATE a SET k = 2 WHERE x = 2", [(1, 7)] * 4),
            ("DELETE FROM b; INSERT INTO b VALUES (1, 7)", [(1, 7)] * 2),
        ],
    ),
    "a self-join": (
        TWO,
        "SELECT l.x, r.x AS other FROM a AS l JOIN a AS r ON l.k = r.k AND l.x < r.x",
        [
            ("INSERT INTO a VALUES (1, 1), (1, 2), (1, 3)", [(1, 2), (1, 3), (2, 3)]),
            ("DELETE FROM a WHERE x = 2; INSERT INTO a VALUES (1, 0)", [(0, 1), (0, 3), (1, 3)]),
        ],
    ),
    "three inputs of a join change in one transaction": (
        f"{TWO}; CREATE TABLE c (k INT, z INT)",
        "SELECT x, y, z FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k",
        [
            (
                "INSERT INTO a VALUES (1, 1); INSERT INTO b VALUES (1, 2); "
                "INSERT INTO c VALUES (1, 3)",
                [(1, 2, 3)],
            ),
            (
                "UPDATE a SET x = 10; UPDATE b SET y = 20; UPDATE c SET z = 30",
                [(10, 20, 30)],
            ),
            ("DELETE FROM a; DELETE FROM b; DELETE FROM c", []),
        ],
    ),
    "inserted and deleted in one transaction": (
        TWO,
        "SELECT count(*) AS n FROM a",
        [
            ("INSERT INTO a VALUES (1, 1); DELETE FROM a", [(0,)]),
            ("INSERT INTO a VALUES (1, 1)", [(1,)]),
            ("DELETE FROM a; INSERT INTO a VALUES (1, 1)", [(1,)]),
        ],
    ),
    "a group is emptied and refilled": (
        TWO,
        "SELECT k, sum(x) AS s FROM a GROUP BY k HAVING sum(x) > 2",
        [
            ("INSERT INTO a VALUES (1, 3), (2, 1)", [(1, 3)]),
            ("DELETE FROM a WHERE k = 1", []),
            ("INSERT INTO a VALUES (1, 5), (2, 2)", [(1, 5), (2, 3)]),
            ("DELETE FROM a; INSERT INTO a VALUES (1, 5)", [(1, 5)]),
        ],
    ),
    "an aggregate over nothing": (
        TWO,
        "SELECT count(*) AS n, count(x) AS c, sum(x) AS s, min(x) AS l, avg(x) AS m FROM a",
        [
            ("INSERT INTO b VALUES (1, 1)", [(0, 0, None, None, None)]),
            ("INSERT INTO a VALUES (1, NULL)", [(1, 0, None, None, None)]),
            ("INSERT INTO a VALUES (1, 4)", [(2, 1, 4, 4, 4.0)]),
            ("DELETE FROM a", [(0, 0, None, None, None)]),
        ],
    ),
    "the extreme row goes": (
        TWO,
        "SELECT k, min(x) AS l, max(x) AS m FROM a GROUP BY k",
        [
            ("INSERT INTO a VALUES (1, 1), (1, 5), (1, 9), (1, NULL)", [(1, 1, 9)]),
            ("DELETE FROM a WHERE x = 9", [(1, 1, 5)]),
            ("DELETE FROM a WHERE x < 6", [(1, None, None)]),
        ],
    ),
    "sums do not drift": (
        "CREATE TABLE a (k INT, x DOUBLE); CREATE TABLE d (x DECIMAL(9, 2))",
        "SELECT sum(a.x) AS s, (SELECT sum(x) FROM d) AS e FROM a",
        [
            (
                "INSERT INTO a VALUES (1, 0.5), (1, 1e16); INSERT INTO d VALUES (0.10), (0.20)",
                [(1e16, Decimal("0.30"))],
            ),
            ("DELETE FROM a WHERE x > 1; DELETE FROM d WHERE x = 0.1", [(0.5, Decimal("0.20"))]),
        ],
    ),
    "count distinct": (
        TWO,
        "SELECT k, count(DISTINCT x) AS n, sum(DISTINCT x) AS s FROM a GROUP BY k",
        [
            ("INSERT INTO a VALUES (1, 1), (1, 1), (1, 2), (1, NULL)", [(1, 2, 3)]),
            ("DELETE FROM a WHERE x = 2", [(1, 1, 1)]),
            ("DELETE FROM a WHERE x = 1", [(1, 0, None)]),
        ],
    ),
    "the match of an outer join appears and disappears": (
        TWO,
        "SELECT a.x, b.y FROM a FULL JOIN b ON a.k = b.k",
        [
            ("INSERT INTO a VALUES (1, 1), (1, 1)", [(1, None)] * 2),
            ("INSERT INTO b VALUES (1, 5), (2, 6)", [(1, 5), (1, 5), (None, 6)]),
            ("DELETE FROM b WHERE k = 1; INSERT INTO a VALUES (2, 2)", [(1, None)] * 2 + [(2, 6)]),
            ("DELETE FROM a", [(None, 6)]),
        ],
    ),
    "a row leaves the top": (
        TWO,
        "SELECT k, x FROM a ORDER BY x DESC LIMIT 2",
        [
            ("INSERT INTO a VALUES (1, 5), (2, 7), (3, 6), (4, NULL)", [(2, 7), (3, 6)]),
            ("DELETE FROM a WHERE k = 2", [(1, 5), (3, 6)]),
            ("INSERT INTO a VALUES (5, 9), (5, 9), (5, 9)", [(5, 9), (5, 9)]),
            ("DELETE FROM a WHERE x > 5", [(1, 5), (4, None)]),
        ],
    ),
    "a correlated subquery": (
        TWO,
        "SELECT a.k, (SELECT max(y) FROM b WHERE b.k = a.k AND b.y > a.x) AS m FROM a",
        [
            ("INSERT INTO a VALUES (1, 2), (NULL, 0); INSERT INTO b VALUES (1, 1)",
             [(1, None), (None, None)]),
            ("INSERT INTO b VALUES (1, 5), (1, 3), (NULL, 9)", [(1, 5), (None, None)]),
            ("UPDATE a SET x = 4; DELETE FROM b WHERE y = 5", [(1, None), (None, None)]),
        ],
    ),
    "NOT EXISTS": (
        TWO,
        "SELECT x FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
        [
            ("INSERT INTO a VALUES (1, 1), (NULL, 2)", [(1,), (2,)]),
            ("INSERT INTO b VALUES (1, 1), (1, 1), (NULL, 1)", [(2,)]),
            ("DELETE FROM b WHERE k = 1", [(1,), (2,)]),
        ],
    ),
    "NOT IN, with NULLs": (
        TWO,
        "SELECT x FROM a WHERE k NOT IN (SELECT k FROM b)",
        [
            ("INSERT INTO a VALUES (1, 1), (NULL, 2), (3, 3)", [(1,), (2,), (3,)]),
            ("INSERT INTO b VALUES (1, 1)", [(3,)]),
            ("INSERT INTO b VALUES (NULL, 1)", []),
            ("DELETE FROM b WHERE k IS NULL", [(3,)]),
            ("DELETE FROM b", [(1,), (2,), (3,)]),
        ],
    ),
    "a row deleted and put back": (
        KEYED,
        "SELECT DISTINCT x FROM a",
        [
            ("INSERT INTO a VALUES (1, 1), (2, 1)", [(1,)]),
            ("DELETE FROM a WHERE k = 1", [(1,)]),
            ("INSERT INTO a VALUES (1, 1); DELETE FROM a WHERE k = 2", [(1,)]),
            ("DELETE FROM a; INSERT INTO a VALUES (2, NULL)", [(None,)]),
        ],
    ),
    "a change larger than the table": (
        KEYED,
        "SELECT x, count(*) AS n FROM a GROUP BY x",
        [
            ("INSERT INTO a VALUES (1, 1)", [(1, 1)]),
            (
                f"INSERT INTO a VALUES {', '.join(f'({k}, {k % 2})' for k in range(2, 300))}",
                [(0, 149), (1, 150)],
            ),
            ("DELETE FROM a WHERE k > 1", [(1, 1)]),
        ],
    ),
    "the same row from two branches": (
        TWO,
        "SELECT k FROM a UNION SELECT k FROM b",
        [
            ("INSERT INTO a VALUES (1, 1); INSERT INTO b VALUES (1, 1)", [(1,)]),
            ("DELETE FROM a", [(1,)]),
            ("DELETE FROM b; INSERT INTO a VALUES (NULL, 1)", [(None,)]),
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


def test_a_transfer_is_seen_as_a_whole_or_not_at_all() -> None:
    """The bank: transfers between accounts never change the sum."""
    watched = Watched(
        "CREATE TABLE account (id INT PRIMARY KEY, balance DECIMAL(12, 2) NOT NULL)",
        {"whole": "SELECT sum(balance) AS total, count(*) AS n FROM account"},
    )
    accounts = ", ".join(f"({number}, 100)" for number in range(20))
    watched.run(f"INSERT INTO account VALUES {accounts}")
    for number in range(20):
        change = watched.run(
            f"UPDATE account SET balance = balance - 12.34 WHERE id = {number}; "
            f"UPDATE account SET balance = balance + 12.34 WHERE id = {(number * 7 + 1) % 20}"
        )
        assert change == {"whole": ({}, {})}
    assert watched.held["whole"] == {(Decimal("2000.00"), 20): 1}
