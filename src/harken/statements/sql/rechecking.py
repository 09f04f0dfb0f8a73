"""Recompiles SQL tables and views after something they depend on has changed.

A view gets the present columns of its query. A materialized view with unchanged columns keeps its
table, and propagation brings its rows up to date; with other columns it gets a new table, filled
with the present rows of its query.
"""

from __future__ import annotations

from dataclasses import replace

from harken.database.function_tables import is_table
from harken.database.runtime import Runtime
from harken.database.schema_cache import Dependencies
from harken.database.system import relation_of
from harken.ir.schema import Function
from harken.lang.sql.parser import statements
from harken.statements.sql.constraint_queries import compile_constraints
from harken.statements.sql.materialized_views import compile_kept, put_rows, rows_of
from harken.statements.sql.view_clauses import check_view, read_view


def recheck(runtime: Runtime, function: Function) -> bool:
    if is_table(function):
        compile_constraints(function, runtime.catalog)
        return False
    return _recheck_view(runtime, function)


def _recheck_view(runtime: Runtime, function: Function) -> bool:
    catalog = runtime.catalog
    read, mentioned = read_view(statements(function.text)[0], catalog)
    made = replace(function, results=read.results, bag=read.bag)
    made = replace(made, relation=relation_of(made))
    if function.materialized:
        kept = compile_kept(made, catalog)
    else:
        check_view(made, catalog)
    if made.relation == function.relation:
        return False
    if not function.materialized:
        catalog.revise_function(made, Dependencies(mentioned))
        return True
    assert function.relation is not None
    assert made.relation is not None
    runtime.rules.before_remaking(function)
    catalog.revise_function(made, Dependencies(mentioned))
    runtime.engine.drop(function.relation)
    runtime.engine.create(made.relation)
    put_rows(runtime, kept, rows_of(runtime, kept))
    return True
