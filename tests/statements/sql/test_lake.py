"""The same in the lake: tables there mean what resident ones mean, and Spark what SQLite means."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import harken
from harken.engines import fetch_limits as limits
from harken.engines.placement.query import LakeQuery
from harken.engines.sqlite import kept_first_rows
from harken.maintenance.nodes import Planning, TotalsNode
from tests.statements.sql.test_where_engines_go_wrong import CASES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOME = (
    "NULL in a group column is a group",
    "sums do not drift",
    "the match of an outer join appears and disappears",
    "a row leaves the top",
    "NOT IN, with NULLs",
)


def follow(spark: SparkSession, directory: Path, title: str, on_spark: bool) -> None:
    """Run a case in the lake; its view is asked of both, and watched."""
    schema, query, transactions = CASES[title]
    with harken.connect(directory / "lake.db", spark=spark, engine="lake") as db:
        engine = db.internals.engine
        db.sql(f"{schema}; CREATE VIEW v AS {query}")
        held = Counter(db.sql("SELECT * FROM v").rows)
        monitor = db.monitor("v")
        for text, rows in transactions:
            db.sql(f"BEGIN; {text}")
            engine.forced = "spark" if on_spark else None
            db.sql("COMMIT")
            for change in monitor.changes():
                held.update(change.plus)
                held.subtract(change.minus)
            assert +held == Counter(rows)
            engine.forced = None
            assert Counter(db.sql("SELECT * FROM v").rows) == Counter(rows)
        engine.forced = "spark"
        assert Counter(db.sql("SELECT * FROM v").rows) == Counter(transactions[-1][1])
        engine.forced = None
        monitor.close()


@pytest.mark.parametrize("title", SOME)
def test_some(spark: SparkSession, tmp_path: Path, title: str) -> None:
    follow(spark, tmp_path, title, on_spark=False)


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("title", CASES)
def test_each_with_its_differentials_on_spark(
    spark: SparkSession, tmp_path: Path, title: str
) -> None:
    follow(spark, tmp_path, title, on_spark=True)


SALES = """
CREATE TABLE sale (
    id INT PRIMARY KEY, shop STRING NOT NULL, amount DECIMAL(9, 2) NOT NULL, pieces INT
) USING lake;
INSERT INTO sale VALUES (1, 'a', 1.25, 3), (2, 'a', 2.50, NULL), (3, 'b', 0.75, 1)
"""
BY_SHOP = """
SELECT shop, sum(amount), avg(amount), sum(pieces), count(pieces), min(amount), count(*)
FROM sale GROUP BY shop
"""
D = Decimal


@pytest.mark.parametrize("forced", ["spark", "resident"])
def test_groups_and_their_kept_totals(spark: SparkSession, tmp_path: Path, forced: str) -> None:
    """Sums of decimals that cannot be NULL once lost their digits on Spark."""
    with harken.connect(tmp_path / "lake.db", spark=spark) as db:
        db.sql(SALES)
        db.internals.engine.forced = forced
        db.sql(f"CREATE MATERIALIZED VIEW by_shop AS {BY_SHOP}")
        a, b = ("a", D("3.75"), D("1.875"), 3, 1, D("1.25"), 2), ("b", D("0.75"), D("0.75"), 1, 1)
        assert set(db.sql("SELECT * FROM by_shop").rows) == {a, (*b, D("0.75"), 1)}
        for text, rows in (
            (
                "INSERT INTO sale VALUES (4, 'b', 0.50, 2)",
                {a, ("b", D("1.25"), D("0.625"), 3, 2, D("0.50"), 2)},
            ),
            (
                "DELETE FROM sale WHERE id = 1",
                {
                    ("a", D("2.50"), D("2.5"), None, 0, D("2.50"), 1),
                    ("b", D("1.25"), D("0.625"), 3, 2, D("0.50"), 2),
                },
            ),
            (
                "UPDATE sale SET shop = 'b', pieces = 7 WHERE id = 2",
                {("b", D("3.75"), D("1.25"), 10, 3, D("0.50"), 3)},
            ),
        ):
            db.sql(text)
            assert set(db.sql("SELECT * FROM by_shop").rows) == rows
            assert set(db.sql(BY_SHOP).rows) == rows


@pytest.mark.parametrize("forced", ["spark", "resident"])
def test_from_scratch_beside_the_rows_that_are_kept(
    spark: SparkSession, tmp_path: Path, forced: str
) -> None:
    with harken.connect(tmp_path / "lake.db", spark=spark) as db:
        db.sql(SALES)
        db.internals.engine.forced = forced
        db.sql("CREATE MATERIALIZED VIEW shops AS SELECT shop FROM sale")
        db.monitoring("naive")
        db.sql("DELETE FROM sale WHERE id = 1; INSERT INTO sale VALUES (5, 'c', 1, 1)")
        assert sorted(db.sql("SELECT * FROM shops").rows) == [("a",), ("b",), ("c",)]


@pytest.mark.parametrize("forced", ["spark", "resident"])
def test_first_rows(
    spark: SparkSession, tmp_path: Path, forced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So few are kept that they run out, and Spark finds others."""
    monkeypatch.setattr(kept_first_rows, "AHEAD", 3)
    monkeypatch.setattr(kept_first_rows, "TIMES", 1)
    with harken.connect(tmp_path / "lake.db", spark=spark) as db:
        db.sql(SALES)
        db.sql("INSERT INTO sale SELECT id + 10, shop, amount + 1, pieces FROM sale")
        db.internals.engine.forced = forced
        query = "SELECT amount, id FROM sale ORDER BY amount DESC, id LIMIT 2"
        db.sql(f"CREATE MATERIALIZED VIEW dearest AS {query}")
        for text in (
            "UPDATE sale SET amount = 9 WHERE id = 3",
            "DELETE FROM sale WHERE amount > 2",
            "DELETE FROM sale WHERE id IN (2, 4, 11)",
            "INSERT INTO sale VALUES (5, 'c', 7, 1), (6, 'c', 7, 1), (7, 'c', 7, 1)",
            "DELETE FROM sale WHERE id > 0",
        ):
            db.sql(text)
            kept = sorted(db.sql("SELECT * FROM dearest").rows)
            assert kept == sorted(db.sql(query).rows)


def test_what_all_groups_take_is_asked_for_once(tmp_path: Path) -> None:
    """The members of each group were looked for again, by values that pair everything."""
    with harken.connect(tmp_path / "lake.db") as db:
        db.sql("""
            CREATE TABLE item (id INT PRIMARY KEY, price DECIMAL(9, 2) NOT NULL, kind INT)
                USING lake;
            CREATE TABLE kind (id INT PRIMARY KEY, name STRING NOT NULL) USING lake;
            CREATE MATERIALIZED VIEW prices AS
                SELECT name, sum(price * 2) FROM item, kind WHERE kind = kind.id GROUP BY name
        """)
        (totals,) = db.internals.network.graph.derived.values()
        assert isinstance(totals, TotalsNode)
        planning = Planning(db.internals.engine, db.internals.catalog)
        ((query, _),) = totals.followers_of(frozenset(totals.part.stored), planning)
        assert isinstance(query, LakeQuery)
        asked = {(demand.relation.name, demand.columns) for demand, _ in query.asked}
        assert asked == {("item", (2,)), ("kind", (0,))}


def test_null_is_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an outer join left open was looked for, and then everything was brought."""
    monkeypatch.setattr(limits, "SMALL", 0)
    with harken.connect(tmp_path / "lake.db") as db:
        db.sql(SALES)
        engine = db.internals.engine
        (lake_relation,) = engine.lake_relations.values()
        lake_relation.cache.clear()
        engine.at_hand.bring(lake_relation.relation, (0,), {(None,), (2,)})
        assert lake_relation.cache.size() == 1
