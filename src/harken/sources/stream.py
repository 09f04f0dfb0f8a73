"""A Spark stream that feeds a lake table, each batch exactly once.

Spark repeats a batch that it does not know to be done, with the same number and the same rows. The
commit of a batch carries (feed, number) as its mark, and a marked commit takes effect once. The
feed's name is kept in the checkpoint: a stream that restarts with an empty checkpoint numbers
its batches from 0 again and must not be taken for its predecessor.

    append: rows' = rows + batch              (in a set: rows ∪ batch)
    upsert: rows' = rows − rows with a key of the batch + batch
"""

from __future__ import annotations

import enum
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs

from harken.engines.delta import weighted
from harken.engines.delta.delta_log import address, storage
from harken.engines.delta.tables import LakeTable, Mark
from harken.engines.representable import with_values
from harken.engines.spark.spark_session import is_connect
from harken.errors import EngineError, HarkenError, IntegrityError, StorageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "harken-feed.json"
MOST_ATTEMPTS = 20
AMBIGUOUS = "a batch has several rows for the key ({}), and none of them is the latest"
APPENDED = "with this batch there would be several rows for the key ({})"


class Mode(enum.StrEnum):
    APPEND = "append"
    UPSERT = "upsert"


@dataclass(frozen=True)
class Batch:
    """A batch the table has: its number, its rows, and the version that contains them."""

    number: int
    rows: int
    version: int


@dataclass(frozen=True)
class Sink:
    """The destination of batches. Plain values only: under Spark Connect it is sent to the
    server."""

    path: str
    feed: str
    mode: Mode
    latest_by: str | None = None
    storage_options: dict[str, str] | None = None
    facts: bool = False
    """Leave out rows that a function cannot have: with a NULL, or with a number that is not
    finite?"""
    unique: bool = False
    """Must a key have a single row, after an append as well?"""

    def write(self, rows: pa.Table, number: int) -> Batch:
        """Commit a batch, retrying if someone else changed the table meanwhile."""
        table = LakeTable.open(self.path, self.storage_options)
        rows = _conform(rows, table)
        if self.facts:
            rows = with_values(rows)
        for attempt in range(MOST_ATTEMPTS):
            version = table.version
            plus, minus = self._change(table, version, rows)
            try:
                made = table.commit(
                    plus, minus, expected_version=version, mark=Mark(self.feed, number)
                )
            except IntegrityError as error:
                if error.code != "lake-conflict" or attempt == MOST_ATTEMPTS - 1:
                    raise
            else:
                break
        return Batch(number, rows.num_rows, made)

    def _change(self, table: LakeTable, version: int, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        if self.mode is Mode.APPEND and table.bag and not self.unique:
            return rows, rows.slice(0, 0)
        keys = _distinct(rows.select(table.key))
        there = table.rows(version, keys) if keys.num_rows else rows.slice(0, 0)
        if self.mode is Mode.APPEND:
            all_rows = _distinct(pa.concat_tables([there, rows]))
            if self.unique:
                _refuse_ambiguity(all_rows, table.key, APPENDED)
            return all_rows, there
        return _newest(there, rows, table.key, self.latest_by), there


class Feed:
    """A running stream into a table."""

    def __init__(self, query: StreamingQuery, failures: list[HarkenError]) -> None:
        self.query = query
        self._failures = failures

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the stream ends or the seconds have passed; true if it has ended."""
        with self._in_our_words():
            ended = self.query.awaitTermination(timeout)  # type: ignore[arg-type]
        return True if ended is None else bool(ended)

    def catch_up(self) -> None:
        """Wait until the table has everything the source has now."""
        with self._in_our_words():
            self.query.processAllAvailable()

    def stop(self) -> None:
        self.query.stop()

    @property
    def is_active(self) -> bool:
        return bool(self.query.isActive)

    @property
    def failure(self) -> HarkenError | None:
        """Why it ended, if it ended with an error."""
        error = self.query.exception()
        return None if error is None else self._failure(error)

    @property
    def progress(self) -> dict[str, Any] | None:
        """Spark's report of the last batch: numInputRows, inputRowsPerSecond, batchDuration, …"""
        last = self.query.lastProgress
        if last is None:
            return None
        report: dict[str, Any] = json.loads(last if isinstance(last, str) else last.json)
        return report

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        from pyspark.errors import PySparkException

        try:
            yield
        except PySparkException as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> HarkenError:
        if self._failures:
            return self._failures[-1]
        return EngineError(
            f"the stream ended with an error: {str(error).splitlines()[0]}",
            code="stream",
            hint="mend what it complains of and start it again: it goes on where it stopped",
        )


def feed(
    stream: DataFrame,
    table: LakeTable,
    *,
    checkpoint: str | Path,
    mode: Mode | str = Mode.APPEND,
    latest_by: str | None = None,
    every: str | None = None,
    available_now: bool = False,
    on_batch: Callable[[Batch], None] | None = None,
    storage_options: dict[str, str] | None = None,
    facts: bool = False,
    unique: bool = False,
) -> Feed:
    """Start to feed the table from a streaming DataFrame that has its columns, by name.

    `checkpoint` is a directory of this feed alone. An upsert needs at most one row of a key in a
    batch, unless `latest_by` names the column whose greatest value wins, also against the row that
    is there. `on_batch` is called with each batch if the session runs it in this process, not under
    Spark Connect. `facts` and `unique` are as in `Sink`. A batch passes through the memory of the
    driver: bound it at the source (`maxFilesPerTrigger`, `rowsPerSecond`, `maxOffsetsPerTrigger`).
    """
    chosen = Mode(mode)
    _check(stream, table, latest_by)
    name = feed_name(checkpoint, storage_options)
    sink = Sink(table.path, name, chosen, latest_by, storage_options, facts, unique)
    failures: list[HarkenError] = []
    here = not is_connect(stream.sparkSession)

    def in_process(batch: DataFrame, number: int) -> None:
        try:
            done = sink.write(batch.toArrow(), number)
        except HarkenError as error:
            failures.append(error)
            raise
        if on_batch is not None:
            on_batch(done)

    def on_server(batch: DataFrame, number: int) -> None:
        sink.write(batch.toArrow(), number)

    writer = stream.writeStream.option("checkpointLocation", str(checkpoint))
    writer = writer.foreachBatch(in_process if here else on_server)
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif every is not None:
        writer = writer.trigger(processingTime=every)
    return Feed(writer.start(), failures)


def feed_name(checkpoint: str | Path, storage_options: dict[str, str] | None = None) -> str:
    """The name of the feed with this checkpoint, created at first use."""
    where = address(checkpoint)
    if "://" not in where:
        Path(where).mkdir(parents=True, exist_ok=True)
    files = storage(where, storage_options)
    if files.get_file_info(NAME).type == pa.fs.FileType.NotFound:
        # Written completely or not at all: no batch may run under a name that the next start cannot
        # read.
        draft = f"{NAME}.{uuid.uuid4()}"
        with files.open_output_stream(draft) as sink:
            sink.write(json.dumps({"feed": str(uuid.uuid4())}).encode())
        files.move(draft, NAME)
    with files.open_input_file(NAME) as source:
        name: str = json.loads(source.read())["feed"]
        return name


def _check(stream: DataFrame, table: LakeTable, latest_by: str | None) -> None:
    missing = sorted({*table.schema.names, *filter(None, [latest_by])} - {*stream.columns})
    if missing:
        raise StorageError(
            f"the stream has no column {', '.join(missing)}",
            code="stream",
            hint=f"the table has {', '.join(table.schema.names)}: select them, by these names",
        )
    if latest_by is not None and latest_by not in table.schema.names:
        raise StorageError(
            f"the table has no column {latest_by}",
            code="stream",
            hint="the column that says which row is the latest must be kept with the row",
        )


def _conform(rows: pa.Table, table: LakeTable) -> pa.Table:
    try:
        return weighted.positive_zeros(rows.select(table.schema.names).cast(table.schema))
    except pa.ArrowException as error:
        raise StorageError(
            f"a batch of the stream does not fit the table: {error}",
            code="bad-value",
            hint="cast the stream's columns to the types of the table",
        ) from error


def _distinct(rows: pa.Table) -> pa.Table:
    if rows.num_rows < 2:
        return rows
    return rows.group_by(rows.column_names, use_threads=False).aggregate([])


def _newest(
    there: pa.Table, rows: pa.Table, key: tuple[str, ...], latest_by: str | None
) -> pa.Table:
    """The rows to store for the batch's keys: the batch's rows, or the latest of all rows."""
    rows = _distinct(rows)
    if latest_by is None:
        _refuse_ambiguity(rows, key)
        return rows
    both = pa.concat_tables([there, rows])
    new = np.arange(both.num_rows) >= there.num_rows
    numbers = weighted.row_numbers(both.select(key))[0]
    ranks = pc.rank(both[latest_by], tiebreaker="dense").to_numpy().astype(np.int64)
    ranks[both[latest_by].is_null().to_numpy()] = 0  # older than everything
    best = np.zeros(both.num_rows, ranks.dtype)
    np.maximum.at(best, numbers, ranks)
    wins = new & (ranks == best[numbers])
    won = np.zeros(both.num_rows, bool)
    won[numbers[wins]] = True
    _refuse_ambiguity(both.filter(pa.array(wins)), key)
    return both.filter(pa.array(wins | (~new & ~won[numbers])))


def _refuse_ambiguity(rows: pa.Table, key: tuple[str, ...], why: str = AMBIGUOUS) -> None:
    counts = rows.group_by(list(key), use_threads=False).aggregate([([], "count_all")])
    twice = counts.filter(pc.greater(counts["count_all"], 1))
    if twice.num_rows:
        shown = ", ".join(f"{name}={twice[name][0].as_py()!r}" for name in key)
        raise IntegrityError(
            why.format(shown),
            code="many-values",
            hint='replace the row of a key: mode="upsert"'
            if why is APPENDED
            else "name the column that says which row is the latest: latest_by=...",
        )
