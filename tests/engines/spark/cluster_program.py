"""Run by test_cluster.py with the master's address and a directory: two steps on the cluster.

Each step takes in a change of every row, so the change stays in the lake and Spark reads it there.
The gate is closed before the first. Prints one line of JSON for each step.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa

os.environ["PYSPARK_PYTHON"] = sys.executable

from deltalake import write_deltalake
from pyspark.sql import SparkSession

import harken
from tests.engines.spark import cluster_gate

ITEMS = 300_000
SUPPLIERS = 50
PROGRAM = """
create function known(integer supplier) -> boolean;
create function grade(integer quantity) -> integer as foreign;
create function held(integer s) -> integer as
    select sum(select grade(quantity(i)) for each integer i where supplier(i) = s);
create function totals() -> bag of <integer supplier, integer total> as
    select s, held(s) for each integer s where known(s) = true;
commit;
"""


def session(master: str) -> SparkSession:
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    return SparkSession.builder.master(master).config(map=settings).getOrCreate()


def quantities(step: int) -> list[int]:
    return [(item * 7 + step * 31) % 1_000 for item in range(ITEMS)]


def totals(quantity: list[int]) -> list[tuple[int, int]]:
    """The rows of the view, computed without Harken and without Spark."""
    found: Counter[int] = Counter()
    for item, each in enumerate(quantity):
        found[item % SUPPLIERS] += each // 10
    return sorted(found.items())


def write(directory: Path, name: str, values: list[int]) -> None:
    rows = pa.table({"item": range(ITEMS), name: values})
    write_deltalake(str(directory / name), rows, mode="overwrite")


def run(spark: SparkSession, directory: Path) -> None:
    write(directory, "quantity", quantities(0))
    write(directory, "supplier", [item % SUPPLIERS for item in range(ITEMS)])
    with harken.connect(directory / "shop.db", spark=spark) as db:
        for name in ("quantity", "supplier"):
            db.lake(name, str(directory / name), key=["item"])
        db.amosql(PROGRAM)
        db.foreign("grade", cluster_gate.grade)
        db.function("known").update(dict.fromkeys(range(SUPPLIERS), True))
        monitor = db.monitor("totals")
        (directory / "locked").rename(directory / "gate")
        for step in (1, 2):
            write(directory, "quantity", quantities(step))
            taken = db.step()
            (change,) = monitor.changes()
            minus, plus = totals(quantities(step - 1)), totals(quantities(step))
            report = {
                "taken": taken.taken,
                "exact": (sorted(change.minus), sorted(change.plus)) == (minus, plus),
                "seconds": round(taken.seconds, 1),
            }
            print(json.dumps(report), flush=True)


if __name__ == "__main__":
    spark = session(sys.argv[1])
    try:
        run(spark, Path(sys.argv[2]))
    finally:
        spark.stop()
