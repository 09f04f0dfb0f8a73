"""`harken bench closure-lake`: the nodes reachable in a graph in the lake, by each strategy.

A change is one edge, deleted and inserted again, each in a transaction that ends with its commit to
the Delta table. Before it nothing of the graph is cached. Naive evaluation computes all rows and
compares them with the rows before: in Spark, if the graph has more rows than are fetched.

Law: all strategies see the same graph and the same changes, and report the same.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import harken
from harken.bench.closure import (
    EDGES,
    GRAPHS,
    NAIVE,
    STRATEGIES,
    Edge,
    Graph,
)
from harken.bench.figures import Figure, seconds
from harken.consumers.monitors.subscription import Subscription

SIZES = (300_000,)
REACHED = (
    f"{EDGES}.decl root(x: number)\nroot(0).\n.decl reached(x: number)\n"
    "reached(x) :- root(x).\nreached(y) :- reached(x), edge(x, y).\n"
)
MEASURED = tuple(each for each in GRAPHS if each.name in ("tree", "power-law"))


class Contestant:
    """A database in the lake that finds the changes of the view by one strategy."""

    def __init__(self, strategy: str, edges: Sequence[Edge], path: Path, spark: Any) -> None:
        self.strategy = strategy
        self.db = harken.connect(path / f"{strategy}.db", engine="lake", spark=spark)
        self.db.datalog(REACHED)
        relation = self.db.internals.relation("edge")
        self.engine = self.db.internals.engine
        with self.db.transaction():
            self.engine.add_many(relation, edges)
        self.db.flush()
        self.view: Subscription = self.db.monitor("reached", strategy=strategy)
        self.times: list[float] = []
        self.rows: list[int] = []

    def change(self, edge: Edge, sign: str) -> object:
        """Make the change, and return what the view gained and lost."""
        self.engine.forget()
        before = self.engine.tally.copy()
        self.times.append(seconds(lambda: self.db.datalog(f"{sign}edge({edge[0]}, {edge[1]}).")))
        self.rows.append(self.engine.tally.since(before).rows)
        return [(sorted(each.plus), sorted(each.minus)) for each in self.view.changes()]


def figures(
    items: Sequence[int] = SIZES, rounds: int = 5, graphs: Sequence[Graph] = MEASURED
) -> Iterator[Figure]:
    with ExitStack() as stack:
        spark = partial(_session, stack)
        for graph in graphs:
            for size in items:
                directory = tempfile.TemporaryDirectory(prefix="harken-bench-")
                with directory as path:
                    yield from _figures(graph, size, rounds, Path(path), spark)


def _session(stack: ExitStack) -> Any:
    """Created when first needed: by naive evaluation, and for the first stored copy."""
    from harken.api.opening import spark_session

    spark = spark_session()
    stack.callback(spark.stop)
    return spark


def _figures(graph: Graph, size: int, rounds: int, path: Path, spark: Any) -> Iterator[Figure]:
    edges = sorted(graph.make(size, Random(size)))
    random = Random(1)
    field = [Contestant(each, edges, path, spark) for each in STRATEGIES]
    try:
        for number in range(rounds + 1):
            edge = random.choice(edges)
            for sign in "-+":
                # Recomputing takes about as long each time, and that is long.
                now = [each for each in field if number == 0 or each.strategy != NAIVE]
                told = [each.change(edge, sign) for each in now]
                if any(each != told[0] for each in told):
                    raise AssertionError("the strategies do not tell the same")
        figure = partial(Figure, "closure-lake", params={"graph": graph.name, "edges": size})
        took = {}
        for each in field:
            # The first two changes make plans, and store rows where rows are stored.
            times = each.times[1:] if each.strategy == NAIVE else each.times[2:]
            took[each.strategy] = statistics.median(times)
            yield figure(f"{each.strategy} ms", took[each.strategy] * 1e3)
            yield figure(f"{each.strategy} rows fetched", statistics.mean(each.rows[-len(times) :]))
        for strategy in STRATEGIES:
            if strategy != NAIVE:
                yield figure(f"naive/{strategy}", took[NAIVE] / took[strategy])
    finally:
        for each in field:
            each.db.close()
