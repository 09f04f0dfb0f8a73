"""A change too large to be held here stays in the lake, and Spark reads it there.

The law is that of every step: what the rule and the monitor are told is what a resident database
with the same rows would tell them.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import harken
from harken.engines import fetch_limits as limits
from harken.engines.delta.tables import LakeTable
from harken.engines.spark import distributed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harken.engines.placement.query import LakeQuery

PROGRAM = """
create function low() -> bag of <integer item, integer quantity> as
    select i, quantity(i) for each integer i where quantity(i) < least(i);
create function held(integer s) -> integer as
    select sum(select quantity(i) for each integer i where supplier(i) = s);
create function full() -> bag of <integer supplier, integer total> as
    select s, held(s) for each integer s, integer i where supplier(i) = s and held(s) > 300;
create rule order_more() as
    when for each integer i where quantity(i) < least(i) do print(i, quantity(i));
activate order_more();
commit;
"""
ITEMS = 60


class Twin:
    """The same functions, in the lake or resident, with the same changes."""

    def __init__(self, db: harken.Database) -> None:
        self.db = db
        self.printed: list[tuple[Any, ...]] = []
        db.amosql(PROGRAM)
        self.monitors = {name: db.monitor(name) for name in ("low", "full")}

    def hear(self) -> dict[str, Any]:
        """What was told since the last time."""
        told: dict[str, Any] = {"printed": sorted(self.printed)}
        self.printed.clear()
        for name, monitor in self.monitors.items():
            changes = [(sorted(c.plus), sorted(c.minus)) for c in monitor.changes()]
            told[name] = changes
        return told


def listening(twin: Twin, work: Any) -> dict[str, Any]:
    with twin.db.listening(lambda result: twin.printed.extend(result.rows)):
        work()
    return twin.hear()


def table(values: dict[int, int], name: str) -> pa.Table:
    return pa.table({"item": list(values), name: list(values.values())})


@pytest.mark.parametrize("strategy", ["incremental", "naive", "adaptive"])
def test_a_large_change_says_what_a_small_one_says(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    random = Random(strategy)
    start = {item: random.randrange(100) for item in range(ITEMS)}
    least = {item: random.randrange(100) for item in range(ITEMS)}
    supplier = {item: item % 7 for item in range(ITEMS)}
    far, near = harken.connect(tmp_path / "far.db", spark=spark), harken.connect()
    for name, values in (("quantity", start), ("least", least), ("supplier", supplier)):
        far.lake(name, table(values, name), key=["item"])
        near.amosql(f"create function {name}(integer item) -> integer; commit;")
        near.function(name).update(values)
    twins = Twin(far), Twin(near)
    monkeypatch.setattr(limits, "MOST_HELD", 0)
    for twin in twins:
        twin.db.monitoring(strategy)
        twin.hear()
    current = {"quantity": dict(start), "least": dict(least)}
    for _ in range(2):
        for name in random.choice([["quantity"], ["quantity", "least"]]):
            change_outside(far, name, current[name], random)
        before = far.internals.engine.tally.copy()
        told = listening(twins[0], far.step)
        # One job for each level: the rule with `low`, then `full`, which is above `held`.
        assert far.internals.engine.tally.since(before).queries == 2

        def follow() -> None:
            with near.transaction():
                for name, values in current.items():
                    function = near.function(name)
                    for item in range(ITEMS + 5):
                        function.update({item: values.get(item)})

        assert told == listening(twins[1], follow)
    far.close()


def change_outside(db: harken.Database, name: str, values: dict[int, int], random: Random) -> None:
    """Someone else writes the table: values change, rows go, new ones come."""
    lake = LakeTable.open(db.internals.engine.lake_relations[f"{name}(integer)"].place.path)
    before = dict(values)
    for item in random.sample(range(ITEMS + 5), 25):
        if random.random() < 0.2:
            values.pop(item, None)
        else:
            values[item] = random.randrange(100)
    lake.commit(table(values, name), table(before, name), expected_version=lake.version)


@pytest.mark.parametrize("held", [0, limits.MOST_HELD], ids=["in the lake", "held here"])
def test_subscriptions_of_one_shape_are_one_question(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    """Their constants are in a table of the session, wherever the change is."""
    random = Random(held)
    values = {item: random.randrange(100) for item in range(ITEMS)}
    with harken.connect(tmp_path / "far.db", spark=spark) as db:
        db.lake("quantity", table(values, "quantity"), key=["item"])
        asked = ((10, 0), (50, 1), (50, 2), (99, 0))
        subs = [
            db.monitor("quantity", where=f"quantity > {least} AND item % 3 = {rest}")
            for least, rest in asked
        ]
        assert len(list(db.internals.network.graph.views())) == 1
        copies = [Counter(sub.rows()) for sub in subs]
        monkeypatch.setattr(limits, "MOST_HELD", held)
        for _ in range(2):
            change_outside(db, "quantity", values, random)
            db.step()
            for (least, rest), copy, sub in zip(asked, copies, subs, strict=True):
                for change in sub.changes():
                    copy.update(change.plus)
                    copy.subtract(change.minus)
                wanted = {(i, q) for i, q in values.items() if q > least and i % 3 == rest}
                assert +copy == Counter(wanted) == Counter(sub.rows())


def test_spark_is_not_lost_in_many_columns(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them can be NULL. (One condition on all of them at once takes it hours to plan.)"""
    names = [f"a{number}" for number in range(20)]

    def rows(keys: range) -> pa.Table:
        return pa.table({"item": list(keys)} | {name: [key % 3 for key in keys] for name in names})

    with harken.connect(tmp_path / "far.db", spark=spark) as db:
        db.lake("wide", rows(range(10)), key=["item"])
        db.sql("CREATE VIEW v AS SELECT a3, sum(a7 + a19) AS total FROM wide GROUP BY a3")
        monitor = db.monitor("v")
        monkeypatch.setattr(limits, "MOST_HELD", 0)
        path = next(iter(db.internals.engine.lake_relations.values())).place.path
        lake = LakeTable.open(path)
        lake.commit(rows(range(10, 15)), rows(range(1)), expected_version=lake.version)
        db.step()
        (change,) = monitor.changes()
        assert (sorted(change.plus), sorted(change.minus)) == (
            [(1, 10), (2, 20)],
            [(1, 6), (2, 12)],
        )


TOTALS = {
    "grouped": "SELECT g, count(*) AS n, sum(v) AS s, avg(d) AS a, min(d) AS l, max(v) AS m "
    "FROM sale GROUP BY g",
    "whole": "SELECT count(v) AS n, sum(d) AS s, max(g) AS m FROM sale",
}
SALES = pa.schema(
    {"id": pa.int64(), "g": pa.string(), "v": pa.int64(), "d": pa.decimal128(9, 2)}.items()
)


def sales(count: int, random: Random) -> pa.Table:
    def row(key: int) -> dict[str, Any]:
        values = {"v": random.randrange(5), "d": Decimal(random.randrange(400)) / 100}
        some = {name: each for name, each in values.items() if random.random() < 0.8}
        return {"id": key, "g": random.choice("abc"), **some}

    return pa.Table.from_pylist([row(key) for key in range(count)], SALES)


def test_totals_are_put_together_where_the_change_lies(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row of the change comes here, only what it makes of groups."""
    random, asked = Random(5), []

    def answer(engine: Any, query: LakeQuery, values: Any) -> Any:
        asked.append(query)
        return answered(engine, query, values)

    answered = distributed.answer
    monkeypatch.setattr(distributed, "answer", answer)
    monkeypatch.setattr(limits, "MOST_HELD", 0)
    rows = sales(300, random)
    lake = LakeTable.create(tmp_path / "sales", SALES, key=["id"])
    lake.commit(rows, rows.slice(0, 0), expected_version=lake.version)
    with harken.connect(tmp_path / "far.db", spark=spark) as db:
        db.sql(
            "CREATE TABLE sale (id INT, g STRING NOT NULL, v INT, d DECIMAL(9, 2)) "
            f"USING lake LOCATION '{tmp_path / 'sales'}' KEY (id)"
        )
        for name, text in TOTALS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")
        db.monitoring("incremental")
        for count in (320, 250, 0, 300):
            before, rows = rows, sales(count, random)
            lake.commit(rows, before, expected_version=lake.version)
            db.step()
            assert not asked
            for name, text in TOTALS.items():
                assert Counter(db.sql(f"SELECT * FROM {name}").rows) == Counter(db.sql(text).rows)
            asked.clear()


def test_a_change_of_a_sum_may_be_larger_than_the_sum(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_HELD", 0)
    half = 4 * 10**18
    before, after = (pa.table({"id": [1, 2], "v": [value, value]}) for value in (-half, half))
    lake = LakeTable.create(tmp_path / "large", before.schema, key=["id"])
    lake.commit(before, before.slice(0, 0), expected_version=lake.version)
    with harken.connect(tmp_path / "far.db", spark=spark) as db:
        db.sql(f"CREATE TABLE far USING lake LOCATION '{tmp_path / 'large'}' KEY (id)")
        db.sql(
            f"CREATE TABLE near (id INT, v INT); INSERT INTO near VALUES (1, {-half}), (2, {-half})"
        )
        for name in ("far", "near"):
            db.sql(f"CREATE MATERIALIZED VIEW of_{name} AS SELECT sum(v) AS s FROM {name}")
        db.monitoring("incremental")
        lake.commit(after, before, expected_version=lake.version)
        db.step()
        db.sql(f"UPDATE near SET v = {half}")
        for name in ("far", "near"):
            assert db.sql(f"SELECT s FROM of_{name}").rows == [(2 * half,)]
