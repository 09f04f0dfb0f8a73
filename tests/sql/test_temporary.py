"""Temporary views and tables: those of a session, gone when it is closed."""

from __future__ import annotations

from pathlib import Path

import pytest

import harken


def test_a_temporary_view_is_like_any_other() -> None:
    db = harken.connect()
    db.sql("CREATE TEMPORARY VIEW v AS SELECT * FROM VALUES (1, 'x'), (2, NULL) AS v(a, b)")
    assert db.sql("SELECT a FROM v WHERE b IS NULL").rows == [(2,)]
    db.sql("CREATE OR REPLACE TEMP VIEW v AS SELECT 5 AS a")
    db.sql("CREATE MATERIALIZED VIEW k AS SELECT a + 1 AS n FROM v")
    assert db.sql("SELECT n FROM k").rows == [(6,)]
    db.sql("DROP VIEW k; DROP VIEW IF EXISTS v; DROP VIEW IF EXISTS v")
    with pytest.raises(harken.NameFault):
        db.sql("SELECT a FROM v")


def test_what_is_temporary_goes_with_its_session(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with harken.connect(path) as db:
        db.sql("CREATE TABLE stays (a INT); CREATE TEMP TABLE goes (a INT)")
        db.sql("CREATE TEMP VIEW one AS SELECT a FROM stays")
        db.sql("CREATE TEMP VIEW two AS SELECT one.a FROM one, goes")
        db.sql("CREATE TEMP VIEW read AS SELECT a FROM stays")
        db.sql("CREATE VIEW reads AS SELECT a FROM read")
    with harken.connect(path) as db:
        assert db.sql("SELECT * FROM reads").rows == []  # and so what it reads has stayed
        for name in ("goes", "one", "two"):
            with pytest.raises(harken.NameFault):
                db.sql(f"SELECT * FROM {name}")


def test_the_word_view_may_stand_in_a_comment() -> None:
    db = harken.connect()
    db.sql("CREATE /* a view */ VIEW v AS SELECT 1 AS a; CREATE /* table */ TABLE t (a INT)")
    db.sql("INSERT INTO t SELECT a FROM v")
    assert db.sql("SELECT a FROM t").rows == [(1,)]


def test_formats_of_files_are_sparks_affair() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (a INT) USING parquet; INSERT INTO t VALUES (1)")
    db.sql("CREATE TABLE s USING csv AS SELECT a FROM t")
    assert db.sql("SELECT a FROM s").rows == [(1,)]
