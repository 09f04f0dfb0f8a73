"""The order in which dependent functions are recompiled after one of them has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harken.database.catalog import Catalog
from harken.ir.schema import Function


def dependents_in_order(catalog: Catalog, name: str) -> list[Function]:
    """All functions that depend on functions of this name, each after those that it depends on."""
    if not catalog.dependents(name):
        return []
    readers: dict[str, list[Function]] = {}
    for function in catalog.functions():
        for called in catalog.dependencies(function.id).functions:
            readers.setdefault(called, []).append(function)
    found: dict[str, Function] = {}
    open_: list[tuple[Function | None, Iterator[Function]]]
    open_ = [(None, iter(readers.get(name, ())))]
    seen = set[str]()
    while open_:
        below, rest = open_[-1]
        above = next((each for each in rest if each.id not in seen), None)
        if above is not None:
            seen.add(above.id)
            open_.append((above, iter(readers.get(above.name, ()))))
            continue
        open_.pop()
        if below is not None:
            found[below.id] = below
    return list(reversed(found.values()))


def names_below(catalog: Catalog, names: Iterable[str]) -> set[str]:
    """These functions, and all that they depend on, by name."""
    found = set(names)
    waiting = list(found)
    while waiting:
        for each in catalog.overloads(waiting.pop()):
            called = catalog.dependencies(each.id).functions - found
            found |= called
            waiting += called
    return found
