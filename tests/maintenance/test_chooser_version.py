"""The chooser's version: it stands while a wave can be repeated, and rises when decisions may turn.

Law: if the version is what it was, the same change would be decided in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import harken
from harken import Database
from harken.maintenance.chooser import Chooser


@pytest.fixture
def db() -> Iterator[Database]:
    with harken.connect() as db:
        db.sql("CREATE TABLE sale (id INT PRIMARY KEY, shop INT NOT NULL, amount INT NOT NULL)")
        db.load("sale", [(n, n % 10, n) for n in range(1000)])
        db.sql(
            "CREATE MATERIALIZED VIEW total AS "
            "SELECT shop, sum(amount) AS s FROM sale GROUP BY shop"
        )
        yield db


def chooser(db: Database) -> Chooser:
    return db.internals.network.chooser


def change(db: Database, times: int) -> None:
    for _ in range(times):
        db.sql("UPDATE sale SET amount = amount + 1 WHERE id = 7")


def test_it_stands_while_small_changes_repeat(db: Database) -> None:
    change(db, 128)
    before = chooser(db).version
    change(db, 100)
    assert chooser(db).version <= before + 3  # changed rows doubled, and new looks after 50 changes


def test_it_rises_when_a_relation_was_changed_twice_as_often(db: Database) -> None:
    change(db, 127)
    before = chooser(db).version
    change(db, 1)
    assert chooser(db).version > before


def test_it_rises_when_a_strategy_is_forced(db: Database) -> None:
    before = chooser(db).version
    db.monitoring("naive")
    assert chooser(db).version > before


def test_it_rises_when_something_is_built(db: Database) -> None:
    change(db, 40)
    for node in db.internals.network.graph.derived.values():
        node.table.revoke()  # type: ignore[attr-defined]
    before = chooser(db).version
    change(db, 1)
    assert chooser(db).version > before
