"""`harken bench`: what Harken costs, always as a ratio to the same work done by hand in one run.

point    one value at a time, through the fast path and through text
load     many objects in one call
query    a join over the whole inventory, and a look-up in it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType

from harken.bench import load, point, query
from harken.bench.figures import Figure

__all__ = ["BENCHMARKS", "Figure", "run"]

BENCHMARKS: MappingProxyType[str, Callable[..., Iterator[Figure]]] = MappingProxyType(
    {"point": point.figures, "load": load.figures, "query": query.figures}
)


def run(name: str, items: int | None = None, rounds: int | None = None) -> Iterator[Figure]:
    """The figures of a benchmark, each as soon as it is known; its own sizes unless told."""
    chosen = {"items": items, "rounds": rounds}
    return BENCHMARKS[name](**{key: value for key, value in chosen.items() if value is not None})
