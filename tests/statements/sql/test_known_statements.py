"""A statement that was seen before means what it means in the schema of now."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

import harken

QUERY = "SELECT * FROM t WHERE a = 1"
INSERT = "INSERT INTO t VALUES (1, 2)"


def test_after_a_rollback_of_the_schema() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT PRIMARY KEY, b INT)")
        db.sql(INSERT)
        assert db.sql(QUERY).rows == [(1, 2)]
        db.sql("BEGIN")
        db.sql("DROP TABLE t; CREATE TABLE t (b STRING, a STRING)")
        db.sql(INSERT)
        assert db.sql("SELECT * FROM t").rows == [("1", "2")]
        db.sql("ROLLBACK")
        assert db.sql(QUERY).rows == [(1, 2)]
        with pytest.raises(harken.HarkenError, match="already has a row with a = 1"):
            db.sql(INSERT)


def test_after_another_process_changed_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with harken.connect(path) as one, harken.connect(path) as two:
        one.sql("CREATE TABLE t (a INT, b INT)")
        for db in (one, two, one, two):
            db.sql(INSERT)
        assert two.sql(QUERY).rows == [(1, 2)] * 4
        one.sql("DROP TABLE t; CREATE TABLE t (b DOUBLE, a INT PRIMARY KEY)")
        two.sql(INSERT)
        assert one.sql("SELECT * FROM t WHERE a = 2").rows == [(1.0, 2)]
        assert two.sql(QUERY).rows == []
        two.sql("ALTER TABLE t ADD COLUMN c INT")
        with pytest.raises(harken.HarkenError, match="3 values") as refused:
            one.sql(INSERT)
        assert refused.value.code == "arity"


def test_a_view_in_place_of_a_table() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT, b INT)")
        db.sql(INSERT)
        db.sql("ALTER TABLE t RENAME TO u; CREATE VIEW t AS SELECT b AS a, a AS b FROM u")
        assert db.sql(QUERY).rows == []
        with pytest.raises(harken.HarkenError, match="only tables can be changed"):
            db.sql(INSERT)


def test_an_error_is_at_its_place_in_the_text_at_hand() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT PRIMARY KEY, d DATE)")
        db.sql("INSERT INTO t VALUES (1, '2024-01-02')")
        assert db.sql("SELECT a FROM t WHERE d = '2024-01-02'").rows == [(1,)]
        for text in ("SELECT a FROM t WHERE d = 'never'", "SELECT a FROM t WHERE d = 'not a day'"):
            with pytest.raises(harken.HarkenError) as refused:
                db.sql(text)
            assert refused.value.span is not None
            found = text[refused.value.span.start : refused.value.span.end]
            assert found in text
            assert found.endswith(text.partition(" = ")[2])


def test_rules_see_a_known_change() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT PRIMARY KEY, b INT)")
        db.sql("CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n, sum(b) AS b FROM t")
        seen: list[harken.Change] = []
        db.monitor("t", seen.append)
        for i in range(4):
            db.sql(f"INSERT INTO t VALUES ({i}, {i})")
        for i in range(4):
            db.sql(f"UPDATE t SET b = 7 WHERE a = {i}")
        db.sql("UPDATE t SET b = 7 WHERE a = 2")  # changes nothing
        db.sql("DELETE FROM t WHERE a = 3")
        assert db.sql("SELECT * FROM total").rows == [(3, 21)]
        assert [(each.plus, each.minus) for each in seen[4:]] == [
            *(([(i, 7)], [(i, i)]) for i in range(4)),
            ([], [(3, 7)]),
        ]


@pytest.mark.parametrize("value", ["x", True, date(2024, 1, 2)])
def test_a_minus_before_a_parameter_that_is_no_number(value: Any) -> None:
    """It used to end in a TypeError of Python once the statement was known."""
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT, b STRING)")
        for _ in range(2):
            with pytest.raises(harken.HarkenError):
                db.sql("INSERT INTO t VALUES (-?, 'b')", [value])
        db.sql("INSERT INTO t VALUES (-'7', 'b')")
        with pytest.raises(harken.HarkenError):
            db.sql("INSERT INTO t VALUES (-'x', 'b')")
        assert db.sql("SELECT a FROM t").rows == [(-7,)]
