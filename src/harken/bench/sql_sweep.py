"""`harken bench sql-sweep`: refreshes of all sizes, by differentials, from scratch, and as Harken
chooses.

The check phase of one transaction runs under each strategy in turn, and is undone before the next.
The first turns of each only warm up: plans are made, and where Harken chooses, it learns from these
turns, and from the smaller changes before, what each way takes. (What it is made to do in the turns
of the other strategies, it does not learn from.)

Law: all strategies see the same tables and the same change.
"""

from __future__ import annotations

import contextlib
import gc
import statistics
from collections.abc import Iterator, Sequence
from functools import partial

from harken.bench.figures import Figure, cpu_time, seconds
from harken.bench.sql import transaction_for
from harken.bench.tpch import QUERIES, generated
from harken.bench.tpch.refresh import Refresh, apply
from harken.bench.tpch.stores import Resident
from harken.engines.sqlite.connection import BrokenOff

SCALES = (0.1,)
CHANGES = (0.00001, 0.001, 0.01, 0.1, 1.0)
CHOICE = "<= 1.2"
STRATEGIES = INCREMENTAL, NAIVE, ADAPTIVE = ("incremental", "naive", "adaptive")
WARMING, WARMING_CHANGE = 2, 0.001
"""So many transactions, of this size, come before all others, and as many turns of each strategy
before those that count."""
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
            for query in queries:
                resident.add_view(query)
                _warm(resident, query, refresh)
                for change in changes:
                    params = {"query": query, "scale": scale, "change": change}
                    taken = _take_turns(resident, query, change, refresh, rounds)
                    yield from _figures(taken, params)
                resident.drop_view(query)


def _warm(resident: Resident, query: str, refresh: Refresh) -> None:
    """The totals that are kept are there when a second transaction reaches them."""
    for _ in range(WARMING):
        with resident.db.transaction():
            apply(transaction_for(query, WARMING_CHANGE, refresh), resident)


def _take_turns(
    resident: Resident, query: str, change: float, refresh: Refresh, rounds: int
) -> dict[str, float]:
    """The median seconds of each strategy."""
    db = resident.db
    orders = list(refresh.orders)
    db._transactions.begin()
    apply(transaction_for(query, change, refresh), resident)
    gc.freeze()  # what there is now need not be looked through between the turns
    warm = {name: [_check(resident, name) for _ in range(WARMING)] for name in (ADAPTIVE, NAIVE)}
    patience = max(SHORT, PATIENCE * warm[NAIVE][-1])
    warm[INCREMENTAL] = [_probe(resident, patience)]
    turns = {name: max(1, min(MOST * rounds, int(SHORT / took[-1]))) for name, took in warm.items()}
    if warm[INCREMENTAL][-1] >= patience:
        turns[INCREMENTAL] = 0
    taken: dict[str, list[float]] = {name: [] for name in STRATEGIES}
    for number in range(max(turns.values())):
        for name in STRATEGIES if number % 2 else reversed(STRATEGIES):
            if number < turns[name]:
                taken[name].append(_check(resident, name))
    gc.unfreeze()
    db.rollback()
    refresh.orders = orders
    db.monitoring(ADAPTIVE)
    return {name: statistics.median(taken[name] or warm[name]) for name in STRATEGIES}


def _check(resident: Resident, strategy: str) -> float:
    """The seconds of the check phase under a strategy; then it is undone."""
    db = resident.db
    db.monitoring(strategy)
    took = 0.0
    with contextlib.suppress(_Undone), db._transactions._all_or_nothing():
        took = seconds(partial(db._rules.check, "deferred"), cpu_time)
        raise _Undone
    return took


def _probe(resident: Resident, patience: float) -> float:
    """What differentials take, as long as there is patience: those of a large change may never
    come to an end."""
    with contextlib.suppress(BrokenOff), resident.db._connection.limited(patience):
        return _check(resident, INCREMENTAL)
    return patience


def _figures(taken: dict[str, float], params: dict[str, object]) -> Iterator[Figure]:
    for strategy, took in taken.items():
        yield Figure("sql-sweep", f"{strategy} ms", took * 1e3, params)
    better = min(taken[INCREMENTAL], taken[NAIVE])
    yield Figure("sql-sweep", "adaptive/better", taken[ADAPTIVE] / better, params, CHOICE)
