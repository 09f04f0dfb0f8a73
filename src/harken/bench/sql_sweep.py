"""`harken bench sql-sweep`: refreshes of all sizes, by differentials, from scratch, and as Harken
chooses.

The check phase of one transaction runs under each strategy in turn, and is undone before the next.
The first turns of each only warm up: plans are made, and where Harken chooses, it learns from these
turns, and from the smaller changes before, what each way takes. (What it is made to do in the turns
of the other strategies, it does not learn from.)
`sql-lake-sweep` is the same over tables in the lake, by the wall's clock.

Law: all strategies see the same tables and the same change.
"""

from __future__ import annotations

import contextlib
import gc
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from harken.bench.figures import Clock, Figure, cpu_time, seconds
from harken.bench.sql import transaction_for
from harken.bench.sql_lake import lakehouse
from harken.bench.tpch import QUERIES, generated
from harken.bench.tpch.lakehouse import Lakehouse
from harken.bench.tpch.refresh import Refresh, apply
from harken.bench.tpch.stores import Resident
from harken.engines.sqlite.connection import BrokenOff
from harken.errors import HarkenError

SCALES = (0.1,)
CHANGES = (0.00001, 0.001, 0.01, 0.1, 1.0)
CHOICE = "<= 1.2"
STRATEGIES = INCREMENTAL, NAIVE, ADAPTIVE = ("incremental", "naive", "adaptive")
WARMING, WARMING_CHANGE = 2, 0.001
"""So many transactions, of this size, come before all others, and as many turns of each strategy
before those that count."""
LEARNING = 20
"""Where Harken chooses, it has up to so many turns to learn, unless they are long."""
SHORT = 1.0
"""Each strategy has as many turns that count as fit into so many seconds: at least one, and"""
MOST = 5
"""at most so many times the rounds."""
PATIENCE = 4.0
"""Differentials that take so many times as long as naive evaluation are not waited for."""


class _Undone(Exception):
    pass


def figures(
    scales: Sequence[float] = SCALES,
    queries: Sequence[str] = QUERIES,
    changes: Sequence[float] = CHANGES,
    rounds: int = 3,
) -> Iterator[Figure]:
    for scale in scales:
        tables = generated(scale)
        resident, refresh = Resident(tables), Refresh(tables)
        with contextlib.closing(resident.db):
            sweep = Sweep("sql-sweep", resident, refresh, rounds, cpu_time)
            yield from sweep.figures(scale, queries, changes)


def figures_in_lake(
    scales: Sequence[float] = SCALES,
    queries: Sequence[str] = QUERIES,
    changes: Sequence[float] = CHANGES,
    rounds: int = 3,
) -> Iterator[Figure]:
    for scale in scales:
        with lakehouse(scale) as (lake, refresh):
            sweep = Sweep("sql-lake-sweep", lake, refresh, rounds, time.perf_counter)
            yield from sweep.figures(scale, queries, changes)


@dataclass(slots=True)
class Sweep:
    name: str
    store: Resident | Lakehouse
    refresh: Refresh
    rounds: int
    clock: Clock

    def figures(
        self, scale: float, queries: Sequence[str], changes: Sequence[float]
    ) -> Iterator[Figure]:
        for query in queries:
            self.store.add_view(query)
            self._warm(query)
            for change in changes:
                params = {"query": query, "scale": scale, "change": change}
                taken = self._take_turns(query, change)
                for strategy, took in taken.items():
                    yield Figure(self.name, f"{strategy} ms", took * 1e3, params)
                better = min(taken[INCREMENTAL], taken[NAIVE])
                ratio = taken[ADAPTIVE] / better
                yield Figure(self.name, "adaptive/better", ratio, params, CHOICE)
            self.store.drop_view(query)

    def _warm(self, query: str) -> None:
        for _ in range(WARMING):
            with self.store.db.transaction():
                apply(transaction_for(query, WARMING_CHANGE, self.refresh), self.store)

    def _take_turns(self, query: str, change: float) -> dict[str, float]:
        """The median seconds of each strategy."""
        db = self.store.db
        orders = list(self.refresh.orders)
        db._transactions.begin()
        apply(transaction_for(query, change, self.refresh), self.store)
        gc.freeze()  # what there is now need not be looked through between the turns
        warm = {ADAPTIVE: self._learn(), NAIVE: [self._check(NAIVE) for _ in range(WARMING)]}
        patience = max(SHORT, PATIENCE * warm[NAIVE][-1])
        warm[INCREMENTAL] = [self._probe(patience)]
        turns = {name: self._turns(took[-1]) for name, took in warm.items()}
        if warm[INCREMENTAL][-1] >= patience:
            turns[INCREMENTAL] = 0
        taken: dict[str, list[float]] = {name: [] for name in STRATEGIES}
        for number in range(max(turns.values())):
            for name in STRATEGIES if number % 2 else reversed(STRATEGIES):
                if number < turns[name]:
                    taken[name].append(self._check(name))
        gc.unfreeze()
        db.rollback()
        self.refresh.orders = orders
        db.monitoring(ADAPTIVE)
        return {name: statistics.median(taken[name] or warm[name]) for name in STRATEGIES}

    def _learn(self) -> list[float]:
        took: list[float] = []
        while len(took) < WARMING or (len(took) < LEARNING and sum(took) < SHORT):
            took.append(self._check(ADAPTIVE))
        return took

    def _turns(self, took: float) -> int:
        return max(1, min(MOST * self.rounds, int(SHORT / took)))

    def _check(self, strategy: str) -> float:
        """The seconds of the check phase under a strategy; then it is undone."""
        db = self.store.db
        db.monitoring(strategy)
        took = 0.0
        with contextlib.suppress(_Undone), db._transactions._all_or_nothing():
            took = seconds(partial(db._rules.check, "deferred"), self.clock)
            raise _Undone
        return took

    def _probe(self, patience: float) -> float:
        """What differentials take, as long as there is patience: those of a large change may never
        come to an end."""
        if isinstance(self.store, Lakehouse):
            return self._probe_spark(self.store, patience)
        with contextlib.suppress(BrokenOff), self.store.db._connection.limited(patience):
            return self._check(INCREMENTAL)
        return patience

    def _probe_spark(self, lake: Lakehouse, patience: float) -> float:
        """Spark does not ask whether to go on: it is told when to stop."""
        deadline = self.clock() + patience
        timer = threading.Timer(patience, lake.interrupt)
        timer.start()
        try:
            return self._check(INCREMENTAL)
        except HarkenError:
            if self.clock() < deadline:
                raise
            return patience
        finally:
            timer.cancel()
