"""Patterns, texts, bits, logarithms, conversions and what is tried: each as Spark has it."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

import harken
from harken.engines.spark.query import compile_plan
from harken.ir.assemble import assemble
from harken.lang.sql.parser import statements
from harken.planner.prepare import prepare
from harken.statements.sql.view_clauses import translate_query
from tests.harness.both import rows_of
from tests.harness.watched import Watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOMENT = datetime.datetime(2020, 1, 5, tzinfo=datetime.UTC)

GIVES: dict[str, dict[str, Any]] = {
    "more of texts": {
        "translate('abcba', 'abx', '12')": "12c21",
        "translate('abc', 'bc', '')": "a",
        "overlay('Harken' PLACING 'll' FROM 4)": "Harlln",
        "overlay('Harken', 'bour', 4, 0)": "Harbourken",
        "locate('a', 'banana', 3)": 4,
        "position('x', 'banana', 3)": 0,
        "locate('a', 'banana', 0)": 0,
        "find_in_set('c', 'a,b,c')": 3,
        "find_in_set('a,b', 'a,b,c')": 0,
        "substring_index('a.b.c', '.', 2)": "a.b",
        "substring_index('a.b.c', '.', -2)": "b.c",
        "levenshtein('kitten', 'sitting')": 3,
        "soundex('Ashcroft')": "A261",
        "soundex('7up')": "7up",
        "octet_length('né')": 3,
        "bit_length('n')": 8,
        "hex(-1)": "FFFFFFFFFFFFFFFF",
        "hex('né')": "6EC3A9",
        "bin(5)": "101",
        "bit_count(-1)": 64,
        "md5('a')": "0cc175b9c0f1b6a831c399e269772661",
        "sha2('a', 5)": None,
        "crc32('harken')": 3322146050,
        "regexp_count('aXbXc', 'X')": 2,
        "regexp_instr('abc', '[bc]')": 2,
        "regexp_substr('abc', 'x')": None,
        "btrim('xxaxx', 'x')": "a",
        "concat('<', space(2), '>')": "<  >",
        "decode(NULL, 1, 'one', NULL, 'none', 'many')": "none",
        "decode(3, 1, 'one')": None,
    },
    "more of numbers": {
        "pmod(-7, 3)": 2,
        "pmod(7, -3)": 1,
        "rint(2.5)": 2.0,
        "factorial(5)": 120,
        "factorial(21)": None,
        "negative(3) + positive(1)": -2,
        "nullifzero(0)": None,
        "zeroifnull(CAST(NULL AS INT))": 0,
        "bigint('7') + tinyint(1.9)": 8,
        "isnan(1e0)": False,
    },
    "more of dates": {
        "make_date(2020, 2, 29)": datetime.date(2020, 2, 29),
        "next_day(DATE '2020-01-05', 'sun')": datetime.date(2020, 1, 12),
        "weekday(DATE '2020-01-05')": 6,
        "weekofyear(DATE '2021-01-03')": 53,
        "extract(YEAROFWEEK FROM DATE '2021-01-03')": 2020,
        "months_between(DATE '2020-02-29', DATE '2020-01-31')": 1.0,
        "months_between(TIMESTAMP '2020-03-01 12:00:00', DATE '2020-01-31')": 1.04838710,
        "unix_date(DATE '1970-01-03')": 2,
        "date_from_unix_date(-1)": datetime.date(1969, 12, 31),
        "unix_seconds(TIMESTAMP '1970-01-01 00:01:00.9')": 60,
        "timestamp_seconds(86400) = TIMESTAMP '1970-01-02 00:00:00'": True,
        "extract(SECOND FROM TIMESTAMP '2020-01-05 10:00:07.25')": Decimal("7.250000"),
        "date_part('minutes', TIMESTAMP '2020-01-05 10:20:07')": 20,
        "date_trunc('HOUR', TIMESTAMP '1969-12-31 23:59:59.5') = '1969-12-31 23:00:00'": True,
        "TIMESTAMP '2020-01-31 10:20:07.5' + INTERVAL 1 MONTH = '2020-02-29 10:20:07.5'": True,
        "DATE '2020-01-31' + INTERVAL 1 YEAR 1 MONTH": datetime.date(2021, 2, 28),
        "TIMESTAMP '2020-01-05 00:00:00' - INTERVAL 1 DAY 2 HOURS = '2020-01-03 22:00:00'": True,
        "date_format(DATE '2020-01-05', 'd.M.yy EEEE')": "5.1.20 Sunday",
        "date_format(TIMESTAMP '2020-01-05 13:04:05.678', 'hh:mm:ss.SSS a')": "01:04:05.678 PM",
        "to_date(concat('2020-1-', '5'))": datetime.date(2020, 1, 5),
        "to_date(TIMESTAMP '2020-01-05 13:04:05')": datetime.date(2020, 1, 5),
    },
    "moments by a pattern": {
        "to_date('5. jan 2020', 'd. MMM yyyy')": datetime.date(2020, 1, 5),
        "to_date('200105', 'yyMMdd')": datetime.date(2020, 1, 5),
        "to_date('2020-060', 'yyyy-DDD')": datetime.date(2020, 2, 29),
        "to_date('2020-05', 'yyyy-MM[-dd]')": datetime.date(2020, 5, 1),
        "to_date(DATE '2020-01-05', 'yyyy')": datetime.date(2020, 1, 5),
        "to_timestamp('5.1.2020 12:00 am', 'd.M.yyyy h:mm a')": MOMENT,
        'to_timestamp("2020-01-05T02:00:00.00+02:00", "yyyy-MM-dd\'T\'HH:mm:ss.SSSXXX")': MOMENT,
        "try_to_timestamp('2020-02-30', 'yyyy-MM-dd')": None,
        "try_to_date('2020123', 'yyyyMMdd')": None,
        "unix_timestamp('05.01.2020', 'dd.MM.yyyy')": 1578182400,
        "unix_timestamp(TIMESTAMP '1969-12-31 23:59:59.5')": 0,
        "unix_seconds(TIMESTAMP '1969-12-31 23:59:59.5')": -1,
        "unix_millis(TIMESTAMP '1969-12-31 23:59:59.9999')": -1,
        "unix_micros(TIMESTAMP '2020-01-05 00:00:00.000001')": 1578182400000001,
        "timestamp_millis(1578182400000)": MOMENT,
        "timestamp_seconds(1578182400.5) = TIMESTAMP '2020-01-05 00:00:00.5'": True,
        "from_unixtime(1578182400)": "2020-01-05 00:00:00",
        "from_unixtime(-1, 'H:mm')": "23:59",
        "make_timestamp(2020, 1, 4, 23, 59, 60)": MOMENT,
        "make_timestamp(2020, 1, 5, 0, 0, 0.5) > '2020-01-05'": True,
        "CAST(TIMESTAMP '1969-12-31 23:59:59.5' AS BIGINT)": -1,
        "CAST(TIMESTAMP '1969-12-31 23:59:59.5' AS DOUBLE)": -0.5,
        "CAST(TIMESTAMP '1970-01-01 00:00:02.5' AS DECIMAL(3, 1))": Decimal("2.5"),
        "CAST(1578182400 AS TIMESTAMP)": MOMENT,
        "CAST(1578182400.0000009 AS TIMESTAMP)": MOMENT,
        "CAST(-0.5e0 AS TIMESTAMP) = '1969-12-31 23:59:59.5'": True,
        "extract(SECOND FROM DATE '2020-01-05')": Decimal("0.000000"),
        "date_format(TIMESTAMP '2020-01-05 00:30:00', '[k:K] QQQ XXX')": "24:0 Q1 Z",
        "NULL + INTERVAL 1 DAY": None,
    },
    "numbers as they are written": {
        "conv('ff', 16, 10)": "255",
        "conv(-10, 10, 16)": "FFFFFFFFFFFFFFF6",
        "conv('-12x', 10, -16)": "-C",
        "conv('12', 10, 1)": None,
        "format_number(1234567.885, 2)": "1,234,567.88",
        "format_number(2.675e0, 2)": "2.67",
        "format_number(-12345, 1)": "-12,345.0",
        "format_number(1, -1)": None,
        "bround(2.5)": Decimal(2),
        "bround(-1.35, 1)": Decimal("-1.4"),
        "bround(25, -1)": 20,
        "bround(1.25e0, 1)": 1.2,
        "floor(-3.1411, 3)": Decimal("-3.142"),
        "floor(25, -1)": Decimal(20),
        "ceil(3.1411, -3)": Decimal(1000),
        "width_bucket(5.3, 0.2, 10.6, 5)": 3,
        "width_bucket(11, 10, 0, 5)": 0,
        "width_bucket(5, 5, 5, 5)": None,
        "elt(2, 'a', 1.50)": "1.50",
        "elt(NULL, 'a')": None,
        "try_mod(5.5, 0)": None,
        "1.5 % NULL": None,
        "pmod(NULL, 1.5)": None,
        "locate('', 'abc', 3)": 1,
        "locate('a', 'abc', NULL)": 0,
        "replace('abc', '', NULL)": None,
        "replace('abc', '', 'x')": "abc",
        "overlay('abcdef' PLACING 'X' FROM -2)": "Xf",
        "regexp_replace('abcb', '^c|b', 'X', 3)": "abXX",
        "regexp_replace('abc', 'x', '$1')": "abc",
    },
    "NULLs": {
        "substring('abc', CAST(NULL AS INT))": None,
        "substring('abc', 1, CAST(NULL AS INT))": None,
        "left('abc', CAST(NULL AS INT))": None,
        "right('abc', NULL)": None,
        "concat_ws(CAST(NULL AS STRING), 'a', 'b')": None,
        "floor(CAST(NULL AS DOUBLE))": None,
        "CAST(CAST(NULL AS DOUBLE) AS INT)": None,
        "format_number(ceil(CAST(NULL AS DOUBLE)), 0)": None,
        "NULL IS TRUE": False,
        "NULL IS NOT FALSE": True,
        "lower(hex(12.9e0))": "c",
        "hex(true)": "74727565",
        "levenshtein('kitten', 'sitting', 2)": -1,
        "to_char(DATE '2020-01-05', 'MM/yy')": "01/20",
    },
    "texts beside values of other types": {
        "1 + '2'": 3,
        "'7' / 2": 3.5,
        "'7' % '4'::BIGINT": 3,
        "0.5 + '2'": 2.5,
        "-'1'": -1.0,
        "abs('-1.5')": 1.5,
        "floor('1.5')": 1,
        "coalesce(NULL, '2', 3)": 2,
        "CASE WHEN true THEN 1.5 ELSE '2' END": 1.5,
        "if(false, DATE '2020-01-05', '2020-1-6')": datetime.date(2020, 1, 6),
        "upper('2020-1-5') = DATE '2020-01-05'": True,
        "trim(' true ') = true": True,
        "reverse('21') > 11": True,
        "concat('1', '.5') = 1.50": True,
        "DATE '2020-01-05' IN (substring('x2020-01-05', 2), NULL)": True,
        "123 LIKE '1%'": True,
        "upper(1.50)": "1.50",
        "length(12345)": 5,
        "substring(DATE '2020-01-05', 1, 4)": "2020",
        "year(lower('2020-01-05'))": 2020,
        "CAST(TIMESTAMP '2020-01-05 10:00:00.120' AS STRING)": "2020-01-05 10:00:00.12",
        "CAST(TIMESTAMP '2020-01-05 10:00:00' AS STRING)": "2020-01-05 10:00:00",
    },
    "patterns": {
        "'abc' RLIKE 'b'": True,
        "'abc' REGEXP '^b'": False,
        "'abc' NOT RLIKE 'z'": True,
        "regexp_like('ABC', '(?i)b')": True,
        "regexp('abc', '')": True,
        "'12' RLIKE '^\\\\d+$'": True,
        r"'٣' RLIKE r'\d'": False,
        r"'a\nb' RLIKE 'a.b'": False,
        r"'a\nb' RLIKE '(?s)a.b'": True,
        r"'ab\r\n' RLIKE 'b$'": True,
        r"'a.c' RLIKE r'\Q.\Ec'": True,
        r"'x-1' RLIKE r'[\p{Alpha}]-\p{Digit}'": True,
        "'a' RLIKE NULL": None,
        "1 RLIKE '1'": True,
        "regexp_replace('abc', 'b', 'x$0y')": "axbyc",
        "regexp_replace('abc', '(b)(z)?', '[$1$2]')": "a[b]c",
        "regexp_replace('abc', '(b)', '<$12>')": "a<b2>c",
        r"regexp_replace('abc', 'b', r'\$')": "a$c",
        "regexp_replace('abc', '(?<n>b)', '<${n}>')": "a<b>c",
        "regexp_replace('baac', 'a*', '-')": "-b--c-",
        "regexp_replace(NULL, 'b', 'x')": None,
        r"regexp_extract('100-200', r'(\d+)-(\d+)')": "100",
        r"regexp_extract('100-200', r'(\d+)-(\d+)', 2)": "200",
        r"regexp_extract('x', r'(\d+)')": "",
        "regexp_extract('x', '(y)?x')": "",
    },
    "texts": {
        "lpad('abc', 2)": "ab",
        "lpad('abc', 5)": "  abc",
        "lpad('abc', 6, 'xy')": "xyxabc",
        "lpad('abc', 5, '')": "abc",
        "lpad('abc', -1, 'x')": "",
        "lpad(7, 3, '0')": "007",
        "rpad('abc', 6, 'xy')": "abcxyx",
        "lpad('abc', NULL, 'x')": None,
        "reverse('aé😀')": "😀éa",
        "initcap('hello WORLD foo-bar  x')": "Hello World Foo-bar  X",
        "repeat('ab', 2)": "abab",
        "repeat('ab', -1)": "",
        "ascii('')": 0,
        "ascii('😀')": 128512,
        "chr(321)": "A",
        "chr(-1)": "",
        "split_part('a,b,c', ',', 2)": "b",
        "split_part('a,b,c', ',', -1)": "c",
        "split_part('a,b,c', ',', 9)": "",
        "split_part('abc', '', 1)": "abc",
    },
    "bits": {
        "1 | 4 & 2": 1,
        "1 ^ 3 | 8": 10,
        "1 << 2 + 1": 8,
        "8 >> 1 & 4": 4,
        "7 & 2 = 2": True,
        "shiftleft(1 | 2, 1)": 6,
        "~5": -6,
        "5 & NULL": None,
        "shiftleft(1, 63)": -(2**63),
        "shiftleft(3, 64)": 3,
        "shiftright(-8, 1)": -4,
        "shiftrightunsigned(-1, 60)": 15,
    },
    "numbers": {
        "exp(0)": 1.0,
        "exp(-1000)": 0.0,
        "ln(1)": 0.0,
        "ln(0)": None,
        "log(-1)": None,
        "log(2, 8)": 3.0,
        "log(10, 1000)": 2.9999999999999996,
        "log10(1000)": 3.0,
        "log2(8)": 3.0,
        "log(0, 1)": None,
        "log1p(-1)": None,
        "sqrt(2.25)": 1.5,
        "power(2, 0.5)": 2**0.5,
        "cbrt(-27)": -3.0,
        "pi()": math.pi,
        "e()": math.e,
        "sin(0)": 0.0,
        "cos(pi())": -1.0,
        "atan2(0, -1)": math.pi,
        "degrees(pi())": 180.0,
        "hypot(3, 4)": 5.0,
        "exp(NULL)": None,
    },
    "conversions": {
        "CAST(' Yes ' AS BOOLEAN)": True,
        "CAST('0' AS BOOLEAN)": False,
        "CAST(2.5 AS BOOLEAN)": True,
        "CAST(0 AS BOOLEAN)": False,
        "CAST(0e0 AS BOOLEAN)": False,
        "CAST(NULL AS BOOLEAN)": None,
        "CAST(1 = 1 AS DECIMAL(3, 1))": Decimal("1.0"),
        "CAST(1 = 2 AS DOUBLE)": 0.0,
        "CAST(1 = 1 AS STRING)": "true",
        "DATE '2020-1-5'": MOMENT.date(),
        "CAST('2020-01-05 x' AS DATE)": MOMENT.date(),
        "CAST(concat('2020', '-1') AS DATE)": datetime.date(2020, 1, 1),
        "TIMESTAMP '2020-1-4 22:00:00-02:00'": MOMENT,
        "CAST(concat('2020-1-5', '') AS TIMESTAMP)": MOMENT,
        "DATE '2020-01-05' < TIMESTAMP '2020-01-05 00:00:01'": True,
        "TIMESTAMP '2020-01-05 00:00:00' = DATE '2020-01-05'": True,
        "coalesce(NULL, DATE '2020-01-05', TIMESTAMP '2020-01-01 00:00:01')": MOMENT,
        "TIMESTAMP '2020-01-05 09:00:00' BETWEEN DATE '2020-01-05' AND DATE '2020-01-06'": True,
    },
    "tried": {
        "TRY_CAST('x' AS INT)": None,
        "TRY_CAST(' 7 ' AS INT)": 7,
        "TRY_CAST(1e300 AS INT)": None,
        "TRY_CAST('1.5' AS DOUBLE)": 1.5,
        "TRY_CAST('x' AS BOOLEAN)": None,
        "TRY_CAST('20200105' AS DATE)": None,
        "TRY_CAST('2020-1-5' AS DATE)": MOMENT.date(),
        "TRY_CAST('2020-1-5 25:00' AS TIMESTAMP)": None,
        "TRY_CAST(12.5 AS DECIMAL(2, 1))": None,
        "TRY_CAST(2.55 AS DECIMAL(2, 1))": Decimal("2.6"),
        "TRY_CAST(125 AS DECIMAL(2, 0))": None,
        "TRY_CAST('1.25' AS DECIMAL(3, 1))": Decimal("1.3"),
        "TRY_CAST('x' AS DECIMAL(3, 1))": None,
        "TRY_CAST(5 AS STRING)": "5",
        "TRY_CAST(NULL AS INT)": None,
        "try_add(9223372036854775807, 1)": None,
        "try_add(1, 2)": 3,
        "try_add(1.5, 2)": Decimal("3.5"),
        "try_subtract(-9223372036854775807, 2)": None,
        "try_multiply(3, 1.5)": Decimal("4.5"),
        "try_multiply(1e300, 1e300)": None,
        "try_divide(3, 2)": 1.5,
        "try_divide(1, 0)": None,
        "try_divide(1.0, 0)": None,
        "try_divide(1.5, 0.5)": Decimal("3.000000"),
        "try_add(NULL, 1)": None,
    },
}


@pytest.mark.parametrize("kind", GIVES)
def test_of_constants(kind: str) -> None:
    wanted = GIVES[kind]
    ((*found,),) = harken.connect().sql(f"SELECT {', '.join(wanted)}").rows
    for (text, value), got in zip(wanted.items(), found, strict=True):
        assert (got, type(got)) == (value, type(value)), text


def test_the_same_on_spark(spark: SparkSession) -> None:
    """All of them in one question, bit for bit."""
    runtime = harken.connect().internals.runtime
    texts = [text for kind in GIVES.values() for text in kind]
    (statement,) = statements(f"SELECT {', '.join(texts)}")
    query = translate_query(statement, statement.node, runtime.catalog, "query")
    program = assemble(query.rows.relation, query.definitions.values(), runtime.catalog)
    plan = prepare(program, runtime.catalog.hierarchy)
    ((*found,),) = compile_plan(plan, {}).rows(spark)
    ((*wanted,),) = rows_of(runtime.engine, plan, ())
    for text, got, value in zip(texts, found, wanted, strict=True):
        assert got == value, text


FAILS = {
    "'a' RLIKE '['": "bad-value",
    "'a' RLIKE '[a&&b]'": "bad-value",
    "'a' RLIKE '(?m)a'": "bad-value",
    "'a' RLIKE 'a{,2}'": "bad-value",
    "regexp_replace('abc', 'b', '$9')": "bad-value",
    "regexp_extract('abc', 'b')": "bad-value",
    "s RLIKE concat(s, '[')": "bad-value",
    "repeat('ab', 4000000000)": "overflow",
    "split_part('a', ',', 0)": "bad-value",
    "to_date('20200105', 'yyyy-MM-dd')": "bad-value",
    "to_date('20200105', 'yyyy-MM-ddww')": "bad-value",
    "date_format(DATE '2020-01-05', 'yyyy]')": "bad-value",
    "make_timestamp(2020, 2, 30, 0, 0, 0)": "bad-value",
    "timestamp_millis(1000000000000000)": "overflow",
    "conv('18446744073709551616', 10, 16)": "overflow",
    "elt(3, 'a', 'b')": "bad-value",
    "trunc(DATE '2020-01-05', 'mm', 3)": "unsupported",
    "position('a', 'abca', 2, 3)": "unsupported",
    "chr(256)": "bad-value",
    "5.5 & 1": "type-mismatch",
    "exp(1000)": "overflow",
    "log(1, 5)": "bad-value",
    "asin(2)": "bad-value",
    "cot(0)": "bad-value",
    "sqrt(-1)": "bad-value",
    "CAST('on' AS BOOLEAN)": "bad-value",
    "CAST(s AS BOOLEAN)": "bad-value",
    "CAST(DATE '2020-01-01' AS BOOLEAN)": "unsupported",
    "CAST('20200105' AS DATE)": "bad-value",
    "CAST(concat(s, '0200105') AS DATE)": "bad-value",
    "DATE '2020-02-30'": "bad-value",
    "TIMESTAMP '2020-01-01T10:00+02:00'": "bad-value",
    "TRY_CAST(DATE '2020-01-01' AS INT)": "type-mismatch",
    "try_add(1 DIV 0, 1)": "division-by-zero",
}


def test_errors() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (s STRING); INSERT INTO t VALUES ('2')")
    for text, code in FAILS.items():
        with pytest.raises(harken.HarkenError) as caught:
            db.sql(f"SELECT {text} FROM t")
        assert caught.value.code == code, text


VIEWS = {
    "patterns": r"SELECT s, regexp_extract(s, r'(\d+)') AS d FROM t WHERE s RLIKE r'\d$'",
    "texts": "SELECT lpad(n, 3, '0') AS l, reverse(initcap(s)) AS r FROM t",
    "bits": "SELECT n & 1 AS odd, count(*) AS c FROM t GROUP BY n & 1",
    "numbers": "SELECT s, sqrt(n * n) AS x, ln(n) AS y FROM t WHERE log2(n) < 4 OR n <= 0",
    "tried": "SELECT TRY_CAST(s AS INT) AS i, try_divide(n, n - 2) AS q FROM t",
    "moments": "SELECT n FROM t WHERE TRY_CAST(s AS DATE) < TIMESTAMP '2020-01-05 00:00:01'",
    "read": "SELECT try_to_date(s, 'yyyy-M-d') AS d, from_unixtime(n, s) AS f FROM t WHERE n < 0",
    "written": "SELECT replace('x', s, NULL) AS r, elt(n % 2 + 1, s, n) AS e, "
    "conv(s, 16, 10) AS c, format_number(n, 1) AS f, bround(n / 2, 0) AS b FROM t WHERE n >= 0",
    "aliases": "SELECT n + 1 AS x, x * 2 AS y, count(*) AS c, c + y AS z FROM t GROUP BY n",
    "row": "SELECT s FROM t WHERE (n, s) = (SELECT max(n), max(s) FROM t)",
    "all": "TABLE t",
}


def test_views_follow() -> None:
    watched = Watched("CREATE TABLE t (n INT, s STRING)", VIEWS)
    watched.run("INSERT INTO t VALUES (1, 'ab1'), (2, '12'), (-3, '2020-1-5'), (NULL, NULL)")
    assert watched.rows("patterns") == {("ab1", "1"): 1, ("12", "12"): 1, ("2020-1-5", "2020"): 1}
    watched.run("UPDATE t SET s = 'z' WHERE n = 1; DELETE FROM t WHERE n = 2")
    assert watched.rows("moments") == {(-3,): 1}
    watched.run("INSERT INTO t VALUES (16, 'zz'), (16, '7'); UPDATE t SET n = 0 WHERE n IS NULL")
    assert watched.rows("row") == {("zz",): 1}
    assert (0, None, 0.0) not in watched.rows("numbers")


QUERIES: dict[str, list[Any]] = {
    "SELECT a + 1 AS x, x * 2 AS y FROM t": [(2, 4), (3, 6)],
    "SELECT a + 1 AS a, a * 2 AS y FROM t": [(2, 2), (3, 4)],  # the column, not the name
    "SELECT a + 1 AS x, x, x * 2 FROM t": [(2, 2, 4), (3, 3, 6)],
    "SELECT row_number() OVER (ORDER BY a) AS r, r + 1 AS q FROM t": [(1, 2), (2, 3)],
    "SELECT sum(a) AS s, s * 2 AS d FROM t HAVING d > 1": [(3, 6)],
    "SELECT a AS x, x + 1 AS z FROM t ORDER BY z + 0 DESC LIMIT 2 - 1": [(2, 3)],
    "SELECT max(c) FROM (SELECT 7 AS b, b AS c)": [(7,)],
    "SELECT (SELECT max(c) FROM (SELECT a + 6 AS b, b AS c)) FROM t": [(7,), (8,)],
    "TABLE t": [(1, 10), (2, 20)],
    "TABLE t ORDER BY a LIMIT 1": [(1, 10)],
    "SELECT a FROM (TABLE t)": [(1,), (2,)],
    "WITH w AS (TABLE t) TABLE w": [(1, 10), (2, 20)],
    "TABLE t UNION ALL TABLE t": [(1, 10), (1, 10), (2, 20), (2, 20)],
    "SELECT a FROM t ORDER BY a LIMIT 1 * (1 + 1) OFFSET 2 - 1": [(2,)],
    "SELECT a FROM t WHERE (a, b) = (SELECT 2, max(b) FROM t)": [(2,)],
    "SELECT a FROM t WHERE (a, b) <> (SELECT 2, max(b) FROM t)": [(1,)],
    "SELECT a FROM t AS o WHERE (a, 2) = (SELECT o.a, count(*) FROM t)": [(1,), (2,)],
    "SELECT (1, 2) = (SELECT a, b FROM t WHERE a > 9)": [(None,)],
}


def test_queries() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (a INT, b INT); INSERT INTO t VALUES (1, 10), (2, 20)")
    for text, rows in QUERIES.items():
        assert sorted(db.sql(text).rows) == rows, text
    names = db.sql("SELECT a + 1 AS x, x, x * 2 FROM t").columns
    assert [each.lower() for each in names] == ["x", "x", "x * 2"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT a AS x, b AS x, x + 1 AS y FROM t", "ambiguous"),
        ("SELECT x + 1 AS y, a AS x FROM t", "unknown-column"),
        ("SELECT a AS x, sum(x) AS y FROM t GROUP BY a", "unknown-column"),
        ("SELECT (1, 2) = (SELECT a, b FROM t)", "many-values"),
        ("SELECT (1, 2) = (SELECT a FROM t)", "arity"),
    ],
)
def test_queries_that_fail(text: str, code: str) -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (a INT, b INT); INSERT INTO t VALUES (1, 10), (2, 20)")
    with pytest.raises(harken.HarkenError) as caught:
        db.sql(text)
    assert caught.value.code == code
