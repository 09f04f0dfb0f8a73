"""Streams that feed functions in the lake, and the steps that take them in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harken import Database, HarkenError
from harken.engines.delta.tables import LakeTable
from harken.engines.placement.exchange import Exchange
from tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = """
create function level(charstring sensor) -> integer value stored in lake;
create function alarm(charstring sensor) -> integer value;
create function sees(charstring sensor) -> bag of integer value stored in lake;
create rule too_high() as
    when for each charstring s, integer v where level(s) = v and v > 100
    do set alarm(s) = v;
activate too_high();
commit;
"""
LEVELS = "select s, v for each charstring s, integer v where level(s) = v;"
ALARMS = "select s, v for each charstring s, integer v where alarm(s) = v;"

Connect = Callable[..., Database]


class Files:
    """A directory of files that a stream reads."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._spark = spark
        self._source = path / "in"
        self._source.mkdir()
        self.checkpoint = path / "checkpoint"

    def write(self, name: str, *rows: tuple[Any, Any]) -> None:
        text = "".join(json.dumps({"sensor": s, "value": v}) + "\n" for s, v in rows)
        (self._source / f".{name}").write_text(text, "utf-8")
        (self._source / f".{name}").rename(self._source / name)

    def stream(self) -> DataFrame:
        reader = self._spark.readStream.schema("value bigint, sensor string, more double")
        return reader.option("maxFilesPerTrigger", 1).json(str(self._source))

    def feed(self, db: Database, name: str = "level", **options: Any) -> None:
        options = {"mode": "upsert", "available_now": True, **options}
        assert db.feed(name, self.stream(), checkpoint=self.checkpoint, **options).wait(PATIENCE)


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    return Files(spark, tmp_path)


@pytest.fixture
def fed(connect: Connect, spark: SparkSession) -> Database:
    db = connect(spark=spark)
    db.amosql(SCHEMA)
    return db


def rows(db: Database, query: str = LEVELS) -> set[tuple[Any, ...]]:
    return set(db.amosql(query).rows)


def test_a_step_processes_what_the_stream_delivered(fed: Database, files: Files) -> None:
    files.write("a", ("boiler", 90), ("tank", 20), (None, 1), ("tank", None))
    files.feed(fed)
    assert rows(fed) == set()
    step = fed.step()
    assert step.taken == {"level": 2}
    assert rows(fed) == {("boiler", 90), ("tank", 20)}
    files.write("b", ("boiler", 120))
    files.write("c", ("tank", 21))
    files.feed(fed)
    assert fed.step().taken == {"level": 4}
    assert rows(fed) == {("boiler", 120), ("tank", 21)}
    assert rows(fed, ALARMS) == {("boiler", 120)}
    assert fed.step().taken == {}


class Crash(Exception):
    pass


def has_died(files: Files, db: Database) -> bool:
    try:
        files.feed(db, "sees", mode="append")
    except HarkenError as error:
        if error.code != "stream":
            raise
        return True
    return False


def test_a_stream_that_dies_and_is_started_again_counts_once(
    fed: Database, files: Files, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies after a batch is in the table, before Spark knows; so do the steps, in between."""
    for number in range(3):
        files.write(f"f{number}", ("same", 7), (f"own{number}", number))
    commit, commits = LakeTable.commit, []

    def crash(*arguments: Any, **options: Any) -> int:
        made = commit(*arguments, **options)
        commits.append(options["mark"].number)
        if len(commits) % 2:
            raise Crash
        return made

    with monkeypatch.context() as patch:
        patch.setattr(LakeTable, "commit", crash)
        while has_died(files, fed):
            with patch.context() as steps:
                steps.setattr(Exchange, "move_on", lambda *_: (_ for _ in ()).throw(Crash))
                with pytest.raises(Crash):
                    fed.step()
            fed.close()
            fed = connect(spark=fed.internals.engine.spark)
            assert fed.step().taken == {"sees": 2}
    assert len(commits) > 3
    fed.step()
    seen = {s: fed.amosql(f'select count(sees("{s}"));').rows for s in ("own0", "own2", "same")}
    assert seen == {"own0": [(1,)], "own2": [(1,)], "same": [(3,)]}


def test_a_stream_of_numbers(fed: Database, spark: SparkSession, tmp_path: Path) -> None:
    fed.amosql("create function tick(integer value) -> timestamp at stored in lake; commit;")
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 50)
    stream = reader.option("numPartitions", 1).load().withColumnRenamed("timestamp", "at")
    for _ in range(2):
        running = fed.feed("tick", stream, checkpoint=tmp_path / "ticks", every=0)
        while (running.progress or {"batchId": -1})["batchId"] < 1:
            running.wait(0.1)
        running.stop()
        running.wait(PATIENCE)
    fed.step()
    ticks = rows(fed, "select i for each integer i, timestamp t where tick(i) = t;")
    assert ticks == {(number,) for number in range(len(ticks))}
    assert len(ticks) >= 100


def test_changes_here_and_by_a_stream(fed: Database, files: Files) -> None:
    """Of the same key the stream has the last word, because the step comes last."""
    files.write("a", ("boiler", 1), ("tank", 2))
    files.feed(fed)
    fed.amosql('set level("boiler") = 150; set level("well") = 3; commit;')
    assert rows(fed) == {("boiler", 150), ("well", 3)}
    assert rows(fed, ALARMS) == {("boiler", 150)}
    with pytest.raises(HarkenError) as caught:
        fed.flush()
    assert caught.value.code == "lake-conflict"
    assert "db.step()" in str(caught.value.hint)
    assert fed.step().taken == {"level": 3}
    assert rows(fed) == {("boiler", 1), ("tank", 2), ("well", 3)}
    fed.flush()
    assert fed.step().taken == {}
    assert rows(fed) == {("boiler", 1), ("tank", 2), ("well", 3)}


def test_a_stream_appends_one_value_for_each_argument(fed: Database, files: Files) -> None:
    files.write("a", ("boiler", 1))
    files.feed(fed, mode="append")
    files.write("b", ("boiler", 1), ("tank", 2))
    files.feed(fed, mode="append")
    files.write("c", ("boiler", 3))
    with pytest.raises(HarkenError, match="several rows") as caught:
        files.feed(fed, mode="append")
    assert caught.value.code == "many-values"
    assert "upsert" in str(caught.value.hint)
    fed.step()
    assert rows(fed) == {("boiler", 1), ("tank", 2)}


def test_small_files_of_a_stream_are_merged(
    fed: Database, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harken.engines.fetch_limits.COMPACT_EVERY", 3)
    for number in range(3):
        files.write(str(number), (f"s{number}", number))
    files.feed(fed)
    fed.step()
    lake_relation = fed.internals.engine.lake_relations["level(charstring)"]
    assert len(lake_relation.table.files(lake_relation.place.version)) == 1
    assert fed.step().taken == {}
    assert rows(fed) == {("s0", 0), ("s1", 1), ("s2", 2)}


def test_what_cannot_be_fed(fed: Database, files: Files, spark: SparkSession) -> None:
    fed.amosql("create type item; create function price(item) -> integer stored in lake; commit;")
    stream = files.stream()

    def code(name: str, given: Any = stream, **options: Any) -> str:
        with pytest.raises(HarkenError) as caught:
            fed.feed(name, given, checkpoint=files.checkpoint, **options)
        assert caught.value.hint
        return caught.value.code

    assert code("alarm") == "not-in-lake"
    assert code("price") == "type-mismatch"
    assert code("level", spark.range(1)) == "bad-value"
    assert code("level", mode="replace") == "bad-value"
    assert code("level", latest_by="value") == "bad-value"
    assert code("level", stream.drop("value")) == "stream"
