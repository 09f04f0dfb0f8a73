"""`harken bench sql-sweep`: refreshes of all sizes, by differentials, from scratch, and as Harken
chooses.

The check phase of one transaction runs under each strategy in turn, and is undone before the next.

Law: all strategies see the same tables and the same change.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Iterator, Sequence
from functools import partial

from harken.bench.figures import Figure, cpu_time, seconds
from harken.bench.sql import transaction_for
from harken.bench.tpch import QUERIES, generated
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
            for query in queries:
                resident.add_view(query)
                _warm(resident, query, refresh)
                for change in changes:
                    params = {"query": query, "scale": scale, "change": change}
                    taken = _take_turns(resident, query, change, refresh, rounds)
                    yield from _figures(taken, params)
                resident.drop_view(query)


def _warm(resident: Resident, query: str, refresh: Refresh) -> None:
    """The totals that are kept are there from the second transaction on."""
    for _ in range(2):
        with resident.db.transaction():
            apply(transaction_for(query, 0.0, refresh), resident)


def _take_turns(
    resident: Resident, query: str, change: float, refresh: Refresh, rounds: int
) -> dict[str, float]:
    """The median seconds of each strategy; the first turns only warm up. Differentials of a large
    change may never come to an end: they get their turn last, and only so much of it."""
    db = resident.db
    orders = list(refresh.orders)
    db._transactions.begin()
    apply(transaction_for(query, change, refresh), resident)
    taken = {name: [_check(resident, name)] for name in (NAIVE, ADAPTIVE)}
    if min(taken[NAIVE], taken[ADAPTIVE])[0] <= SHORT:
        for number in range(rounds):
            for name in (NAIVE, ADAPTIVE) if number % 2 else (ADAPTIVE, NAIVE):
                taken[name].append(_check(resident, name))
    patience = max(SHORT, PATIENCE * statistics.median(taken[NAIVE]))
    taken[INCREMENTAL] = [_check(resident, INCREMENTAL, patience)]
    while taken[INCREMENTAL][0] < min(SHORT, patience) and len(taken[INCREMENTAL]) <= rounds:
        taken[INCREMENTAL].append(_check(resident, INCREMENTAL, patience))
    db.rollback()
    refresh.orders = orders
    db.monitoring(ADAPTIVE)
    return {name: statistics.median(taken[name][1:] or taken[name]) for name in STRATEGIES}


def _check(resident: Resident, strategy: str, patience: float = math.inf) -> float:
    """The seconds of the check phase under a strategy; then it is undone. With all patience gone
    it is broken off."""
    db = resident.db
    db.monitoring(strategy)
    deadline = cpu_time() + patience
    took = patience
    db._connection.raw.set_progress_handler(lambda: cpu_time() > deadline, STEPS)
    try:
        with contextlib.suppress(_Undone), db._transactions._all_or_nothing():
            took = seconds(partial(db._rules.check, "deferred"), cpu_time)
            raise _Undone
    except HarkenError:
        if cpu_time() < deadline:
            raise
    finally:
        db._connection.raw.set_progress_handler(None)
    return took


def _figures(taken: dict[str, float], params: dict[str, object]) -> Iterator[Figure]:
    for strategy, took in taken.items():
        yield Figure("sql-sweep", f"{strategy} ms", took * 1e3, params)
    better = min(taken[INCREMENTAL], taken[NAIVE])
    yield Figure("sql-sweep", "adaptive/better", taken[ADAPTIVE] / better, params, CHOICE)
