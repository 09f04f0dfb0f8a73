"""Which names a new function may have, and what it may not replace."""

from __future__ import annotations

from harken.database.catalog import Catalog
from harken.database.runtime import Runtime
from harken.errors import NameFault, Span
from harken.ir.operations import NAMED_AGGREGATES
from harken.ir.schema import Function, FunctionKind
from harken.statements.dependents import recheck

RESERVED_FUNCTIONS = frozenset(NAMED_AGGREGATES) | {"tclose", "print"}
MAX_NAME = 200


def declare_stored(runtime: Runtime, function: Function) -> Function:
    """Store the definition of a function whose rows exist already."""
    check_function_name(function.name, None)
    refuse_replacing_data(runtime.catalog, function, None)
    made = runtime.catalog.add_function(function)
    recheck(runtime, made.name, skip=made.id)
    return made


def check_name(name: str, span: Span | None) -> None:
    if len(name) > MAX_NAME:
        raise NameFault(
            f"a name has at most {MAX_NAME} characters, but this has {len(name)}",
            code="bad-name",
            span=span,
            hint="choose a shorter one",
        )


def check_function_name(name: str, span: Span | None) -> None:
    check_name(name, span)
    if name in RESERVED_FUNCTIONS:
        raise NameFault(
            f"{name} is built in and cannot be redefined",
            code="exists",
            span=span,
            hint="choose another name",
        )


def refuse_replacing_data(catalog: Catalog, function: Function, span: Span | None) -> None:
    if not catalog.has_function(function.id):
        return
    known = catalog.function(function.id)
    if known.system:
        raise NameFault(
            f"{function.id} is built in", code="exists", span=span, hint="choose another name"
        )
    if known.kind is FunctionKind.STORED:
        raise NameFault(
            f"there is already a stored function {function.id}",
            code="exists",
            span=span,
            hint="delete it first if you no longer need its data",
        )
