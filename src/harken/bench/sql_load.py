"""`harken bench sql-load`: loading the tables of TPC-H with views defined, against defining them
afterwards.

Law: both ways end with the same rows in the same views.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial

import pyarrow

from harken.bench.figures import Figure, cpu_time, seconds
from harken.bench.tpch import QUERIES, generated
from harken.bench.tpch.stores import Resident, check_same

SCALES = (0.1,)
LOADING = "<= 2"


def figures(
    scales: Sequence[float] = SCALES,
    queries: Sequence[str] = QUERIES,
    changes: Sequence[float] = (),
    rounds: int = 1,
) -> Iterator[Figure]:
    """With every view alone, and with all of them; `changes` is not used here."""
    for scale in scales:
        tables = generated(scale)
        together = [tuple(queries)] if len(queries) > 1 else []
        for chosen in (*((query,) for query in queries), *together):
            query = "all" if len(chosen) > 1 else chosen[0]
            figure = partial(Figure, "sql-load", params={"query": query, "scale": scale})
            pairs = [_both(tables, chosen) for _ in range(rounds)]
            yield figure("views first s", statistics.median(first for first, _ in pairs))
            yield figure("views last s", statistics.median(last for _, last in pairs))
            ratio = statistics.median(first / last for first, last in pairs)
            yield figure("first/last", ratio, needs=LOADING)


def _both(tables: Mapping[str, pyarrow.Table], queries: Sequence[str]) -> tuple[float, float]:
    first, last = Resident({}), Resident({})
    with closing(first.db), closing(last.db):
        took_first = seconds(partial(_define, first, queries), cpu_time)
        took_first += seconds(partial(_load, first, tables), cpu_time)
        took_last = seconds(partial(_load, last, tables), cpu_time)
        took_last += seconds(partial(_define, last, queries), cpu_time)
        for query in queries:
            check_same(query, first.kept(query), last.kept(query))
    return took_first, took_last


def _load(store: Resident, tables: Mapping[str, pyarrow.Table]) -> None:
    for name, rows in tables.items():
        store.db.load(name, rows)


def _define(store: Resident, queries: Sequence[str]) -> None:
    for query in queries:
        store.add_view(query)
