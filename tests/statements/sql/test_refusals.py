"""What is not in Harken's SQL is refused: no part of a statement is ignored."""

from __future__ import annotations

import pytest

import harken

REFUSED = (
    "DELETE FROM t WHERE id > 2 LIMIT 1",
    "UPDATE t SET v = 1 LIMIT 1",
    "UPDATE t SET v = 1, v = 2",
    "SELECT * FROM t TABLESAMPLE (1 ROWS)",
    "SELECT * FROM t VERSION AS OF 1",
    "SELECT min(id, v) FROM t",
    "EXPLAIN DROP TABLE t",
    "EXPLAIN CREATE TABLE w (x INT)",
    "EXPLAIN ALTER TABLE t ADD COLUMN w INT",
    "SELECT group_concat(v) FROM t",
    "SELECT percentile(v, 0.5, id) FROM t",
    "SELECT nvl2(id, v) FROM t",
    "SELECT regexp_replace('abc', 'b', 'x', id) FROM t",
    "SELECT try_add(DATE '2020-01-01', 1)",
    "SELECT id FROM t LIMIT 1 - 2",
    "SELECT id FROM t LIMIT 1 + v",
    "SELECT * FROM other.t",
    "SELECT other.t.id FROM t",
    "SELECT DISTINCT ON (id) v FROM t QUALIFY row_number() OVER (ORDER BY id) = 1",
    "SELECT DISTINCT ON (1) * FROM t",
    "SELECT DISTINCT ON (2) id FROM t",
    "SELECT DISTINCT ON (id) v FROM t ORDER BY ALL",
    "SELECT trunc(DATE '2020-01-05', 'q')",
    "INSERT INTO t (id) BY NAME SELECT 9 AS id",
    "SELECT id FROM t FOR UPDATE",
    "SELECT id FROM t SORT BY id LIMIT 1",
    "CREATE OR REPLACE MATERIALIZED VIEW t AS SELECT 1 AS x",
    "CREATE OR REPLACE MATERIALIZED VIEW k AS SELECT id + 1 AS id FROM k",
    "CREATE OR REPLACE TABLE t AS SELECT id FROM t",
    "SELECT id FROM t GROUP BY id HAVING EXISTS (SELECT 1 FROM u WHERE u.id < max(id))",
    "SELECT 1e0+1",
    "SELECT a.id FROM t AS a ASOF JOIN u AS b ON a.id >= b.id",
    "WITH w AS (SELECT 1 AS x), w AS (SELECT 2 AS x) SELECT * FROM w",
    "CREATE TABLE p (a INT PRIMARY KEY, b INT PRIMARY KEY)",
    "SELECT id FROM t ORDER BY *",
    "SELECT sum(*) FROM t",
    "SELECT lag(*) OVER (ORDER BY id) FROM t",
    "UPDATE t SET v = *",
    "SELECT *",
    "SELECT uuid(3)",
    "SELECT lpad('a', 3, 'b', 'c')",
    "SELECT ltrim('b', 'ab', 'b')",
    "SELECT date_sub(DATE '2020-01-05', 1, 1)",
    "SELECT DATE('2020-01-01', '2021-01-01')",
    "SELECT max_by() FROM t",
    "SELECT mode(v, id) FROM t",
    "SELECT percentile(v) FROM t",
    "SELECT regexp_replace('a', 'b')",
    "SELECT j_s_o_n_object(1)",
    "SELECT rank(id) OVER (ORDER BY id) FROM t",
    "SELECT sum(v) OVER w FROM t",
    "SELECT sum(v) OVER w FROM t WINDOW w AS (PARTITION BY v), w AS (PARTITION BY id)",
    "SELECT sum(v) OVER (w PARTITION BY id) FROM t WINDOW w AS (PARTITION BY v)",
    "SELECT sum(v) OVER w FROM t WINDOW w AS (x), x AS (w)",
)


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE TABLE u (id INT)")
    db.sql("INSERT INTO t VALUES (1, 1), (2, NULL), (3, 3); INSERT INTO u VALUES (1), (9)")
    db.sql("CREATE MATERIALIZED VIEW k AS SELECT id FROM t")
    before = db.sql("SELECT * FROM t").rows
    with pytest.raises(harken.HarkenError) as caught:
        db.sql(text)
    assert caught.value.code in ("unsupported", "syntax", "exists")
    assert db.sql("SELECT * FROM t").rows == before


def test_the_least_integer_is_one() -> None:
    assert harken.connect().sql("SELECT -9223372036854775808").rows == [(-(2**63),)]


def test_explain_says_how_changes_are_found() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")

    def said(query: str) -> list[str]:
        lines = [line for (line,) in db.sql(f"EXPLAIN {query}").rows]
        return lines[lines.index("Its changes are found by:") + 1 :]

    assert said("SELECT v FROM t WHERE id > 1") == ["differentials of everything that changed"]
    assert any("sum" in line for line in said("SELECT v, sum(id) AS s FROM t GROUP BY v"))
    _, warning = said("SELECT current_timestamp() AS n FROM t")
    assert warning.startswith("Warning: it depends on now()")
    (again,) = said("SELECT v, rand() AS r FROM t")
    assert again.endswith("because rand is another one in each transaction")


def test_values_alone_and_null_over_nothing() -> None:
    db = harken.connect()
    assert sorted(db.sql("VALUES (1, 2), (3, 4)").rows) == [(1, 2), (3, 4)]
    db.sql("CREATE TABLE n (x INT); INSERT INTO n VALUES (NULL)")
    assert db.sql("SELECT x / 0, x % 0, x DIV 0 FROM n").rows == [(None, None, None)]
