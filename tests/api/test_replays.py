"""How often a query would have fired: by the kept past, and never in the database itself."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken.api.replays import Replay

NOON = datetime.datetime(2026, 1, 5, 12, tzinfo=datetime.UTC)
MINUTE = datetime.timedelta(minutes=1)


class Shop:
    def __init__(self, path: Path) -> None:
        self.now = NOON
        self.db = harken.connect(path, clock=lambda: self.now)
        self.db.sql("CREATE TABLE stock (item STRING PRIMARY KEY, quantity INT)")
        self.db.sql("INSERT INTO stock VALUES ('pen', 50), ('ink', 50)")

    def follow(self) -> None:
        with self.db.monitor("stock", keep=harken.Keep(seconds=86_400)):
            pass

    def put(self, *quantities: int) -> None:
        for each in quantities:
            self.now += MINUTE
            self.db.sql(f"UPDATE stock SET quantity = {each} WHERE item = 'pen'")

    def replay(self, statement: str) -> Replay:
        queries = self.db.continual_queries
        names = queries.named_in(statement, [each.name for each in self.db.views()])
        histories = [self.db.history(each) for each in names]
        return queries.replay(statement, histories, self.now - datetime.timedelta(days=1))


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path / "shop.db")
    yield made
    made.db.close()


LOW = "CREATE CONTINUAL QUERY low AS SELECT * FROM stock WHERE quantity < 10 TRIGGER "


def test_a_content_trigger_fires_as_it_would_have(shop: Shop) -> None:
    shop.follow()
    shop.put(5, 4, 20, 8, 30)
    found = shop.replay(LOW + "WHEN stock.quantity < 10 NOTIFY EMAIL 'ann@example.org'")
    assert [each.at for each in found.firings] == [NOON + MINUTE, NOON + 4 * MINUTE]
    assert [(each.inserted, each.deleted) for each in found.firings] == [(1, 0), (1, 1)]
    assert [(each.relation, each.changes, each.is_kept) for each in found.past] == [
        ("stock", 5, True)
    ]
    assert shop.db.continual_queries.list() == []
    assert shop.db.sql("SELECT quantity FROM stock WHERE item = 'pen'").rows == [(30,)]


def test_it_fires_as_the_installed_query_did(shop: Shop) -> None:
    shop.follow()
    statement = LOW + "WHEN stock.quantity DECBYP 50 OR MAX(stock.quantity) > 60"
    shop.db.sql(statement)
    fired = []
    for each in (24, 12, 70, 71, 5, 6, 90):
        shop.put(each)
        fired += [done.at for done in shop.db.run_due()]
    assert fired
    assert [each.at for each in shop.replay(statement).firings] == fired


def test_a_time_trigger_needs_no_past(shop: Shop) -> None:
    found = shop.replay(LOW + "EVERY 20 MINUTES")
    assert len(found.firings) == 72
    assert [each.is_kept for each in found.past] == [False]


def test_rows_at_each_position_that_is_kept(shop: Shop) -> None:
    assert shop.db.history("stock").changes == []
    shop.follow()
    shop.put(5, 4)
    history = shop.db.history("stock")
    now = sorted(history.rows_at(history.position))
    assert now == sorted(history.rows) == [("ink", 50), ("pen", 4)]
    first = history.changes[0].position
    assert sorted(history.rows_at(first)) == [("ink", 50), ("pen", 5)]
    assert sorted(history.rows_at(history.floor)) == [("ink", 50), ("pen", 50)]
    with pytest.raises(harken.HarkenError, match="not known"):
        history.rows_at(history.floor - 1)
