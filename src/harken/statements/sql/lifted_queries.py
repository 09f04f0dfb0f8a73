"""Queries of statements whose constants were lifted: compiled once, run with other values.

Law: what was compiled holds until a table or view that the query mentions, directly or in a view,
is another one, or its name means another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from harken.database.catalog import Catalog
from harken.database.function_tables import SqlTables
from harken.database.runtime import Runtime
from harken.engines.protocol import Engine, Query
from harken.ir.assemble import assemble
from harken.ir.clauses import Program, atoms
from harken.ir.relations import COPIES, RANGES, Kind, Relation
from harken.ir.schema import Function
from harken.lang.sql.lifting import Conversion, values_with
from harken.lang.sql.parser import Statement
from harken.planner.prepare import Plan, prepare
from harken.statements.sql.view_clauses import AskedTables, translate_lifted
from harken.values.rows import Row
from harken.values.types import Type


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of a query as they are stored, with the names and types of their columns."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    rows: list[Row]


class NotKept(Exception):
    """What the statement reads is nothing that a plan is kept for."""


@dataclass(frozen=True, slots=True)
class LiftedQuery:
    names: tuple[str, ...]
    types: tuple[Type, ...]
    plan: Plan
    query: Query
    made: tuple[Conversion, ...]
    """How some parameters come from the values of the statement."""
    asked: AskedTables
    read: Mapping[str, Function]
    """The functions that the plan was made of, by id."""

    def found(self, values: tuple[Any, ...]) -> Found:
        return Found(self.names, self.types, self.rows(values))

    def rows(self, values: tuple[Any, ...]) -> list[Row]:
        return self.query.rows(self.parameters(values))

    def parameters(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return values_with(self.made, values) if self.made else values

    def holds(self, catalog: Catalog) -> bool:
        """Would it be compiled to the same now?"""
        return self.asked.is_answered_by(SqlTables(catalog)) and all(
            catalog.has_function(name) and catalog.function(name) == function
            for name, function in self.read.items()
        )


def compile_lifted(runtime: Runtime, statement: Statement, node: exp.Expr) -> LiftedQuery:
    catalog, engine = runtime.catalog, runtime.engine
    translation, asked = translate_lifted(statement, node, catalog)
    rows = translation.rows
    program = assemble(rows.relation, translation.definitions.values(), catalog)
    read = _functions(program, catalog, engine)
    plan = prepare(program, catalog.hierarchy)
    if plan.computed:
        raise NotKept  # its temporary tables go with a rollback
    types = tuple(column.type for column in rows.columns)
    query = engine.compile(plan)
    return LiftedQuery(rows.names, types, plan, query, translation.made, asked, read)


def _functions(program: Program, catalog: Catalog, engine: Engine) -> dict[str, Function]:
    found = {}
    for relation in _relations(program):
        if relation.kind is Kind.FOREIGN and relation not in BUILT_IN:
            raise NotKept  # there may be other Python behind it
        if engine.is_in_lake(relation) or any(each.type.surrogate for each in relation.columns):
            raise NotKept  # what a type of objects is follows from more than this function
        if catalog.has_function(relation.id):
            found[relation.id] = catalog.function(relation.id)
    return found


BUILT_IN = (COPIES, *RANGES.values())


def _relations(program: Program) -> Iterator[Relation]:
    for definition in program.definitions.values():
        yield definition.relation
        for clause in definition.clauses:
            for atom in atoms(clause.body):
                yield atom.relation
