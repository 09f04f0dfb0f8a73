"""The columns of a table of PostgreSQL change, in each way of capture."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest

import harken
from tests.harness.servers import PostgresDatabase
from tests.intake.test_postgres_sources import WAYS, connected


def right(db: harken.Database, database: PostgresDatabase) -> None:
    columns = ", ".join(db.sql("SELECT * FROM item").columns)
    query = f"SELECT {columns} FROM item"
    assert Counter(db.sql(query).rows) == Counter(database.run(query)), query


def read(db: harken.Database, way: str) -> None:
    if way != "poll":
        db.run_due()
        return
    for name in ("item", "other"):  # its clock would make it due again and again
        with suppress(harken.HarkenError):
            db.sources.refresh(name)


@pytest.mark.parametrize("way", WAYS)
def test_columns_come_go_and_change(logical_database: PostgresDatabase, way: str) -> None:
    run = logical_database.run
    run(
        "CREATE TABLE item (id int PRIMARY KEY, name text); INSERT INTO item VALUES (1, 'pen');"
        "CREATE TABLE other (id int PRIMARY KEY); INSERT INTO other VALUES (1)"
    )
    with connected(":memory:") as db:
        for table in ("item", "other"):
            options = f"OPTIONS (url '{logical_database.url}', table '{table}')"
            db.sql(f"CREATE SOURCE {table} USING postgresql {options} CAPTURE {way}")
        db.sql("CREATE VIEW named AS SELECT name FROM item")
        named = db.monitor("named")
        run("ALTER TABLE item ADD price int DEFAULT 3; INSERT INTO item VALUES (2, 'ink', 5)")
        read(db, way)
        right(db, logical_database)
        assert "ALTER SOURCE item ADD COLUMN price" in str(db.sources.describe("item"))
        db.sql("ALTER SOURCE item ADD COLUMN price")
        right(db, logical_database)
        run("UPDATE item SET price = 9 WHERE id = 1; INSERT INTO item VALUES (3, 'cap', 1)")
        read(db, way)
        right(db, logical_database)
        assert sorted(e for each in named.changes() for e in each.plus) == [("cap",), ("ink",)]
        named.close()
        run("ALTER TABLE item DROP name; UPDATE item SET price = 2; INSERT INTO other VALUES (2)")
        read(db, way)
        assert db.sources.describe("item")["state"] == "schema changed"
        assert db.sql("SELECT count(*) FROM other").rows == [(2,)]
        assert "ALTER SOURCE item" in str(db.sources.describe("item")["what to do"])
        db.sql("DROP VIEW named")
        db.sql("ALTER SOURCE item DROP COLUMN name")
        right(db, logical_database)
        run("ALTER TABLE item ALTER price TYPE numeric(8, 2); UPDATE item SET price = 2.5")
        read(db, way)
        assert "RENEW COLUMNS" in str(db.sources.describe("item")["what to do"])
        db.sql("ALTER SOURCE item RENEW COLUMNS")
        right(db, logical_database)
        run("DELETE FROM item WHERE id = 1; INSERT INTO other VALUES (3)")
        read(db, way)
        right(db, logical_database)
        assert db.sql("SELECT count(*) FROM other").rows == [(3,)]
