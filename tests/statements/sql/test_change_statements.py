"""INSERT, UPDATE, DELETE and MERGE in their spellings, each with what it leaves in the table."""

from __future__ import annotations

from typing import Any

import pytest

import harken
from harken.statements.sql.change_statements import Changes

SCHEMA = """
CREATE TABLE t (k INT PRIMARY KEY, v INT DEFAULT 7, s STRING);
CREATE TABLE u (k INT, v INT);
INSERT INTO t VALUES (1, 10, 'a'), (2, 20, NULL);
INSERT INTO u VALUES (1, 100), (1, 100), (3, 300);
"""

# title: statement, the rows of t after it
CASES: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "WITH before INSERT hides a table": (
        "WITH u AS (SELECT 5 AS k, 6 AS v) INSERT INTO t (k, v) SELECT k, v FROM u",
        [(1, 10, "a"), (2, 20, None), (5, 6, None)],
    ),
    "WITH before UPDATE": (
        "WITH w AS (SELECT k FROM u) UPDATE t SET v = 0 WHERE k IN (SELECT k FROM w)",
        [(1, 0, "a"), (2, 20, None)],
    ),
    "WITH before DELETE": (
        "WITH w AS (SELECT k FROM u) DELETE FROM t WHERE k IN (SELECT k FROM w)",
        [(2, 20, None)],
    ),
    "INSERT OVERWRITE of what the table held": (
        "INSERT OVERWRITE t SELECT k + 1, v, s FROM t",
        [(2, 10, "a"), (3, 20, None)],
    ),
    "INSERT BY NAME": (
        "INSERT INTO default.t BY NAME SELECT 'c' AS S, k FROM default.u WHERE k > 1",
        [(1, 10, "a"), (2, 20, None), (3, 7, "c")],
    ),
    "MERGE that does nothing with rows that match": (
        "MERGE INTO t USING (SELECT DISTINCT k, v FROM u) AS u ON t.k = u.k "
        "WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (k, v) VALUES (u.k, u.v)",
        [(1, 10, "a"), (2, 20, None), (3, 300, None)],
    ),
    "MERGE that does nothing with some": (
        "MERGE INTO t USING (SELECT 1 AS one) AS o ON true WHEN MATCHED AND t.v > 15 THEN "
        "DO NOTHING WHEN MATCHED THEN DELETE",
        [(2, 20, None)],
    ),
    "UPDATE FROM, matched twice with the same": (
        "UPDATE t SET v = u.v + t.v FROM u WHERE u.k = t.k",
        [(1, 110, "a"), (2, 20, None)],
    ),
    "UPDATE FROM a query and a table": (
        "UPDATE t SET s = q.n FROM (SELECT k, count(*) AS n FROM u GROUP BY k) AS q "
        "JOIN u ON u.k = q.k WHERE q.k = t.k",
        [(1, 10, "2"), (2, 20, None)],
    ),
    "DELETE USING": ("DELETE FROM t USING u WHERE u.k = t.k", [(2, 20, None)]),
    "SET of several at once": (
        "UPDATE t SET (v, s) = (t.k, 'b') WHERE k = 1",
        [(1, 1, "b"), (2, 20, None)],
    ),
    "DEFAULT in SET": ("UPDATE t SET v = DEFAULT, s = DEFAULT", [(1, 7, None), (2, 7, None)]),
    "DEFAULT in VALUES": (
        "INSERT INTO t VALUES (4, DEFAULT, DEFAULT)",
        [(1, 10, "a"), (2, 20, None), (4, 7, None)],
    ),
    "numbers as texts": (
        "UPDATE t SET s = v / 4",
        [(1, 10, "2.5"), (2, 20, "5.0")],
    ),
}


@pytest.mark.parametrize("title", CASES)
def test_each(title: str) -> None:
    db = harken.connect()
    db.sql(SCHEMA)
    statement, rows = CASES[title]
    db.sql(statement)
    assert db.sql("SELECT * FROM t ORDER BY k").rows == rows


def test_default_values() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE d (a INT DEFAULT 1, b STRING); INSERT INTO d DEFAULT VALUES")
    assert db.sql("SELECT * FROM d").rows == [(1, None)]


def test_update_from_with_different_values_for_a_row_is_refused() -> None:
    db = harken.connect()
    db.sql(SCHEMA)
    db.sql("INSERT INTO u VALUES (1, 101)")
    with pytest.raises(harken.IntegrityError) as caught:
        db.sql("UPDATE t SET v = u.v FROM u WHERE u.k = t.k")
    assert caught.value.code == "not-unique"
    assert db.sql("SELECT v FROM t WHERE k = 1").rows == [(10,)]


def test_update_from_changes_copies_of_a_row_alike() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE b (a INT, v INT); INSERT INTO b VALUES (1, 1), (1, 1), (2, 2)")
    with pytest.raises(harken.IntegrityError) as caught:
        db.sql("UPDATE b SET v = s.y FROM (VALUES (1, 5), (1, 6)) AS s(x, y) WHERE b.a = s.x")
    assert caught.value.code == "not-unique"
    db.sql("UPDATE b SET v = s.y FROM (VALUES (1, 5), (1, 5)) AS s(x, y) WHERE b.a = s.x")
    assert sorted(db.sql("SELECT * FROM b").rows) == [(1, 5), (1, 5), (2, 2)]


def test_of_a_table_with_a_key_only_what_is_matched_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (k INT PRIMARY KEY, a INT); CREATE TABLE u (k INT, a INT)")
        db.sql("INSERT INTO t VALUES (1, 1), (2, 2); INSERT INTO u VALUES (2, 5), (3, 6)")

        def refused(*given: object) -> None:
            raise AssertionError("the whole table is read")

        monkeypatch.setattr(Changes, "_all", refused)
        db.sql("UPDATE t SET a = u.a FROM u WHERE t.k = u.k")
        db.sql(
            "MERGE INTO t USING u ON t.k = u.k WHEN MATCHED THEN UPDATE SET a = u.a + 1 "
            "WHEN NOT MATCHED THEN INSERT (k, a) VALUES (u.k, u.a)"
        )
        assert sorted(db.sql("SELECT * FROM t")[-1].rows) == [(1, 1), (2, 6), (3, 6)]
