"""A table with NULLs or decimals through `db.lake`: whoever registers it knows what is there."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import harken
from harken import Database, LakeWarning
from harken.engines import fetch_limits as limits
from harken.engines.spark import distributed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOCK = pa.table(
    {
        "k": pa.array([1, 2, 3, 4], pa.int64()),
        "x": pa.array([10, None, 30, None], pa.int64()),
        "w": pa.array([0.5, 1.5, float("nan"), None], pa.float64()),
    }
)
MISSING = (
    "f: 3 of 4 rows are left out, because a function has no NULL, no infinite number and no "
    "decimal beyond 64 bits: there are such in x in 2 and w in 2"
)
REASON = (
    "because a function has no NULL, no infinite number and no decimal beyond 64 bits: "
    "there are such in"
)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with harken.connect(str(tmp_path / "t.db")) as db:
        yield db


@pytest.fixture
def stock(tmp_path: Path) -> str:
    path = str(tmp_path / "stock")
    write_deltalake(path, STOCK)
    return path


def test_registering_says_how_many_rows_are_left_out(db: Database, stock: str) -> None:
    with pytest.warns(LakeWarning) as caught:
        db.lake("f", stock, key=["k"])
    assert [str(each.message) for each in caught] == [MISSING]
    assert caught[0].filename == __file__
    assert list(db.function("f").items()) == [(1, (10, 0.5))]
    db.sql(f"CREATE TABLE g USING lake LOCATION '{stock}'")
    assert db.sql("SELECT count(*) AS n FROM g")[0].rows == [(4,)]


def test_only_columns_of_the_function_count(db: Database, stock: str) -> None:
    told: list[str] = []
    db.lake("f", stock, key=["k"], columns=["x"], warn=told.append)
    assert told == [
        "f: 2 of 4 rows are left out, because a function has no NULL, no infinite number and no "
        "decimal beyond 64 bits: there are such in x in 2"
    ]
    db.lake("k", stock, key=["k"], columns=["k"])


def test_rows_of_an_arrow_table_and_of_files_count_as_well(db: Database, tmp_path: Path) -> None:
    told: list[str] = []
    db.lake("f", STOCK, key=["k"], warn=told.append)
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.csv").write_text("k,x\n1,2\n2,\n")
    db.lake("g", str(files), key=["k"], format="csv", warn=told.append)
    assert told == [
        MISSING,
        "g: 1 of 2 rows is left out, because a function has no NULL, no infinite number and no "
        "decimal beyond 64 bits: there are such in x in 1",
    ]


def rows(*given: tuple[int | None, int | None]) -> pa.Table:
    keys, values = zip(*given, strict=True)
    return pa.table({"k": pa.array(keys, pa.int64()), "x": pa.array(values, pa.int64())})


def test_a_step_says_how_many_new_rows_are_left_out(db: Database, stock: str) -> None:
    db.lake("f", stock, key=["k"], warn=lambda _: None)
    more = [
        {"k": 5, "x": 50, "w": 2.5},
        {"k": 6, "x": None, "w": 2.5},
        {"k": None, "x": None, "w": float("inf")},
    ]
    write_deltalake(stock, pa.Table.from_pylist(more, STOCK.schema), mode="append")
    with pytest.warns(LakeWarning) as caught:
        step = db.step()
    sentence = f"2 of 3 new rows are left out, {REASON} k in 1 and x in 2 and w in 1"
    assert step.left_out == {"f": sentence}
    assert step.taken == {"f": 1}
    assert [str(each.message) for each in caught] == [f"f: {sentence}"]
    assert caught[0].filename == __file__
    assert list(db.function("f").items()) == [(1, (10, 0.5)), (5, (50, 2.5))]
    assert db.step().left_out == {}


def test_a_step_tells_of_each_input_whoever_asks(db: Database, tmp_path: Path) -> None:
    for name in "fgh":
        write_deltalake(tmp_path / name, rows((1, 10)))
        db.lake(name, tmp_path / name, key=["k"])
    write_deltalake(tmp_path / "f", rows((2, None)), mode="append")
    write_deltalake(tmp_path / "g", rows((2, 20)), mode="append")
    write_deltalake(tmp_path / "h", rows((2, 20), (None, 30)), mode="append")
    told: list[str] = []
    step = db.step(warn=told.append)
    assert told == [
        f"f: 1 of 1 new row is left out, {REASON} x in 1",
        f"h: 1 of 2 new rows is left out, {REASON} k in 1",
    ]
    assert [f"{name}: {sentence}" for name, sentence in step.left_out.items()] == told


@pytest.mark.parametrize("feed", [False, True], ids=["files", "change feed"])
def test_rows_that_stay_or_go_are_not_left_out_again(
    db: Database, tmp_path: Path, feed: bool
) -> None:
    path = tmp_path / "t"
    configuration = {"delta.enableChangeDataFeed": "true"} if feed else None
    write_deltalake(path, rows((1, 10), (2, None), (3, None)), configuration=configuration)
    db.lake("f", path, key=["k"], warn=lambda _: None)
    write_deltalake(path, rows((1, 11), (2, None)), mode="overwrite")
    step = db.step()
    assert (step.taken, step.left_out) == ({"f": 2}, {})
    write_deltalake(path, rows((1, None), (2, None)), mode="overwrite")
    told: list[str] = []
    assert db.step(warn=told.append).taken == {"f": 1}
    assert told == [f"f: 1 of 1 new row is left out, {REASON} x in 1"]


def test_equal_rows_are_each_left_out(db: Database, tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, rows((1, 10)))
    db.lake("f", path, key=["k"], unique=False)
    write_deltalake(path, rows((2, None), (2, None), (1, 10)), mode="append")
    told: list[str] = []
    db.step(warn=told.append)
    assert told == [f"f: 2 of 3 new rows are left out, {REASON} x in 2"]


def test_a_step_that_fails_tells_nothing(db: Database, tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, rows((1, 10)))
    db.lake("f", path, key=["k"])
    write_deltalake(path, rows((1, 11), (2, None)), mode="append")
    with pytest.raises(harken.HarkenError, match="not unique"):
        db.step()
    write_deltalake(path, rows((1, 11), (2, None)), mode="overwrite")
    with pytest.warns(LakeWarning, match="1 of 2 new rows is left out"):
        db.step()


def test_files_and_tables_of_sql_count_as_well(db: Database, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.csv").write_text("k,x\n1,2\n")
    db.lake("f", files, key=["k"])
    db.sql(f"CREATE TABLE t USING lake LOCATION '{files}'")
    db.sql(f"CREATE TABLE strict (k INT, x INT NOT NULL) USING lake LOCATION '{files}'")
    (files / "b.csv").write_text("k,x\n2,\n,3\n3,4\n")
    told: list[str] = []
    db.step(warn=told.append)
    assert told == [
        f"f: 2 of 3 new rows are left out, {REASON} k in 1 and x in 1",
        f"strict: 1 of 3 new rows is left out, {REASON} x in 1",
    ]
    assert db.sql("SELECT count(*) AS n FROM t").rows == [(4,)]
    assert db.sql("SELECT count(*) AS n FROM strict").rows == [(3,)]


def test_of_a_large_change_only_new_rows_count(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark counts them where they are, unless the log of the table says that there are none."""
    counts = []

    def count(*given: object) -> tuple[int, int, dict[str, int]]:
        counts.append(given)
        return counted(*given)  # type: ignore[arg-type]

    counted = distributed.count_unsound
    monkeypatch.setattr(distributed, "count_unsound", count)
    path = tmp_path / "t"
    write_deltalake(path, rows((1, 10)))
    with harken.connect(tmp_path / "t.db", spark=spark) as db:
        db.lake("f", path, key=["k"], unique=False)
        monkeypatch.setattr(limits, "MOST_HELD", 0)
        write_deltalake(path, rows((2, 20)), mode="append")
        assert db.step().left_out == {}
        assert not counts
        told: list[str] = []
        write_deltalake(path, rows((3, None), (3, None), (4, 40)), mode="append")
        db.step(warn=told.append)
        write_deltalake(path, rows((5, None), (None, 60), (3, None)), mode="append")
        db.step(warn=told.append)
        everything = rows((1, 10), (2, 20), (3, None), (3, None), (3, None), (4, None))
        write_deltalake(path, everything, mode="overwrite")
        db.step(warn=told.append)
        assert told == [
            f"f: 2 of 3 new rows are left out, {REASON} x in 2",
            f"f: 3 of 3 new rows are left out, {REASON} k in 1 and x in 2",
            f"f: 1 of 1 new row is left out, {REASON} x in 1",
        ]
        assert sorted(db.amosql("select k, f(k) for each integer k;").rows) == [(1, 10), (2, 20)]


def test_decimals_are_taken(db: Database, tmp_path: Path) -> None:
    path = str(tmp_path / "prices")
    prices = pa.table(
        {
            "item": ["pen", "ink"],
            "price": pa.array([Decimal("1.50"), Decimal("12.05")], pa.decimal128(10, 2)),
            "since": [datetime.date(2026, 1, 1)] * 2,
        }
    )
    write_deltalake(path, prices)
    db.lake("price", path, key=["item"], columns=["price"])
    assert dict(db.function("price").items()) == {"pen": Decimal("1.50"), "ink": Decimal("12.05")}
    db.sql("CREATE VIEW dear AS SELECT item FROM price WHERE price > 2")
    monitor = db.monitor("dear")
    assert monitor.rows() == [("ink",)]
    more = pa.table(
        {
            "item": ["cap"],
            "price": pa.array([Decimal("7.00")], pa.decimal128(10, 2)),
            "since": [datetime.date(2026, 1, 2)],
        }
    )
    write_deltalake(path, more, mode="append")
    db.step()
    assert [change.plus for change in monitor.changes()] == [[("cap",)]]
    assert db.amosql('select price("cap");').rows == [(Decimal("7.00"),)]


def test_decimals_are_there_after_reopening(tmp_path: Path) -> None:
    path = str(tmp_path / "prices")
    value = pa.array([Decimal("1.50")], pa.decimal128(10, 2))
    write_deltalake(path, pa.table({"item": ["pen"], "price": value}))
    with harken.connect(str(tmp_path / "t.db")) as db:
        db.lake("price", path, key=["item"])
        db.lake("own", pa.table({"item": ["pen"], "price": value}), key=["item"])
    with harken.connect(str(tmp_path / "t.db")) as db:
        assert db.function("price")["pen"] == db.function("own")["pen"] == Decimal("1.50")


WIDE = Decimal("12345678901234567890.12")
"""Of 22 digits: in hundredths it has more than 64 bits."""


def amounts(first: int, *values: Decimal) -> pa.Table:
    numbers = pa.array(range(first, first + len(values)), pa.int64())
    return pa.table({"k": numbers, "x": pa.array(values, pa.decimal128(38, 2))})


def test_decimals_of_more_than_64_bits_are_left_out(db: Database, tmp_path: Path) -> None:
    path, told = str(tmp_path / "amounts"), list[str]()
    largest = Decimal("92233720368547758.07")
    write_deltalake(path, amounts(1, Decimal("1.50"), WIDE, largest, -WIDE))
    db.lake("f", path, key=["k"], warn=told.append)
    assert told == [f"f: 2 of 4 rows are left out, {REASON} x in 2"]
    assert list(db.function("f").items()) == [(1, Decimal("1.50")), (3, largest)]
    write_deltalake(path, amounts(5, Decimal("2.50"), WIDE), mode="append")
    step = db.step(warn=told.append)
    assert step.left_out == {"f": f"1 of 2 new rows is left out, {REASON} x in 1"}
    assert dict(db.function("f").items())[5] == Decimal("2.50")
    assert db.step(warn=told.append).left_out == {}


def test_decimals_of_an_arrow_table_count_as_well(db: Database) -> None:
    told: list[str] = []
    db.lake("f", amounts(1, Decimal("1.50"), WIDE), key=["k"], warn=told.append)
    assert told == [f"f: 1 of 2 rows is left out, {REASON} x in 1"]
    assert list(db.function("f").items()) == [(1, Decimal("1.50"))]


def test_sql_says_what_does_not_fit(db: Database, tmp_path: Path) -> None:
    """A column that may be NULL has no other way to say that it has a value."""
    path = str(tmp_path / "amounts")
    write_deltalake(path, amounts(1, Decimal("1.50"), WIDE))
    db.sql(f"CREATE TABLE g USING lake LOCATION '{path}'")
    with pytest.raises(harken.HarkenError, match="does not fit in 64 bits: the largest is") as said:
        db.sql("SELECT k, x FROM g")
    assert said.value.code == "overflow"
    db.sql("CREATE TABLE h (x DECIMAL(19, 5))")
    with pytest.raises(harken.HarkenError, match="does not fit in 64 bits"):
        db.sql("INSERT INTO h VALUES (99999999999999.99999)")


def test_spark_leaves_out_the_same_decimals(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_HELD", 1)
    monkeypatch.setattr(limits, "SMALL", 1)
    monkeypatch.setattr(limits, "MOST_ROWS", 1)
    path, told = str(tmp_path / "amounts"), list[str]()
    write_deltalake(path, amounts(1, Decimal("1.50"), WIDE, Decimal("2.50")))
    with harken.connect(tmp_path / "t.db", spark=spark) as db:
        db.lake("f", path, key=["k"], warn=told.append)
        assert told == [f"f: 1 of 3 rows is left out, {REASON} x in 1"]
        assert db.sql("SELECT count(*) AS n, sum(x) AS s FROM f").rows == [(2, Decimal("4.00"))]
