"""What a step over tables in the lake asks of Spark and of files does not grow with other things.

Counted are Spark's jobs, the files and row groups that were opened, and the rows that were brought
here. One session of Spark serves all kinds of growth.

Law: cost(step; few of X) >= cost(step; many of X), for every X that the step is not about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import harken
from harken import Database
from tests.harness import lakes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOCK = pa.schema([("item", pa.string()), ("quantity", pa.int64())])
RULE = """
create function ordered(charstring) -> integer;
create rule order_more() as
    for each charstring i, integer q when stock(i) = q and q < 0 do set ordered(i) = 1;
activate order_more();
commit;
"""
GROUP = "costs"
FEW, MANY = 2, 8

Grow = Callable[["Lake", range], None]


class Lake:
    """A database with a rule over a Delta table that others write."""

    def __init__(self, path: Path, spark: SparkSession) -> None:
        self.path = path
        self._context = spark.sparkContext
        self._number = 0
        self.write("stock", {f"item{n}": n for n in range(50)})
        self.db: Database = harken.connect(path / "shop.db", spark=spark)
        self.db.lake("stock", path / "stock", key=["item"])
        self.db.amosql(RULE)

    def write(self, name: str, rows: dict[str, int]) -> None:
        table = pa.table([list(rows), list(rows.values())], schema=STOCK)
        write_deltalake(self.path / name, table, mode="append")

    def both_ways(self) -> dict[str, int]:
        """What a step costs that fetches rows by their keys, and one that Spark answers; the first
        of each kind makes plans, and does not count."""
        counted: dict[str, int] = {}
        for way, forced in (("keyed", None), ("Spark", "spark")):
            self.db.internals.engine.forced = forced
            self.step()
            counted |= {f"{way} {what}": count for what, count in self.step().items()}
        self.db.internals.engine.forced = None
        return counted

    def step(self) -> dict[str, int]:
        """What a step costs that takes in one row and lets a rule act."""
        self._number += 1
        self.write("stock", {f"new{self._number}": -self._number})
        tally = self.db.internals.engine.tally.copy()
        self._context.setJobGroup(f"{GROUP} {self._number}", "a step that is counted")
        assert self.db.step().fired == {"order_more": 1}
        jobs = self._context.statusTracker().getJobIdsForGroup(f"{GROUP} {self._number}")
        self._context.setJobGroup("others", "not counted")
        return {"jobs": len(jobs), **asdict(self.db.internals.engine.tally.since(tally))}


def rows(lake: Lake, numbers: range) -> None:
    lake.write("stock", {f"more{n}": n for k in numbers for n in range(1000 * k, 1000 * (k + 1))})
    lake.db.step()


def inputs(lake: Lake, numbers: range) -> None:
    for n in numbers:
        lake.write(f"other{n}", {"pen": 1})
        lake.db.lake(f"other{n}", lake.path / f"other{n}", key=["item"])


def rules(lake: Lake, numbers: range) -> None:
    for n in numbers:
        lake.db.amosql(f"""
            create function code{n}(charstring) -> integer;
            create rule rule{n}() as
                for each charstring i when code{n}(i) < 0 do set ordered(i) = 2;
            activate rule{n}();
            commit;
        """)


def tables(lake: Lake, numbers: range) -> None:
    for n in numbers:
        lake.db.amosql(f"create function own{n}(charstring) -> integer stored in lake; commit;")
        lake.db.amosql(f'set own{n}("pen") = {n}; commit;')


def history(lake: Lake, numbers: range) -> None:
    for n in numbers:
        lake.write("stock", {f"old{n}": n})
        lake.db.step()


@pytest.mark.parametrize("grow", [rows, inputs, rules, tables, history], ids=lambda g: g.__name__)
def test_a_step_asks_the_same_beside_many(
    grow: Grow, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lakes.seek_by_key(monkeypatch)  # small tables would be brought here as a whole
    lake = Lake(tmp_path, spark)
    with lake.db:
        grow(lake, range(FEW))
        few = lake.both_ways()
        grow(lake, range(FEW, MANY))
        many = lake.both_ways()
    assert few["Spark jobs"] > 0
    assert {what: (few[what], many[what]) for what in few if many[what] > few[what]} == {}
