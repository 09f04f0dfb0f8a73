"""What SQL knows of a table or view: its columns, its keys, its constraints, and its text."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from harken.database.catalog import Catalog
from harken.database.function_tables import SqlTables, is_table, table_of
from harken.ir.relations import Column
from harken.ir.schema import Function
from harken.lang.sql.parser import statements
from harken.lang.sql.program_draft import unknown_table
from harken.statements.records import is_mirror
from harken.statements.sql.constraint_queries import Constraint, constraints_of
from harken.statements.sql.view_clauses import is_view, kind_of


@dataclass(frozen=True, slots=True)
class ForeignKeyDescription:
    columns: tuple[str, ...]
    table: str
    referred: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table, `view` or `materialized view` as SQL sees it."""

    name: str
    kind: str
    columns: tuple[Column, ...]
    defaults: dict[str, str]
    """In SQL, of the columns that have one."""
    primary_key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...]
    foreign_keys: tuple[ForeignKeyDescription, ...]
    checks: tuple[str, ...]
    text: str
    """The statement that created it; of what other languages made, their text."""


def describe_table(name: str, catalog: Catalog) -> TableDescription:
    tables = SqlTables(catalog)
    function = tables.function(name)
    if function is None:
        raise unknown_table(tables, name, None)
    constraints = _constraints(function, catalog)
    return TableDescription(
        name=function.name.lower(),
        kind=kind_of_table(function),
        columns=table_of(function).columns,
        defaults=_defaults(function),
        primary_key=_primary_key(function),
        unique=tuple(c.columns for c in constraints if c.columns and c.parent is None),
        foreign_keys=tuple(
            ForeignKeyDescription(c.columns, c.parent, c.referred)
            for c in constraints
            if c.parent is not None
        ),
        checks=tuple(c.said.removeprefix("CHECK ") for c in constraints if not c.columns),
        text=function.text,
    )


def kind_of_table(function: Function) -> str:
    if function.materialized:
        return "materialized view"
    if is_mirror(function):
        return "source"
    return kind_of(function)


def _constraints(function: Function, catalog: Catalog) -> list[Constraint]:
    if not is_table(function):
        return []
    (statement,) = statements(function.text)
    return constraints_of(statement, catalog)


def _defaults(function: Function) -> dict[str, str]:
    if not is_table(function):
        return {}
    (statement,) = statements(function.text)
    found = {}
    for column in statement.node.find_all(exp.ColumnDef):
        default = column.find(exp.DefaultColumnConstraint)
        if default is not None:
            found[column.name.lower()] = default.this.sql("spark")
    return found


def _primary_key(function: Function) -> tuple[str, ...]:
    """The arguments of a stored function, which has one value for them."""
    if is_view(function) or function.bag:
        return ()
    return tuple(column.name for column in function.parameters)
