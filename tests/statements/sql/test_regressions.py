"""Bugs that random scripts (`tests/laws/test_sql.py`) have found: a case for each, in SQL."""

from __future__ import annotations

from typing import Any

import pytest

import harken
from harken import TypeFault
from tests.harness.watched import Watched

STRATEGIES = ("incremental", "naive", "adaptive")
TWO = "CREATE TABLE a (k INT, x INT); CREATE TABLE b (k INT, y INT)"

# title: schema, query, transactions, each with the rows of the view after it
CASES: dict[str, tuple[str, str, list[tuple[str, list[Any]]]]] = {
    "groups that need a value from outside, in the old state": (
        TWO,
        "SELECT a.x FROM a WHERE EXISTS "
        "(SELECT max(c.y) FROM b AS c JOIN b AS d ON true WHERE a.k >= d.k GROUP BY d.y)",
        [
            ("INSERT INTO a VALUES (2, 7)", []),
            ("INSERT INTO b VALUES (1, 1)", [(7,)]),
            ("UPDATE b SET k = 3", []),
            ("UPDATE a SET k = 4", [(7,)]),
        ],
    ),
    "groups that need a value from outside, beside what changed": (
        TWO,
        "SELECT a.x FROM a WHERE NOT EXISTS (SELECT count(*) FROM b WHERE a.x = a.x "
        "GROUP BY b.y HAVING EXISTS (SELECT 1 FROM a AS c WHERE c.k = a.x))",
        [
            ("INSERT INTO a VALUES (1, 1), (1, 2), (1, NULL)", [(1,), (2,), (None,)]),
            ("INSERT INTO b VALUES (1, 1)", [(2,), (None,)]),
            ("INSERT INTO a VALUES (2, 3)", [(3,), (None,)]),
            ("DELETE FROM a WHERE k = 1", [(3,)]),
            ("DELETE FROM b; INSERT INTO a VALUES (3, 3)", [(3,), (3,)]),
        ],
    ),
    "a count of rows of which nothing is asked but that they are there": (
        TWO,
        "SELECT a.x FROM a WHERE (SELECT count(*) FROM a AS c ANTI JOIN b ON true) <> a.k",
        [
            ("INSERT INTO a VALUES (1, 5)", []),
            ("INSERT INTO b VALUES (1, 1)", [(5,)]),
            ("INSERT INTO a VALUES (0, 6)", [(5,)]),
            ("DELETE FROM b", [(5,), (6,)]),
        ],
    ),
    "a difference that is NULL": (
        "CREATE TABLE a (k INT NOT NULL, x INT NOT NULL); CREATE TABLE b (k INT NOT NULL, y INT)",
        "SELECT a.k FROM a WHERE a.x NOT IN "
        "(SELECT a.k - d.k FROM b AS c FULL JOIN b AS d ON c.y >= d.y)",
        [
            ("INSERT INTO a VALUES (1, 2), (4, 1)", [(1,), (4,)]),
            ("INSERT INTO b VALUES (3, -1)", [(1,)]),
            ("UPDATE b SET y = NULL", []),
            ("UPDATE b SET y = 0, k = 2", [(1,), (4,)]),
            ("DELETE FROM b", [(1,), (4,)]),
        ],
    ),
    "numbered rows of which totals are kept": (
        "CREATE TABLE a (k INT NOT NULL, x INT)",
        "SELECT DISTINCT c.s FROM (SELECT k, count(*) OVER () AS n, "
        "last_value(k) OVER (ORDER BY k) AS s FROM a WHERE x > 0) AS c JOIN a ON c.k = a.k",
        [
            ("INSERT INTO a VALUES (1, 1), (2, 1), (3, 0)", [(1,), (2,)]),
            ("UPDATE a SET x = 1 - x WHERE k > 1", [(1,), (3,)]),
            ("INSERT INTO a VALUES (4, 1), (4, 2)", [(1,), (3,), (4,)]),
            ("DELETE FROM a WHERE k = 3", [(1,), (4,)]),
        ],
    ),
    "a NULL in a column that is compared with one that has none": (
        "CREATE TABLE a (k INT NOT NULL, x INT); CREATE TABLE b (k INT NOT NULL, y INT)",
        "SELECT b.k, c.x FROM a AS c ANTI JOIN b AS d ON c.k = d.k RIGHT JOIN b ON c.x = b.k",
        [
            ("INSERT INTO a VALUES (1, NULL), (2, 5)", []),
            ("INSERT INTO b VALUES (5, 0), (6, 0)", [(5, 5), (6, None)]),
            ("UPDATE a SET x = NULL; INSERT INTO a VALUES (3, 6)", [(5, None), (6, 6)]),
            ("DELETE FROM a WHERE x IS NULL", [(5, None), (6, 6)]),
        ],
    ),
    "totals joined with themselves by what is computed from their groups": (
        "CREATE TABLE a (k INT NOT NULL, g INT NOT NULL); CREATE TABLE b (x INT, y INT)",
        "WITH w AS (SELECT g * -1 AS h, year(max(DATE '2024-02-28' - 1)) AS y, "
        "sum(DISTINCT coalesce(0, k)) AS s FROM a GROUP BY g) "
        "SELECT b.x, (SELECT count(*) FROM w LEFT JOIN w AS v ON w.s = v.h WHERE b.y = b.y) AS n "
        "FROM b",
        [
            ("INSERT INTO b VALUES (1, 1), (2, NULL)", [(1, 0), (2, 0)]),
            ("INSERT INTO a VALUES (1, 2), (2, 2), (3, 0)", [(1, 2), (2, 0)]),
            ("DELETE FROM a WHERE g = 2; INSERT INTO a VALUES (3, -1)", [(1, 2), (2, 0)]),
            ("DELETE FROM a", [(1, 0), (2, 0)]),
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


def test_a_name_that_both_sides_of_a_semi_join_have_is_ambiguous() -> None:
    """It was taken for the column on the right."""
    with pytest.raises(TypeFault, match="the column k is in a and in b"):
        Watched(TWO, {"v": "SELECT a.x FROM a LEFT SEMI JOIN b ON k = 1"})


def test_a_table_is_not_taken_for_one_that_differs_in_not_null() -> None:
    """Rows with a NULL were not deleted where another database had the table with NOT NULL."""
    Watched("CREATE TABLE a (x INT NOT NULL)", {"v": "SELECT x FROM a"}).run(
        "INSERT INTO a VALUES (1); DELETE FROM a"
    )
    watched = Watched("CREATE TABLE a (x INT)", {"v": "SELECT x FROM a"})
    watched.run("INSERT INTO a VALUES (1), (NULL)")
    watched.run("DELETE FROM a")
    assert not watched.held["v"]


@pytest.mark.parametrize("name", ["a(b", "a(b)", "f(x)(y", "(", "a.b", "a b"])
def test_a_table_may_have_any_name(name: str) -> None:
    """A parenthesis had been taken for the end of the name."""
    with harken.connect() as db:
        db.sql(f"CREATE TABLE `{name}` (n DECIMAL(10, 2) PRIMARY KEY, m INT)")
        db.sql(f"CREATE VIEW v AS SELECT n FROM `{name}` WHERE m > 1")
        with db.monitor(name) as rows, db.monitor("v") as view:
            db.sql(f"INSERT INTO `{name}` VALUES (1.50, 2)")
            assert len(rows.changes()) == len(view.changes()) == 1
        assert db.describe(name).name == name
        assert db.readers_of(name) == ["the view v"]
        assert "v" in str(db.explain("v"))
