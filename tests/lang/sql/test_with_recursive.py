"""WITH RECURSIVE: what SQLite says it means, and views of it that are told exactly."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

import harken
from harken.api.explain import Explanation
from harken.engines.spark import recursion as spark_recursion
from harken.engines.sqlite import recursion
from harken.maintenance.round_nodes import RoundsNode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)"
    " SELECT sum(i), count(*) FROM n",
    "WITH RECURSIVE n(i, t) AS (VALUES (1, 'a'), (1, 'a') UNION ALL SELECT i + 1, t || 'b' FROM n"
    " WHERE i < 5) SELECT * FROM n",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n WHERE false) SELECT i FROM n",
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
            "WITH RECURSIVE r AS (SELECT x FROM edge UNION ALL SELECT a.x FROM r a JOIN r b"
            " ON a.x = b.x) SELECT 1 FROM r",
            "unsupported",
        ),
        (
            "WITH RECURSIVE r AS (SELECT x FROM edge UNION ALL SELECT DISTINCT y FROM"
            " (SELECT DISTINCT x FROM r) AS s JOIN edge e ON e.x = s.x) SELECT 1 FROM r",
            "unsupported",
        ),
        (
            "WITH RECURSIVE r AS (SELECT x FROM edge UNION ALL SELECT max(x) FROM r)"
            " SELECT 1 FROM r",
            "not-stratified",
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


ROUND_AND_ROUND = (
    "WITH RECURSIVE r(x, y) AS (SELECT x, y FROM edge "
    "UNION ALL SELECT r.x, e.y FROM r JOIN edge e ON e.x = r.y) SELECT x, y FROM r"
)
OUTER = ROUND_AND_ROUND.replace("JOIN", "LEFT JOIN").replace("r.y)", "r.y WHERE r.y IS NOT NULL)")


@pytest.mark.parametrize("limit", ["ROW_LIMIT", "ROUND_LIMIT"])
@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_a_cycle_under_union_all_ends_with_an_error(
    kind: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit that closes the cycle is undone, and all goes on as if it had not been."""
    monkeypatch.setattr(recursion, limit, 500)
    with harken.connect() as db:
        db.sql("CREATE TABLE edge (x INT NOT NULL, y INT); INSERT INTO edge VALUES (1, 2), (2, 3)")
        db.sql(f"CREATE {kind} ways AS {ROUND_AND_ROUND}")
        view = db.monitor("ways")
        with pytest.raises(harken.HarkenError) as caught:
            db.sql("BEGIN; INSERT INTO edge VALUES (3, 1), (5, 6); COMMIT")
        assert caught.value.code == "no-fixpoint"
        assert "ways" in caught.value.message
        assert "500" in caught.value.message
        assert "UNION" in (caught.value.hint or "")
        assert db.sql("SELECT count(*) FROM edge").rows == [(2,)]
        assert view.changes() == []
        db.sql("INSERT INTO edge VALUES (3, 4)")
        (change,) = view.changes()
        assert sorted(change.plus) == [(1, 4), (2, 4), (3, 4)]
        assert len(db.sql("SELECT * FROM ways").rows) == 6


def test_a_query_of_a_cycle_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursion, "ROW_LIMIT", 500)
    with harken.connect() as db:
        db.sql("CREATE TABLE edge (x INT NOT NULL, y INT); INSERT INTO edge VALUES (1, 1), (1, 1)")
        with pytest.raises(harken.HarkenError) as caught:
            db.sql(ROUND_AND_ROUND)
        assert caught.value.code == "no-fixpoint"
        assert caught.value.message.startswith("r did not settle")
        db.sql("DELETE FROM edge; INSERT INTO edge VALUES (1, 2)")
        assert db.sql(ROUND_AND_ROUND).rows == [(1, 2)]


def test_explain_says_what_is_done_again_and_why() -> None:
    with harken.connect() as db:
        db.sql(f"CREATE TABLE edge (x INT NOT NULL, y INT); CREATE VIEW ways AS {ROUND_AND_ROUND}")
        lines = [row[0] for row in db.sql(f"EXPLAIN {ROUND_AND_ROUND}").rows]
        assert any("UNION ALL in r: the rounds are stored" in line for line in lines)
        counted = f"EXPLAIN SELECT x, count(*) FROM ({ROUND_AND_ROUND}) AS p GROUP BY x"
        assert any("UNION ALL in r" in row[0] for row in db.sql(counted).rows)
        again = "UNION ALL in r: all rounds are computed again and compared, because there is more"
        assert any(again in row[0] for row in db.sql(f"EXPLAIN {OUTER}").rows)


def test_explain_says_which_strategy_is_in_use_and_what_it_does() -> None:
    """It had said of every strategy, and of the lake, that the rounds were stored."""
    again = "all rounds are recomputed at each change, and compared"
    with harken.connect() as db:
        db.sql(f"CREATE TABLE edge (x INT NOT NULL, y INT); CREATE VIEW ways AS {ROUND_AND_ROUND}")
        strategies, choice, unused = _told(db)
        assert strategies.endswith("auto, counting, external, materialized, naive")
        assert choice.startswith("r, with UNION ALL: auto, counting and materialized store the")
        assert unused == "in use: none, because nothing watched here depends on it"
        for strategy, first, then in (
            (
                "auto",
                "the rounds are stored after the next change",
                "the rounds are stored, 1 rows",
            ),
            ("external", f"{again}, because external stores nothing", None),
            ("naive", again, None),
        ):
            with db.monitor("ways", strategy=strategy):
                assert _told(db)[2] == f"in use: {strategy}; {first}"
                db.sql("DELETE FROM edge; INSERT INTO edge VALUES (1, 2)")
                assert _told(db)[2] == f"in use: {strategy}; {then or first}"


def test_explain_says_why_all_rounds_are_computed_again() -> None:
    for engine, query, reason in (
        ("lake", ROUND_AND_ROUND, "edge is in the lake"),
        ("resident", OUTER, "there is more than a join between one round and the next"),
    ):
        with harken.connect(engine=engine) as db:
            db.sql(f"CREATE TABLE edge (x INT NOT NULL, y INT); CREATE VIEW ways AS {query}")
            with db.monitor("ways"):
                _, choice, used = _told(db)
            assert choice.startswith(
                "r, with UNION ALL: with any strategy all rounds are recomputed"
            )
            assert choice.endswith(f", because {reason}")
            assert used == "in use: auto; all rounds are recomputed at each change, and compared"
            lines = [row[0] for row in db.sql(f"EXPLAIN {query}").rows]
            assert any(each.endswith(f"and compared, because {reason}") for each in lines)


def _told(db: harken.Database) -> tuple[str, ...]:
    explained = db.explain("ways", verbose=True)
    assert isinstance(explained, Explanation)
    assert "\n".join(explained.strategies) in str(explained)
    return explained.strategies


def test_only_what_changes_in_a_round_is_followed() -> None:
    """A chain of many rounds, the last edge of which goes and comes again."""
    chain: list[tuple[int, int | None]] = [(i, i + 1) for i in range(60)]
    with harken.connect() as db:
        db.sql("CREATE TABLE edge (x INT NOT NULL, y INT)")
        db.sql(f"INSERT INTO edge VALUES {stored(chain)}")
        db.sql(f"CREATE VIEW ways AS {ROUND_AND_ROUND}")
        view = db.monitor("ways")
        (node,) = (
            each
            for each in db.internals.network.graph.derived.values()
            if isinstance(each, RoundsNode)
        )
        for text, came, went in (
            ("DELETE FROM edge WHERE x = 59", 0, 60),
            ("INSERT INTO edge VALUES (59, 60), (59, 60)", 120, 0),
            ("DELETE FROM edge WHERE x = 0", 0, 61),
            ("DELETE FROM edge WHERE x = 30", 0, 30 * 31),
        ):
            db.sql(text)
            (change,) = view.changes()
            assert (len(change.plus), len(change.minus)) == (came, went)
        assert node.changes  # there are plans for changes of rounds, so they were followed
        assert node.table.holds()
        everything = db.sql("SELECT count(*) FROM ways").rows
        assert everything == [
            (len(by_sqlite([*chain[1:30], *chain[31:], (59, 60)], ROUND_AND_ROUND)),)
        ]


def test_it_means_the_same_in_the_lake(spark: SparkSession, tmp_path: Path) -> None:
    edges: list[tuple[int, int | None]] = [(1, 2), (1, 2), (2, 3), (2, None), (3, 4)]
    with harken.connect(tmp_path / "lake.db", spark=spark, engine="lake") as db:
        engine = db.internals.engine
        db.sql(
            f"CREATE TABLE edge (x INT NOT NULL, y INT); INSERT INTO edge VALUES {stored(edges)}"
        )
        db.sql(f"CREATE VIEW ways AS {ROUND_AND_ROUND}")
        view = db.monitor("ways")
        edges.append((4, 5))
        db.sql("INSERT INTO edge VALUES (4, 5)")
        wanted = Counter(by_sqlite(edges, ROUND_AND_ROUND))
        (change,) = view.changes()
        assert Counter(change.plus) == {(4, 5): 1, (3, 5): 1, (2, 5): 1, (1, 5): 2}
        assert change.minus == []
        for forced in (None, "spark"):
            engine.forced = forced
            assert Counter(db.sql("SELECT * FROM ways").rows) == wanted
        engine.forced = None


def test_a_cycle_in_the_lake_ends_with_an_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recursion, "ROW_LIMIT", 50)
    monkeypatch.setattr(spark_recursion, "ALL_LIMIT", 4)
    with harken.connect(tmp_path / "lake.db", spark=spark, engine="lake") as db:
        db.sql("CREATE TABLE edge (x INT NOT NULL, y INT); INSERT INTO edge VALUES (1, 1)")
        for forced in (None, "spark"):
            db.internals.engine.forced = forced
            with pytest.raises(harken.HarkenError) as caught:
                db.sql(ROUND_AND_ROUND)
            assert caught.value.code == "no-fixpoint"
        db.internals.engine.forced = None
