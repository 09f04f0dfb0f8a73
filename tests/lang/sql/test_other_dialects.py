"""What people type who come from PostgreSQL, SQLite, Spark or MySQL, and what they are told."""

from __future__ import annotations

import pytest

import harken
from harken.lang.sql.other_dialects import FUNCTIONS, ONLY_IF_UNREAD, STATEMENTS, TYPES

FIRST = "CREATE TABLE sale (shop STRING, amount INT, day DATE); CREATE TABLE item (name STRING)"


def report(text: str) -> tuple[str, str]:
    """The place and message of an error, and its hint."""
    with harken.connect() as db:
        db.sql(FIRST)
        with pytest.raises(harken.HarkenError) as caught:
            db.sql(text)
        error = caught.value
        return f"{error.line}:{error.column} {error.message}", error.hint or ""


@pytest.mark.parametrize(
    ("text", "place", "keyword"),
    [
        ("SELECT * FORM sale", "1:10", "FROM"),
        ("SELECT shop FORM sale", "1:13", "FROM"),
        ("CREATE VIEW v AS SELECT shop FORM sale", "1:30", "FROM"),
        ("SELECT * FROM sale WEHRE amount > 1", "1:20", "WHERE"),
        ("SELECT shop FROM sale GRUOP BY shop", "1:23", "GROUP"),
        ("SELECT shop FROM sale ODER BY shop", "1:23", "ORDER"),
        ("CREATE MATERIALISED VIEW v AS SELECT shop FROM sale", "1:8", "MATERIALIZED"),
        ("INSERT INTO sale VALEUS ('a', 1, NULL)", "1:18", "VALUES"),
    ],
)
def test_a_mistyped_keyword_is_found(text: str, place: str, keyword: str) -> None:
    message, hint = report(text)
    assert message.startswith(place)
    assert hint == f"did you mean {keyword}?"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON sale BEGIN SELECT 1; END", "CREATE TRIGGER", "a rule"),
        ("SUBSCRIBE sale", "SUBSCRIBE", "db.monitor"),
        ("LISTEN sale", "LISTEN", "db.monitor"),
        ("CREATE OR REPLACE FUNCTION f() RETURNS INT AS '1'", "CREATE FUNCTION", "db.foreign"),
        ("CREATE DATABASE d", "CREATE DATABASE", "--db FILE"),
        ("PRAGMA table_info(sale)", "PRAGMA", "DESCRIBE"),
        ("COPY sale FROM 'x.csv'", "COPY", "LOCATION"),
        ("INSERT OR REPLACE INTO item VALUES ('a')", "INSERT OR", "ON CONFLICT"),
        ("UPSERT INTO item VALUES ('a')", "UPSERT", "ON CONFLICT"),
        ("INSERT item VALUES ('a')", "INSERT without INTO", "INSERT INTO"),
        ("SELECT TOP 5 * FROM sale", "SELECT TOP", "LIMIT"),
        ("BEGIN IMMEDIATE", "BEGIN IMMEDIATE", "BEGIN is enough"),
        ("SAVEPOINT a", "SAVEPOINT", "undoes itself"),
        ("EXPLAIN ANALYZE SELECT 1", "EXPLAIN ANALYZE", "EXPLAIN SELECT"),
        ("ALTER TABLE sale MODIFY amount INT", "ALTER TABLE", "CREATE OR ALTER TABLE"),
        ("\\d", "\\D", "harken shell"),
        (".tables", ".TABLES", "harken shell"),
        ("CREATE TABLE t (id SERIAL PRIMARY KEY)", "SERIAL", "BIGINT"),
        ("CREATE TABLE t (a MONEY)", "MONEY", "DECIMAL"),
        ("CREATE TABLE t (a JSON)", "JSON", "DECIMAL(p, s)"),
        ("CREATE TABLE t (id INT PRIMARY KEY AUTOINCREMENT)", "AUTO_INCREMENT", "uuid()"),
        ("SELECT getdate()", "GETDATE", "current_timestamp()"),
        ("SELECT array_agg(shop) FROM sale", "COLLECT_LIST", ""),
        ("SELECT * FROM read_csv('x.csv')", "FROM", "LOCATION"),
        ("SELECT 'it's' FROM sale", "not closed", "written twice"),
    ],
)
def test_a_habit_is_answered(text: str, message: str, hint: str) -> None:
    found, said = report(text)
    assert message in found
    assert hint in said
    assert "db.lake" not in said


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO item VALUES ('CREATE TRIGGER'); SELECT * FROM item",
        "START TRANSACTION; COMMIT",
        "CREATE OR REPLACE VIEW form AS SELECT shop AS listen FROM sale",
    ],
)
def test_what_is_right_is_left_alone(text: str) -> None:
    with harken.connect() as db:
        db.sql(FIRST)
        db.sql(text)


def test_every_piece_of_advice_is_a_sentence() -> None:
    for hints in (STATEMENTS, ONLY_IF_UNREAD, TYPES, FUNCTIONS):
        assert all(len(hint) > 3 for hint in hints.values())


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("SELECT sume(amount) FROM sale", "no function sume", "did you mean sum?"),
        ("SELECT cuont(amount) FROM sale", "no function cuont", "did you mean count?"),
        ("SELECT lenght(shop) FROM sale", "no function lenght", "did you mean length?"),
        ("SELECT zzzzzzzz(shop) FROM sale", "no function zzzzzzzz", "db.foreign"),
        ("SELECT array_agg(shop) FROM sale", "aggregate", "string_agg"),
        ("SELECT shop FROM sale WHERE shop ~ 'a'", "~ cannot", "regexp_like"),
        ("SELECT shop FROM sale WHERE shop !~ 'a'", "! cannot", "NOT regexp_like"),
        ("SELECT shop FROM sale WHERE shop = %s", "missing", "? or :name"),
        ("SELECT shop FROM sale WHERE shop = %(a)s", "missing", "? or :name"),
        ("SELECT shop FROM public.sale", "schema", "SHOW TABLES"),
        ("SELECT shop FROM sale FOR UPDATE", "FOR UPDATE", "leave it out"),
    ],
)
def test_names_and_signs_of_other_systems(text: str, message: str, hint: str) -> None:
    said, advised = report(text)
    assert message in said
    assert hint in advised
