"""Streams into lake tables: every batch once, however often the stream dies and starts again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from harken.engines.delta.tables import LakeTable
from harken.errors import HarkenError
from harken.sources.stream import Batch, Feed, Mode, feed
from tests.generators.multisets import to_counter
from tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])


class Place:
    """A directory of files that a stream reads, a table that it feeds, and a checkpoint."""

    def __init__(self, spark: SparkSession, path: Path, *, bag: bool) -> None:
        self.spark = spark
        self.source = path / "in"
        self.source.mkdir()
        self.checkpoint = path / "checkpoint"
        self.table = LakeTable.create(path / "table", SCHEMA, key=["k"], bag=bag)
        self.batches: list[Batch] = []

    def write(self, name: str, *rows: tuple[Any, ...]) -> None:
        text = "".join(json.dumps({"k": k, "v": v}) + "\n" for k, v in rows)
        (self.source / f".{name}").write_text(text, "utf-8")
        (self.source / f".{name}").rename(self.source / name)

    def stream(self) -> DataFrame:
        reader = self.spark.readStream.schema("v string, k bigint, unused int")
        return reader.option("maxFilesPerTrigger", 1).json(str(self.source))

    def feed(self, **options: Any) -> Feed:
        options = {"on_batch": self.batches.append, "available_now": True, **options}
        return feed(self.stream(), self.table, checkpoint=self.checkpoint, **options)

    def rows(self) -> dict[Any, int]:
        return dict(to_counter(self.table.rows()))


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Place:
    return Place(spark, tmp_path, bag=True)


def test_a_stream_resumes_where_it_stopped(place: Place) -> None:
    place.write("a", (1, "x"), (1, "x"), (None, None))
    place.write("b", (2, "é"))
    started = place.feed()
    assert started.wait(PATIENCE)
    assert place.rows() == {(1, "x"): 2, (None, None): 1, (2, "é"): 1}
    assert [(batch.number, batch.version) for batch in place.batches] == [(0, 1), (1, 2)]
    assert sum(batch.rows for batch in place.batches) == 4
    assert (started.progress or {})["numInputRows"] >= 1
    place.write("c", (1, "x"))
    assert place.feed().wait(PATIENCE)
    assert place.batches[2] == Batch(2, 1, 3)
    assert place.rows() == {(1, "x"): 3, (None, None): 1, (2, "é"): 1}


class Crash(Exception):
    pass


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_batch_that_is_repeated_after_a_crash_counts_once(
    place: Place, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        place.write(f"f{number}", (7, "same"), (number, "own"))
    commit, commits = LakeTable.commit, []

    def crash(*arguments: Any, **options: Any) -> int:
        commits.append(options["mark"].number)
        if when == "before" and len(commits) % 2:
            raise Crash
        made = commit(*arguments, **options)
        if when == "after" and len(commits) % 2:
            raise Crash
        return made

    monkeypatch.setattr(LakeTable, "commit", crash)
    for _ in range(3):
        with pytest.raises(HarkenError) as caught:
            place.feed().wait(PATIENCE)
        assert caught.value.code == "stream"
    assert place.feed().wait(PATIENCE)
    assert sorted(set(commits)) == [0, 1, 2]
    assert len(commits) > 3
    assert place.rows() == {(7, "same"): 3, (0, "own"): 1, (1, "own"): 1, (2, "own"): 1}
    assert place.table.version == 3


@pytest.mark.nightly  # it starts another Spark
@pytest.mark.timeout(300)
def test_a_process_that_is_killed_between_the_two_commits(place: Place) -> None:
    """Harken has committed the batch, Spark does not know it: the worst moment."""
    for number in range(4):
        place.write(f"f{number}", (7, "same"), (number, "own"))
    script = f"""
import os
from harken.engines.spark.spark_session import local_session
from harken.sources.stream import feed
from harken.engines.delta.tables import LakeTable
spark = local_session(cores=1, memory="1g")
stream = spark.readStream.schema("k bigint, v string").option("maxFilesPerTrigger", 1)
feed(
    stream.json({str(place.source)!r}), LakeTable.open({place.table.path!r}),
    checkpoint={str(place.checkpoint)!r}, available_now=True,
    on_batch=lambda batch: batch.number == 1 and os._exit(9),
).wait(PATIENCE)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == 9
    assert place.table.version == 2
    assert place.feed().wait(PATIENCE)
    assert [batch.number for batch in place.batches] == [1, 2, 3]
    assert place.rows() == {(7, "same"): 4, **{(number, "own"): 1 for number in range(4)}}


def test_an_upsert_by_key(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(spark, tmp_path, bag=False)
    place.write("a", (1, "old"), (2, "stays"))
    assert place.feed(mode="upsert").wait(PATIENCE)
    place.write("b", (1, "new"), (3, "comes"))
    assert place.feed(mode=Mode.UPSERT).wait(PATIENCE)
    assert place.rows() == {(1, "new"): 1, (2, "stays"): 1, (3, "comes"): 1}


def test_an_error_of_a_batch_is_ours_and_the_batch_is_tried_again(place: Place) -> None:
    place.write("a", (1, "x"), (1, "y"))
    with pytest.raises(HarkenError, match="several rows") as caught:
        place.feed(mode="upsert").wait(PATIENCE)
    assert caught.value.code == "many-values"
    assert place.rows() == {}
    assert place.feed(mode="upsert", latest_by="v").wait(PATIENCE)
    assert place.rows() == {(1, "y"): 1}


def test_an_empty_checkpoint_is_another_stream(place: Place, tmp_path: Path) -> None:
    place.write("a", (1, "x"))
    assert place.feed().wait(PATIENCE)
    place.checkpoint = tmp_path / "another"
    assert place.feed().wait(PATIENCE)
    assert place.rows() == {(1, "x"): 2}


def test_a_stream_that_keeps_running(place: Place) -> None:
    place.write("a", (1, "x"))
    running = place.feed(available_now=False, every="0 seconds")
    running.catch_up()
    assert place.rows() == {(1, "x"): 1}
    place.write("b", (2, "y"))
    running.catch_up()
    assert place.rows() == {(1, "x"): 1, (2, "y"): 1}
    assert not running.wait(0.01)
    running.stop()
    assert running.wait(PATIENCE)


def test_a_stream_without_a_column_of_the_table(place: Place) -> None:
    with pytest.raises(HarkenError, match="no column v") as caught:
        feed(place.stream().drop("v"), place.table, checkpoint=place.checkpoint)
    assert caught.value.hint
    with pytest.raises(HarkenError, match="unused"):
        place.feed(mode="upsert", latest_by="unused")
