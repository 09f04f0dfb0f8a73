"""Sources in a real PostgreSQL server: each change arrives once, whoever is killed."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

import harken
from harken.errors import SourceFault
from tests.harness.servers import PostgresDatabase
from tests.harness.source_worker import SourceWorker

DEFINITIONS = """
    CREATE TABLE account (id int PRIMARY KEY, amount int, long text);
    ALTER TABLE account ALTER long SET STORAGE EXTERNAL;
    INSERT INTO account SELECT i, 100, repeat('x', 3000) FROM generate_series(1, 20) i;
    CREATE TABLE entry (number int, words text);
    ALTER TABLE entry REPLICA IDENTITY FULL
"""
HEARING = """
    create function heard(integer n) -> bag of integer;
    create rule hear() as when for each integer n where n = numbers() do add heard(n) = 1;
    activate hear(); commit;
"""
WAYS = ["logical", "triggers", "poll"]


class Clock:
    def __init__(self) -> None:
        self.now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

    def __call__(self) -> datetime.datetime:
        self.now += datetime.timedelta(hours=1)
        return self.now


def connected(path: Path | str) -> harken.Database:
    return harken.connect(str(path), clock=Clock(), settings={"allow_private_addresses": True})


def create(db: harken.Database, url: str, way: str) -> None:
    for table in ("account", "entry"):
        options = f"OPTIONS (url '{url}', table '{table}', retain '1000000 DAYS')"
        db.sql(f"CREATE SOURCE {table} USING postgresql {options} CAPTURE {way}")


def right(db: harken.Database, database: PostgresDatabase) -> None:
    for query in ("SELECT id, amount, long FROM account", "SELECT number, words FROM entry"):
        assert Counter(db.sql(query).rows) == Counter(database.run(query)), query


@pytest.mark.parametrize("way", WAYS)
def test_changes_reach_views(logical_database: PostgresDatabase, way: str) -> None:
    run = logical_database.run
    run(DEFINITIONS)
    with connected(":memory:") as db:
        create(db, logical_database.url, way)
        right(db, logical_database)
        db.sql("CREATE VIEW total AS SELECT sum(amount) AS n FROM account")
        changes = db.monitor("total")
        with logical_database.connection.transaction():
            run("UPDATE account SET amount = amount - 10 WHERE id = 1")
            run("UPDATE account SET amount = amount + 10 WHERE id = 2")
        run("UPDATE account SET id = 30, amount = 0 WHERE id = 3")
        run("INSERT INTO entry SELECT i % 2, 'x' FROM generate_series(1, 6) i")
        run("DELETE FROM entry WHERE number = 1")
        db.run_due()
        right(db, logical_database)
        (change,) = changes.changes()
        assert (change.minus, change.plus) == ([(2000,)], [(1900,)])
        changes.close()
        run("TRUNCATE entry")
        db.sql("REFRESH SOURCE entry")
        right(db, logical_database)
        for table in ("account", "entry"):
            db.sql(f"DROP SOURCE {table} CASCADE")
        assert run("SELECT FROM pg_publication") == []
        assert run("SELECT FROM pg_trigger WHERE NOT tgisinternal") == []


@pytest.mark.parametrize("way", ["logical", "triggers"])
def test_columns_that_are_not_taken_may_go(logical_database: PostgresDatabase, way: str) -> None:
    run, url = logical_database.run, logical_database.url
    run("CREATE TABLE t (id int PRIMARY KEY, n int, more int)")
    with connected(":memory:") as db:
        with pytest.raises(SourceFault, match="leaves out id, by which the server names"):
            db.source("t", "postgresql", url=url, table="t", capture=way, take=["n"])
        db.source("t", "postgresql", url=url, table="t", capture=way, take=["id", "n"])
        run("ALTER TABLE t DROP COLUMN more")
        run("INSERT INTO t VALUES (1, 1)")
        db.run_due()
        assert db.sql("SELECT * FROM t").rows == [(1, 1)]
        run("ALTER TABLE t DROP COLUMN n")
        run("INSERT INTO t VALUES (2)")
        db.run_due()
        (found,) = db.sources.list()
        assert found.state == "schema changed"
        assert db.sql("SELECT * FROM t").rows == [(1, 1)]


def test_a_key_that_is_not_exact_here_is_read_again(logical_database: PostgresDatabase) -> None:
    """Two of its values may be one number here, and the log would change the wrong row."""
    logical_database.run("CREATE TABLE t (id numeric PRIMARY KEY, n int)")
    with connected(":memory:") as db:
        db.source("t", "postgresql", url=logical_database.url, table="t")
        described = dict(db.sql("DESCRIBE SOURCE t").rows)
        assert described["capture"].startswith("poll")
        assert "15 digits" in str(described)


@pytest.mark.parametrize("way", ["logical", "triggers"])
def test_a_restored_copy_takes_nothing_from_the_original(
    logical_database: PostgresDatabase, tmp_path: Path, way: str
) -> None:
    run = logical_database.run
    run(DEFINITIONS)
    with connected(tmp_path / "shop.db") as db:
        create(db, logical_database.url, way)
        changes = db.monitor("entry")
        db.backup(tmp_path / "shop.harken")
        run("INSERT INTO entry VALUES (1, 'after the backup')")
        done = harken.restore(tmp_path / "shop.harken", tmp_path / "copy.db")
        assert done.restarted_sources == 2
        with connected(tmp_path / "copy.db") as copy:
            for number in (2, 3):
                run("INSERT INTO entry VALUES (%s, 'for both')", [number])
                copy.run_due()
                right(copy, logical_database)
            db.run_due()
            right(db, logical_database)
            assert [each.plus[0][0] for each in changes.changes()] == [1, 2, 3]
            if way == "triggers":
                places = run(
                    "SELECT tablename FROM pg_tables WHERE tablename LIKE 'delta_entry_entry%'"
                )
                assert len(places) == 2
            for table in ("account", "entry"):
                copy.sql(f"DROP SOURCE {table} CASCADE")
        run("DELETE FROM entry WHERE number = 2")
        db.run_due()
        right(db, logical_database)


@pytest.mark.parametrize("way", ["logical", "triggers"])
def test_a_restored_database_takes_over(
    logical_database: PostgresDatabase, tmp_path: Path, way: str
) -> None:
    """Each transaction after the backup is one here, where the original is gone."""
    run = logical_database.run
    run(DEFINITIONS)
    with connected(tmp_path / "shop.db") as db:
        create(db, logical_database.url, way)
        db.backup(tmp_path / "shop.harken")
    for number in (1, 2):
        run("INSERT INTO entry VALUES (%s, 'x')", [number])
    done = harken.restore(tmp_path / "shop.harken", tmp_path / "again.db", take_over=True)
    assert done.restarted_sources == 0
    with connected(tmp_path / "again.db") as again:
        changes = again.monitor("entry")
        again.run_due()
        right(again, logical_database)
        assert [each.plus[0][0] for each in changes.changes()] == [1, 2]


@pytest.mark.parametrize("way", WAYS)
def test_each_change_once_whoever_is_killed(
    logical_database: PostgresDatabase, tmp_path: Path, way: str
) -> None:
    live(logical_database, tmp_path, way, kills=1)


@pytest.mark.nightly
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("way", WAYS)
def test_each_change_once_through_200_kills(
    logical_database: PostgresDatabase, tmp_path: Path, way: str
) -> None:
    live(logical_database, tmp_path, way, kills=200)


def live(database: PostgresDatabase, directory: Path, way: str, kills: int) -> None:
    """A consumer hears of each row of `entry` once."""
    choose = random.Random(f"{way} {kills}")
    path = directory / "harken.db"
    database.run(DEFINITIONS)
    with connected(path) as db:
        create(db, database.url, way)
        db.sql("CREATE VIEW numbers AS SELECT number FROM entry")
        db.monitor("numbers", durable="counter")
        db.amosql(HEARING)
    worker = SourceWorker(path)
    number, written = 0, 0
    for _ in range(kills):
        for _ in range(choose.randrange(1, 8)):
            number += 1
            with suppress(psycopg.Error):
                write(choose, database, number)
                written += 1
            if choose.random() < 0.3:
                worker.wait_for_round()
        event = choose.random()
        if event < 0.2:
            database.connection.close()
            database.server.stop(choose.choice(["fast", "immediate"]))
            database.server.start()
        if event < 0.9:
            worker.kill()
            if choose.random() < 0.1:
                alter(path, database)
            worker = SourceWorker(path)
    worker.kill()
    with connected(path) as db:
        if way == "poll":
            for table in ("account", "entry"):
                db.sql(f"REFRESH SOURCE {table}")
        db.run_due()  # each transaction by itself: REFRESH would take all in one, net
        right(db, database)
        once(db, written, way)


def alter(path: Path, database: PostgresDatabase) -> None:
    """A column has another name for a while, which stops its source."""
    with connected(path) as db:
        db.run_due()
        database.run("ALTER TABLE entry RENAME words TO others")
        database.run("UPDATE account SET amount = amount")  # triggers tell it with a change
        with suppress(harken.HarkenError):
            db.sql("REFRESH SOURCE entry")
        assert {each.name: each.state for each in db.sources.list()}["entry"] == "schema changed"
        database.run("ALTER TABLE entry RENAME others TO words")
        db.sql("REFRESH SOURCE entry")


def once(db: harken.Database, written: int, way: str) -> None:
    """The changes add up to what is there, and none came twice. What was inserted and deleted
    between two readings of `poll` is not seen."""
    plus: Counter[Any] = Counter()
    minus: Counter[Any] = Counter()
    for each in db.monitor("numbers", durable="counter").changes():
        plus.update(each.plus)
        minus.update(each.minus)
    assert plus - minus == Counter(db.sql("SELECT * FROM numbers").rows)
    assert max(plus.values()) == 1
    heard = Counter((number,) for number, _ in db.sql("SELECT * FROM heard").rows)
    assert heard == plus
    if way != "poll":
        assert len(plus) == written, sorted(plus)


def write(choose: random.Random, database: PostgresDatabase, number: int) -> None:
    one, two = choose.randrange(1, 21), choose.randrange(1, 21)
    with database.connect() as connection, connection.transaction():
        run = connection.execute
        if choose.random() < 0.05:
            run("TRUNCATE entry")
        run("UPDATE account SET amount = amount - 1 WHERE id = %s", [one])
        run("UPDATE account SET amount = amount + 1 WHERE id = %s", [two])
        run("INSERT INTO entry VALUES (%s, 'x')", [number])
        if choose.random() < 0.1:
            run("UPDATE account SET id = id + 100 WHERE id = %s", [one])
        if choose.random() < 0.3:
            run("DELETE FROM entry WHERE number = %s", [choose.randrange(1, number + 1) - 1])
        if choose.random() < 0.3:
            run("UPDATE entry SET words = words || 'y' WHERE number %% 7 = %s", [number % 7])
        if choose.random() < 0.1:
            run("SAVEPOINT before")
            run("INSERT INTO entry VALUES (-1, 'never')")
            run("UPDATE account SET amount = -1")
            run("ROLLBACK TO before")
        if choose.random() < 0.05:
            run(f"ALTER TABLE entry ADD COLUMN IF NOT EXISTS more{number % 5} int")
        if choose.random() < 0.05:
            run(f"ALTER TABLE entry DROP COLUMN IF EXISTS more{choose.randrange(5)}")
