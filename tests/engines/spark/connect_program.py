"""Run by test_connect.py with a directory: prints the name of each check that held."""

import datetime
import gc
import json
import os
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession
from pyspark.sql.connect.plan import CachedRemoteRelation

import harken
from harken.engines.delta.tables import LakeTable
from harken.engines.spark.metrics import metrics
from harken.engines.spark.reader import LakeReader
from harken.engines.spark.spark_session import has_delta, is_connect
from harken.errors import StorageError
from harken.sources.stream import feed
from tests.harness import user_session

PAIRS = pa.schema([("k", pa.int64()), ("v", pa.string())])
MOMENT = datetime.datetime(2001, 2, 3, 4, 5, 6, 789)
KINDS = pa.table(
    {
        "exact": pa.array([Decimal("1.5000"), None], pa.decimal128(38, 4)),
        "moment": pa.array([MOMENT, None], pa.timestamp("us")),
        "instant": pa.array([MOMENT, None], pa.timestamp("us", "UTC")),
        "bytes": pa.array([b"\0\xff", None], pa.binary()),
        "text": pa.array(["é'\\", None], pa.string()),
    }
)


def counted(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in rows.to_pylist())


def make(path: Path, rows: pa.Table, key: str) -> LakeTable:
    table = LakeTable.create(path, rows.schema, key=[key], bag=True, rows_per_file=100)
    table.commit(rows, rows.slice(0, 0), expected_version=0)
    return table


def check_reading(reader: LakeReader, directory: Path) -> None:
    rows = pa.table({"k": range(0, 10_000, 2), "v": [f"v{k}" for k in range(5_000)]}).cast(PAIRS)
    table = make(directory / "pairs", rows, "k")
    assert len(table.files()) == 50
    assert counted(reader.collect(reader.frame(table), PAIRS)) == counted(rows)
    print("whole")
    for keys in ([4], [4, 5, 9_998], range(0, 10_000, 100), range(3_000)):
        wanted = pa.array(keys, pa.int64())
        found = reader.collect(reader.frame(table, keys=wanted), PAIRS)
        assert counted(found) == counted(table.rows(keys=pa.table({"k": wanted})))
    print("keys")
    frame = reader.frame(table, keys=pa.array([4]))
    assert metrics(frame).rows is None
    reader.collect(frame)
    read = metrics(frame)
    assert read.files == 1
    assert read.rows is not None
    assert 0 < read.rows <= 100
    print("metrics")
    old = reader.frame(table, 1)
    version = table.commit(rows.slice(0, 0), rows.slice(0, 1), expected_version=1)
    table.remove_old_versions(version)
    try:
        reader.collect(old)
    except StorageError as error:
        print("missing" if error.code == "no-such-version" else error)


def check_kinds(reader: LakeReader, directory: Path) -> None:
    table = make(directory / "kinds", KINDS, "exact")
    assert counted(reader.collect(reader.frame(table), KINDS.schema)) == counted(KINDS)
    assert counted(reader.collect(reader.small(KINDS), KINDS.schema)) == counted(KINDS)
    for name in KINDS.column_names:
        keys = KINDS.select([name])
        for part in (keys, keys.slice(0, 1), keys.slice(1, 1)):
            found = reader.collect(reader.frame(table, keys=part), KINDS.schema)
            assert counted(found) == counted(table.rows(keys=part)), name
    print("kinds")


def check_stream(session: SparkSession, directory: Path) -> None:
    source = directory / "in"
    source.mkdir()
    table = make(directory / "fed", PAIRS.empty_table(), "k")
    for number in range(2):
        (source / str(number)).write_text(json.dumps({"k": number, "v": "x"}), "utf-8")
        stream = session.readStream.schema("k bigint, v string").json(str(source))
        fed = feed(stream, table, checkpoint=directory / "checkpoint", available_now=True)
        assert fed.wait(100)
    assert counted(table.rows()) == {(0, "x"): 1, (1, "x"): 1}
    print("stream")


def check_feed(session: SparkSession, directory: Path) -> None:
    """A stream into a function, and a DataFrame as one."""
    source = directory / "levels"
    source.mkdir()
    with harken.connect(directory / "fed.db", spark=session) as db:
        db.amosql("create function level(charstring s) -> integer v stored in lake; commit;")
        for number in range(2):
            (source / str(number)).write_text(json.dumps({"s": "a", "v": number}), "utf-8")
            stream = session.readStream.schema("s string, v bigint").json(str(source))
            checkpoint = directory / "levels-checkpoint"
            options: dict[str, Any] = {"mode": "upsert", "available_now": True}
            assert db.feed("level", stream, checkpoint=checkpoint, **options).wait(100)
            assert db.step().versions == {"level": number + 1}
        assert db.amosql('select level("a");').rows == [(1,)]
        db.lake("squares", session.range(5).selectExpr("id", "id * id AS square"), key=["id"])
        assert db.amosql("select squares(3);").rows == [(9,)]
    print("feed")


def check_released() -> None:
    """The server drops what recursion checkpointed when nobody here holds it any more."""
    assert not [each for each in gc.get_objects() if isinstance(each, CachedRemoteRelation)]
    print("released")


def main(directory: Path) -> None:
    builder = SparkSession.builder.remote("local[2]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "Asia/Tokyo",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    assert is_connect(session)
    assert not has_delta(session)
    reader = LakeReader(session)
    try:
        check_reading(reader, directory)
        check_kinds(reader, directory)
        check_stream(session, directory)
        check_feed(session, directory)
        user_session.check(session, directory / "whole")
        print("database")
        check_released()
    finally:
        session.stop()  # without it the server outlives a failure, and so does this process


if __name__ == "__main__":
    main(Path(sys.argv[1]))
