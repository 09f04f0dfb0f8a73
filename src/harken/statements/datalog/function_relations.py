"""The functions of a database as relations of Datalog.

An SQL table has its columns in the order of declaration, an AMOSQL function its arguments and then
its results. The types that a Datalog relation declares are in its own text.
"""

from __future__ import annotations

from collections.abc import Iterator

from harken.database.catalog import Catalog
from harken.database.function_tables import SqlTables, table_of
from harken.database.language_names import DATALOG
from harken.ir.relations import Column
from harken.ir.schema import Function
from harken.lang.datalog import syntax
from harken.lang.datalog.kinds import Types, kind_of
from harken.lang.datalog.known_relations import KnownRelation
from harken.statements.datalog.text import kept
from harken.values.types import BOOLEAN


class CatalogRelations:
    """Implements `harken.lang.datalog.known_relations.Relations` over the catalog."""

    def __init__(self, catalog: Catalog, types: Types) -> None:
        self._catalog = catalog
        self._types = types
        self._found: dict[str, KnownRelation | None] = {}
        self._epoch = -1

    def find(self, name: str) -> KnownRelation | None:
        if self._epoch != self._catalog.epoch:
            self._found.clear()
            self._epoch = self._catalog.epoch
        if name not in self._found:
            function = self.function(name)
            self._found[name] = None if function is None else self._known(function)
        return self._found[name]

    def function(self, name: str) -> Function | None:
        """The function that a name refers to; names in Datalog are case-sensitive."""
        named = [f for f in self._catalog.named(name) if f.relation is not None and not f.system]
        if len(named) == 1:
            return named[0]
        tables = SqlTables(self._catalog)
        if any(each.language == DATALOG for each in tables.folded(name)):
            return None
        return tables.function(name)

    def names(self) -> Iterator[str]:
        for function in self._catalog.functions():
            is_shown = not function.system and not function.facts_of
            if function.relation is not None and is_shown:
                yield function.name

    def _known(self, function: Function) -> KnownRelation:
        relation = function.relation
        assert relation is not None
        if function.language == DATALOG:
            attributes = kept(function.text).declaration.attributes
            return KnownRelation(
                name=function.name,
                relation=relation,
                attributes=tuple(each.name for each in attributes),
                types=tuple(each.type for each in attributes),
                kinds=tuple(self._types.kind(each.type, each.span) for each in attributes),
                positions=tuple(range(len(attributes))),
            )
        table = table_of(function)
        kinds = tuple(kind_of(column.type) for column in table.columns)
        return KnownRelation(
            name=function.name,
            relation=relation,
            attributes=tuple(column.name for column in table.columns),
            types=tuple(kind.name for kind in kinds),
            kinds=kinds,
            positions=table.positions,
        )


def types_of(catalog: Catalog) -> Types:
    """The types declared by the relations of a database."""
    types = Types()
    for function in catalog.functions():
        if function.language == DATALOG:
            types.declare(kept(function.text).types)
    return types


def columns_of(declaration: syntax.Declaration, types: Types) -> tuple[Column, ...]:
    """A relation without attributes has one column that is always true: SQL has no table
    without columns."""
    if not declaration.attributes:
        return (Column(declaration.name.rpartition(".")[2], BOOLEAN),)
    return tuple(
        Column(each.name, types.kind(each.type, each.span).type) for each in declaration.attributes
    )
