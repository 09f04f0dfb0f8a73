"""Parameters: `?` and `:name`, the values that come for them, and what is refused."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from typing import Any

import pytest

import harken

NOON = datetime.datetime(2024, 1, 2, 12, tzinfo=datetime.UTC)
ROW = (1, "it's; -- '", 1.5, decimal.Decimal("2.50"), True, datetime.date(2024, 1, 2), NOON)


@pytest.fixture
def db() -> Iterator[harken.Database]:
    with harken.connect() as database:
        database.sql(
            "CREATE TABLE t (id INT PRIMARY KEY, s STRING, n DOUBLE, c DECIMAL(10, 2), b BOOLEAN, "
            "d DATE, m TIMESTAMP)"
        )
        yield database


def test_values_of_every_type_come_back(db: harken.Database) -> None:
    db.sql("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", ROW)
    names = ("id", "s", "n", "c", "b", "d", "m")
    for name, value in zip(names, ROW, strict=True):
        assert db.sql(f"SELECT * FROM t WHERE {name} = ?", [value]).rows == [ROW]
        assert db.sql(f"SELECT * FROM t WHERE {name} = :x", {"x": value}).rows == [ROW]
        assert db.sql(f"SELECT {name} FROM t WHERE {name} <> ?", [value]).rows == []


def test_null(db: harken.Database) -> None:
    db.sql("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", (1, *[None] * 6))
    assert db.sql("SELECT s, m FROM t WHERE s IS NULL").rows == [(None, None)]
    assert db.sql("SELECT id FROM t WHERE s = ?", [None]).rows == []


def test_a_name_may_stand_several_times(db: harken.Database) -> None:
    assert db.sql("SELECT :x + :y, :x", {"x": 1, "y": 2}).rows == [(3, 1)]


def test_positions_count_through_the_text(db: harken.Database) -> None:
    db.sql("INSERT INTO t (id) VALUES (?); INSERT INTO t (id) VALUES (?)", [1, 2])
    assert db.sql("SELECT id FROM t ORDER BY id").rows == [(1,), (2,)]


@pytest.mark.parametrize("list_", ["(?)", "?", "(:l)", ":l"])
def test_a_list_behind_in(db: harken.Database, list_: str) -> None:
    db.sql("INSERT INTO t (id) VALUES (1), (2), (3), (4), (5)")
    for wanted in ([], [2], [2, 9], [1, 2, 3], [5, None], {4}):
        given: Any = [wanted] if "?" in list_ else {"l": wanted}
        found = db.sql(f"SELECT id FROM t WHERE id IN {list_} ORDER BY id", given).rows
        assert found == [(i,) for i in range(1, 6) if i in wanted]
    given = [[1, 2]] if "?" in list_ else {"l": [1, 2]}
    assert len(db.sql(f"SELECT id FROM t WHERE id NOT IN {list_}", given).rows) == 3


def test_limits_and_ordinals(db: harken.Database) -> None:
    db.sql("INSERT INTO t (id) VALUES (1), (2), (3)")
    found = db.sql("SELECT id FROM t ORDER BY ? DESC LIMIT ? OFFSET ?", [1, 1, 1])
    assert found.rows == [(2,)]


def test_every_changing_statement(db: harken.Database) -> None:
    db.sql("INSERT INTO t (id, s) VALUES (?, ?)", [1, "a"])
    db.sql("UPDATE t SET s = ?, n = n + ? WHERE id = ?", ["b", 1.5, 1])
    merge = (
        "MERGE INTO t USING (SELECT :id AS id, :s AS s) AS u ON t.id = u.id "
        "WHEN MATCHED THEN UPDATE SET s = u.s "
        "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (u.id, u.s)"
    )
    db.sql(merge, [{"id": 1, "s": "c"}, {"id": 2, "s": "d"}])
    upsert = "INSERT INTO t (id, s) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET s = ?"
    db.sql(upsert, [2, "e", "f"])
    assert db.sql("SELECT id, s FROM t ORDER BY id").rows == [(1, "c"), (2, "f")]
    assert db.sql("DELETE FROM t WHERE id = ? RETURNING s", [1]).rows == [("c",)]


def test_a_list_of_rows_is_one_transaction(db: harken.Database) -> None:
    db.sql("INSERT INTO t (id, s) VALUES (?, ?)", [(1, "a"), (2, "b")])
    sub = db.monitor("t")
    db.sql("UPDATE t SET s = :s WHERE id = :i", [{"s": "x", "i": 1}, {"s": "y", "i": 2}])
    (change,) = sub.changes()
    assert len(change.plus) == 2
    with pytest.raises(harken.HarkenError, match="already has a row"):
        db.sql("INSERT INTO t (id) VALUES (?)", [(3,), (1,)])
    assert db.sql("SELECT count(*) FROM t").rows == [(2,)]
    assert db.sql("INSERT INTO t (id) VALUES (?)", []) == []


def test_a_failed_list_leaves_the_open_transaction(db: harken.Database) -> None:
    with db.transaction():
        db.sql("INSERT INTO t (id) VALUES (?)", [1])
        with pytest.raises(harken.HarkenError):
            db.sql("INSERT INTO t (id) VALUES (?)", [(2,), (1,)])
    assert db.sql("SELECT id FROM t").rows == [(1,)]


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("SELECT ?", None, "1 parameter, and 0 values are given"),
        ("SELECT ?", [1, 2], "1 parameter, and 2 values are given"),
        ("SELECT 1", [1], "0 parameters, and 1 value is given"),
        ("SELECT :a", [1], "this parameter has a name"),
        ("SELECT ?", {"a": 1}, "this parameter has none"),
        ("SELECT :a", {"b": 1}, "no value for the parameter :a"),
        ("SELECT :a", {"a": 1, "b": 1}, "there is no parameter :b"),
        ("SELECT ?", [2**63], "parameter 1: 9223372036854775808 does not fit in 64 bits"),
        ("SELECT ?", [float("nan")], "parameter 1: nan is not of type number"),
        ("SELECT ?", [float("inf")], "parameter 1: inf"),
        ("SELECT ?", ["a\0"], "parameter 1: 'a"),
        ("SELECT ?", ["\ud800"], "parameter 1"),
        ("SELECT ?", [decimal.Decimal("NaN")], "parameter 1: NaN is not a decimal"),
        ("SELECT ?", [decimal.Decimal(10) ** 40], "more than 38 digits"),
        ("SELECT ?", [datetime.datetime(2024, 1, 1)], "parameter 1"),
        ("SELECT ?", [object()], "which is not a value of SQL"),
        ("SELECT 1 WHERE 1 IN (?)", [[object()]], "a value of parameter 1"),
        ("SELECT ? + 1", [[1, 2]], "a list can stand only behind IN"),
        ("CREATE VIEW v AS SELECT ? AS a", [1], "a parameter cannot stand in CREATE"),
        ("SELECT 1", 5, "the values are a int"),
        ("BEGIN", [(1,)], "BEGIN is not run for several rows"),
    ],
)
def test_what_is_refused(db: harken.Database, text: str, values: Any, message: str) -> None:
    with pytest.raises(harken.HarkenError) as caught:
        db.sql(text, values)
    assert message in caught.value.message
    assert caught.value.hint


def test_the_place_of_a_parameter(db: harken.Database) -> None:
    with pytest.raises(harken.HarkenError) as caught:
        db.sql("SELECT 1;\nSELECT :here", [1])
    span = caught.value.span
    assert span is not None
    assert "SELECT 1;\nSELECT :here"[span.start : span.end] == ":here"
