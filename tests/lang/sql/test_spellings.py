"""What can be said in several ways: each with the rows that it gives."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

import harken
from tests.harness.watched import Watched

SCHEMA = """
CREATE TABLE t (a INT, b INT, c STRING);
CREATE TABLE u (a INT, f BOOLEAN);
"""
FILL = """
INSERT INTO t VALUES (3, 1, 'x'), (1, 2, 'y'), (2, 2, 'z'), (NULL, 1, 'x');
INSERT INTO u VALUES (1, true), (3, NULL), (3, false)
"""

# title: query, its rows
CASES: dict[str, tuple[str, list[Any]]] = {
    "NULL is of the type of the other side of a UNION": (
        "SELECT a, NULL AS s FROM u UNION ALL SELECT NULL, c FROM t WHERE b = 2 "
        "UNION ALL SELECT NULL, NULL",
        [(1, None), (3, None), (3, None), (None, "y"), (None, "z"), (None, None)],
    ),
    "counting rows without NULL, and rows that differ": (
        "SELECT count(a, c) AS n, count(t.*) AS m, count(DISTINCT *) AS d, "
        "count(DISTINCT t.*) FILTER (WHERE b = 1) AS e FROM t",
        [(3, 3, 3, 1)],
    ),
    "rolled up by a condition": (
        "SELECT b, count(*) AS n, grouping__id AS g FROM t GROUP BY ROLLUP (b, a > 1) "
        "HAVING grouping__id > 0",
        [(1, 2, 1), (2, 2, 1), (None, 4, 3)],
    ),
    "sorted in partitions, of which there is one": (
        "SELECT a FROM t WHERE b = 2 DISTRIBUTE BY a SORT BY a DESC",
        [(2,), (1,)],
    ),
    "units in any spelling": (
        "SELECT trunc(DATE '2024-05-30', 'month') = DATE '2024-05-01' AS a, "
        "trunc(DATE '2024-05-30', 'Quarter') = DATE '2024-04-01' AS b, "
        "date_trunc('mon', DATE '2024-05-30') = DATE '2024-05-01' AS c",
        [(True, True, True)],
    ),
    "clustered, and with a hint to the optimiser": (
        "SELECT /*+ BROADCAST(t), COALESCE(1) */ a FROM t WHERE b = 2 CLUSTER BY a",
        [(1,), (2,)],
    ),
    "the first rows by a number that is cast": (
        "SELECT a FROM t ORDER BY a DESC LIMIT CAST(2 AS INT)",
        [(3,), (2,)],
    ),
    "whole numbers from a range": (
        "SELECT r.id, count(t.a) AS n FROM range(1, 6, 2) AS r LEFT JOIN t ON t.a = r.id "
        "GROUP BY r.id UNION ALL SELECT x, NULL FROM range(2, 0, -1) AS s(x) "
        "UNION ALL SELECT id, 0 FROM range(0)",
        [(1, 1), (3, 1), (5, 0), (2, None), (1, None)],
    ),
    "a text and a number in one column": (
        "SELECT a FROM u UNION ALL SELECT '4' EXCEPT SELECT concat(a, '') FROM u WHERE f",
        [(3,), (4,)],
    ),
    "a text and a decimal in one column": (
        "SELECT 0.5 AS n UNION SELECT concat(a, '.5') FROM u",
        [(0.5,), (1.5,), (3.5,)],
    ),
    "a date and a text, a date and a timestamp": (
        "SELECT DATE '2020-01-01' AS d UNION SELECT '2020-1-1' "
        "EXCEPT SELECT TIMESTAMP '2020-01-01 00:00:01'",
        [(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),)],
    ),
    "sums of texts": ("SELECT sum(concat(a, '')) AS s, avg('2') AS m FROM u", [(7.0, 2.0)]),
    "NULL on both sides, and then a number": (
        "SELECT NULL AS n UNION SELECT NULL UNION SELECT 1",
        [(None,), (1,)],
    ),
    "rows that are not in a list of NULLs": (
        "SELECT a FROM t EXCEPT SELECT NULL",
        [(1,), (2,), (3,)],
    ),
    "the text in a select list is not the name of a column to order by": (
        "SELECT n FROM (SELECT upper('a'), a AS n FROM t ORDER BY a DESC LIMIT 1) AS q",
        [(3,)],
    ),
    "ordered by a text that is called like a column": (
        "SELECT n FROM (SELECT 'a', a AS n FROM t ORDER BY a DESC LIMIT 1) AS q",
        [(3,)],
    ),
    "ordered by a name beside a star": (
        "SELECT *, a * 10 AS z FROM t ORDER BY z DESC LIMIT 1",
        [(3, 1, "x", 30)],
    ),
    "different rows, all columns, in order": (
        "SELECT DISTINCT * FROM t ORDER BY t.a DESC, c LIMIT 2",
        [(3, 1, "x"), (2, 2, "z")],
    ),
    "different rows in the order of an expression of theirs": (
        "SELECT DISTINCT b AS n FROM t ORDER BY -n LIMIT 1",
        [(2,)],
    ),
    "a union in the order of an expression": (
        "SELECT a FROM t UNION SELECT 9 ORDER BY a % 3 DESC, a LIMIT 2",
        [(2,), (1,)],
    ),
    "FETCH FIRST": ("SELECT a FROM t ORDER BY a DESC OFFSET 1 ROW FETCH NEXT ROW ONLY", [(2,)]),
    "LIMIT ALL": ("SELECT b FROM t WHERE a > 1 LIMIT ALL", [(1,), (2,)]),
    "a window with a name": (
        "SELECT a, rank() OVER w AS r, sum(a) OVER (w ROWS UNBOUNDED PRECEDING) AS s FROM t "
        "WINDOW w AS (p ORDER BY a DESC), p AS (PARTITION BY b)",
        [(3, 1, 3), (None, 2, 3), (2, 1, 2), (1, 2, 3)],
    ),
    "a window in a subquery of the select list": (
        "SELECT a, (SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY a) AS r FROM u) AS q) "
        "AS m, a IN (SELECT rank() OVER (ORDER BY a) FROM u) AS i FROM t WHERE b = 2",
        [(1, 3, True), (2, 3, True)],
    ),
    "the value of a window among those of a query": (
        "SELECT a, rank() OVER (ORDER BY a DESC) IN (SELECT a FROM u) AS i FROM t",
        [(3, True), (2, False), (1, True), (None, False)],
    ),
    "groups by number and name below a window": (
        "SELECT 'n' AS k, count(*) AS n, b + 1 AS z, rank() OVER (ORDER BY sum(a)) AS r FROM t "
        "GROUP BY 1, z HAVING z > 0 AND n > 1",
        [("n", 2, 2, 1), ("n", 2, 3, 1)],
    ),
    "RESPECT NULLS": (
        "SELECT first_value(a) RESPECT NULLS OVER (ORDER BY a) AS v FROM t WHERE b = 1",
        [(None,), (None,)],
    ),
    "GROUP BY ALL": ("SELECT b, count(*) AS n FROM t GROUP BY ALL", [(1, 2), (2, 2)]),
    "GROUP BY nothing": ("SELECT count(*) AS n FROM t WHERE a > 9 GROUP BY ()", [(0,)]),
    "GROUP BY of several in parentheses": (
        "SELECT b, c, count(*) AS n FROM t GROUP BY (b, c)",
        [(1, "x", 2), (2, "y", 1), (2, "z", 1)],
    ),
    "ROLLUP": (
        "SELECT b, c, count(*) AS n, grouping_id(b, c) AS g FROM t GROUP BY ROLLUP (b, c)",
        [
            *((1, "x", 2, 0), (2, "y", 1, 0), (2, "z", 1, 0)),
            *((1, None, 2, 1), (2, None, 2, 1), (None, None, 4, 3)),
        ],
    ),
    "CUBE, with a key that is NULL": (
        "SELECT a, grouping(a) AS g, count(*) AS n FROM t WHERE b = 1 GROUP BY CUBE (a)",
        [(3, 0, 1), (None, 0, 1), (None, 1, 2)],
    ),
    "GROUPING SETS, one of them twice, with DISTINCT, FILTER and HAVING": (
        "SELECT b, c, count(DISTINCT a) AS d, sum(b) FILTER (WHERE a > 1) AS s FROM t "
        "GROUP BY GROUPING SETS ((b), (c), (b)) HAVING count(*) > 1",
        [(1, None, 1, 1), (1, None, 1, 1), (2, None, 2, 2), (2, None, 2, 2), (None, "x", 1, 1)],
    ),
    "GROUP BY WITH ROLLUP, below a window": (
        "SELECT b, sum(a) AS s, rank() OVER (PARTITION BY grouping(b) ORDER BY sum(a)) AS r "
        "FROM t GROUP BY 1 WITH ROLLUP",
        [(1, 3, 1), (2, 3, 1), (None, 6, 1)],
    ),
    "every, some, any and count_if": (
        "SELECT every(f) AS e, some(f) AS s, any(f) AS y, count_if(f IS NULL) AS n FROM u",
        [(False, True, True, 1)],
    ),
    "conditions inside of those that are rewritten": (
        "SELECT a FROM u WHERE a = ANY (SELECT a FROM t WHERE (a, b) IN ((3, 1), (9, 9)))",
        [(3,), (3,)],
    ),
    "NOT LIKE ANY, where one pattern does not fit, and NOT of LIKE ANY": (
        "SELECT c NOT LIKE ANY ('x', '_') AS n, NOT c LIKE ANY ('x', 'y') AS m, "
        "c NOT LIKE ALL ('x', 'y') AS o, c ILIKE ANY ('X', 'Y') AS i FROM t WHERE a IS NOT NULL",
        [(False, False, False, True), (True, False, False, True), (True, True, True, False)],
    ),
    "the rest of a division of doubles, and whole quotients of decimals": (
        "SELECT (a + 0.5e0) % 2 AS r, (a * -1.5) DIV 2 AS q, 1 + DATE '2024-02-28' AS d FROM t "
        "WHERE b = 1",
        [
            (1.5, -2, datetime.date(2024, 2, 29)),
            (None, None, datetime.date(2024, 2, 29)),
        ],
    ),
    "aggregates of the groups around, in a subquery": (
        "SELECT b, (SELECT count(*) FROM u WHERE u.a < sum(t.a)) AS n FROM t GROUP BY b "
        "HAVING EXISTS (SELECT 1 FROM u WHERE u.a = count(t.a))",
        [(1, 1)],
    ),
    "numbers joined as texts": (
        "SELECT string_agg(b, '+' ORDER BY a DESC) AS s FROM t",
        [("1+2+2+1",)],
    ),
    "a union by the names of columns": (
        "SELECT a, f FROM u WHERE a = 1 UNION ALL BY NAME SELECT c, a FROM t WHERE b = 2",
        [(1, True, None), (1, None, "y"), (2, None, "z")],
    ),
    "the first row of each": (
        "SELECT DISTINCT ON (b) b AS g, a, c FROM t ORDER BY g, a DESC",
        [(1, 3, "x"), (2, 2, "z")],
    ),
    "the first row of each, by places and new names": (
        "SELECT DISTINCT ON (1) b, -a AS a, c FROM t WHERE a > 0 ORDER BY 1, a",
        [(1, -3, "x"), (2, -2, "z")],
    ),
    "the first group of each": (
        "SELECT DISTINCT ON (c > 'x') c, sum(b) AS s FROM t GROUP BY c ORDER BY s DESC, c",
        [("x", 2), ("y", 2)],
    ),
    "a window by names of the select list": (
        "SELECT b % 2 AS odd, sum(a) AS s FROM t GROUP BY b "
        "QUALIFY rank() OVER (PARTITION BY odd ORDER BY s DESC) = 1 AND s > 0",
        [(1, 3), (0, 3)],
    ),
    "rows that are written out, and a schema": (
        f"SELECT n, default.t.c FROM spark_catalog.default.t "
        f"JOIN VALUES {', '.join(f'({i}, {i - 1})' for i in range(900))} AS v(n, m) ON m = t.a",
        [(4, "x"), (2, "y"), (3, "z")],
    ),
    "WITH ... AS MATERIALIZED": (
        "WITH q AS MATERIALIZED (SELECT a FROM u) SELECT max(a) AS m FROM q",
        [(3,)],
    ),
}


@pytest.mark.parametrize("title", CASES)
def test_each(title: str) -> None:
    query, rows = CASES[title]
    watched = Watched(SCHEMA, {"v": query}, "incremental")
    watched.run(FILL)
    assert sorted(watched.rows("v").elements(), key=repr) == sorted(rows, key=repr)
    assert sorted(watched.db.sql(query).rows, key=repr) == sorted(rows, key=repr)
    watched.run("DELETE FROM t WHERE b = 1; INSERT INTO u VALUES (2, false)")
    watched.run("UPDATE t SET a = a + 1; DELETE FROM u")


def test_rollup_of_no_rows_has_no_groups() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (a INT)")
    assert db.sql("SELECT a, count(*) FROM t GROUP BY ROLLUP (a)").rows == []


def test_grouping_takes_what_is_grouped_by() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (a INT, b INT)")
    for text in ("grouping(b)) FROM t GROUP BY ROLLUP (a)", "grouping(a)) FROM t GROUP BY a"):
        with pytest.raises(harken.TypeFault) as caught:
            db.sql(f"SELECT ({text}")
        assert caught.value.code == "ungrouped"


def test_columns_of_functions_are_called_as_they_are_written() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (a INT)")
    found = db.sql("SELECT count(*), count(1), max('x'), -1, a, 5 FROM t GROUP BY a")
    assert found.columns == ("count(*)", "count(1)", "max('x')", "-1", "a", "5")


def test_columns_of_aggregates_of_groups_are_called_so_too() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (a INT)")
    assert db.sql("SELECT percentile(a, 0.5) FROM t").columns == ("percentile(a, 0.5)",)
    assert db.sql("SELECT median(a) FROM t").columns == ("median(a)",)


def test_ties_are_refused() -> None:
    db = harken.connect()
    with pytest.raises(harken.LanguageError):
        db.sql("SELECT 1 AS a ORDER BY a FETCH FIRST 1 ROW WITH TIES")


def test_a_column_may_be_called_table() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (table INT, date DATE); INSERT INTO t (table) VALUES (1)")
        assert db.sql("SELECT table FROM (TABLE t) AS x")[-1].rows == [(1,)]


def test_a_function_that_is_not_known_is_not_another_one() -> None:
    """sqlglot writes to_char as a CAST, and Harken had kept the plan of the one for the other."""
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
        assert db.sql("SELECT CAST(a AS STRING) FROM t").rows == [("1",)]
        for text in ("t", "t GROUP BY CAST(a AS STRING)"):
            with pytest.raises(harken.LanguageError):
                db.sql(f"SELECT to_char(a, '999') FROM {text}")
