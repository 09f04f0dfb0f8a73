"""Data frames of pandas and Polars become tables, in SQLite and in the lake."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest

import harken
from harken import Database, HarkenError

DAY = datetime.date(2026, 2, 3)
MOMENT = datetime.datetime(2026, 2, 3, 4, 5, 6, 7, tzinfo=datetime.UTC)
COLUMNS: dict[str, list[Any]] = {
    "id": [1, 2],
    "i": [2**62 + 1, None],
    "n": [1.5, None],
    "s": ["a", None],
    "b": [True, None],
    "d": [DAY, None],
    "m": [MOMENT, None],
    "e": [decimal.Decimal("1.25"), None],
}
ROWS = list(zip(*COLUMNS.values(), strict=True))


def pandas_frame() -> pandas.DataFrame:
    frame = pandas.DataFrame({**COLUMNS, "i": pandas.array(COLUMNS["i"], "Int64")})
    return frame.astype({"s": "category", "m": "datetime64[ns, UTC]"})


FRAMES = {
    "pandas": pandas_frame,
    "polars": lambda: polars.DataFrame(COLUMNS),
    "polars lazy": lambda: polars.LazyFrame(COLUMNS),
    "polars categories": lambda: polars.DataFrame(COLUMNS).cast({"s": polars.Categorical}),
}


@pytest.fixture
def db() -> Iterator[Database]:
    with harken.connect() as database:
        database.sql(
            "CREATE TABLE t (id INT PRIMARY KEY, i BIGINT, n DOUBLE, s STRING, b BOOLEAN, d DATE, "
            "m TIMESTAMP, e DECIMAL(8, 2))"
        )
        yield database


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_is_loaded_into_a_table(db: Database, kind: str) -> None:
    db.load("t", FRAMES[kind]())
    assert db.sql("SELECT * FROM t ORDER BY id").rows == ROWS


@pytest.mark.parametrize("kind", FRAMES)
def test_a_result_comes_back_as_it_was(db: Database, kind: str) -> None:
    db.load("t", FRAMES[kind]())
    first = db.sql("SELECT * FROM t ORDER BY id")
    db.sql("DELETE FROM t")
    db.load("t", first.to_pandas() if kind == "pandas" else first.to_polars())
    assert db.sql("SELECT * FROM t ORDER BY id").rows == ROWS


def test_a_frame_creates_objects(db: Database) -> None:
    db.amosql("create type item properties (name charstring, quantity integer);")
    items = db.load("item", pandas.DataFrame({"name": ["nail"], "quantity": [500]}))
    assert db.function("quantity")[items[0]] == 500


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_frame_becomes_a_table_in_the_lake(tmp_path: Path, kind: str) -> None:
    columns = {"item": ["nail", "screw"], "quantity": [500, 30], "since": [DAY, DAY]}
    frame = pandas.DataFrame(columns) if kind == "pandas" else polars.DataFrame(columns)
    with harken.connect(tmp_path / "shop.db") as db:
        db.lake("stock", frame, key=["item"], columns=["quantity"])
        assert db.function("stock")["nail"] == 500
        with db.transaction():
            db.function("stock")["nail"] = 7
    with harken.connect(tmp_path / "shop.db") as db:
        assert db.function("stock")["nail"] == 7


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pandas.DataFrame({"id": [1], "s": [object()]}), "one type"),
        (pandas.DataFrame({"id": [1, 2], "s": [1, "a"]}), "one type"),
        (pandas.DataFrame({"id": [1], "m": pandas.to_datetime([1], unit="ns")}), "dt.floor"),
        (pandas.DataFrame({"id": [1], "x": [1]}), "it has id"),
        (pandas.DataFrame({"s": ["a"]}), "NOT NULL"),
    ],
)
def test_values_that_do_not_fit_are_reported(db: Database, frame: Any, words: str) -> None:
    with pytest.raises(HarkenError) as caught:
        db.load("t", frame)
    assert words in str(caught.value.hint)
    assert db.sql("SELECT count(*) FROM t").scalar() == 0
