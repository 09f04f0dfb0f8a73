"""`harken bench`: what Harken costs, always as a ratio to the same work done by hand in one run.

point       one value at a time, through the fast path and through text
load        many objects in one call
query       a join over the whole inventory, and a look-up in it
inventory   a rule over the inventory: the seven benchmarks of the thesis, at several sizes
many-rules  thousands of rules, of which a transaction affects one
lake        a rule over tables of millions of rows in the lake, against Spark

`inventory-small` and `inventory-large` are the parts of `inventory` that change one item and all of
them: ten million items are a long wait for the latter. `lake-steps`, `lake-growth` and `lake-parts`
are the parts of `lake`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType

from harken.bench import lake, load, many_rules, monitoring, point, query
from harken.bench.figures import Figure

__all__ = ["BENCHMARKS", "OVER_SIZES", "PARTS", "Figure", "run"]

BENCHMARKS: MappingProxyType[str, Callable[..., Iterator[Figure]]] = MappingProxyType(
    {
        "point": point.figures,
        "load": load.figures,
        "query": query.figures,
        "inventory": monitoring.figures,
        "many-rules": many_rules.figures,
        "lake": lake.figures,
    }
)
PARTS: MappingProxyType[str, Callable[..., Iterator[Figure]]] = MappingProxyType(
    {
        "inventory-small": partial(monitoring.figures, only=(1, 2, 3)),
        "inventory-large": partial(monitoring.figures, only=(4, 5, 6, 7)),
        "lake-steps": partial(lake.figures, only=("steps",)),
        "lake-growth": partial(lake.figures, items=(1_000_000, 30_000_000), only=("growth",)),
        "lake-parts": partial(lake.figures, only=("parts",)),
    }
)
"""Parts of others, run only when they are named."""
OVER_SIZES = frozenset({"inventory", "lake", *PARTS})
"""Those that compare sizes with each other: they are given all of them at once."""


def run(name: str, items: Sequence[int] = (), rounds: int | None = None) -> Iterator[Figure]:
    """The figures of a benchmark, each as soon as it is known; its own sizes unless told."""
    benchmark = BENCHMARKS.get(name) or PARTS[name]
    chosen = {} if rounds is None else {"rounds": rounds}
    if not items:
        return benchmark(**chosen)
    if name in OVER_SIZES:
        return benchmark(items=items, **chosen)
    return chain.from_iterable(benchmark(items=size, **chosen) for size in items)
