"""The definitions in a database, as texts: what a project is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harken.api.internals import Internals
from harken.database.catalog import Catalog
from harken.database.dependency_order import dependents_in_order
from harken.database.function_tables import SqlTables, table_of
from harken.database.language_names import AMOSQL, DATALOG, PYTHON, SQL
from harken.database.permissions import Permissions
from harken.ir.relations import Column
from harken.ir.schema import Function, FunctionKind
from harken.statements.declaration import (
    DOMAIN,
    FUNCTION,
    MATERIALIZED,
    RELATION,
    RULE,
    SOURCE,
    TABLE,
    TYPE,
    VIEW,
)
from harken.statements.records import is_domain, is_mirror
from harken.values.types import SYSTEM_TYPES


@dataclass(frozen=True, slots=True)
class Definition:
    kind: str
    """As in `statements.declaration`."""
    name: str
    """An AMOSQL function is named with the types of its arguments."""
    text: str
    """Empty for a type."""
    columns: tuple[Column, ...] = ()
    """If it has rows: its columns, as SQL names them."""
    key: tuple[str, ...] = ()
    """The columns that identify a stored row."""
    table: str | None = None
    """Its name in SQL, if it is stored."""


def definitions(catalog: Catalog, permissions: Permissions) -> list[Definition]:
    """All of them, or those of what the session's user may read."""
    tables = SqlTables(catalog)
    if permissions.user is not None:
        return list(_functions(catalog, tables, permissions))
    return [
        *(Definition(TYPE, name, "") for name in catalog.hierarchy if name not in SYSTEM_TYPES),
        *_functions(catalog, tables, permissions),
        *(Definition(RULE, name, text) for name, (_, text) in catalog.rules.items()),
    ]


def _functions(
    catalog: Catalog, tables: SqlTables, permissions: Permissions
) -> Iterator[Definition]:
    named = {}
    for name in tables.table_names():
        function = tables.function(name)
        if function is not None:
            named[function.id] = name
    for each in catalog.functions():
        if each.system or each.facts_of or each.language == PYTHON:
            continue
        if not permissions.may_see(each):
            continue
        name = each.id if each.language == AMOSQL else each.name
        if each.kind is not FunctionKind.STORED or each.materialized:
            yield Definition(_kind(each), name, each.text)
            continue
        table = table_of(each)
        keyed = set(range(len(each.parameters)))
        key = tuple(
            column.name
            for column, position in zip(
                table.columns, table.positions or range(len(table.columns)), strict=True
            )
            if position in keyed
        )
        stored_as = None if is_mirror(each) else named.get(each.id)  # it is read again
        yield Definition(_kind(each), name, each.text, table.columns, key, stored_as)


def _kind(function: Function) -> str:
    if is_mirror(function):
        return SOURCE
    if is_domain(function):
        return DOMAIN
    if function.language == SQL:
        if function.materialized:
            return MATERIALIZED
        return TABLE if function.kind is FunctionKind.STORED else VIEW
    return RELATION if function.language == DATALOG else FUNCTION


def readers_of(internals: Internals, name: str) -> list[str]:
    catalog, permissions = internals.catalog, internals.runtime.permissions
    above = [each for each in dependents_in_order(catalog, name) if permissions.may_see(each)]
    named = [*catalog.named(name), *above]
    found = [f"the {_kind(each)} {each.name}" for each in above if not each.system]
    if permissions.user is not None:
        return list(dict.fromkeys(found))
    names = {name, *(each.name for each in above)}
    found += sorted({f"the rule {r}" for each in names for r in catalog.rules_that_call(each)})
    watchers = [watcher for each in named for watcher in internals.monitors.users_of(each)]
    return list(dict.fromkeys([*found, *(each.title for each in watchers)]))
