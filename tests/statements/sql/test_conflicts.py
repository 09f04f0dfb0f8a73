"""INSERT ... ON CONFLICT, and RETURNING."""

from __future__ import annotations

import datetime
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import harken
from tests.harness.watched import Watched

SCHEMA = "CREATE TABLE item (id INT PRIMARY KEY, name STRING UNIQUE, n INT DEFAULT 7)"


@pytest.fixture
def db() -> harken.Database:
    db = harken.connect()
    db.sql(f"{SCHEMA}; INSERT INTO item VALUES (1, 'a', 10), (2, 'b', NULL)")
    return db


def rows(db: harken.Database) -> list[tuple[Any, ...]]:
    return db.sql("SELECT * FROM item ORDER BY id").rows


def test_nothing_is_done(db: harken.Database) -> None:
    db.sql("INSERT INTO item VALUES (1, 'x', 0), (3, 'c', 0), (3, 'd', 1) ON CONFLICT DO NOTHING")
    db.sql("INSERT INTO item VALUES (9, 'b', 0), (4, NULL, 0), (5, NULL, 0) ON CONFLICT DO NOTHING")
    assert rows(db) == [(1, "a", 10), (2, "b", None), (3, "c", 0), (4, None, 0), (5, None, 0)]
    with pytest.raises(harken.HarkenError, match="already has a row"):  # that is another conflict
        db.sql("INSERT INTO item VALUES (1, 'y', 0) ON CONFLICT (name) DO NOTHING")


def test_a_row_is_updated_instead(db: harken.Database) -> None:
    db.sql(
        "INSERT INTO item (id, name) VALUES (1, 'new'), (3, 'c')"
        " ON CONFLICT (id) DO UPDATE SET name = excluded.name, n = item.n + excluded.n"
    )
    assert rows(db) == [(1, "new", 17), (2, "b", None), (3, "c", 7)]
    db.sql(
        "INSERT INTO item AS i SELECT id + 10, name, 1 FROM item"
        " ON CONFLICT (name) DO UPDATE SET n = -excluded.n WHERE i.n > 10"
    )
    assert rows(db) == [(1, "new", -1), (2, "b", None), (3, "c", 7)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("INSERT INTO item VALUES (8, 'x', 0) ON CONFLICT (n) DO NOTHING", "not-unique"),
        ("INSERT INTO item VALUES (8, 'x', 0) ON CONFLICT (id) DO UPDATE SET z = 1",
         "unknown-column"),
        ("INSERT INTO item VALUES (8, 'x', 0) ON CONFLICT (id) DO UPDATE SET n = excluded.z",
         "unknown-column"),
        (
            "INSERT INTO item VALUES (8, 'x', 0), (8, 'y', 0) ON CONFLICT (id) DO UPDATE SET n = 1",
            "not-unique",
        ),
        (
            "INSERT INTO item VALUES (1, 'x', 0), (1, 'y', 0) ON CONFLICT (id) DO UPDATE SET n = 1",
            "not-unique",
        ),
        ("INSERT INTO item VALUES (1, 'x', 0) ON CONFLICT (id) DO UPDATE SET id = NULL", "null"),
        ("DELETE FROM item RETURNING z", "unknown-column"),
        ("MERGE INTO item USING item AS o ON item.id = o.id WHEN MATCHED THEN DELETE RETURNING id",
         "unsupported"),
    ],
)  # fmt: skip
def test_refused(db: harken.Database, text: str, code: str) -> None:
    before = rows(db)
    with pytest.raises(harken.HarkenError) as caught:
        db.sql(text)
    assert caught.value.code == code
    assert rows(db) == before


def test_returning(db: harken.Database) -> None:
    def returned(text: str) -> list[tuple[Any, ...]]:
        return sorted(db.sql(text).rows)

    assert returned("INSERT INTO item (id) VALUES (5), (6) RETURNING *") == [
        (5, None, 7),
        (6, None, 7),
    ]
    assert returned("UPDATE item SET n = n + 1 WHERE id > 4 RETURNING id, n * 2 AS twice") == [
        (5, 16),
        (6, 16),
    ]
    assert returned("DELETE FROM item AS i WHERE id > 4 RETURNING i.id") == [(5,), (6,)]
    assert returned("DELETE FROM item WHERE id > 4 RETURNING id") == []
    assert returned(
        "INSERT INTO item VALUES (1, 'z', 1), (7, 'q', 1) ON CONFLICT DO NOTHING RETURNING id"
    ) == [(7,)]
    assert returned(
        "INSERT INTO item VALUES (1, 'z', 1) ON CONFLICT (id) DO UPDATE SET n = 0 RETURNING name, n"
    ) == [("a", 0)]


def test_returning_gives_each_value_as_it_is() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (a DOUBLE, b DECIMAL(12, 6), c TIMESTAMP, d DATE, e BOOLEAN, f STRING)")
    moment = datetime.datetime(2020, 1, 5, 9, 30, 0, 250, tzinfo=datetime.UTC)
    assert db.sql(
        "INSERT INTO t VALUES (1e0 / 3e0, 0.000001, TIMESTAMP '2020-01-05 09:30:00.00025',"
        " DATE '2020-01-05', false, 'it''s'), (NULL, NULL, NULL, NULL, NULL, NULL) RETURNING *"
    ).rows[0] == (1 / 3, Decimal("0.000001"), moment, moment.date(), False, "it's")


def test_what_a_broken_constraint_undoes_is_not_returned() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (a INT CHECK (a > 0))")
    seen: list[Any] = []
    db.run_program("sql", "INSERT INTO t VALUES (1) RETURNING a", seen.append)
    with pytest.raises(harken.HarkenError):
        db.run_program("sql", "INSERT INTO t VALUES (0) RETURNING a", seen.append)
    assert len(seen) == 1


@pytest.mark.parametrize("seed", range(3))
def test_views_follow(seed: int) -> None:
    """What a statement says it did is what it did, and views see just that."""
    random = Random(seed)
    view = "SELECT n, count(*) AS c, max_by(name, id) AS m FROM item GROUP BY n"
    watched = Watched(SCHEMA, {"v": view})
    ways = (
        "DO NOTHING",
        "(id) DO UPDATE SET n = excluded.n + 1",
        "(id) DO UPDATE SET n = NULL WHERE item.n > 1",
    )
    for _ in range(25):
        key, name = random.randrange(5), random.choice("abcde")
        there = watched.db.sql(f"SELECT 1 FROM item WHERE name = '{name}' AND id <> {key}").rows
        way = "DO NOTHING" if there else random.choice(ways)
        row = f"({key}, '{name}', {random.randrange(3)})"
        again = f", {row}" if way == "DO NOTHING" else ""
        watched.run(f"INSERT INTO item VALUES {row}{again} ON CONFLICT {way}")
        watched.run(f"DELETE FROM item WHERE id = {random.randrange(5)} RETURNING id")
