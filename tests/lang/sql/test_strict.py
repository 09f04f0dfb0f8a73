"""What sqlglot reads and SQL does not allow is refused, at the place that is wrong."""

from __future__ import annotations

import pytest

import harken
from harken.lang.sql.parser import statements

WRONG = {
    # the text, and the word that the error points to
    "SELECT * FROM t JOIN u USING ()": ")",
    "SELECT * FROM t JOIN u USING (t.a)": ".",
    "SELECT * FROM t JOIN u USING (a, a)": ")",
    "SELECT * FROM t JOIN u USING": "USING",
    "SELECT * FROM t JOIN u ON": "ON",
    "SELECT * FROM t NATURAL JOIN u ON t.a = u.a": None,
    "SELECT * FROM t NATURAL CROSS JOIN u": None,
    "SELECT a FROM t AS": "AS",
    "CREATE VIEW v SELECT a FROM t": "SELECT",
    "CREATE MATERIALIZED VIEW v SELECT a FROM t": "SELECT",
    "CREATE VIEW v (x) SELECT a FROM t": "SELECT",
    "CREATE VIEW v": "v",
    "CREATE VIEW v AS": "AS",
    "UPDATE t": "t",
    "UPDATE t SET": "SET",
    "UPDATE t SET WHERE a = 1": "1",
    "UPDATE t SET a": "a",
    "UPDATE t SET a = 1,": ",",
    "SELECT a, FROM t": ",",
    "SELECT , a FROM t": ",",
    "SELECT a,, b FROM t": ",",
    "SELECT a FROM t,": ",",
    "SELECT a FROM t, WHERE a = 1": ",",
    "SELECT a FROM t ORDER BY a,": ",",
    "SELECT a FROM t GROUP BY a,": ",",
    "SELECT concat('a',)": ",",
    "SELECT 1 IN (1,)": ",",
    "SELECT a FROM t WHERE a IN ()": ")",
    "SELECT a FROM t WHERE a IN": "IN",
    "CREATE TABLE z (a INT,)": ",",
    "CREATE TABLE z (a INT, UNIQUE ())": ")",
    "CREATE TABLE z (a INT NOT NULL NULL)": "NULL",
    "INSERT INTO t (a,) VALUES (1)": ",",
    "INSERT INTO t VALUES (1, 'x',)": ",",
    "INSERT INTO t VALUES (1, 'x') (2, 'y')": "(",
    "INSERT t VALUES (1, 'x')": "INSERT",
    "INSERT INTO t VALUES (1, 'x') ON CONFLICT": "CONFLICT",
    "INSERT INTO t VALUES (1, 'x') ON CONFLICT (a) DO UPDATE": "UPDATE",
    "INSERT INTO t VALUES (1, 'x') ON CONFLICT (a) DO UPDATE SET": "SET",
    "ALTER TABLE t DROP COLUMN": "COLUMN",
    "ALTER TABLE t RENAME x": "RENAME",
    "ALTER TABLE t ADD ADD COLUMN x INT": "ADD",
    "MERGE INTO t USING u ON t.a = u.a WHEN NOT MATCHED THEN INSERT": "INSERT",
    "MERGE INTO t USING u ON t.a = u.a WHEN NOT MATCHED THEN INSERT (a) VALUES": "VALUES",
    "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN UPDATE": "UPDATE",
    "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN UPDATE SET": "SET",
    "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN UPDATE *": None,
    "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED DELETE": None,
    "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED AND THEN DELETE": "AND",
    "MERGE INTO t USING u ON t.a = u.a WHEN THEN DELETE": "WHEN",
    "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN INSERT *": None,
    "MERGE t USING u ON t.a = u.a WHEN MATCHED THEN DELETE": "MERGE",
    "SELECT CASE WHEN a = 1 'one' END FROM t": "WHEN",
    "SELECT a FROM t WHERE a BETWEEN 1 2": "2",
    "SELECT a IS NOT NOT NULL FROM t": "NOT",
    "SELECT 1 IS 2": "2",
    "SELECT sum(a) FILTER (a > 0) FROM t": "(",
    "SELECT sum(a) OVER FROM t": "OVER",
    "SELECT sum(a) OVER (PARTITION BY) FROM t": None,
    "SELECT sum(a) OVER (ORDER BY a ROWS) FROM t": "ROWS",
    "SELECT sum(a) OVER (ORDER BY a ROWS BETWEEN) FROM t": "BETWEEN",
    "SELECT sum(a) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING) FROM t": "PRECEDING",
    "SELECT sum(a) OVER (ORDER BY a ROWS 1 PRECEDING AND CURRENT ROW) FROM t": "AND",
    "SELECT sum(a) OVER w FROM t WINDOW w (ORDER BY a)": "w",
    "SELECT sum(a) OVER w FROM t WINDOW w AS": "AS",
    "SELECT a FROM t ORDER BY a ASC DESC": "DESC",
    "SELECT a FROM t FETCH FIRST 1": "1",
    "SELECT substring(b FROM 1 FOR 2, a FROM t": "(",
    "SELECT substring(b FROM FOR 2) FROM t": "FOR",
    "SELECT * EXCEPT () FROM t": ")",
    "SELECT `` FROM t": "``",
    "SELECT a\0 FROM t": "a\0",
    "SELECT (a AS x) FROM t": None,
    "SELECT a:b FROM t": None,
    "BEGIN x": None,
    "ROLLBACK TO x": None,
}
RIGHT = (
    "SELECT 'from' FROM t",
    "SELECT a AS `from`, `from` FROM (SELECT a, a AS `from` FROM t)",
    "SELECT a `set`, 'set' FROM t",
    "SELECT rows, first, filter, end_ FROM (SELECT 1 AS rows, 2 AS first, 3 AS filter, 4 AS end_)",
    "SELECT rename FROM (SELECT 1 AS rename)",
    "CREATE TABLE z SELECT a FROM t",
    "CREATE VIEW v AS WITH x AS (SELECT 1 AS one) SELECT * FROM x",
    "CREATE VIEW v AS (SELECT a FROM t)",
    "SELECT CASE CASE a WHEN 1 THEN 2 END WHEN 2 THEN CASE WHEN true THEN 1 END ELSE 0 END FROM t",
    "SELECT a FROM t WHERE a BETWEEN CASE WHEN a = 1 THEN 1 ELSE 2 END AND (3)",
    "SELECT sum(a) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING) FROM t",
    "SELECT sum(a) OVER (ORDER BY a ROWS 1 PRECEDING) FROM t",
    "SELECT a FROM t FETCH NEXT ROW ONLY",
    "INSERT INTO t (a) (SELECT 7)",
    "SELECT * FROM (VALUES (1), (2)) AS x (one)",
    "SELECT count(*) FROM t, u",
    "BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE; COMMIT",
)


@pytest.fixture
def db() -> harken.Database:
    made = harken.connect()
    made.sql("CREATE TABLE t (a INT, b STRING); CREATE TABLE u (a INT, c STRING)")
    return made


@pytest.mark.parametrize("text", WRONG)
def test_refused(db: harken.Database, text: str) -> None:
    with pytest.raises(harken.LanguageError) as caught:
        db.sql(text)
    error = caught.value
    assert error.code in ("syntax", "unsupported")
    assert error.span is not None
    word = WRONG[text]
    if word is not None:
        assert text[error.span.start : error.span.end] == word


@pytest.mark.parametrize("text", RIGHT)
def test_taken(db: harken.Database, text: str) -> None:
    assert statements(text)
    db.sql(text)


def test_the_place_is_right_behind_other_statements_and_explain(db: harken.Database) -> None:
    for before in ("SELECT 1; ", "EXPLAIN ", "SELECT 1;\n EXPLAIN   "):
        text = f"{before}SELECT a FROM t WHERE a IN (1,)"
        with pytest.raises(harken.SyntaxFault) as caught:
            db.sql(text)
        assert caught.value.span is not None
        assert text[caught.value.span.start :] == ",)"


def test_unknown_is_about_conditions(db: harken.Database) -> None:
    db.sql("INSERT INTO t VALUES (1, 'x'), (NULL, NULL)")
    assert db.sql("SELECT a > 0 IS UNKNOWN FROM t ORDER BY a NULLS LAST").rows == [
        (False,),
        (True,),
    ]
    assert db.sql("SELECT b FROM t WHERE (a > 0) IS NOT UNKNOWN").rows == [("x",)]
    for text in ("SELECT 1 IS UNKNOWN", "SELECT a FROM t WHERE a IS NOT UNKNOWN"):
        with pytest.raises(harken.TypeFault):
            db.sql(text)
