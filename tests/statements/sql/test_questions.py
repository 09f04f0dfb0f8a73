"""SHOW, DESCRIBE and REFRESH; CREATE OR REPLACE; and what is said of statements of others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import harken


@pytest.fixture
def db() -> Iterator[harken.Database]:
    with harken.connect() as database:
        database.sql("CREATE TABLE boat (name STRING PRIMARY KEY, length DECIMAL(4, 1))")
        database.sql("INSERT INTO boat VALUES ('Colin Archer', 14.1), ('Optimist', 2.3)")
        database.sql("CREATE VIEW long AS SELECT name FROM boat WHERE length > 10")
        database.sql("CREATE MATERIALIZED VIEW kept AS SELECT count(*) AS n FROM boat")
        yield database


def test_tables_and_views_are_shown(db: harken.Database) -> None:
    views = [("kept", "materialized view"), ("long", "view")]
    assert db.sql("SHOW TABLES").rows == [("boat", "table"), *views]
    assert db.sql("show views").rows == views


@pytest.mark.parametrize("words", ["DESCRIBE", "DESC", "DESCRIBE TABLE", "SHOW COLUMNS IN"])
def test_columns_are_described(db: harken.Database, words: str) -> None:
    found = db.sql(f"{words} boat")
    assert found.columns == ("col_name", "data_type", "may_be_null")
    assert found.rows == [("name", "STRING", "no"), ("length", "DECIMAL(4,1)", "yes")]


def test_a_materialized_view_needs_no_refresh(db: harken.Database) -> None:
    db.sql("INSERT INTO boat VALUES ('Yngling', 6.4); REFRESH MATERIALIZED VIEW kept")
    assert db.sql("SELECT * FROM kept").rows == [(3,)]


def test_a_materialized_view_is_replaced(db: harken.Database) -> None:
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW kept AS SELECT max(length) AS longest FROM boat")
    db.sql("DELETE FROM boat WHERE name = 'Colin Archer'")
    assert [str(each) for (each,) in db.sql("SELECT longest FROM kept").rows] == ["2.3"]
    db.sql("CREATE OR REPLACE VIEW kept AS SELECT name FROM boat")
    db.sql("INSERT INTO boat VALUES ('Yngling', 6.4)")
    assert sorted(db.sql("SELECT * FROM kept").rows) == [("Optimist",), ("Yngling",)]
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW kept AS SELECT name FROM boat WHERE length > 5")
    db.sql("UPDATE boat SET length = 7 WHERE name = 'Optimist'")
    assert sorted(db.sql("SELECT * FROM kept").rows) == [("Optimist",), ("Yngling",)]


def test_a_replacement_that_fails_leaves_what_was_there(db: harken.Database) -> None:
    with pytest.raises(harken.NameFault):
        db.sql("CREATE OR REPLACE MATERIALIZED VIEW kept AS SELECT width FROM boat")
    db.sql("DELETE FROM boat")
    assert db.sql("SELECT * FROM kept").rows == [(0,)]


def test_what_others_read_is_replaced_or_they_are_named(db: harken.Database) -> None:
    db.sql("CREATE VIEW reader AS SELECT n + 1 AS m FROM kept")
    for text in ("MATERIALIZED VIEW kept AS SELECT 1 AS x", "TABLE boat (name STRING)"):
        with pytest.raises(harken.IntegrityError, match=r"would break (reader|long)") as caught:
            db.sql(f"CREATE OR REPLACE {text}")
        assert caught.value.code == "in-use"
    assert db.sql("SELECT * FROM reader").rows == [(3,)]
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW kept AS SELECT 10 * count(*) AS n FROM boat")
    assert db.sql("SELECT * FROM reader").rows == [(21,)]
    db.sql("CREATE OR REPLACE TABLE boat (name STRING, length DECIMAL(4, 1), year INT)")
    assert db.sql("SELECT * FROM reader").rows == [(1,)]


def test_an_index_is_made_where_it_is_needed(db: harken.Database) -> None:
    db.sql("CREATE INDEX by_length ON boat (length DESC, name); DROP INDEX by_length")
    assert len(db.sql("SELECT * FROM boat").rows) == 2


def test_a_table_is_replaced(db: harken.Database) -> None:
    db.sql("CREATE TABLE fleet (name STRING); INSERT INTO fleet VALUES ('x')")
    db.sql("CREATE OR REPLACE TABLE fleet AS SELECT name AS boat FROM long")
    assert db.sql("SELECT boat FROM fleet").rows == [("Colin Archer",)]


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("DESCRIBE bota", "no table or view bota", "boat"),
        ("REFRESH MATERIALIZED VIEW long", "not a materialized view", ""),
        ("SHOW DATABASES", "SHOW", "SHOW TABLES"),
        ("USE other", "USE", "a file is a database"),
        ("REPLACE INTO boat VALUES ('a', 1)", "REPLACE", "ON CONFLICT"),
        ("CREATE INDEX i ON boat (lenght)", "no column lenght", "length"),
        ("CREATE INDEX i ON bota (name)", "no table or view bota", "boat"),
        ("CREATE UNIQUE INDEX i ON boat (name)", "UNIQUE INDEX", ""),
        ("CREATE TABLE x (a)", "the column a has no type", ""),
        ("CREATE TABLE x (a TIME)", "no type TIME", "TIMESTAMP"),
        ("CREATE TABLE x (a INT) WITHOUT ROWID", "this form of CREATE", ""),
        ("DELETE boat", "does not say FROM", ""),
        ("SELECT * FROM boat FOR UPDATE", "FOR UPDATE", ""),
        ("SELECT median(name) FROM boat", "median of STRING", "numbers"),
        ("SELECT stddev(name) FROM boat", "stddev of STRING", "numbers"),
        ("SELECT max_by(DISTINCT name, length) FROM boat", "no DISTINCT", ""),
        ("SELECT percentile_cont(0.5) FROM boat", "WITHIN GROUP", ""),
        ("SELECT rank() FROM boat", "window function", ""),
        ("SELECT max(length, 3) FROM boat", "greatest", ""),
        (
            "INSERT INTO boat VALUES ('a', 1) ON CONFLICT (nam) DO NOTHING",
            "there is no column nam",
            "did you mean name",
        ),
    ],
)
def test_errors_are_reported(db: harken.Database, text: str, said: str, hint: str) -> None:
    with pytest.raises(harken.HarkenError, match=said) as caught:
        db.sql(text)
    assert hint in (caught.value.hint or "")
