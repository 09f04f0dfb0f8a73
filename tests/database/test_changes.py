"""What a change says: its time, its columns, its rows in pairs and as tables."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest

import harken
from harken import Change, Database, HarkenError
from harken.database.changes import Pairs, RowShape
from harken.ir.relations import Column
from harken.values.types import INTEGER, TEXT

NOON = datetime.datetime(2026, 2, 3, 12, 0, 0, 5, datetime.UTC)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with harken.connect(tmp_path / "shop.db", clock=lambda: NOON) as database:
        database.sql("CREATE TABLE item (id INT PRIMARY KEY, name STRING, price DECIMAL(8, 2))")
        database.sql("CREATE VIEW dear AS SELECT name, price FROM item WHERE price > 10")
        database.sql("INSERT INTO item VALUES (1, 'pen', 2), (2, 'bag', 30)")
        yield database


def update(db: Database) -> None:
    db.sql(
        "BEGIN; UPDATE item SET price = price + 9; DELETE FROM item WHERE id = 2; "
        "INSERT INTO item VALUES (3, 'cap', 12); COMMIT;"
    )


@pytest.mark.parametrize("how", [{}, {"durable": "d"}, {"keep": True}])
def test_a_change_has_the_time_of_its_commit(db: Database, how: dict[str, object]) -> None:
    sub = db.monitor("dear", **how)
    update(db)
    (change,) = sub.changes()
    assert change.at == NOON
    assert change.columns == ("name", "price")
    assert [type_.name for type_ in change.types] == ["charstring", "decimal(8,2)"]
    assert sub.snapshot().at == NOON
    assert db.snapshot("dear").columns == ("name", "price")


def test_the_time_is_not_part_of_what_changed(db: Database) -> None:
    sub = db.monitor("dear")
    update(db)
    (change,) = sub.changes()
    assert change == Change("dear", change.plus, change.minus, 1)


def test_updates_are_paired_by_the_key(db: Database) -> None:
    sub = db.monitor("item")
    update(db)
    (change,) = sub.changes()
    pairs = change.pairs()
    assert [(before[1], after[1]) for before, after in pairs.updated] == [("pen", "pen")]
    assert [row[1] for row in pairs.inserted] == ["cap"]
    assert [row[1] for row in pairs.deleted] == ["bag"]
    assert pairs == change.pairs(["id"]) == change.pairs("id")


def test_rows_of_a_bag_are_paired_one_by_one() -> None:
    shape = RowShape((Column("name", TEXT), Column("n", INTEGER)))
    change = Change("v", [("a", 1), ("a", 2)], [("a", 3)], 1, shape=shape)
    assert change.pairs(["name"]) == Pairs([(("a", 3), ("a", 1))], [("a", 2)], [])


def test_a_view_without_a_key_needs_one_named(db: Database) -> None:
    sub = db.monitor("dear")
    update(db)
    (change,) = sub.changes()
    with pytest.raises(HarkenError) as caught:
        change.pairs()
    assert "pairs(key=" in str(caught.value.hint)
    with pytest.raises(HarkenError) as caught:
        change.pairs(["nam"])
    assert caught.value.hint == "did you mean name?"
    assert [row[0] for row in change.pairs(["name"]).deleted] == ["bag"]


def test_rows_come_with_their_signs(db: Database) -> None:
    sub = db.monitor("dear")
    update(db)
    (change,) = sub.changes()
    assert [(sign, row[0]) for sign, row in change] == [(-1, "bag"), (1, "cap"), (1, "pen")]
    assert len(change) == 3
    with pytest.raises(HarkenError, match="2 rows"):
        change.one()
    db.sql("DELETE FROM item WHERE id = 3; INSERT INTO item VALUES (3, 'hat', 20)")
    assert sub.changes()[-1].one()[0] == "hat"


def test_a_change_becomes_a_table_with_the_columns_of_spark(db: Database) -> None:
    sub = db.monitor("dear")
    update(db)
    (change,) = sub.changes()
    table = change.to_arrow()
    assert table.schema.field("price").type == pyarrow.decimal128(8, 2)
    assert table.column("_change_type").to_pylist() == ["delete", "insert", "insert"]
    assert set(table.column("_commit_version").to_pylist()) == {change.transaction}
    assert set(table.column("_commit_timestamp").to_pylist()) == {NOON}
    assert list(change.to_pandas()["name"]) == ["bag", "cap", "pen"]
    assert change.to_polars().columns[-3:] == table.column_names[-3:]


def test_a_notebook_shows_what_came_and_went(db: Database) -> None:
    sub = db.monitor("dear")
    db.sql("INSERT INTO item VALUES (4, '<b>', 50)")
    (change,) = sub.changes()
    assert "<td>+</td><td>&lt;b&gt;</td>" in change._repr_html_()
    assert "1 row" in change._repr_html_()
    assert "<td>−</td>" in Change("v", [], [(1,)], 1)._repr_html_()


def test_a_view_defined_again_has_rows_of_two_kinds(db: Database) -> None:
    sub = db.monitor("dear")
    db.sql("CREATE OR REPLACE VIEW dear AS SELECT id AS name, name AS price FROM item")
    (change,) = sub.changes()
    with pytest.raises(HarkenError) as caught:
        change.to_arrow()
    assert caught.value.code == "type-mismatch"
