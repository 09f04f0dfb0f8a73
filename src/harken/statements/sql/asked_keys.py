"""The keys that a join needs of a source: `source.column = table.column` with a stored table.

The values that the table has are asked for, and no other rows. What is compared with the table
alone makes them fewer.

Law: no row that could be joined is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from harken.database.function_tables import SqlTables, table_of
from harken.database.runtime import Runtime
from harken.ir.schema import Function, FunctionKind
from harken.statements.sql.asked_conditions import is_plain, parts_of, parts_of_where
from harken.values.types import DATE, INTEGER, TEXT, Type

COMPARED_ALIKE = (INTEGER, TEXT, DATE)
"""Types whose equal values every source finds equal."""
PLAIN_JOINS = ("", "INNER", "CROSS", "OUTER")
MOST_READ = 100_000
"""Rows of a table that are looked through for keys."""


@dataclass(frozen=True, slots=True)
class KeyQuery:
    """The column of the source, and a query for the values it can have."""

    column: str
    query: exp.Select


@dataclass(frozen=True, slots=True)
class _StoredTable:
    """A table that a SELECT reads, by the name it has there."""

    node: exp.Table
    types: Mapping[str, Type]
    select: exp.Select


class KeySearch:
    """Of one source that a statement reads in one place."""

    def __init__(self, runtime: Runtime, node: exp.Expr, table: exp.Table, asked: Function) -> None:
        self._runtime, self._tables = runtime, SqlTables(runtime.catalog)
        self._table = table
        self._types = {each.name: each.type for each in table_of(asked).columns}
        self._defined = {each.alias.lower() for each in node.find_all(exp.CTE)}

    def found(self) -> list[KeyQuery]:
        select = self._table.find_ancestor(exp.Select)
        if select is None or self._table.alias_column_names:
            return []
        queries = (self._of(each, select) for each in self._certain(select))
        return [each for each in queries if each is not None]

    def _certain(self, select: exp.Select) -> Iterator[exp.Expr]:
        """Conditions without which a row of the source is of no use."""
        joins: list[exp.Join] = select.args.get("joins") or []
        if is_plain(select) and all(each.kind in PLAIN_JOINS for each in joins):
            yield from parts_of_where(select)
            for each in joins:
                yield from self._of_join(each, select)
        else:
            own = next((each for each in joins if each.this is self._table), None)
            is_left = own is not None and own.side == "LEFT" and own.kind in PLAIN_JOINS
            if own is not None and is_left and not own.method:
                yield from self._of_join(own, select)

    def _of_join(self, join: exp.Join, select: exp.Select) -> Iterator[exp.Expr]:
        on, using = join.args.get("on"), join.args.get("using")
        if on is not None:
            yield from parts_of(on)
        sides = self._sides(select)
        if using and len(sides) == 2:
            for each in using:
                left, right = (exp.column(each.name, side.alias_or_name) for side in sides)
                yield exp.EQ(this=left, expression=right)

    def _of(self, condition: exp.Expr, select: exp.Select) -> KeyQuery | None:
        condition = condition.unnest()
        if isinstance(condition, exp.In):
            return self._of_subquery(condition)
        if not isinstance(condition, exp.EQ):
            return None
        for own, other in (
            (condition.this, condition.expression),
            (condition.expression, condition.this),
        ):
            column = self._own(own, select)
            if column is None or not isinstance(other, exp.Column):
                continue
            stored = self._stored(other, select)
            if stored is not None and stored.node is not self._table:
                return self._query(column, other.name.lower(), stored)
        return None

    def _of_subquery(self, condition: exp.In) -> KeyQuery | None:
        inner = condition.args.get("query")
        inner = None if inner is None else inner.unnest()
        select = self._table.find_ancestor(exp.Select)
        assert select is not None
        column = self._own(condition.this, select)
        if column is None or not isinstance(inner, exp.Select) or len(inner.selects) != 1:
            return None
        given = inner.selects[0].unalias()
        stored = self._stored(given, inner) if isinstance(given, exp.Column) else None
        if stored is None or stored.select is not inner:
            return None
        return self._query(column, given.name.lower(), stored)

    def _query(self, column: str, other: str, stored: _StoredTable) -> KeyQuery | None:
        if self._types[column] != stored.types[other]:
            return None
        if self._types[column] not in COMPARED_ALIKE:
            return None
        alias = stored.node.alias_or_name
        query = exp.select(exp.column(other, alias)).distinct().from_(stored.node.copy())
        for each in parts_of_where(stored.select):
            if self._is_about(each, stored):
                query = query.where(each.copy())
        return KeyQuery(column, query)

    def _is_about(self, condition: exp.Expr, stored: _StoredTable) -> bool:
        """Does a condition read this table only, and can it be decided alone?"""
        if condition.find(exp.Query, exp.Func, exp.Placeholder, exp.Parameter) is not None:
            return False
        return all(
            self._stored(each, stored.select) == stored for each in condition.find_all(exp.Column)
        )

    # --- names ---

    def _own(self, node: exp.Expr, select: exp.Select) -> str | None:
        if not isinstance(node, exp.Column) or self._side(node, select) is not self._table:
            return None
        name = node.name.lower()
        return name if name in self._types else None

    def _stored(self, node: exp.Expr, select: exp.Select) -> _StoredTable | None:
        """The stored table that a column is of, in this SELECT or in one around it."""
        assert isinstance(node, exp.Column)
        around: exp.Select | None = select
        while around is not None:
            side = self._side(node, around)
            if side is not None:
                types = self._types_of(side)
                found = _StoredTable(side, types, around) if types else None
                return found if node.name.lower() in types else None
            if not node.table:
                return None
            around = around.find_ancestor(exp.Select)
        return None

    def _side(self, node: exp.Column, select: exp.Select) -> exp.Table | None:
        """The table of a column, if it is certain."""
        sides, name = self._sides(select), node.table.lower()
        if name:
            found = [each for each in sides if each.alias_or_name.lower() == name]
            return found[0] if len(found) == 1 and isinstance(found[0], exp.Table) else None
        types = [self._all_types(each) for each in sides]
        if not all(types):
            return None
        named = [
            each for each, known in zip(sides, types, strict=True) if node.name.lower() in known
        ]
        found_side = named[0] if len(named) == 1 else None
        return found_side if isinstance(found_side, exp.Table) else None

    @staticmethod
    def _sides(select: exp.Select) -> list[exp.Expr]:
        first = select.args.get("from_")
        joins = select.args.get("joins") or []
        return [*([first.this] if first is not None else []), *(each.this for each in joins)]

    def _all_types(self, side: exp.Expr) -> Mapping[str, Type]:
        return self._types if side is self._table else self._types_of(side)

    def _types_of(self, side: exp.Expr) -> Mapping[str, Type]:
        """The columns of a stored table that is small enough to be looked through."""
        name = side.name.lower()
        if not isinstance(side, exp.Table) or name in self._defined or side.alias_column_names:
            return {}
        function = self._tables.function(side.name)
        if function is None or function.kind != FunctionKind.STORED or function.relation is None:
            return {}
        engine, relation = self._runtime.engine, function.relation
        if engine.is_in_lake(relation) or engine.statistics.rows(relation) > MOST_READ:
            return {}
        return {each.name: each.type for each in table_of(function).columns}
