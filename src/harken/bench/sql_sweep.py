"""`harken bench sql-sweep`: refreshes of all sizes, by differentials, from scratch, and as Harken
chooses.

The check phase of one transaction runs under each strategy in turn, and is undone before the next.
`sql-lake-sweep` is the same over tables in the lake, by the wall's clock.

Law: all strategies see the same tables and the same change.
"""

from __future__ import annotations

import contextlib
import math
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
from harken.errors import HarkenError

SCALES = (0.1,)
CHANGES = (0.00001, 0.001, 0.01, 0.1, 1.0)
CHOICE = "<= 1.2"
STRATEGIES = INCREMENTAL, NAIVE, ADAPTIVE = ("incremental", "naive", "adaptive")
SHORT = 1.0
"""What takes longer than so many seconds is timed once."""
PATIENCE = 4.0
"""Differentials that take so many times as long as naive evaluation are not waited for."""
STEPS = 100_000
"""SQLite is asked so often, in its own instructions, whether to go on."""


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
    rounds: int = 1,
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
        """The totals that are kept are there from the second transaction on."""
        for _ in range(2):
            with self.store.db.transaction():
                apply(transaction_for(query, 0.0, self.refresh), self.store)

    def _take_turns(self, query: str, change: float) -> dict[str, float]:
        """The median seconds of each strategy; the first turns only warm up. Differentials of a
        large change may never come to an end: they get their turn last, and only so much of it."""
        db = self.store.db
        orders = list(self.refresh.orders)
        db._transactions.begin()
        apply(transaction_for(query, change, self.refresh), self.store)
        taken = {name: [self._check(name)] for name in (NAIVE, ADAPTIVE)}
        if min(taken[NAIVE], taken[ADAPTIVE])[0] <= SHORT or self.clock is not cpu_time:
            for number in range(self.rounds):
                for name in (NAIVE, ADAPTIVE) if number % 2 else (ADAPTIVE, NAIVE):
                    taken[name].append(self._check(name))
        patience = max(SHORT, PATIENCE * statistics.median(taken[NAIVE]))
        taken[INCREMENTAL] = [self._check(INCREMENTAL, patience)]
        while taken[INCREMENTAL][0] < patience and len(taken[INCREMENTAL]) <= self.rounds:
            if taken[INCREMENTAL][0] >= SHORT and self.clock is cpu_time:
                break
            taken[INCREMENTAL].append(self._check(INCREMENTAL, patience))
        db.rollback()
        self.refresh.orders = orders
        db.monitoring(ADAPTIVE)
        return {name: statistics.median(taken[name][1:] or taken[name]) for name in STRATEGIES}

    def _check(self, strategy: str, patience: float = math.inf) -> float:
        """The seconds of the check phase under a strategy; then it is undone. With all patience
        gone it is broken off."""
        db, clock = self.store.db, self.clock
        db.monitoring(strategy)
        deadline = clock() + patience
        took = patience
        db._connection.raw.set_progress_handler(lambda: clock() > deadline, STEPS)
        try:
            with (
                self._breaking_off(patience),
                contextlib.suppress(_Undone),
                db._transactions._all_or_nothing(),
            ):
                took = seconds(partial(db._rules.check, "deferred"), clock)
                raise _Undone
        except HarkenError:
            if clock() < deadline:
                raise
        finally:
            db._connection.raw.set_progress_handler(None)
        return took

    @contextlib.contextmanager
    def _breaking_off(self, patience: float) -> Iterator[None]:
        """Spark does not ask whether to go on: it is told when to stop."""
        if not isinstance(self.store, Lakehouse) or math.isinf(patience):
            yield
            return
        timer = threading.Timer(patience, self.store.interrupt)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
