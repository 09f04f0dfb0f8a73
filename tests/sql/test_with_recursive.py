"""WITH RECURSIVE: what SQLite says it means, and views of it that are told exactly."""

from __future__ import annotations

import sqlite3
from random import Random

import pytest

import harken

REACH = (
    "WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge "
    "UNION SELECT r.x, e.y FROM r JOIN edge e ON e.x = r.y) SELECT x, y FROM r"
)
FROM_ONE = (
    "WITH RECURSIVE r(y) AS (SELECT y FROM edge WHERE x = 1 "
    "UNION SELECT e.y FROM r JOIN edge e ON e.x = r.y) SELECT count(*) AS n, max(y) AS most FROM r"
)
QUERIES = [
    REACH,
    f"{REACH} WHERE x = 2",
    f"{REACH} WHERE y = 2 AND x > 1",
    FROM_ONE,
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 20) SELECT sum(i) FROM n",
    "WITH RECURSIVE a(x) AS (SELECT 1 UNION SELECT e.y FROM a JOIN edge e ON e.x = a.x),"
    " b(x) AS (SELECT x FROM edge) SELECT b.x FROM b WHERE b.x NOT IN (SELECT x FROM a"
    " WHERE x IS NOT NULL)",
]


def rows(random: Random, count: int) -> list[tuple[int, int | None]]:
    return [
        (random.randint(1, 7), random.randint(1, 7) if random.random() < 0.9 else None)
        for _ in range(count)
    ]


def stored(edges: list[tuple[int, int | None]]) -> str:
    return ", ".join(f"({x}, {'NULL' if y is None else y})" for x, y in edges)


def by_sqlite(edges: list[tuple[int, int | None]], query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE edge (x, y)")
    connection.executemany("INSERT INTO edge VALUES (?, ?)", edges)
    return connection.execute(query).fetchall()


@pytest.mark.parametrize("query", QUERIES)
def test_it_means_what_sqlite_says(query: str) -> None:
    for seed in range(4):
        edges = rows(Random(seed), 9)
        with harken.connect() as db:
            db.sql("CREATE TABLE edge (x INT NOT NULL, y INT)")
            db.sql(f"INSERT INTO edge VALUES {stored(edges)}")
            found = db.sql(query).rows
        assert sorted(found, key=repr) == sorted(by_sqlite(edges, query), key=repr)


@pytest.mark.parametrize("strategy", ["auto", "external", "materialized", "naive"])
@pytest.mark.parametrize("query", [REACH, FROM_ONE])
def test_changes_of_a_view_are_exact(query: str, strategy: str) -> None:
    random = Random(5)
    edges = rows(random, 8)
    with harken.connect() as db:
        db.sql(
            f"CREATE TABLE edge (x INT NOT NULL, y INT); INSERT INTO edge VALUES {stored(edges)};"
        )
        db.sql(f"CREATE VIEW v AS {query}; CREATE MATERIALIZED VIEW m AS {query}")
        view = db.monitor("v", strategy=strategy)
        held = list(by_sqlite(edges, query))
        for _ in range(15):
            gone = random.choice(edges) if edges else (1, 1)
            come = rows(random, random.randint(0, 2))
            edges = [each for each in edges if each != gone] + come
            with db.transaction():
                y = "NULL" if gone[1] is None else gone[1]
                db.sql(f"DELETE FROM edge WHERE x = {gone[0]} AND y <=> {y}")
                if come:
                    db.sql(f"INSERT INTO edge VALUES {stored(come)}")
            for change in view.changes():
                for row in change.minus:
                    held.remove(row)
                held += change.plus
            wanted = sorted(by_sqlite(edges, query), key=repr)
            assert sorted(held, key=repr) == wanted
            assert sorted(db.sql("SELECT * FROM m").rows, key=repr) == wanted


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (
            "WITH RECURSIVE r AS (SELECT x FROM edge UNION ALL SELECT x FROM r) SELECT 1 FROM r",
            "unsupported",
        ),
        ("WITH RECURSIVE r AS (SELECT x FROM r) SELECT * FROM r", "unsafe"),
        (
            "WITH RECURSIVE r AS (SELECT x FROM edge UNION SELECT 'a' FROM r) SELECT * FROM r",
            "type-mismatch",
        ),
        (
            "WITH RECURSIVE r AS (SELECT x FROM edge UNION SELECT e.x FROM edge e"
            " WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.x = e.x)) SELECT * FROM r",
            "not-stratified",
        ),
    ],
)
def test_what_is_refused(query: str, code: str) -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE edge (x INT NOT NULL, y INT)")
        with pytest.raises(harken.HarkenError) as caught:
            db.sql(query)
    assert caught.value.code == code
