"""`harken bench sql`: the queries of TPC-H as materialized views, after a refresh of the tables.

A refresh is a transaction of TPC-H's two refresh functions: a share of the orders go with their
items, and as many come. The queries that read neither (q02, q11, q16) get another supply of that
share of the parts. Each view is alone in its database. To bring it up to date takes the commit,
and what the transaction takes longer before that because changes are noted; beside it stand the
same query from scratch in SQLite and in DuckDB, and triggers by hand in SQLite.

Harken and SQLite work in memory in one thread, and are timed by the processor's clock. DuckDB has
several, and is timed by the wall's, in its best round: other programs should not count for it.

Law: what is compared took turns in the same rounds, saw the same data, and gave the same rows.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from harken.bench.figures import Figure, cpu_time, seconds
from harken.bench.tpch import QUERIES, generated
from harken.bench.tpch.refresh import Refresh, Transaction, apply
from harken.bench.tpch.stores import Duck, Plain, Resident, check_same
from harken.bench.tpch.triggers_by_hand import BY_HAND, Triggers

SCALES = (0.1, 1.0)
CHANGE = 0.0001
WARMING = 2
"""Transactions before the rounds: plans are made in the first, and totals exist from the next."""

WITHOUT_ORDERS = frozenset({"q02", "q11", "q16"})
COMPARED_SCALE, COMPARED_CHANGE = 1.0, 0.0001
FASTER_THAN_SQLITE = ">= 50"
FASTER_THAN_DUCKDB = ">= 18"


@dataclass(slots=True)
class Times:
    """Seconds, one for each round."""

    changing: list[float] = field(default_factory=list)
    """Harken's transaction before its commit."""
    commit: list[float] = field(default_factory=list)
    by_hand: list[float] = field(default_factory=list)
    """SQLite's transaction, triggers included if there are some."""
    sqlite: list[float] = field(default_factory=list)
    duckdb: list[float] = field(default_factory=list)


class Tpch:
    """The tables in all three stores, changed by the same transactions."""

    def __init__(self, scale: float) -> None:
        tables = generated(scale)
        self.duck, self.resident, self.plain = Duck(tables), Resident(tables), Plain(tables)
        self.refresh = Refresh(tables)

    def change(self, query: str, share: float, times: Times) -> None:
        """A refresh of what a query reads, in every store."""
        transaction = transaction_for(query, share, self.refresh)
        apply(transaction, self.duck)
        times.by_hand.append(seconds(partial(self._change_plain, transaction), cpu_time))
        changing, commit = timed(self.resident, transaction)
        times.changing.append(changing)
        times.commit.append(commit)

    def _change_plain(self, transaction: Transaction) -> None:
        with self.plain.connection:
            apply(transaction, self.plain)

    def recompute(self, query: str, times: Times) -> None:
        times.sqlite.append(seconds(partial(self.plain.answer, query), cpu_time))
        times.duckdb.append(seconds(partial(self.duck.answer, query)))

    def check(self, query: str) -> None:
        kept = self.resident.kept(query)
        check_same(query, kept, self.duck.answer(query))
        check_same(query, kept, self.plain.answer(query))

    def close(self) -> None:
        self.resident.db.close()
        self.plain.connection.close()


def transaction_for(query: str, share: float, refresh: Refresh) -> Transaction:
    return refresh.restock(share) if query in WITHOUT_ORDERS else refresh.exchange(share)


def timed(resident: Resident, transaction: Transaction) -> tuple[float, float]:
    """The seconds of a transaction, before its commit and in it."""
    db = resident.db
    db.begin()
    changing = seconds(partial(apply, transaction, resident), cpu_time)
    return changing, seconds(db.commit, cpu_time)


def figures(
    scales: Sequence[float] = SCALES,
    queries: Sequence[str] = QUERIES,
    changes: Sequence[float] = (CHANGE,),
    rounds: int = 5,
) -> Iterator[Figure]:
    for scale in scales:
        tpch = Tpch(scale)
        try:
            for change in changes:
                yield from _at(tpch, scale, change, queries, rounds)
        finally:
            tpch.close()


def _at(
    tpch: Tpch, scale: float, change: float, queries: Sequence[str], rounds: int
) -> Iterator[Figure]:
    alone = {query in WITHOUT_ORDERS: Times() for query in queries}
    for query in {each in WITHOUT_ORDERS: each for each in queries}.values():
        for _ in range(WARMING + rounds):
            tpch.change(query, change, alone[query in WITHOUT_ORDERS])
    to_sqlite, to_duckdb = [], []
    for query in queries:
        figure = partial(Figure, "sql", params={"query": query, "scale": scale, "change": change})
        times, define = _follow(tpch, query, change, rounds)
        without = alone[query in WITHOUT_ORDERS]
        noting = _more(times.changing, without.changing)
        took = statistics.median(times.commit) + noting
        sqlite, duckdb = statistics.median(times.sqlite), min(times.duckdb)
        yield figure("define ms", define * 1e3)
        yield figure("noting ms", noting * 1e3)
        yield figure("harken ms", took * 1e3)
        if query in BY_HAND:
            yield figure("by hand ms", _more(times.by_hand, without.by_hand) * 1e3)
        yield figure("SQLite ms", sqlite * 1e3)
        yield figure("DuckDB ms", duckdb * 1e3)
        yield figure("SQLite/harken", sqlite / took)
        yield figure("DuckDB/harken", duckdb / took)
        to_sqlite.append(sqlite / took)
        to_duckdb.append(duckdb / took)
    is_compared = (scale, change) == (COMPARED_SCALE, COMPARED_CHANGE)
    needs = is_compared and set(queries) == set(QUERIES)
    figure = partial(Figure, "sql", params={"query": "all", "scale": scale, "change": change})
    ratio = statistics.median(to_sqlite)
    yield figure("SQLite/harken", ratio, needs=FASTER_THAN_SQLITE if needs else None)
    count = sum(each > 1 for each in to_duckdb)
    yield figure("faster than DuckDB", count, needs=FASTER_THAN_DUCKDB if needs else None)


def _follow(tpch: Tpch, query: str, change: float, rounds: int) -> tuple[Times, float]:
    """The times of refreshes with this query's view, and the time to define it."""
    define = seconds(partial(tpch.resident.add_view, query), cpu_time)
    by_hand = BY_HAND.get(query)
    triggers = Triggers(tpch.plain.connection, by_hand) if by_hand is not None else None
    for _ in range(WARMING):
        tpch.change(query, change, Times())
    times = Times()
    for _ in range(rounds):
        tpch.change(query, change, times)
        tpch.recompute(query, times)
    tpch.check(query)
    tpch.resident.drop_view(query)
    if triggers is not None:
        check_same(f"{query} by hand", triggers.kept(), triggers.recomputed())
        triggers.drop()
    return times, define


def _more(some: Sequence[float], others: Sequence[float]) -> float:
    """Small differences are computed from the best rounds, because the others waited for
    something."""
    return max(0.0, min(some) - min(others))
