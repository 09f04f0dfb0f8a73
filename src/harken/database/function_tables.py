"""The functions of a database as the tables and views of SQL.

A stored function f(A) -> R is the table f, or A_f, with the columns of both sides, and its
arguments are its key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from harken.database.catalog import Catalog
from harken.database.dependency_order import dependents_in_order
from harken.database.language_names import DATALOG, SQL
from harken.errors import NameFault
from harken.ir.relations import Column
from harken.ir.schema import Function, FunctionKind, Table


class SqlTables:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def function(self, name: str) -> Function | None:
        """The function behind the table or view of this name, ignoring case. Where Datalog or
        AMOSQL made several whose names differ only in case, the one spelled exactly so."""
        named = [f for f in self._catalog.named(name) if f.relation is not None]
        if len(named) == 1 and not named[0].system:
            return named[0]
        folded = self.folded(name)
        if len(folded) > 1:
            raise NameFault(
                f"{name} may mean {' or '.join(sorted(each.name for each in folded))}",
                code="ambiguous",
                hint="names that differ only in case must be written exactly",
            )
        if folded:
            return folded[0]
        return next((f for f in self._functions() if long_name(f) == name.lower()), None)

    def folded(self, name: str) -> list[Function]:
        """All functions whose names differ from this one at most in case."""
        return [
            function
            for function in self._functions()
            if function.name.lower() == name.lower()
            and len(self._catalog.named(function.name)) == 1
        ]

    def table(self, name: str) -> Table | None:
        function = self.function(name)
        return None if function is None else table_of(function)

    def is_table(self, name: str) -> bool:
        return self.function(name) is not None

    def table_names(self) -> list[str]:
        """The names of tables as a statement uses them."""
        return [
            each.name if len(self._catalog.named(each.name)) == 1 else long_name(each)
            for each in self._functions()
            if not each.facts_of
        ]

    def _functions(self) -> Iterator[Function]:
        for function in self._catalog.functions():
            if function.relation is not None and not function.system:
                yield function


def long_name(function: Function) -> str:
    """`item_quantity` is the table of quantity(item)."""
    types = "_".join(column.type.name for column in function.parameters)
    return f"{types}_{function.name}".lower() if types else function.name.lower()


def table_of(function: Function) -> Table:
    relation = function.relation
    assert relation is not None
    columns = relation.columns
    if function.language == SQL:
        columns = tuple(Column(each.name, each.type) for each in columns)
    else:
        columns = _named(function)
    positions = function.order or tuple(range(len(columns)))
    return Table(function.name, relation, tuple(columns[i] for i in positions), positions)


def _named(function: Function) -> tuple[Column, ...]:
    """Columns by name; a single unnamed result is called like the function."""
    columns = (*function.parameters, *function.results)
    if function.language == DATALOG:
        names = _lowered([each.name for each in columns])
        return tuple(Column(n, each.type) for n, each in zip(names, columns, strict=True))
    if len(function.results) == 1 and columns[-1].name.startswith(columns[-1].type.name):
        columns = (*function.parameters, Column(function.name, columns[-1].type))
    return columns


def _lowered(names: Sequence[str]) -> list[str]:
    """Names from Datalog, which are case-sensitive, as names of columns, which are not. The one in
    lower case keeps its name.

    >>> _lowered(["Id", "X", "x", "x_2"])
    ['id', 'x_3', 'x', 'x_2']
    """
    taken = {name for name in names if name == name.lower()}
    found = []
    for name in names:
        lowered, number = name.lower(), 1
        while name != lowered and lowered in taken:
            number += 1
            lowered = f"{name.lower()}_{number}"
        taken.add(lowered)
        found.append(lowered)
    return found


def is_table(function: Function) -> bool:
    """Whether CREATE TABLE made it."""
    return (
        function.language == SQL
        and function.kind is FunctionKind.STORED
        and not function.materialized
    )


def is_asked(function: Function) -> bool:
    """Is it a source without a mirror, which is asked when a query reads it? Nothing else that SQL
    defines is foreign."""
    return function.kind is FunctionKind.FOREIGN and function.language == SQL


def asked_below(catalog: Catalog, names: Collection[str]) -> str | None:
    """A source without a mirror that one of these reads, directly or not."""
    for function in catalog.functions():
        if is_asked(function):
            above = {each.name for each in dependents_in_order(catalog, function.name)}
            if function.name in names or above & set(names):
                return function.name
    return None


def is_view_of_sql(function: Function) -> bool:
    is_derived = function.kind is not FunctionKind.FOREIGN
    return function.language == SQL and is_derived and not is_table(function)


def declared_order(function: Function, names: Sequence[str]) -> Function:
    """The same function with its columns declared in the order of `names`."""
    stored = [column.name for column in (*function.parameters, *function.results)]
    order = tuple(stored.index(name) for name in names)
    return replace(function, order=() if order == tuple(range(len(stored))) else order)
