"""The names of the columns of a result: of variables, and of the results of functions."""

from __future__ import annotations

from harken.database.catalog import Catalog
from harken.lang.amosql import syntax


def labels_of(query: syntax.Query, width: int, catalog: Catalog) -> tuple[str, ...]:
    names: list[str] = []
    for item in query.items:
        match item:
            case syntax.Name(name=name) | syntax.InterfaceVariable(name=name):
                names.append(name)
            case syntax.Call(function=name):
                results = _result_names(name, catalog)
                names += results if len(results) > 1 else [name]
            case _:
                names.append(f"column{len(names) + 1}")
    if len(names) == width:
        return tuple(names)
    return tuple(f"column{i + 1}" for i in range(width))


def _result_names(name: str, catalog: Catalog) -> list[str]:
    overloads = catalog.overloads(name)
    return [column.name for column in overloads[0].results] if overloads else [name]
