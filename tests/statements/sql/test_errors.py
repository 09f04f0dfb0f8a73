"""What people get wrong, and what they are told."""

from __future__ import annotations

import pytest

import harken

SAID = {
    "selct 1": "1:1: [syntax] there is no statement SELCT in Harken's SQL|did you mean SELECT?",
    "SELECT k FORM a": "1:10: [syntax] FORM cannot stand here|did you mean FROM?",
    "SELECT k FROM": "1:10: [syntax] something is missing after FROM|",
    "SELECT k FROM a LEFT ANTI JOIN": "1:27: [syntax] something is missing after JOIN|",
    "SELECT\n  k,\n  x x x\nFROM a": "3:7: [syntax] x cannot stand here|",
    "SELECT k FROM aa": "1:15: [unknown-table] there is no table or view aa|did you mean a?",
    "SELECT aa.* FROM a": "1:8: [unknown-table] there is no table aa in FROM|did you mean a?",
    "EXPLAIN aa": "1:9: [unknown-table] there is no table or view aa|did you mean a?",
    "EXPLAIN A": "1:9: [unsupported] only queries can be explained|"
    'write EXPLAIN SELECT * FROM A, or in Python db.explain("a")',
    "SELECT xx FROM a": "1:8: [unknown-column] there is no column xx|did you mean a.x?",
    "SELECT price FROM a": "1:8: [unknown-column] there is no column price|the columns are k, x, m",
    "SELECT b.price FROM a JOIN (SELECT 1 AS y) AS b": "1:8: [unknown-column] there is no column "
    "b.price|the columns are y",
    "SELECT x FROM a JOIN a AS b USING (x) JOIN a AS c ON TRUE": "1:8: [ambiguous] the column x is "
    "in a and in b and in c|say which: a.x",
    "UPDATE a SET xx = 1": "1:14: [unknown-column] a has no column xx|did you mean x?",
    "SELECT k, x FROM a GROUP BY k": "1:11: [ungrouped] the column x must be in GROUP BY, "
    "or in an aggregate|group by it, or take any_value(x): a group has many rows",
    "SELECT row_number() FROM a": "1:8: [unsupported] row_number is a window function: "
    "say OVER (ORDER BY ...)|",
    "INSERT INTO a VALUES (1)": "1:1: [arity] a takes 3 values, and 1 is given|"
    "the values are for k, x, m",
    "INSERT INTO a VALUES ()": "1:1: [arity] a takes 3 values, and none is given|"
    "the values are for k, x, m",
    "INSERT INTO a (k) VALUES (1, 2)": "1:1: [arity] a takes 1 value, and 2 are given|"
    "the value is for k",
    "CREATE VIEW v (p) AS SELECT k, x FROM a": "1:13: [arity] 1 column is named, but the query has "
    "2|",
    "SELECT 1 FROM (SELECT k FROM a) AS b (p, q)": "1:23: [arity] 2 columns are named, and there "
    "is 1|",
    "SELECT k FROM a UNION SELECT k, x FROM a": "1:8: [arity] one side has 1 column and "
    "the other 2|",
    "SELECT k FROM a WHERE k IN (SELECT k, x FROM a)": "1:23: [arity] 1 value is sought among rows "
    "of 2|",
    "INSERT INTO a (k, price) VALUES (1, 2)": "1:1: [unknown-column] a has no column price|"
    "the columns are k, x, m",
    "SELECT * FROM warehouse": "1:15: [unknown-table] there is no table or view warehouse|"
    "the tables and views are a",
    "SELECT warehouse.x FROM a": "1:8: [unknown-table] there is no table warehouse in FROM|"
    "the tables there are a",
    "SELECT m * m FROM a": "1:1: [overflow] a decimal does not fit: in units of its last digit it "
    "has more than 64 bits|use fewer digits behind the point: CAST(... AS DECIMAL(18, 2))",
    "CREATE TABLE z (k INT DEFAULT 'x')": "1:1: [type-mismatch] column k: "
    "STRING cannot be stored as BIGINT|"
    "convert it: CAST(... AS BIGINT)",
    "CREATE TABLE z (d DATE DEFAULT 'x')": '1:1: [bad-value] "x" is not a date|'
    "leave such texts out, or use TRY_CAST",
}


@pytest.mark.parametrize("text", SAID)
def test_each(text: str) -> None:
    db = harken.connect()
    db.sql("CREATE TABLE a (k INT, x INT, m DECIMAL(18, 2))")
    db.sql("INSERT INTO a VALUES (1, 1, 9999999999999999.99)")
    with pytest.raises(harken.HarkenError) as caught:
        db.sql(text)
    message, hint = SAID[text].split("|")
    assert caught.value.report().splitlines()[0] == message
    assert (caught.value.hint or "") == hint
    assert "oken" not in caught.value.report()


def test_a_table_is_offered_under_the_name_that_sql_has_for_it() -> None:
    db = harken.connect()
    db.amosql(
        "create type item properties (name charstring);"
        "create type shop properties (name charstring); commit;"
    )
    for wrong, offered in (("item_nam", {"item_name"}), ("name", {"item_name", "shop_name"})):
        with pytest.raises(harken.HarkenError, match=f"no table or view {wrong}") as caught:
            db.sql(f"SELECT * FROM {wrong}")
        assert caught.value.hint in {f"did you mean {each}?" for each in offered}


def test_a_double_as_text_is_written_as_spark_does() -> None:
    numbers = {
        "1e10": "1.0E10",
        "1e7": "1.0E7",
        "9999999e0": "9999999.0",
        "1e-3": "0.001",
        "-1.5e-4": "-1.5E-4",
        "123456789.125e0": "1.23456789125E8",
        "5e-324": "4.9E-324",
        "0e0": "0.0",
        "2e0": "2.0",
    }
    db = harken.connect()
    for number, text in numbers.items():
        assert db.sql(f"SELECT CAST({number} AS STRING), '' || {number}").rows == [(text, text)]


def test_months_and_hours_on_columns() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE a (d DATE, t TIMESTAMP)")
    db.sql("INSERT INTO a VALUES (DATE '2024-01-31', TIMESTAMP '2024-01-01 00:30:00')")
    shown = db.sql(
        "SELECT d + INTERVAL 1 MONTH, d - INTERVAL 2 YEARS, add_months(d, 2), "
        "t - INTERVAL 1 HOUR, t + INTERVAL 1 WEEK FROM a"
    ).rows[0]
    assert [str(each)[:16] for each in shown] == [
        "2024-02-29", "2022-01-31", "2024-03-31", "2023-12-31 23:30", "2024-01-08 00:30",
    ]  # fmt: skip
    ((later,),) = db.sql("SELECT t + INTERVAL 13 MONTHS FROM a").rows
    assert str(later)[:16] == "2025-02-01 00:30"


UNREADABLE = (
    "SELECT count() FROM t",
    "SELECT count(DISTINCT ) FROM t",
    "SELECT sum() FROM t",
    "SELECT CAST(a AS DECIMAL(a, 1)) FROM t",
    "SELECT map(1, )",
    "WITH w(x) AS (SELECT 1, 2) SELECT * FROM w",
    "WITH w(x, y) AS (SELECT 1) SELECT * FROM w",
    "SELECT datediff(, DATE '2020-01-01')",
    "SELECT DATE '2020-01-01' + INTERVAL 5",
    "SELECT a FROM t CLUSTER BY *",
    "WITH RECURSIVE f(a, b) AS (SELECT 0 UNION ALL SELECT b FROM f) SELECT a FROM f",
    "WITH RECURSIVE f AS (SELECT 0 AS a UNION ALL SELECT a, a FROM f) SELECT a FROM f",
)


@pytest.mark.parametrize("text", UNREADABLE)
def test_a_statement_that_is_not_whole_is_an_error_of_ours(text: str) -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (a INT)")
    with pytest.raises(harken.HarkenError) as caught:
        db.sql(text)
    assert caught.value.code in ("syntax", "unsupported", "arity", "type-mismatch")
    assert caught.value.span is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT 1 AS a FROM t GROUP BY", "something is missing after GROUP BY"),
        ("SELECT a FROM t WHERE row_number() OVER (ORDER BY a) = 1", "use QUALIFY"),
    ],
)
def test_missing_and_misplaced_clauses_are_reported(text: str, said: str) -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (a INT)")
        with pytest.raises(harken.HarkenError, match=said):
            db.sql(text)
