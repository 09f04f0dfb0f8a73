"""`harken bench sql-sweep`: refreshes of all sizes, by differentials, by recomputing, and as Harken
chooses.

The check phase of one transaction runs under each strategy in turn, and is rolled back before the
next. The first turns of each only warm up: plans are made, and where Harken chooses, it learns from
these turns, and from the smaller changes before, what each strategy costs. (It does not learn from
the turns of the other strategies.) `sql-lake-sweep` is the same over tables in the lake, by the
wall clock. There, changes too large to make row by row are written by another program, and each
turn is a step that processes them.

Law: all strategies see the same tables and the same change.
"""

from __future__ import annotations

import gc
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from harken.bench.figures import Clock, Figure, cpu_time, seconds
from harken.bench.sql import WITHOUT_ORDERS, transaction_for
from harken.bench.sql_lake import lakehouse
from harken.bench.tpch import QUERIES, generated
from harken.bench.tpch.lakehouse import Lakehouse, Undone
from harken.bench.tpch.refresh import Refresh, apply
from harken.bench.tpch.stores import Resident
from harken.engines.protocol import BrokenOff
from harken.errors import HarkenError

SCALES = (0.1,)
CHANGES = (0.00001, 0.001, 0.01, 0.1, 1.0)
CHOICE = "<= 1.2"
STRATEGIES = INCREMENTAL, NAIVE, ADAPTIVE = ("incremental", "naive", "adaptive")
WARMING, WARMING_CHANGE = 2, 0.001
"""This many transactions of this size come before all others, and as many turns of each strategy
before the measured ones."""
LEARNING, LEARNING_TIME = 20, 1.0
"""Where Harken chooses, it has up to this many turns to learn, and starts none after this many
seconds."""
SHORT = 15.0
"""Each strategy has as many measured turns as fit into this many seconds (Harken's choice as many
as the other that has more): at least one, and"""
MOST = 5
"""at most this many times the rounds."""
MOST_APPLIED = 100_000
"""A transaction of Harken's exchanges at most this many orders row by row. In the lake another
program writes more, and Harken takes a step."""
PATIENCE, LEAST_PATIENCE = 4.0, 1.0
"""Differentials that take this many times as long as naive evaluation are interrupted, if they take
more than this many seconds."""


Around: TypeAlias = Callable[[], AbstractContextManager[None]]


def figures(
    scales: Sequence[float] = SCALES,
    queries: Sequence[str] = QUERIES,
    changes: Sequence[float] = CHANGES,
    rounds: int = 3,
) -> Iterator[Figure]:
    for scale in scales:
        tables = generated(scale)
        resident, refresh = Resident(tables), Refresh(tables)
        with closing(resident.db):
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
        with self._changed(query, change) as turn:
            gc.freeze()  # existing objects need not be scanned between the turns
            try:
                return _Turns(self.store, turn, self.rounds, self.clock).medians()
            finally:
                gc.unfreeze()
                self.store.db.monitoring(ADAPTIVE)

    @contextmanager
    def _changed(self, query: str, change: float) -> Iterator[Around]:
        """Within the block the change is there. Within a turn it is new, and everything done then
        is rolled back."""
        orders = list(self.refresh.orders)
        is_much = change * len(orders) > MOST_APPLIED and query not in WITHOUT_ORDERS
        if is_much and isinstance(self.store, Lakehouse):
            with self.store.written(self.refresh.exchanged(change)):
                yield self.store.undone_step
        else:
            self.store.db.begin()
            apply(transaction_for(query, change, self.refresh), self.store)
            yield self._undone
            self.store.db.rollback()
        self.refresh.orders = orders

    @contextmanager
    def _undone(self) -> Iterator[None]:
        with suppress(Undone), self.store.db.internals.transactions.all_or_nothing():
            yield
            raise Undone


@dataclass(slots=True)
class _Turns:
    store: Resident | Lakehouse
    turn: Around
    rounds: int
    clock: Clock

    def medians(self) -> dict[str, float]:
        """The seconds that each strategy takes."""
        warm = {ADAPTIVE: self._learn(), NAIVE: [self._check(NAIVE) for _ in range(WARMING)]}
        patience = max(LEAST_PATIENCE, PATIENCE * warm[NAIVE][-1])
        warm[INCREMENTAL] = [self._probe(patience)]
        turns = {name: self._turns(took[-1]) for name, took in warm.items()}
        if warm[INCREMENTAL][-1] >= patience:
            turns[INCREMENTAL] = 0
        # As many as the better one, beside its turns: Java is still warming up.
        turns[ADAPTIVE] = max(turns[INCREMENTAL], turns[NAIVE])
        taken: dict[str, list[float]] = {name: [] for name in STRATEGIES}
        for number in range(max(turns.values())):
            for name in STRATEGIES if number % 2 else reversed(STRATEGIES):
                if number < turns[name]:
                    taken[name].append(self._check(name))
        return {name: statistics.median(taken[name] or warm[name]) for name in STRATEGIES}

    def _learn(self) -> list[float]:
        took: list[float] = []
        while len(took) < WARMING or (len(took) < LEARNING and sum(took) < LEARNING_TIME):
            took.append(self._check(ADAPTIVE))
        return took

    def _turns(self, took: float) -> int:
        return max(1, min(MOST * self.rounds, int(SHORT / took)))

    def _check(self, strategy: str, limit: Around = nullcontext) -> float:
        """The seconds of the check phase under a strategy; then it is rolled back."""
        db = self.store.db
        db.monitoring(strategy)
        with self.turn(), limit():
            return seconds(db.internals.reactions.check, self.clock)

    def _probe(self, patience: float) -> float:
        """The time of differentials, up to a limit: those of a large change may never end."""
        if isinstance(self.store, Lakehouse):
            return self._probe_spark(self.store, patience)
        limit = partial(self.store.db.internals.connection.limited, patience)
        with suppress(BrokenOff):
            return self._check(INCREMENTAL, limit)
        return patience

    def _probe_spark(self, lake: Lakehouse, patience: float) -> float:
        """Spark does not check for interrupts, so it is cancelled from outside; SQLite checks by
        itself."""
        is_over = threading.Event()

        def stop() -> None:
            is_over.set()
            lake.interrupt()

        @contextmanager
        def limit() -> Iterator[None]:
            timer = threading.Timer(patience, stop)
            timer.start()
            try:
                with lake.db.internals.connection.limited(patience):
                    yield
            finally:
                timer.cancel()
                timer.join()  # cancelling Spark must not affect what comes next

        with suppress(BrokenOff):
            try:
                return self._check(INCREMENTAL, limit)
            except HarkenError:
                if not is_over.is_set():
                    raise
        return patience
