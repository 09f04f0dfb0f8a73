"""Recompiles everything that depends on a function that was created, redefined or deleted.

Each dependent comes after what it depends on, so it is compiled against the new version. Its own
language decides how.

Law: afterwards every function, rule, constraint and monitor compiles, and every view has the
columns of its query; otherwise the error names the one that does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harken.database.catalog import Catalog
from harken.database.dependency_order import dependents_in_order
from harken.database.function_tables import is_table, is_view_of_sql
from harken.database.language_names import PYTHON, SQL
from harken.database.runtime import Runtime
from harken.errors import HarkenError, IntegrityError, LanguageError
from harken.ir.schema import Function
from harken.statements.language_registry import language_named

WhenBroken = Callable[[Function, HarkenError], None]
"""Called for a function that no longer compiles."""


class BrokenReader(IntegrityError):
    """Something would no longer compile: `reader` is its name."""

    reader = ""


def _broken(reader: str, described: str, error: HarkenError, hint: str) -> BrokenReader:
    broken = BrokenReader(
        f"this would break {described}: {error.message}", code="in-use", hint=hint
    )
    broken.reader = reader
    return broken


def _refuse(function: Function, error: HarkenError) -> None:
    described = _described(function)
    raise _broken(function.name, described, error, f"change or delete {described} first") from error


def _described(function: Function) -> str:
    return function.name if function.language == SQL else function.id


def _leave_for_later(function: Function, error: HarkenError) -> None:
    """It may be about to change as well; at the end of the changes it must compile."""


def recheck(runtime: Runtime, name: str, skip: str | None = None) -> None:
    """Recompile everything that depends, directly or not, on functions of that name."""
    if runtime.redefined is not None:
        runtime.redefined.add(name)
        recheck_functions(runtime, name, skip, when_broken=_leave_for_later)
        return
    recheck_functions(runtime, name, skip)
    recheck_watchers(runtime, name)


def recheck_functions(
    runtime: Runtime, name: str, skip: str | None, when_broken: WhenBroken = _refuse
) -> None:
    """Recompile the functions, tables and views among them.

    Functions may depend on each other in a cycle. Whether a derived function is single-valued may
    change with the functions it calls, so changes are followed until nothing changes any more.
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
    """Recheck the rules and monitors among them."""
    catalog = runtime.catalog
    names = {name, *(each.name for each in dependents_in_order(catalog, name))}
    for rule in sorted({rule for each in names for rule in catalog.rules_that_call(each)}):
        _check_rule(runtime, rule)
    runtime.monitors.check()


def refuse_circle(catalog: Catalog, name: str, called: Iterable[str]) -> None:
    """Functions may call each other, but SQL views, stored or not, cannot be recursive: reject a
    cycle through `name`, which calls these."""
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
            f"{name} would be defined in terms of itself{through}",
            code="unsupported",
            hint="only WITH RECURSIVE allows a query to mention itself",
        )


def _check_rule(runtime: Runtime, name: str) -> None:
    try:
        runtime.rules.check(name)
    except HarkenError as error:
        raise _broken(name, f"the rule {name}", error, f"delete the rule {name} first") from error


def _check_again(runtime: Runtime, function: Function) -> bool:
    """True if the function changed in a way that its own dependents can see."""
    if function.system or function.language == PYTHON:
        return False
    return language_named(function.language).recheck(runtime, function)
