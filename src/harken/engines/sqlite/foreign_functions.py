"""Foreign functions in queries: a Python function as a table-valued function of SQLite.

The function is called once for each combination of its arguments that the query meets. It gives
one value, or None for no value; a bag or several columns give an iterable of values or tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apsw

from harken.engines.foreign_calls import call, stored_rows
from harken.engines.sqlite import faults
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.table_names import stored_name
from harken.ir.relations import Relation

Decode = Callable[[Any], Any]


def foreign_module(relation: Relation) -> str:
    """The name under which a foreign relation is registered as a table-valued function."""
    return f"foreign {relation.id}"


def register(
    connection: Connection,
    relation: Relation,
    function: Callable[..., Any],
    decode: Sequence[Decode],
) -> None:
    module = foreign_module(relation)
    known = connection.foreign.get(module)
    connection.foreign[module] = (relation, function, decode)
    if known is not None and known[0] == relation:
        return

    def rows(*arguments: Any) -> Iterator[tuple[Any, ...]]:
        # Looked up at each call: a prepared statement keeps the module it was made with.
        relation, function, decode = connection.foreign[module]
        given = [turn(value) for turn, value in zip(decode, arguments, strict=True)]
        connection.asking += 1
        try:
            return iter(stored_rows(relation, call(relation.name, function, given)))
        finally:
            connection.asking -= 1

    source: Any = ForeignModule(relation, rows)
    with faults.translated():
        connection.raw.create_module(
            stored_name(module),
            source,
            use_bestindex_object=True,
            eponymous=True,
            eponymous_only=True,
            read_only=True,
        )


class ForeignModule:
    """The virtual table: result columns first, then the arguments as hidden columns."""

    def __init__(self, relation: Relation, rows: Callable[..., Iterator[tuple[Any, ...]]]) -> None:
        self.rows = rows
        self.inputs = relation.inputs
        self.width = relation.arity - relation.inputs
        results = [f"c{i}" for i in range(relation.inputs, relation.arity)]
        arguments = [f"a{i} HIDDEN" for i in range(relation.inputs)]
        self.schema = f"CREATE TABLE foreign_function ({', '.join(results + arguments)})"

    def Connect(self, *names: Any) -> tuple[str, ForeignTable]:
        return self.schema, ForeignTable(self)

    Create = Connect


class ForeignTable:
    def __init__(self, module: ForeignModule) -> None:
        self.module = module

    def BestIndexObject(self, index: apsw.IndexInfo) -> bool:
        """Take a plan only if it brings every argument, in the order of the parameters."""
        module = self.module
        found: dict[int, int] = {}
        for number in range(index.nConstraint):
            argument = index.get_aConstraint_iColumn(number) - module.width
            is_equation = index.get_aConstraint_op(number) == apsw.SQLITE_INDEX_CONSTRAINT_EQ
            if argument >= 0 and is_equation and index.get_aConstraint_usable(number):
                found.setdefault(argument, number)
        if len(found) != module.inputs:
            return False
        for argument, number in found.items():
            index.set_aConstraintUsage_argvIndex(number, argument + 1)
            index.set_aConstraintUsage_omit(number, True)
        index.estimatedRows = 10
        index.estimatedCost = 1000.0
        return True

    def Open(self) -> ForeignCursor:
        return ForeignCursor(self.module)

    def Disconnect(self) -> None:
        pass

    Destroy = Disconnect


class ForeignCursor:
    def __init__(self, module: ForeignModule) -> None:
        self.module = module
        self.arguments: tuple[Any, ...] = ()
        self.rows: list[tuple[Any, ...]] = []
        self.position = 0

    def Filter(self, number: int, text: str | None, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments
        # Nothing equals NULL (an aggregate over nothing, perhaps): the function is not called with
        # it.
        self.rows = [] if None in arguments else list(self.module.rows(*arguments))
        self.position = 0

    def Eof(self) -> bool:
        return self.position >= len(self.rows)

    def Next(self) -> None:
        self.position += 1

    def Rowid(self) -> int:
        return self.position

    def Column(self, number: int) -> Any:
        if number == -1:
            return self.position
        if number < self.module.width:
            return self.rows[self.position][number]
        return self.arguments[number - self.module.width]

    def Close(self) -> None:
        pass
