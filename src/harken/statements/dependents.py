"""What depends on a function that was created, defined again or deleted is compiled again.

Each comes after what it depends on, so it is compiled against what that has become. A view of SQL
takes the columns that its query has now. A materialized view whose columns are the same keeps its
table, and the network brings its rows along (`sql.materialized`); with other columns it gets a new
table, with the rows of now.

Law: afterwards every function, rule, constraint and monitor compiles, and every view has the
columns of its query; otherwise the error names the one that objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from harken.database.catalog import Catalog
from harken.database.dependency_order import dependents_in_order
from harken.database.runtime import Runtime
from harken.database.schema_cache import Dependencies
from harken.database.system import relation_of
from harken.errors import HarkenError, IntegrityError, LanguageError
from harken.ir.schema import Function, FunctionKind
from harken.lang.sql.parser import statements
from harken.statements import definitions
from harken.statements.amosql.build import Builder, syntax_of
from harken.statements.amosql.rules import compile_rule, read_rule
from harken.statements.sql.constraints import compile_constraints
from harken.statements.sql.materialized_views import compile_kept, put_rows, rows_of
from harken.statements.sql.tables import is_materialized, is_sql, is_table, is_view_of_sql
from harken.statements.sql.views import read_view

WhenBroken = Callable[[Function, HarkenError], None]
"""What becomes of a function that no longer compiles."""


def _refuse(function: Function, error: HarkenError) -> None:
    raise IntegrityError(
        f"this would break {_said(function)}: {error.message}",
        code="in-use",
        hint=f"change or delete {_said(function)} first",
    ) from error


def _said(function: Function) -> str:
    return function.name if is_sql(function) else function.id


def recheck(runtime: Runtime, name: str, skip: str | None = None) -> None:
    """Compile again all that depends, directly or not, on functions of that name."""
    recheck_functions(runtime, name, skip)
    recheck_watchers(runtime, name)


def recheck_functions(
    runtime: Runtime, name: str, skip: str | None, when_broken: WhenBroken = _refuse
) -> None:
    """The functions, tables and views among them.

    Functions may depend on each other in a circle. Whether a derived function is single-valued may
    change with those it calls, so what changed is followed until nothing does.
    """
    catalog = runtime.catalog
    called = {e for f in catalog.overloads(name) for e in catalog.dependencies(f.id).functions}
    refuse_circle(catalog, name, called)
    order = [each.id for each in dependents_in_order(catalog, name) if each.id != skip]
    waiting = order
    for _ in range(len(order) + 1):
        again: set[str] = set()
        for function_id in waiting:
            again.discard(function_id)
            if not catalog.has_function(function_id):
                continue  # dropped, because something below it no longer compiles
            function = catalog.function(function_id)
            try:
                if _check_again(runtime, function):
                    again |= {each.id for each in catalog.dependents(function.name)}
            except HarkenError as error:
                when_broken(function, error)
        waiting = [each for each in order if each in again]


def recheck_watchers(runtime: Runtime, name: str) -> None:
    """The rules and monitors among them."""
    catalog = runtime.catalog
    names = {name, *(each.name for each in dependents_in_order(catalog, name))}
    for rule in sorted({rule for each in names for rule in catalog.rules_that_call(each)}):
        _check_rule(runtime, rule)
    runtime.monitors.check()


def refuse_circle(catalog: Catalog, name: str, called: Iterable[str]) -> None:
    """Functions may call each other, but a view of SQL, stored or not, is no recursive definition:
    refuse one among those that `name`, which calls these, would be made of, and that read it."""
    above = {each.name: each for each in dependents_in_order(catalog, name)}
    if not above:
        return
    below, waiting = set(called), list(called)
    while waiting:
        for each in catalog.overloads(waiting.pop()):
            if is_table(each):
                continue  # it refers to others, and two tables may refer to each other
            more = catalog.dependencies(each.id).functions - below
            below |= more
            waiting += more
    views = sorted(each for each in below if each in above and is_view_of_sql(above[each]))
    if views:
        others = [each for each in views if each != name]
        through = f", through {', '.join(others)}" if others else ""
        raise LanguageError(
            f"{name} would be made of itself{through}",
            code="unsupported",
            hint="a query mentions itself in WITH RECURSIVE",
        )


def _check_rule(runtime: Runtime, name: str) -> None:
    oid, text = runtime.catalog.rules[name]
    try:
        rule = read_rule(text, oid, runtime.catalog)
        compile_rule(rule, runtime.engine, runtime.catalog).build_action()
    except HarkenError as error:
        raise IntegrityError(
            f"this would break the rule {name}: {error.message}",
            code="in-use",
            hint=f"delete the rule {name} first",
        ) from error


def _check_again(runtime: Runtime, function: Function) -> bool:
    """True if the function changed in a way that its own dependents can see."""
    catalog = runtime.catalog
    if function.system:
        return False
    if function.kind is FunctionKind.PROCEDURE:
        builder = Builder(runtime.engine, catalog, function=function)
        builder.procedure_body(function, syntax_of(function))
        return False
    if is_table(function):
        compile_constraints(function, catalog)
        return False
    if is_view_of_sql(function):
        return _check_view(runtime, function)
    if function.kind is not FunctionKind.DERIVED:
        return False
    _, single = definitions.check_derived(function, catalog)
    relation = function.relation
    if relation is None or single == (relation.key is not None):
        return False
    catalog.mark_single_valued(function, single)
    return True


def _check_view(runtime: Runtime, function: Function) -> bool:
    """Give a view of SQL the columns that its query has now."""
    catalog = runtime.catalog
    read, mentioned = read_view(statements(function.text)[0], catalog)
    made = replace(function, results=read.results, bag=read.bag)
    made = replace(made, relation=relation_of(made))
    if is_materialized(function):
        kept = compile_kept(made, catalog)
    else:
        definitions.check_derived(made, catalog)
    if made.relation == function.relation:
        return False
    if not is_materialized(function):
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
