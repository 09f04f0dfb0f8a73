"""Tables of a real PostgreSQL server as relations here."""

from __future__ import annotations

from collections import Counter

import pytest

import harken
from harken.settings import Settings
from tests.harness.servers import PostgresDatabase
from tests.harness.toy_sources import Clock


@pytest.fixture
def db(clock: Clock) -> harken.Database:
    settings = Settings({"allow_private_addresses": True})
    return harken.connect(":memory:", clock=clock, settings=settings)


def test_a_transaction_of_two_tables_arrives_whole(
    db: harken.Database, logical_database: PostgresDatabase, clock: Clock
) -> None:
    run = logical_database.run
    run("CREATE TABLE item (id int PRIMARY KEY, name text, price numeric(8,2), at timestamptz)")
    run("CREATE TABLE sale (item int, n int)")
    run("ALTER TABLE sale REPLICA IDENTITY FULL")
    run("INSERT INTO item VALUES (1, 'pen', 1.5, '2026-01-02 03:04:05+00')")
    for table in ("item", "sale"):
        db.source(table, "postgresql", url=logical_database.url, table=table, capture="logical")
    db.sql("CREATE VIEW sold AS SELECT i.name, s.n FROM item i JOIN sale s ON i.id = s.item")
    changes = db.monitor("sold")
    run(
        "BEGIN; INSERT INTO item VALUES (2, 'ink', 2, NULL);"
        "INSERT INTO sale VALUES (2, 5), (2, 5);"
        "UPDATE item SET id = 3 WHERE id = 1; COMMIT"
    )
    run("INSERT INTO sale VALUES (3, 1)")
    clock.forward(2)
    db.run_due()
    first, second = changes.changes()
    assert Counter(first.plus) == {("ink", 5): 2}
    assert second.plus == [("pen", 1)]
    run("TRUNCATE sale")
    run("ALTER TABLE item ADD COLUMN more text")
    run("UPDATE item SET more = 'x', price = 9 WHERE id = 3")
    db.sql("REFRESH SOURCE sale")
    assert db.sql("SELECT count(*) FROM sale").scalar() == 0
    assert sorted(db.sql("SELECT id, name, price FROM item").rows) == run(
        "SELECT id, name, price FROM item ORDER BY id"
    )
    assert "logical" in db.sources.describe("item")["capture"]
    run("ALTER TABLE item DROP COLUMN name")
    clock.forward(10)
    db.run_due()
    assert {each.name: each.state for each in db.sources.list()} == {
        "item": "schema changed",
        "sale": "ok",
    }
    changes.close()
    db.sources.drop("item", cascade=True)
    db.sources.drop("sale")
    assert run("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()") == [
        (0,)
    ]
    assert run("SELECT count(*) FROM pg_publication") == [(0,)]


def test_a_table_can_be_polled(
    db: harken.Database, logical_database: PostgresDatabase, clock: Clock
) -> None:
    run = logical_database.run
    run("CREATE TABLE t (a int, b text)")
    run("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 20) i")
    db.source("t", "postgresql", url=logical_database.url, table="t", capture="poll", every=30)
    run("DELETE FROM t WHERE a > 1")
    clock.forward(31)
    db.run_due()
    assert db.sql("SELECT * FROM t").rows == [(1, "x")]
