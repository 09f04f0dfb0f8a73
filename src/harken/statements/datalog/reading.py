"""Reads rows of relations and queries from the engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from harken.database.evaluation import decode_rows
from harken.database.runtime import Runtime
from harken.errors import SyntaxFault, counted
from harken.ir.assemble import assemble
from harken.ir.clauses import Atom, Clause, Definition
from harken.ir.relations import Kind, Relation, Role
from harken.ir.terms import Variable
from harken.lang.datalog import syntax
from harken.lang.datalog.kinds import Types
from harken.lang.datalog.known_relations import KnownRelation
from harken.lang.datalog.translate import Translator
from harken.planner.prepare import prepare
from harken.statements.datalog.function_relations import CatalogRelations
from harken.values.rows import Row
from harken.values.types import BOOLEAN, Type

QUERY, ALL = "the query", "all of these"
"""Names that no relation can have."""


class Reading:
    def __init__(self, runtime: Runtime, relations: CatalogRelations, types: Types) -> None:
        self._runtime = runtime
        self._relations = relations
        self._types = types

    @contextmanager
    def together(
        self, wanted: Iterable[KnownRelation]
    ) -> Iterator[Callable[[KnownRelation], Collection[Row]]]:
        """Within the block, a function that reads the rows of a relation; what several relations
        are derived from is derived once."""
        engine, catalog = self._runtime.engine, self._runtime.catalog
        relations = {each.relation.id: each.relation for each in wanted}
        derived = [
            each
            for each in relations.values()
            if each.kind is Kind.DERIVED and each.is_set and not each.nulls
        ]
        if len(derived) < 2 or engine.has_lake:
            yield self._rows
            return
        goal = mentioning(derived)
        program = assemble(goal.relation, (goal,), catalog)
        plan = prepare(program, catalog.hierarchy, wanted=[each.id for each in derived])
        query = engine.compile(plan)
        try:
            with query.evaluated() as rows_of:
                yield (
                    lambda known: (
                        _declared(known, rows_of(known.relation))
                        if known.relation in derived
                        else self._rows(known)
                    )
                )
        finally:
            query.release()

    def _rows(self, known: KnownRelation) -> Collection[Row]:
        return _declared(known, self._evaluate(known.relation, ()))

    def values(self, known: KnownRelation, rows: Collection[Row]) -> list[Row]:
        """Stored rows as Python values, in order."""
        nullable = any(known.relation.columns[i].type.nullable for i in known.positions)
        ordered = sorted(rows, key=_nulls_first if nullable else None)
        return decode_rows(ordered, column_types(known), self._runtime.catalog.home)

    def query(self, node: syntax.Query) -> tuple[tuple[str, ...], list[Row], tuple[Type, ...]]:
        """The variables of a query, its solutions, and the types of the variables; for a query
        without variables, whether it holds."""
        translator = Translator(self._relations, self._types, QUERY)
        main, names = translator.query(node)
        found = self._evaluate(main.relation, (main, *translator.auxiliaries.values()))
        if not names:
            return ("holds",), [(bool(found),)], (BOOLEAN,)
        types = tuple(column.type for column in main.relation.columns)
        different = found if main.relation.is_set else set(found)
        return names, decode_rows(sorted(different), types, self._runtime.catalog.home), types

    def fact(self, atom: syntax.Atom) -> Row:
        """A fact whose arguments are computed, in stored form."""
        translator = Translator(self._relations, self._types, QUERY)
        (clause,) = translator.clauses(atom, None)
        columns = clause.head.relation.columns
        goal = Relation(QUERY, columns, 0, Kind.DERIVED, role=Role.PART)
        main = Definition(goal, (Clause(replace(clause.head, relation=goal), clause.body),))
        found = self._evaluate(goal, (main, *translator.auxiliaries.values()))
        if len(found) != 1:
            raise SyntaxFault(
                f"a fact is one row, but this is {counted(len(found), 'row')}",
                span=atom.span,
                hint="write it as a rule with this head",
            )
        return found[0]

    def _evaluate(self, goal: Relation, own: tuple[Definition, ...]) -> list[Row]:
        catalog = self._runtime.catalog
        plan = prepare(assemble(goal, own, catalog), catalog.hierarchy)
        query = self._runtime.engine.compile(plan)
        try:
            return list(query.rows(()))
        finally:
            query.release()


def _declared(known: KnownRelation, found: list[Row]) -> Collection[Row]:
    """Rows with their attributes in the order of declaration. Those of a set stay in their order:
    the engine may have them sorted."""
    if not known.attributes:
        return {()} if found else set()
    if known.positions != tuple(range(known.relation.arity)):
        return {tuple(row[i] for i in known.positions) for row in found}
    return found if known.relation.is_set else set(found)


def column_types(known: KnownRelation) -> tuple[Type, ...]:
    """The types of the attributes, in the order of declaration."""
    return tuple(known.relation.columns[i].type for i in known.positions)


def _nulls_first(row: Row) -> Row:
    return tuple((value is not None, value) for value in row)


def mentioning(relations: Iterable[Relation]) -> Definition:
    """Something that depends on all of these, so that they are evaluated together."""
    goal = Relation(ALL, (), 0, Kind.DERIVED, role=Role.PART)
    clauses = []
    for relation in relations:
        row = tuple(Variable(f"X{i}", c.type) for i, c in enumerate(relation.columns))
        clauses.append(Clause(Atom(goal, ()), (Atom(relation, row),)))
    return Definition(goal, tuple(clauses))
