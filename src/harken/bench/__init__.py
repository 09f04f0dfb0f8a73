"""`harken bench`: what Harken costs, always as a ratio to the same work done by hand in one run.

point       one value at a time, through the fast path and through text
load        many objects in one call
query       a join over the whole inventory, and a look-up in it
inventory   a rule over the inventory: the seven benchmarks of the thesis, at several sizes
many-rules  thousands of rules, of which a transaction affects one
subscribers a thousand who follow one view, over one
lake        a rule over tables of millions of rows in the lake, against Spark
sql         the queries of TPC-H as materialized views, against recomputing them
statements  one small statement at a time, beside SQLite by hand and PostgreSQL
serve       transactions a second over HTTP, beside a service that only echoes
sources     outside data: first load, arriving changes, idle and polled sources, pages
cq          a tick of a stock exchange, with 10 and with 10,000 continual queries that wait
closure     recursive views over graphs, by each strategy, against recomputing them
programs    programs of production rules under each policy, beside CLIPS
counting    sets of rows with many derivations, by counting them, against differentials

`inventory-small` and `inventory-large` are the parts of `inventory` that change one item and all of
them: ten million items are a long wait for the latter. `lake-steps`, `lake-growth` and `lake-parts`
are the parts of `lake`. `sql-sweep` compares the ways of following changes of all sizes. `sql-lake`
has the views of `sql` over tables in the lake, against Spark; `sql-lake-sweep` sweeps there.
`closure-lake` is about a recursive view over a graph in the lake, against recomputing it.
`subscribers-served` has the subscribers as clients of `harken serve`. `statements-profile` says
where the time of one statement goes. `outbox` sends messages to a mail server and a webhook here.
`cq-lake` has continual queries over a table of millions of rows in the lake, against running them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any

from harken.bench import (
    closure,
    closure_lake,
    continual_lake,
    continual_ticks,
    counting,
    lake,
    load,
    many_rules,
    monitoring,
    outbox,
    point,
    production_systems,
    query,
    serving,
    sources,
    sql,
    sql_lake,
    sql_load,
    sql_sweep,
    statement_profile,
    statements,
    subscribers,
    waves,
)
from harken.bench.figures import Figure

__all__ = ["BENCHMARKS", "OVER_SIZES", "PARTS", "SWEEPS", "TPCH", "Figure", "run"]

BENCHMARKS: MappingProxyType[str, Callable[..., Iterator[Figure]]] = MappingProxyType(
    {
        "point": point.figures,
        "load": load.figures,
        "query": query.figures,
        "inventory": monitoring.figures,
        "many-rules": many_rules.figures,
        "subscribers": subscribers.figures,
        "lake": lake.figures,
        "sql": sql.figures,
        "closure": closure.figures,
        "counting": counting.figures,
        "programs": production_systems.figures,
        "cq": continual_ticks.figures,
        "waves": waves.figures,
        "statements": statements.figures,
        "serve": serving.figures,
        "sources": sources.figures,
    }
)
PARTS: MappingProxyType[str, Callable[..., Iterator[Figure]]] = MappingProxyType(
    {
        "closure-lake": closure_lake.figures,
        "cq-lake": continual_lake.figures,
        "outbox": outbox.figures,
        "inventory-small": partial(monitoring.figures, only=(1, 2, 3)),
        "inventory-large": partial(monitoring.figures, only=(4, 5, 6, 7)),
        "lake-steps": partial(lake.figures, only=("steps",)),
        "lake-growth": partial(lake.figures, items=(1_000_000, 30_000_000), only=("growth",)),
        "lake-parts": partial(lake.figures, only=("parts",)),
        "sql-lake": sql_lake.figures,
        "sql-lake-sweep": sql_sweep.figures_in_lake,
        "sql-load": sql_load.figures,
        "sql-sweep": sql_sweep.figures,
        "statements-profile": statement_profile.figures,
        "subscribers-served": subscribers.figures_served,
    }
)
"""Parts of other benchmarks, run only when they are named."""
TPCH = frozenset({"sql", "sql-lake", "sql-lake-sweep", "sql-load", "sql-sweep"})
"""The benchmarks on the tables of TPC-H: they have scales, not items."""
SWEEPS = frozenset({"sql-lake-sweep", "sql-sweep"})
"""The benchmarks that compare changes of all sizes."""
OVER_SIZES = (
    frozenset({"inventory", "lake", "closure", "counting", "cq", *PARTS})
    - TPCH
    - {"statements-profile"}
)
"""The benchmarks that compare sizes with each other: they are given all sizes at once."""


def run(
    name: str,
    items: Sequence[int] = (),
    rounds: int | None = None,
    tpch: Mapping[str, Sequence[Any]] = MappingProxyType({}),
) -> Iterator[Figure]:
    """The figures of a benchmark, each as soon as it is known; with its default sizes unless given.

    `tpch` are the `scales`, `queries` and `changes` of those that have them.
    """
    benchmark = BENCHMARKS.get(name) or PARTS[name]
    chosen: dict[str, Any] = {} if rounds is None else {"rounds": rounds}
    if name in TPCH:
        return benchmark(**chosen, **{key: values for key, values in tpch.items() if values})
    if not items:
        return benchmark(**chosen)
    if name in OVER_SIZES:
        return benchmark(items=items, **chosen)
    return chain.from_iterable(benchmark(items=size, **chosen) for size in items)
