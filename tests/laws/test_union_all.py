"""Law: WITH RECURSIVE ... UNION ALL has each row as often as SQLite and DuckDB say, and a view of
it is told exactly: what was held, with what came and without what went, is the query asked again.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from random import Random

import duckdb
import pytest

import harken

Edge = tuple[int, int | None, str | None]

PATHS = (
    "WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge "
    "UNION ALL SELECT r.x, e.y FROM r JOIN edge e ON e.x = r.y) SELECT x, y FROM r"
)
ROUNDS = (
    "WITH RECURSIVE r(y, d) AS (SELECT y, 1 FROM edge WHERE x = 1 "
    "UNION ALL SELECT e.y, r.d + 1 FROM r JOIN edge e ON e.x = r.y WHERE r.d < 4)"
)
TWO_AND_TWO = (
    "WITH RECURSIVE r(x, n) AS (SELECT x, 'a' FROM start"
    " UNION ALL SELECT DISTINCT x, name FROM edge"
    " UNION ALL SELECT e.y, e.name FROM r JOIN edge e ON e.x = r.x"
    " UNION ALL SELECT r.x + 1, r.n FROM r WHERE r.x < 3) SELECT x, n FROM r"
)
"""Two parts that begin it and two that go on: DuckDB knows no such."""
NESTED = (
    "WITH RECURSIVE r(x) AS (SELECT x FROM start UNION ALL SELECT e.y FROM"
    " (SELECT x + 0 AS x FROM r WHERE x > 0) AS s JOIN edge e ON e.x = s.x"
    " WHERE NOT EXISTS (SELECT 1 FROM start t WHERE t.x = e.y)) SELECT x FROM r"
)
"""It is mentioned below what stands in FROM: SQLite knows no such."""
ACYCLIC = [
    PATHS,
    f"{PATHS} WHERE x = 2",
    f"{PATHS} WHERE y = 4 AND x > 1",
    f"SELECT x, count(*) AS n, max(y) AS most FROM ({PATHS}) AS p GROUP BY x",
    f"SELECT DISTINCT p.y FROM ({PATHS}) AS p JOIN start AS s ON s.x = p.x",
    TWO_AND_TWO,
    "WITH RECURSIVE r(x, y) AS (SELECT x, x FROM start UNION ALL SELECT r.x, e.y FROM r"
    " LEFT JOIN edge e ON e.x = r.y WHERE r.y IS NOT NULL) SELECT x, y FROM r",
    NESTED,
]
CYCLIC = [
    f"{ROUNDS} SELECT y, d FROM r",
    f"{ROUNDS} SELECT d, count(*) AS n, count(y) AS m FROM r GROUP BY d",
    f"{ROUNDS} SELECT s.x FROM start s WHERE s.x NOT IN (SELECT y FROM r WHERE y IS NOT NULL)",
]
STRATEGIES = ["auto", "external", "materialized", "naive"]


def edge(random: Random, cyclic: bool) -> Edge:
    x = random.randint(1, 6)
    y = random.randint(1, 6) if cyclic else random.randint(x + 1, 7)
    return x, y if random.random() < 0.9 else None, random.choice(["a", "b", None])


def shown(rows: list[Edge]) -> str:
    return ", ".join(f"({x}, {_shown(y)}, {_shown(name)})" for x, y, name in rows)


def _shown(value: object) -> str:
    return "NULL" if value is None else repr(value)


SCHEMA = "CREATE TABLE edge (x INT NOT NULL, y INT, name STRING); CREATE TABLE start (x INT)"


class Others:
    """What SQLite and DuckDB say."""

    def __init__(self) -> None:
        self.lite, self.duck = sqlite3.connect(":memory:"), duckdb.connect()
        self.run(SCHEMA)

    def run(self, text: str) -> None:
        self.lite.executescript(text)
        self.duck.execute(text)

    def rows(self, query: str) -> Counter[tuple[object, ...]]:
        said = [
            Counter(other.execute(query).fetchall())
            for other, refuses in ((self.lite, NESTED), (self.duck, TWO_AND_TWO))
            if query != refuses
        ]
        assert said[0] == said[-1]
        return said[0]

    def close(self) -> None:
        self.lite.close()
        self.duck.close()


def begin(random: Random, cyclic: bool) -> str:
    edges = [edge(random, cyclic) for _ in range(7)]
    edges.append(random.choice(edges))  # rows count
    starts = ", ".join(f"({random.randint(1, 6)})" for _ in range(3))
    return f"INSERT INTO edge VALUES {shown(edges)}; INSERT INTO start VALUES {starts}"


def transaction(random: Random, cyclic: bool) -> str:
    """Rows that come and go, some of several copies."""
    come = [edge(random, cyclic) for _ in range(random.randint(0, 2))]
    steps = [f"DELETE FROM edge WHERE x = {random.randint(1, 6)} AND y = {random.randint(1, 7)}"]
    if random.random() < 0.3:
        steps.append("DELETE FROM edge WHERE y IS NULL")
    if random.random() < 0.3:
        steps.append(f"INSERT INTO start VALUES ({random.randint(1, 6)})")
    if random.random() < 0.3:
        steps.append(f"DELETE FROM start WHERE x = {random.randint(1, 6)}")
    if come:
        steps.append(f"INSERT INTO edge VALUES {shown(come + come[: random.randint(0, 1)])}")
    random.shuffle(steps)
    return "; ".join(steps)


@pytest.mark.parametrize("query", [*ACYCLIC, *CYCLIC])
def test_a_view_over_it_reports_exact_changes(query: str) -> None:
    cyclic = query in CYCLIC
    for seed, strategy in enumerate(STRATEGIES):
        random, others = Random(f"{seed} {query}"), Others()
        text = begin(random, cyclic)
        others.run(text)
        with harken.connect() as db:
            db.sql(f"{SCHEMA}; {text}")
            db.sql(f"CREATE VIEW v AS {query}; CREATE MATERIALIZED VIEW m AS {query}")
            held = Counter(db.sql("SELECT * FROM v").rows)
            assert held == others.rows(query)
            monitor = db.monitor("v", strategy=strategy)
            for _ in range(8):
                text = transaction(random, cyclic)
                others.run(text)
                db.sql(f"BEGIN; {text}; COMMIT")
                before = held.copy()
                for change in monitor.changes():
                    assert not Counter(change.plus) & Counter(change.minus)
                    held.subtract(change.minus)
                    held.update(change.plus)
                assert all(count >= 0 for count in held.values())
                wanted = others.rows(query)
                assert +held == wanted, f"{text}\nbefore {before}"
                held = +held
                assert Counter(db.sql("SELECT * FROM m").rows) == wanted
                assert Counter(db.sql(query).rows) == wanted
        others.close()


@pytest.mark.parametrize("forced", ["incremental", "naive"])
def test_whichever_way_is_forced(forced: str) -> None:
    random, others = Random(forced), Others()
    with harken.connect() as db:
        db.monitoring(forced)
        db.sql(f"{SCHEMA}; CREATE VIEW v AS {PATHS}; CREATE MATERIALIZED VIEW m AS {PATHS}")
        monitor, held = db.monitor("v"), Counter[tuple[object, ...]]()
        for _ in range(10):
            text = f"{begin(random, False)}; {transaction(random, False)}"
            others.run(text)
            db.sql(f"BEGIN; {text}; COMMIT")
            for change in monitor.changes():
                held.subtract(change.minus)
                held.update(change.plus)
            held = +held
            assert held == others.rows(PATHS) == Counter(db.sql("SELECT * FROM m").rows)
            others.run("DELETE FROM edge")
            db.sql("DELETE FROM edge")
            held.clear()
            monitor.changes()
    others.close()
