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


@pytest.mark.parametrize(
    "texts",
    [
        ["CREATE TEMP TABLE x (a INT); DROP TABLE x", "CREATE TABLE x (a INT)"],
        ["BEGIN", "CREATE TEMP TABLE x (a INT)", "ROLLBACK", "CREATE TABLE x (a INT)"],
        ["CREATE TEMP TABLE x (a INT)", "ALTER TABLE x RENAME TO y", "CREATE TABLE x (a INT)"],
        ["CREATE TEMP VIEW x AS SELECT 1 AS a", "DROP VIEW x", "CREATE TABLE x (a INT)"],
    ],
    ids=("dropped", "rolled back", "renamed", "a view"),
)
def test_what_stays_may_have_the_name_of_what_was_temporary(
    texts: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "shop.db"
    with harken.connect(path) as db:
        for text in texts:
            db.sql(text)
        db.sql("INSERT INTO x VALUES (42)")
    with harken.connect(path) as db:
        assert db.sql("SELECT a FROM x").rows == [(42,)]
        with pytest.raises(harken.NameFault):
            db.sql("SELECT a FROM y")


def test_a_view_that_was_replaced_goes_for_good(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with harken.connect(path) as db:
        db.sql(
            "CREATE TEMP VIEW a AS SELECT 1 AS x; CREATE OR REPLACE TEMP VIEW a AS SELECT 2 AS x"
        )
        db.sql("CREATE VIEW b AS SELECT 1 AS x; CREATE OR REPLACE VIEW b AS SELECT 2 AS x")
        db.sql("CREATE TEMP VIEW c AS SELECT 1 AS x; CREATE OR REPLACE VIEW c AS SELECT 2 AS x")
        db.sql("DROP VIEW b")
        with pytest.raises(harken.NameFault, match="not temporary"):
            db.sql("CREATE OR REPLACE TEMP VIEW c AS SELECT 3 AS x")
    with harken.connect(path) as db:
        for name in "ab":
            with pytest.raises(harken.NameFault):
                db.sql(f"SELECT * FROM {name}")
        assert db.sql("SELECT x FROM c").rows == [(2,)]


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
