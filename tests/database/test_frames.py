"""Results as rows, single values, and tables of Arrow, pandas and Polars."""

from __future__ import annotations

import datetime
import decimal
import sys
from collections.abc import Iterator

import pandas
import pyarrow
import pytest

import harken
from harken import Database
from harken.errors import HarkenError

DAY = datetime.date(2026, 2, 3)
MOMENT = datetime.datetime(2026, 2, 3, 4, 5, 6, 7, tzinfo=datetime.UTC)
ROWS = [
    (1, 2**62 + 1, 1.5, "a", True, DAY, MOMENT, decimal.Decimal("1.25")),
    (2, None, None, None, None, None, None, None),
]


@pytest.fixture
def db() -> Iterator[Database]:
    with harken.connect() as database:
        database.sql(
            "CREATE TABLE t (id INT PRIMARY KEY, i INT, n DOUBLE, s STRING, b BOOLEAN, d DATE, "
            "m TIMESTAMP, e DECIMAL(8, 2))"
        )
        database.load("t", ROWS)
        yield database


def test_a_result_is_iterated_and_counted(db: Database) -> None:
    (result,) = db.sql("SELECT * FROM t ORDER BY id")
    assert list(result) == ROWS
    assert len(result) == 2
    assert [type_.name for type_ in result.types][:3] == ["integer", "integer", "number"]


def test_one_row_and_one_value(db: Database) -> None:
    assert db.sql("SELECT id, s FROM t WHERE id = 1").one() == (1, "a")
    assert db.sql("SELECT count(*) FROM t").scalar() == 2
    assert db.sql("SELECT s FROM t WHERE id = 2").scalar() is None


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT id FROM t", "many-values"),
        ("SELECT id FROM t WHERE id = 9", "no-value"),
        ("SELECT id, s FROM t WHERE id = 1", "arity"),
    ],
)
def test_more_or_less_than_one_value_is_an_error(db: Database, query: str, code: str) -> None:
    with pytest.raises(HarkenError) as caught:
        db.sql(query).scalar()
    assert caught.value.code == code


def test_arrow_has_the_types_and_the_rows(db: Database) -> None:
    table = db.sql("SELECT * FROM t ORDER BY id").to_arrow()
    assert table.schema.field("m").type == pyarrow.timestamp("us", tz="UTC")
    assert table.schema.field("e").type == pyarrow.decimal128(8, 2)
    assert [tuple(row.values()) for row in table.to_pylist()] == ROWS


def test_an_empty_result_has_its_columns(db: Database) -> None:
    table = db.sql("SELECT id, s FROM t WHERE id > 5").to_arrow()
    assert table.num_rows == 0
    assert table.schema == pyarrow.schema([("id", pyarrow.int64()), ("s", pyarrow.string())])
    assert list(db.sql("SELECT id, s FROM t WHERE id > 5").to_pandas().columns) == ["id", "s"]


def test_pandas_keeps_large_integers_beside_null(db: Database) -> None:
    frame = db.sql("SELECT * FROM t ORDER BY id").to_pandas()
    assert frame["id"].dtype == "int64"
    assert frame["i"].dtype == pandas.Int64Dtype()
    assert frame["i"][0] == 2**62 + 1
    assert frame["i"][1] is pandas.NA
    assert frame["b"].dtype == pandas.BooleanDtype()
    assert frame["m"][0] == pandas.Timestamp(MOMENT)
    assert frame["d"][0] == DAY


def test_two_columns_of_one_name(db: Database) -> None:
    frame = db.sql("SELECT a.i, b.i FROM t a, t b WHERE a.id = 1 AND b.id = 2").to_pandas()
    assert frame.shape == (1, 2)
    assert frame.iloc[0, 0] == 2**62 + 1
    assert frame.iloc[0, 1] is pandas.NA


def test_what_arrow_gives_is_loaded_again(db: Database) -> None:
    table = db.sql("SELECT id + 10 AS id, i, n, s, b, d, m, e FROM t").to_arrow()
    db.load("t", table)
    assert db.sql("SELECT i, n, s, b, d, m, e FROM t WHERE id = 11").one() == ROWS[0][1:]


def test_objects_are_the_text_they_print_as() -> None:
    with harken.connect() as db:
        db.amosql("create type item; create item instances :a;")
        results = db.amosql("select i for each item i;")
        (text,) = results.to_arrow().to_pydict().popitem()[1]
        assert results[-1].lines() == [f"<{text}>"]


def test_a_notebook_shows_the_first_rows(db: Database) -> None:
    db.load("t", [(n, n, None, "<b>", None, None, None, None) for n in range(10, 40)])
    shown = db.sql("SELECT id, s FROM t ORDER BY id")._repr_html_()
    assert shown.count("<tr>") == 21
    assert "&lt;b&gt;" in shown
    assert "32 rows, the first 20 shown" in shown
    assert "<small>integer</small>" in shown


def test_a_missing_library_is_named(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(HarkenError) as caught:
        db.sql("SELECT id FROM t").to_polars()
    assert caught.value.code == "missing-package"
    assert caught.value.hint == "pip install 'harken[arrow]' polars"
