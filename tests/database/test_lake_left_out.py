"""A table with NULLs or decimals through `db.lake`: whoever registers it knows what is there."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import harken
from harken import Database, LakeWarning

STOCK = pa.table(
    {
        "k": pa.array([1, 2, 3, 4], pa.int64()),
        "x": pa.array([10, None, 30, None], pa.int64()),
        "w": pa.array([0.5, 1.5, float("nan"), None], pa.float64()),
    }
)
MISSING = (
    "f: 3 of 4 rows are left out, because a function has no NULL and no number that is not finite: "
    "there are such in x in 2 and w in 2"
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
        "f: 2 of 4 rows are left out, because a function has no NULL and no number that is not "
        "finite: there are such in x in 2"
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
        "g: 1 of 2 rows is left out, because a function has no NULL and no number that is not "
        "finite: there are such in x in 1",
    ]


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
