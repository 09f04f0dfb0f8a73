"""Dates and timestamps moved by intervals, and the whole units between two of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import harken
from tests.harness.watched import Watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY, NOON = "DATE '2024-02-29'", "TIMESTAMP '2023-01-31 12:00:00'"

# expression over d = 2024-02-29, t = 2023-01-31 12:00 and n = 2; its value
MOVED = {
    "d + INTERVAL 1 YEAR 2 MONTHS": "2025-04-29",
    "d + INTERVAL 1 YEAR + INTERVAL 2 MONTHS": "2025-04-28",
    "d + (INTERVAL '1' YEAR + INTERVAL '2' MONTH)": "2025-04-29",
    "d - INTERVAL '1 year 2 months'": "2022-12-29",
    "d + INTERVAL '1-2' YEAR TO MONTH": "2025-04-29",
    "INTERVAL 1 WEEK + d": "2024-03-07",
    "d + -INTERVAL '1' DAY": "2024-02-28",
    "d + INTERVAL 1 QUARTER": "2024-05-29",
    "d + INTERVAL 5 HOURS": "2024-02-29 05:00:00",
    "d + n * INTERVAL '1' MONTH": "2024-04-29",
    "d + INTERVAL '1' DAY * n": "2024-03-02 00:00:00",
    "t + INTERVAL n MONTHS": "2023-03-31 12:00:00",
    "t + INTERVAL 1 MONTH 1 DAY": "2023-03-01 12:00:00",
    "t - INTERVAL '1 02:03:04.5' DAY TO SECOND": "2023-01-30 09:56:55.500000",
    "t + INTERVAL '-02:30' HOUR TO MINUTE": "2023-01-31 09:30:00",
    "t + INTERVAL '0.25' SECOND": "2023-01-31 12:00:00.250000",
    "dateadd(MONTH, 1, t)": "2023-02-28 12:00:00",
    "dateadd(DAY, n, d)": "2024-03-02 00:00:00",
    "timestampadd(MINUTE, -1, t)": "2023-01-31 11:59:00",
    "datediff(MONTH, t, d)": "12",
    "datediff(MONTH, d, t)": "-12",
    "datediff(YEAR, d, DATE '2025-02-28')": "0",
    "datediff(QUARTER, t, d)": "4",
    "datediff(DAY, t, d)": "393",
    "timestampdiff(HOUR, t, d)": "9444",
    "timestampdiff(WEEK, d, t)": "-56",
    "datediff(d, DATE '2024-01-01')": "59",
    "dayname(d) || monthname(t)": "ThuJan",
}


def shown(value: object) -> str:
    return str(value).removesuffix("+00:00")


def query(table: str) -> str:
    return f"SELECT {', '.join(f'{text} AS c{i}' for i, text in enumerate(MOVED))} FROM {table}"


def test_each_of_a_row_and_of_constants() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE m (d DATE, t TIMESTAMP, n INT)")
        db.sql(f"INSERT INTO m VALUES ({DAY}, {NOON}, 2), (NULL, NULL, NULL)")
        found, nothing = sorted(db.sql(query("m")).rows, key=repr)[::-1]
        if found[0] is None:
            found, nothing = nothing, found
        assert [shown(each) for each in found] == list(MOVED.values())
        assert set(nothing) == {None}
        for text, value in MOVED.items():
            row = f"(SELECT {DAY} AS d, {NOON} AS t, 2 AS n) AS m"
            ((one,),) = db.sql(f"SELECT {text} FROM {row}").rows
            assert shown(one) == value, text


def test_a_view_follows() -> None:
    schema = "CREATE TABLE m (d DATE, t TIMESTAMP, n INT)"
    watched = Watched(schema, {"v": query("m")}, "incremental")
    watched.run(f"INSERT INTO m VALUES ({DAY}, {NOON}, 2), (NULL, {NOON}, 1), ({DAY}, NULL, NULL)")
    watched.run("UPDATE m SET n = n + 1; DELETE FROM m WHERE t IS NULL")
    watched.run("UPDATE m SET d = d + INTERVAL 1 MONTH, t = NULL")


def test_spark_gives_the_same(spark: SparkSession, tmp_path: Path) -> None:
    with harken.connect(tmp_path / "lake.db", spark=spark, engine="lake") as db:
        db.sql("CREATE TABLE m (d DATE, t TIMESTAMP, n INT)")
        db.sql(f"INSERT INTO m VALUES ({DAY}, {NOON}, 2)")
        db.internals.engine.forced = "spark"
        (found,) = db.sql(query("m")).rows
        assert [shown(each) for each in found] == list(MOVED.values())


@pytest.mark.parametrize("interval", ["INTERVAL 'x' DAY", "INTERVAL '1.5' DAY", "INTERVAL 5"])
def test_what_is_no_interval_is_refused(interval: str) -> None:
    with harken.connect() as db, pytest.raises(harken.LanguageError, match="interval"):
        db.sql(f"SELECT {DAY} + {interval}")


def test_a_text_is_not_moved() -> None:
    with harken.connect() as db, pytest.raises(harken.LanguageError, match="STRING"):
        db.sql("SELECT '2024-01-01' + INTERVAL 1 DAY")
