"""`db.insert`, `db.upsert` and `db.delete`: rows of Python, without text; and `db.prepare`."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterator
from typing import Any

import pandas
import polars
import pyarrow
import pytest

import harken


@pytest.fixture
def db() -> Iterator[harken.Database]:
    with harken.connect() as db:
        db.sql("CREATE TABLE sale (id INT PRIMARY KEY, shop STRING DEFAULT 'Oslo', n INT)")
        db.sql("CREATE TABLE seen (word STRING, day DATE, price DECIMAL(6, 2))")
        yield db


def rows(db: harken.Database, table: str = "sale") -> list[Any]:
    return sorted(db.sql(f"SELECT * FROM {table}").rows)


FORMS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "tuples": lambda given: [tuple(each.values()) for each in given],
    "lists": lambda given: [list(each.values()) for each in given],
    "mappings": lambda given: given,
    "Arrow": pyarrow.Table.from_pylist,
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_come_in_many_forms(db: harken.Database, form: str) -> None:
    made = FORMS[form]
    first = [{"id": 1, "shop": "Rome", "n": 5}, {"id": 2, "shop": "Bonn", "n": 6}]
    assert db.insert("sale", made(first)) == 2
    assert rows(db) == [(1, "Rome", 5), (2, "Bonn", 6)]
    later = [{"id": 2, "shop": "Ulm", "n": 7}, {"id": 3, "shop": "Kyiv", "n": 8}]
    assert db.upsert("sale", made(later)) == 2
    assert rows(db) == [(1, "Rome", 5), (2, "Ulm", 7), (3, "Kyiv", 8)]
    assert db.delete("sale", made([later[0], first[1]])) == 1
    assert rows(db) == [(1, "Rome", 5), (3, "Kyiv", 8)]


def test_columns_that_are_not_given_have_their_defaults(db: harken.Database) -> None:
    db.insert("sale", [{"n": 3, "id": 1}, {"id": 2, "shop": "Rome"}])
    assert rows(db) == [(1, "Oslo", 3), (2, "Rome", None)]


def test_an_upsert_keeps_the_columns_that_are_not_given(db: harken.Database) -> None:
    db.insert("sale", [(1, "Rome", 5)])
    db.upsert("sale", [{"id": 1, "n": 6}, {"id": 2, "n": 7}])
    assert rows(db) == [(1, "Rome", 6), (2, "Oslo", 7)]


def test_rows_are_deleted_by_key_by_columns_or_as_a_whole(db: harken.Database) -> None:
    db.insert("sale", [(i, "ab"[i % 2], i) for i in range(10)])
    assert db.delete("sale", [3, 4, 99]) == 2
    assert db.delete("sale", [(5,)]) == 1
    assert db.delete("sale", [{"shop": "a", "n": 6}, {"n": 6}, {"n": None}]) == 1
    assert db.delete("sale", [(0, "a", 0), (1, "other", 1)]) == 1
    assert [each[0] for each in rows(db)] == [1, 2, 7, 8, 9]


def test_values_are_those_of_the_columns(db: harken.Database) -> None:
    day = datetime.date(2024, 5, 6)
    db.insert("seen", [("a", day, decimal.Decimal("1.25")), ("b", "2024-05-06", 2)])
    price = decimal.Decimal("2.00")
    assert rows(db, "seen") == [("a", day, decimal.Decimal("1.25")), ("b", day, price)]
    assert db.delete("seen", [("a", day, decimal.Decimal("1.25"))]) == 1


def test_it_is_all_or_nothing_and_views_follow(db: harken.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW total AS SELECT shop, sum(n) AS n FROM sale GROUP BY shop")
    db.insert("sale", [(1, "a", 1), (2, "a", 2)])
    assert rows(db, "total") == [("a", 3)]
    with pytest.raises(harken.HarkenError, match="id = 2") as refused:
        db.insert("sale", [(3, "a", 3), (2, "b", 9)])
    assert refused.value.code == "row-exists"
    assert rows(db, "total") == [("a", 3)]
    with db.transaction():
        db.delete("sale", [1])
        db.upsert("sale", [(2, "b", 9)])
    assert rows(db, "total") == [("b", 9)]


REFUSED = (
    ("insert", "sale", [(1, "a")], "arity"),
    ("insert", "sale", [{"id": 1, "shap": "a"}], "unknown-column"),
    ("insert", "sale", [{"shop": "a"}], "null"),
    ("insert", "sale", [("one", "a", 1)], "bad-value"),
    ("insert", "sale", 5, "arity"),
    ("insert", "sale", [5], "arity"),
    ("insert", "sale", [(1, "a", 1), (1, "b", 2)], "row-exists"),
    ("insert", "sail", [(1, "a", 1)], "unknown-table"),
    ("upsert", "seen", [("a", None, None)], "not-unique"),
    ("upsert", "sale", [{"shop": "a"}], "arity"),
    ("upsert", "sale", [(1, "a", 1), (1, "b", 2)], "not-unique"),
    ("delete", "sale", [(1, "a")], "arity"),
)


@pytest.mark.parametrize(("verb", "table", "given", "code"), REFUSED)
def test_what_does_not_fit_is_refused(
    db: harken.Database, verb: str, table: str, given: Any, code: str
) -> None:
    with pytest.raises(harken.HarkenError) as refused:
        getattr(db, verb)(table, given)
    assert refused.value.code == code
    assert not rows(db)


def test_a_view_is_not_changed(db: harken.Database) -> None:
    db.sql("CREATE VIEW v AS SELECT id FROM sale")
    with pytest.raises(harken.HarkenError, match="only tables"):
        db.insert("v", [(1,)])


def test_a_prepared_statement_runs_with_other_values(db: harken.Database) -> None:
    put = db.prepare("INSERT INTO sale VALUES (:id, :shop, 0)")
    assert put.parameters == ("id", "shop")
    put(id=1, shop="Rome")
    put.execute([{"id": 2, "shop": "Bonn"}, {"id": 3, "shop": "Ulm"}])
    find = db.prepare("SELECT shop FROM sale WHERE id = ?")
    assert [find(i).scalar() for i in (1, 2, 3)] == ["Rome", "Bonn", "Ulm"]
    with pytest.raises(harken.HarkenError) as refused:
        db.prepare("SELECT FROM WHERE")
    assert refused.value.code == "syntax"
