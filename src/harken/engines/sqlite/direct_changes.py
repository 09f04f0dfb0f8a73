"""UPDATE and DELETE of the rows that a query finds, as one statement of SQLite.

    query(X, V) ← table(X) ∧ condition(X) ∧ V = value(X)

    UPDATE table SET c = value WHERE condition

This works where the query reads the table once and nothing else. Law: the table has the rows that
it would have after reading all rows of the query and changing them one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harken.engines.protocol import RunWith
from harken.engines.sqlite import faults, layout
from harken.engines.sqlite.compile import Compiler
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.select import Select
from harken.engines.sqlite.slots import Slots
from harken.engines.sqlite.sql_expressions import quote
from harken.ir.clauses import Atom, Clause, Comparison, Computation
from harken.ir.relations import Relation
from harken.planner.prepare import Plan
from harken.values.encoding import encoder


def updating(
    connection: Connection, plan: Plan, relation: Relation, assigned: Mapping[int, int]
) -> RunWith | None:
    """`assigned` are columns of the relation, each with the column of the query that it is set
    to."""
    compiler = _compiler(plan)
    found = _single(compiler, plan, relation)
    if found is None:
        return None
    clause, select, environment, alias = found
    changes, differs = [], []
    for column, position in assigned.items():
        value = compiler.term(clause.head.terms[position], environment).checked()
        text = select.guarded(value)
        changes.append(f"c{column} = {text}")
        differs.append(f"{alias}.c{column} IS NOT {text}")
    conditions = [*select.conditions(), f"({' OR '.join(differs)})"]
    sql = (
        f"UPDATE {_table(relation)} AS {alias} SET {', '.join(changes)} "
        f"WHERE {' AND '.join(conditions)}"
    )
    return _running(connection, sql, compiler)


def deleting(connection: Connection, plan: Plan, relation: Relation) -> RunWith | None:
    compiler = _compiler(plan)
    found = _single(compiler, plan, relation)
    if found is None:
        return None
    _, select, _, alias = found
    where = " AND ".join(select.conditions())
    sql = f"DELETE FROM {_table(relation)} AS {alias}" + (f" WHERE {where}" if where else "")
    return _running(connection, sql, compiler)


def _table(relation: Relation) -> str:
    return f"main.{quote(layout.table_name(relation))}"


def _compiler(plan: Plan) -> Compiler:
    compiler = Compiler(plan.program.definitions, plan.needs, tables={})
    compiler.slots = Slots()
    return compiler


def _single(
    compiler: Compiler, plan: Plan, relation: Relation
) -> tuple[Clause, Select, Any, str] | None:
    """The one SELECT of the query, if the table is all that it reads in FROM."""
    definition = plan.program.definition(plan.program.goal)
    if plan.computed or definition is None or definition.relation.is_set:
        return None
    if definition.first is not None or definition.numbered is not None:
        return None
    if len(definition.clauses) != 1 or not _reads_once(definition.clauses[0], relation):
        return None
    ((clause, select, environment),) = compiler.branches(definition, {})
    if len(select.sources) != 1 or select.sources[0].rows != compiler.table(relation):
        return None
    return clause, select, environment, select.sources[0].alias


def _reads_once(clause: Clause, relation: Relation) -> bool:
    """A subquery could see rows that the statement has changed already."""
    read = [each for each in clause.body if not isinstance(each, Comparison | Computation)]
    match read:
        case [Atom(negated=False) as atom]:
            return atom.relation == relation
    return False


def _running(connection: Connection, sql: str, compiler: Compiler) -> RunWith:
    bound = [(index, encoder(type_)) for index, type_ in compiler.slots.bound_in(sql)]
    execute, watch, changes = connection.execute, connection.watch, connection.raw.changes

    def run(values: Sequence[Any]) -> int:
        if watch.is_armed:
            watch.check()
        given = tuple([encode(values[index]) for index, encode in bound])
        try:
            execute(sql, given)
            return changes()
        except faults.RAISED as error:
            raise faults.fault(error) from error

    return run
