"""`harken bench sql-lake`: the queries of TPC-H as materialized views over tables in the lake.

The transactions are those of `bench sql`. Each view is alone in its database, in a session of its
own, so nothing fetched for another view is cached. The time to bring it up to date is that of the
check phase, plus the extra time of the transaction before and after it compared with no view:
recording changes, and writing the view. Changed tables are written to the lake after the commit,
with or without a view. Spark recomputes the query from the same Delta tables, in the same warm
session.

Both are timed by the wall clock, because Spark uses all processors. Only recording and writing are
timed by the processor's clock: they are short and run in this thread, while Spark is working too.

Law: both sides took turns in the same rounds, saw the same data, and gave the same rows.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harken.bench.figures import Figure, cpu_time, seconds
from harken.bench.sql import WITHOUT_ORDERS, transaction_for
from harken.bench.tpch import QUERIES, generated
from harken.bench.tpch.lakehouse import Lakehouse
from harken.bench.tpch.refresh import Refresh, apply
from harken.bench.tpch.stores import check_same

SCALES = (0.1, 1.0)
CHANGE = 0.001
WARMING = 2
"""Transactions before the rounds: plans are made in the first, and totals exist from the next."""
COMPARED_SCALE = 1.0
LONGEST = "<= 1.1"
"""Every view, relative to Spark's own recomputation of it."""
FASTER = ">= 5"
"""The median view."""


@dataclass(slots=True)
class Times:
    """Seconds, one for each round."""

    changing: list[float] = field(default_factory=list)
    check: list[float] = field(default_factory=list)
    commit: list[float] = field(default_factory=list)
    """The time after the check phase."""
    lake: list[float] = field(default_factory=list)
    """Writing the changed tables."""
    spark: list[float] = field(default_factory=list)


@contextmanager
def lakehouse(scale: float) -> Iterator[tuple[Lakehouse, Refresh]]:
    """The tables in a lake of their own, with a session of their own."""
    from harken.api.opening import spark_session

    tables = generated(scale)
    with ExitStack() as stack:
        spark = spark_session()
        stack.callback(spark.stop)
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="harken-bench-"))
        lake = stack.enter_context(closing(Lakehouse(tables, spark, Path(directory))))
        yield lake, Refresh(tables)


def figures(
    scales: Sequence[float] = SCALES,
    queries: Sequence[str] = QUERIES,
    changes: Sequence[float] = (CHANGE,),
    rounds: int = 3,
) -> Iterator[Figure]:
    for scale in scales:
        with lakehouse(scale) as (lake, refresh):
            for change in changes:
                yield from _at(_Turns(lake, refresh, change, rounds), scale, queries)


@dataclass(frozen=True, slots=True)
class _Turns:
    lake: Lakehouse
    refresh: Refresh
    change: float
    rounds: int

    def alone(self, query: str) -> Times:
        """The times of refreshes of a query's tables without any view."""
        self.lake.reopen()
        times = Times()
        for number in range(WARMING + self.rounds):
            self._change(query, times if number >= WARMING else Times())
        return times

    def follow(self, query: str) -> tuple[Times, float]:
        """The times with the view of the query, and the time to define it."""
        lake, times = self.lake, Times()
        lake.reopen()
        define = seconds(partial(lake.add_view, query))
        for number in range(WARMING + self.rounds):
            kept = times if number >= WARMING else Times()
            self._change(query, kept)
            lake.show_spark()
            kept.spark.append(seconds(partial(lake.recomputed, query)))
        check_same(query, lake.kept(query), lake.recomputed(query))
        lake.drop_view(query)
        return times, define

    def _change(self, query: str, times: Times) -> None:
        db = self.lake.db
        transaction = transaction_for(query, self.change, self.refresh)
        db.begin()
        times.changing.append(seconds(partial(apply, transaction, self.lake), cpu_time))
        times.check.append(seconds(db.internals.reactions.check))
        with self.lake.writing_later():
            times.commit.append(seconds(db.commit, cpu_time))
        times.lake.append(seconds(self.lake.write))


def _at(turns: _Turns, scale: float, queries: Sequence[str]) -> Iterator[Figure]:
    alone = {each in WITHOUT_ORDERS: each for each in queries}
    without = {is_without: turns.alone(query) for is_without, query in alone.items()}
    params = {"scale": scale, "change": turns.change}
    is_compared = (scale, turns.change) == (COMPARED_SCALE, CHANGE)
    ratios = []
    for query in queries:
        figure = partial(Figure, "sql-lake", params={"query": query, **params})
        times, define = turns.follow(query)
        beside = without[query in WITHOUT_ORDERS]
        noting = _more(times.changing, beside.changing)
        writing = _more(times.commit, beside.commit)
        took = statistics.median(times.check) + noting + writing
        spark = statistics.median(times.spark)
        yield figure("define ms", define * 1e3)
        yield figure("noting ms", noting * 1e3)
        yield figure("writing ms", writing * 1e3)
        yield figure("harken ms", took * 1e3)
        yield figure("Spark ms", spark * 1e3)
        yield figure("harken/Spark", took / spark, needs=LONGEST if is_compared else None)
        ratios.append(spark / took)
    for is_without, times in without.items():
        query = "no view, q02" if is_without else "no view"
        figure = partial(Figure, "sql-lake", params={"query": query, **params})
        yield figure("changing ms", statistics.median(times.changing) * 1e3)
        yield figure("commit ms", statistics.median(times.commit) * 1e3)
        yield figure("lake ms", statistics.median(times.lake) * 1e3)
    figure = partial(Figure, "sql-lake", params={"query": "all", **params})
    needs = FASTER if is_compared and set(queries) == set(QUERIES) else None
    yield figure("Spark/harken", statistics.median(ratios), needs=needs)


def _more(some: Sequence[float], others: Sequence[float]) -> float:
    """Small differences are computed from the best rounds, because the others waited for
    something."""
    return max(0.0, min(some) - min(others))
