"""rand(), randn() and uuid(): a value for each row, another one in each transaction.

A view that draws is recomputed and compared with its rows of the last look; the clock stands still
between a commit and the question here, so the question has the rows that the commit told.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

import harken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
CREATE TABLE t (g INT, name STRING, price DECIMAL(9, 2));
CREATE TABLE u (id INT PRIMARY KEY, at TIMESTAMP, share DOUBLE);
"""
QUERIES = {
    "every row": "SELECT g, name, rand() AS r FROM t",
    "some rows": "SELECT g, price FROM t WHERE rand() < 0.5",
    "any three": "SELECT g, name FROM t ORDER BY rand() LIMIT 3",
    "groups": "SELECT g, count(*) AS n, rand() AS r FROM t GROUP BY g HAVING rand() < 0.7",
    "sums": "SELECT g, sum(CAST(rand() * 1000 AS INT)) AS s FROM t GROUP BY g",
    "joins": "SELECT t.g, u.share, uuid() AS i FROM t LEFT JOIN u ON t.g = u.id",
    "windows": "SELECT g, rank() OVER (PARTITION BY g ORDER BY rand()) AS r FROM t",
    "subqueries": "SELECT id FROM u WHERE share < (SELECT rand()) OR id IN (SELECT g FROM t)",
    "subqueries of rows": "SELECT g, (SELECT max(rand()) FROM u WHERE u.id >= t.g) AS m FROM t",
    "keys": "SELECT id, at, uuid() AS i, randn() AS n FROM u",
    "a seed": "SELECT g, price, rand(7) AS r FROM t",
}
START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime.datetime:
        return self.now

    def tick(self) -> None:
        self.now += datetime.timedelta(milliseconds=7)


def of_t(random: Random) -> str:
    name = random.choice(["NULL", "'a'", "'b'", "''"])
    return f"({random.choice(['NULL', 1, 2, 3])}, {name}, {random.choice(['NULL', '1.50', '-2'])})"


def transactions(random: Random, count: int) -> Iterator[str]:
    for number in range(count):
        at = f"TIMESTAMP '2026-01-01 00:00:0{number % 10}'"
        yield "; ".join(
            [
                "BEGIN",
                f"INSERT INTO t VALUES {of_t(random)}, {of_t(random)}",
                f"DELETE FROM t WHERE g = {random.randint(1, 9)} AND rand() < 0.5",
                f"INSERT INTO u VALUES ({number}, {at}, 0.25)",
                f"DELETE FROM u WHERE id = {random.randint(0, count)}",
                random.choice(["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]),
            ]
        )


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_view_that_draws_has_the_rows_of_its_last_look(query: str) -> None:
    clock, random = Clock(), Random(query)
    with harken.connect(clock=clock) as db:
        db.sql(f"{SCHEMA}; INSERT INTO t VALUES (1, 'a', 1), (1, 'a', 1), (NULL, NULL, NULL)")
        db.sql(f"CREATE VIEW v AS {query}; CREATE MATERIALIZED VIEW m AS {query}")
        monitors = [db.monitor("v", strategy=each) for each in ("auto", "external", "naive")]
        monitors.append(db.monitor("m"))
        copies = [Counter(monitor.snapshot().plus) for monitor in monitors]
        for text in transactions(random, 8):
            clock.tick()
            db.sql(text)
            for copy, monitor in zip(copies, monitors, strict=True):
                for change in monitor.changes():
                    assert not Counter(change.minus) - copy
                    copy.subtract(change.minus)
                    copy.update(change.plus)
            if text.endswith("COMMIT"):
                rows = Counter(db.sql("SELECT * FROM v").rows)
                assert [+copy for copy in copies[:3]] == [rows] * 3
            assert +copies[3] == Counter(db.sql("SELECT * FROM m").rows)


def test_every_row_copy_call_and_statement_has_a_value_of_its_own() -> None:
    with harken.connect() as db:
        db.sql(f"{SCHEMA}; INSERT INTO t VALUES (1, 'a', 1), (1, 'a', 1), (2, NULL, NULL)")
        values = [v for row in db.sql("SELECT rand(), random(), rand() FROM t").rows for v in row]
        values += [v for (v,) in db.sql("SELECT rand() FROM t UNION ALL SELECT rand() FROM t").rows]
        values += [v for (v,) in db.sql("SELECT rand() FROM t UNION ALL SELECT rand() FROM t").rows]
        assert len(set(values)) == 9 + 6 + 6
        assert all(0 <= each < 1 for each in values)


def test_what_is_drawn_once_is_one_value() -> None:
    with harken.connect() as db:
        db.sql(f"{SCHEMA}; INSERT INTO t VALUES (1, 'a', 1), (1, 'a', 1), (2, NULL, NULL)")
        for r, more in db.sql("SELECT rand() AS r, r + 1 AS more FROM t").rows:
            assert more == r + 1
        same = (
            "WITH d AS (SELECT g, rand() AS r FROM t) SELECT count(*) FROM d a JOIN d b USING (r)"
        )
        assert db.sql(same).rows == [(3,)]
        between = "SELECT count(*) FROM range(500) WHERE rand() BETWEEN 0.25 AND 0.75"
        assert 150 < db.sql(between).rows[0][0] < 350
        assert db.sql("SELECT count(*) FROM range(50) WHERE rand(3) = rand(3)").rows == [(50,)]


def test_numbers_are_spread_as_they_should_be() -> None:
    with harken.connect() as db:
        ((mean, spread, low, high),) = db.sql(
            "SELECT avg(rand(1)), stddev(randn(1)), min(rand(2)), max(rand(2)) FROM range(4000)"
        ).rows
        assert abs(mean - 0.5) < 0.02
        assert abs(spread - 1) < 0.05
        assert low < 0.01
        assert high > 0.99


def test_each_row_that_is_written_gets_its_uuid() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE k (id STRING DEFAULT uuid() PRIMARY KEY, a INT)")
        db.sql("BEGIN")
        for _ in range(3):
            db.sql("INSERT INTO k VALUES (uuid(), 1), (gen_random_uuid(), 1)")
            db.sql("INSERT INTO k (a) VALUES (1), (1)")
            db.sql("INSERT INTO k SELECT uuid(), 1 FROM range(3)")
        db.sql("COMMIT")
        found = [value for (value,) in db.sql("SELECT id FROM k").rows]
        assert len(set(found)) == 3 * 7
        shape = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
        assert all(shape.fullmatch(each) for each in found)


def test_it_is_drawn_wherever_a_value_can_stand() -> None:
    with harken.connect() as db:
        db.amosql("create type item; create function quantity(item) -> integer")
        db.amosql(
            "create item instances :a, :b; set quantity(:a) = 3; set quantity(:b) = 3; commit"
        )
        assert len(set(db.sql("SELECT rand() FROM quantity").rows)) == 2
        walk = (
            "WITH RECURSIVE walk(n, x) AS (SELECT 0, 0e0 UNION ALL"
            " SELECT n + 1, x + rand() - 0.5 FROM walk WHERE n < 20) SELECT n, x FROM walk"
        )
        assert len(set(db.sql(walk).rows)) == 21
        db.sql(f"{SCHEMA}; INSERT INTO t VALUES (1, 'a', 1), (1, 'a', 1), (2, NULL, NULL)")
        db.sql("CREATE TABLE k (a INT CHECK (rand() < 2), b STRING)")
        db.sql(
            "MERGE INTO k USING t ON k.a = t.price WHEN NOT MATCHED THEN INSERT VALUES (g, uuid())"
        )
        assert len(set(db.sql("SELECT b FROM k").rows)) == 3
        db.sql("UPDATE k SET b = 'x', a = CAST(rand() * 1000000000 AS INT)")
        assert len(set(db.sql("SELECT a FROM k").rows)) == 3


def test_a_subquery_draws_for_each_row_that_it_is_about() -> None:
    with harken.connect() as db:
        db.sql(f"{SCHEMA}; INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 1), (3, NULL, NULL)")
        about = "SELECT (SELECT max(rand()) FROM t AS o WHERE o.g >= t.g) FROM t"
        assert len(set(db.sql(about).rows)) == 3
        alone = "SELECT (SELECT max(rand()) FROM t AS o) FROM t"
        assert len(set(db.sql(alone).rows)) == 1


def test_a_monitor_may_choose_by_chance() -> None:
    clock = Clock()
    with harken.connect(clock=clock) as db:
        db.sql(f"{SCHEMA}; CREATE VIEW v AS SELECT g, name FROM t")
        monitor = db.monitor("v", where="rand() < 0.5")
        held = Counter(monitor.snapshot().plus)
        for text in transactions(Random(2), 10):
            clock.tick()
            db.sql(text)
            for change in monitor.changes():
                assert not Counter(change.minus) - held
                held = held - Counter(change.minus) + Counter(change.plus)
        assert not held - Counter(db.sql("SELECT * FROM v").rows)


def test_explain_names_what_is_drawn() -> None:
    with harken.connect() as db:
        db.sql(SCHEMA)
        said = [line for (line,) in db.sql("EXPLAIN SELECT g FROM t WHERE rand() < 0.1").rows]
        assert said[-1] == (
            "all rows: computed again and compared with those of the last look, "
            "because rand is another one in each transaction"
        )
        said = [line for (line,) in db.sql("EXPLAIN SELECT id, rand(3) FROM u").rows]
        assert said[-1] == "differentials of everything that changed"


@pytest.mark.parametrize("call", ["rand(g)", "rand(1, 2)", "rand('x')", "randn(1.5)"])
def test_a_seed_is_a_whole_number(call: str) -> None:
    with harken.connect() as db:
        db.sql(SCHEMA)
        with pytest.raises(harken.HarkenError, match="cannot take this") as caught:
            db.sql(f"SELECT {call} FROM t")
        assert caught.value.code == "unsupported"


def test_spark_draws_the_same(spark: SparkSession, tmp_path: Path) -> None:
    clock, random = Clock(), Random(3)
    query = (
        "SELECT t.g, t.name, t.price, u.at, u.share, rand() AS r, uuid() AS i, rand(4) AS s"
        " FROM t LEFT JOIN u ON t.g = u.id WHERE rand() < 0.8"
    )
    with harken.connect(tmp_path / "lake.db", spark=spark, engine="lake", clock=clock) as db:
        rows = ", ".join(of_t(random) for _ in range(20))
        db.sql(f"{SCHEMA}; INSERT INTO t VALUES {rows}")
        db.sql(
            "INSERT INTO u VALUES (1, TIMESTAMP '2026-01-01 10:00:00.125', 0.1), (2, NULL, NULL)"
        )
        db.sql(f"CREATE VIEW v AS {query}")
        monitor, engine = db.monitor("v"), db.internals.engine
        before = Counter(db.sql("SELECT * FROM v").rows)
        clock.tick()
        db.sql("BEGIN; DELETE FROM t WHERE g = 3; INSERT INTO t VALUES (1, 'a', 1), (1, 'a', 1)")
        engine.forced = "spark"
        db.sql("COMMIT")
        by_spark = Counter(db.sql("SELECT * FROM v").rows)
        engine.forced = None
        assert Counter(db.sql("SELECT * FROM v").rows) == by_spark
        (change,) = monitor.changes()
        assert before - Counter(change.minus) + Counter(change.plus) == by_spark


def test_a_change_that_is_undone_draws_anew() -> None:
    """The question after the commit has other values, and the monitor tells them."""
    clock = Clock()
    with harken.connect(clock=clock) as db:
        db.sql(
            f"{SCHEMA}; INSERT INTO t VALUES (1, 'a', 1); CREATE VIEW v AS SELECT rand() r FROM t"
        )
        db.sql("CREATE MATERIALIZED VIEW m AS SELECT rand() r FROM t")
        db.sql("CREATE VIEW above AS SELECT r FROM m")
        monitors = [db.monitor(name) for name in ("v", "above")]
        copies = [Counter(each.snapshot().plus) for each in monitors]
        clock.tick()
        db.sql("BEGIN; INSERT INTO t VALUES (2, 'b', 2); DELETE FROM t WHERE g = 2; COMMIT")
        for name, monitor, copy in zip(("v", "above"), monitors, copies, strict=True):
            for change in monitor.changes():
                copy.subtract(change.minus)
                copy.update(change.plus)
            assert +copy == Counter(db.sql(f"SELECT * FROM {name}").rows)
