"""Functions and what they give, as Spark has it: each with all of its arguments, none ignored."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

import harken

GIVES: dict[str, Any] = {
    # texts
    "'it''s'": "it's",
    "''''": "'",
    "'a' 'b'": "ab",
    "trim(BOTH 'x' FROM 'xxaxx')": "a",
    "trim(LEADING 'x' FROM 'xxaxx')": "axx",
    "trim(TRAILING 'xy' FROM 'axyx')": "a",
    "ltrim(' a ')": "a ",
    "rtrim(' a ')": " a",
    "trim(' a ')": "a",
    "concat_ws('-', 'a', NULL, 1, 'b')": "a-1-b",
    "concat_ws('-', NULL)": "",
    "concat_ws(NULL, 'a')": None,
    "left('abc', 2)": "ab",
    "left('abc', -1)": "",
    "right('abc', 2)": "bc",
    "right('abc', 9)": "abc",
    "right('abc', 0)": "",
    "replace('abca', 'a', 'xy')": "xybcxy",
    "replace('abca', 'a')": "bc",
    "position('b' IN 'abc')": 2,
    "instr('abc', 'z')": 0,
    "startswith('abc', 'ab')": True,
    "endswith('abc', 'zabc')": False,
    "endswith('abc', '')": True,
    "'ABC' ILIKE 'a%'": True,
    "'ABC' NOT ILIKE 'a%'": False,
    "'50%' LIKE '50!%' ESCAPE '!'": True,
    "'500' LIKE '50!%' ESCAPE '!'": False,
    "'500' NOT LIKE '50!%' ESCAPE '!'": True,
    r"'a\\b' LIKE 'a\\b' ESCAPE '!'": True,
    "'b' LIKE ANY ('a%', 'b%')": True,
    "'b' LIKE ALL ('a%', 'b%')": False,
    # numbers
    "round(1250.5, -2)": Decimal(1300),
    "round(-1249.99, -2)": Decimal(-1200),
    "round(2.345, 2)": Decimal("2.35"),
    "round(25, -1)": 30,
    "round(-25, -1)": -30,
    "round(25)": 25,
    "floor(-2.7)": Decimal(-3),
    "floor(-2.0)": Decimal(-2),
    "ceil(2.1)": Decimal(3),
    "floor(9007199254740993)": 9007199254740993,
    "trunc(-2.7)": Decimal(-2),
    "trunc(2.7e0)": 2,
    "trunc(-1.29, 1)": Decimal("-1.2"),
    "truncate(1259.9, -2)": Decimal(1200),
    "trunc(CAST(NULL AS INT))": None,
    "5.5 % 2": Decimal("1.5"),
    "-5.5 % 2": Decimal("-1.5"),
    "sign(-2.5)": -1.0,
    "greatest(1, NULL, 3)": 3,
    "least('b', 'a')": "a",
    "least(NULL, 2.5, 3)": Decimal("2.5"),
    "2 BETWEEN SYMMETRIC 3 AND 1": True,
    "nvl2(NULL, 1, 2)": 2,
    "isnull(NULL)": True,
    "isnotnull(NULL)": False,
    "(1, 2) < (1, 3)": True,
    "(1, 2) >= (1, 3)": False,
    "ROW(1, 2) = ROW(1, 2)": True,
    # dates
    "INTERVAL 1 DAY + DATE '2020-02-28'": datetime.date(2020, 2, 29),
    "date_add(DATE '2020-02-28', 2)": datetime.date(2020, 3, 1),
    "date_sub(DATE '2020-03-01', 1)": datetime.date(2020, 2, 29),
    "datediff(DATE '2020-03-01', TIMESTAMP '2020-02-28 23:00:00')": 2,
    "quarter(DATE '2020-04-01')": 2,
    "extract(QUARTER FROM DATE '2020-12-01')": 4,
    "dayofweek(DATE '2020-03-01')": 1,
    "dayofyear(DATE '2020-03-01')": 61,
    "dayofmonth(DATE '2020-03-07')": 7,
    "last_day(DATE '2020-02-03')": datetime.date(2020, 2, 29),
    "trunc(DATE '2020-05-17', 'MM')": datetime.date(2020, 5, 1),
    "trunc(DATE '2020-05-17', 'QUARTER')": datetime.date(2020, 4, 1),
    "trunc(DATE '2020-05-17', 'WEEK')": datetime.date(2020, 5, 11),
    "date_trunc('year', DATE '2020-05-17')": datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
}


@pytest.mark.parametrize("text", GIVES)
def test_of_constants(text: str) -> None:
    ((found,),) = harken.connect().sql(f"SELECT {text}").rows
    assert found == GIVES[text]
    assert type(found) is type(GIVES[text])


def test_of_columns_and_of_null() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (s STRING, n INT, m DECIMAL(9, 2), d DATE)")
    db.sql("INSERT INTO t VALUES ('xax', 2, 12.50, '2020-02-29'), (NULL, NULL, NULL, NULL)")
    found = db.sql(
        "SELECT trim(LEADING 'x' FROM s), right(s, n), concat_ws('/', s, n), round(m, -1), "
        "floor(m), m % n, greatest(n, m), last_day(d) FROM t ORDER BY s"
    ).rows
    leap = datetime.date(2020, 2, 29)
    assert found == [
        (None, None, "", None, None, None, None, None),
        ("ax", "ax", "xax/2", Decimal(10), Decimal(12), Decimal("0.50"), Decimal("12.50"), leap),
    ]


# a text that is written beside a number is a number
COMPARED = {
    "n = '1'": True,
    "n > '-5'": True,
    "m < '12.505'": True,
    "n IN ('2', '3')": False,
    "coalesce(n, '7')": 1,
    "coalesce(NULL, m, '7')": Decimal("12.50"),
    "n + '1'": 2,
    "x = '1.5e0'": True,
}


@pytest.mark.parametrize("text", COMPARED)
def test_a_text_beside_a_number(text: str) -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (n INT, m DECIMAL(9, 2), x DOUBLE)")
    db.sql("INSERT INTO t VALUES (1, 12.50, 1.5)")
    assert db.sql(f"SELECT {text} FROM t").rows == [(COMPARED[text],)]


FAILS = {
    "n = 'x'": "bad-value",
    "'1' + '1'": "type-mismatch",
    "s + s": "type-mismatch",
    "CAST(s AS DECIMAL(1, 0))": "overflow",
    "CAST(n * 100 AS DECIMAL(3, 1))": "overflow",
    "CAST(m AS DECIMAL(3, 2))": "overflow",
    "CAST(m + 87.46 AS DECIMAL(3, 1))": "overflow",
    "CAST('1_000' AS INT)": "bad-value",
    "CAST('1_0.5' AS DOUBLE)": "bad-value",
    "CAST('1_0.5' AS DECIMAL(9, 2))": "bad-value",
}


@pytest.mark.parametrize("text", FAILS)
def test_what_is_no_number_or_does_not_fit_is_an_error(text: str) -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (n INT, s STRING, m DECIMAL(9, 2))")
    db.sql("INSERT INTO t VALUES (1, '12', 12.50)")
    with pytest.raises(harken.HarkenError) as caught:
        db.sql(f"SELECT {text} FROM t")
    assert caught.value.code == FAILS[text]


REFUSED = (
    "floor(2.345e0, 1)",
    "round(2.5, n)",
    "regexp_replace('a', 'a', 'b', 0)",
    "'a' LIKE 'a!b' ESCAPE '!'",
    "datediff(CENTURY, DATE '2020-01-01', DATE '2020-02-01')",
)


@pytest.mark.parametrize("text", REFUSED)
def test_an_argument_that_is_not_known_is_refused(text: str) -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (n INT)")
    with pytest.raises(harken.HarkenError) as caught:
        db.sql(f"SELECT {text} FROM t")
    assert caught.value.code == "unsupported"


def test_a_constant_date_outside_of_the_calendar_is_an_error_of_ours() -> None:
    with pytest.raises(harken.HarkenError, match="outside the years"):
        harken.connect().sql("SELECT DATE '9999-12-31' + INTERVAL 1 DAY")
