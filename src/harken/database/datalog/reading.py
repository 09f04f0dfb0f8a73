"""Rows of relations and of queries, from the engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harken.database.datalog.relations import CatalogRelations
from harken.database.evaluation import decode_rows
from harken.database.runtime import Runtime
from harken.ir.assemble import assemble
from harken.ir.clauses import Clause, Definition
from harken.ir.relations import Kind, Relation
from harken.lang.datalog import syntax
from harken.lang.datalog.kinds import Types
from harken.lang.datalog.known import Known
from harken.lang.datalog.translate import Translator
from harken.planner.prepare import prepare

Row = tuple[Any, ...]

QUERY = "query"


class Reading:
    def __init__(self, runtime: Runtime, relations: CatalogRelations, types: Types) -> None:
        self._runtime = runtime
        self._relations = relations
        self._types = types

    def rows(self, known: Known) -> list[Row]:
        """All rows of a relation, in order, with its attributes in the order of declaration."""
        found = self._evaluate(known.relation, ())
        if not known.attributes:
            return [()] if found else []
        return sorted(
            {tuple(row[i] for i in known.positions) for row in found},
            key=lambda row: tuple((value is not None, value) for value in row),
        )

    def values(self, known: Known, rows: list[Row]) -> list[Row]:
        """Stored rows as Python values."""
        types = tuple(known.relation.columns[i].type for i in known.positions)
        return decode_rows(rows, types, self._runtime.catalog.home)

    def query(self, node: syntax.Query) -> tuple[tuple[str, ...], list[Row]]:
        """The variables of a query and its solutions; for one without variables, whether it
        holds."""
        translator = Translator(self._relations, self._types, QUERY)
        main, names = translator.query(node.body)
        found = self._evaluate(main.relation, (main, *translator.auxiliaries.values()))
        if not names:
            return ("holds",), [(bool(found),)]
        types = tuple(column.type for column in main.relation.columns)
        return names, decode_rows(sorted(set(found)), types, self._runtime.catalog.home)

    def fact(self, atom: syntax.Atom) -> Row:
        """A fact whose arguments are computed, as it is stored."""
        translator = Translator(self._relations, self._types, QUERY)
        (clause,) = translator.clauses(atom, None)
        goal = Relation(QUERY, clause.head.relation.columns, 0, Kind.DERIVED)
        main = Definition(goal, (Clause(replace(clause.head, relation=goal), clause.body),))
        (row,) = self._evaluate(goal, (main, *translator.auxiliaries.values()))
        return row

    def _evaluate(self, goal: Relation, own: tuple[Definition, ...]) -> list[Row]:
        catalog = self._runtime.catalog
        plan = prepare(assemble(goal, own, catalog), catalog.hierarchy)
        query = self._runtime.engine.compile(plan)
        try:
            return list(query.rows(()))
        finally:
            query.release()
