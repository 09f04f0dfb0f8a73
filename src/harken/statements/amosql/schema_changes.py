"""`create` and `delete` of types and functions.

A change of the schema is checked against everything that depends on it: a function that others call
cannot be deleted, and an overload that would make a call ambiguous is rejected.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from harken.database.runtime import Runtime
from harken.database.schema_cache import Dependencies
from harken.database.stored_functions import store
from harken.database.system import relation_of
from harken.errors import HarkenError, IntegrityError, NameFault, Span, TypeFault
from harken.ir.operations import OPERATIONS, PRIVATE_OPERATIONS
from harken.ir.relations import Column
from harken.ir.schema import Function, FunctionKind, example
from harken.lang.amosql import syntax
from harken.lang.amosql.overload_resolution import find_overloads, unknown_type
from harken.lang.amosql.program_draft import Draft
from harken.statements.amosql import definitions
from harken.statements.amosql.build import Builder
from harken.statements.amosql.foreign import load_target, register_declared
from harken.statements.declaring import (
    RESERVED_FUNCTIONS,
    check_function_name,
    check_name,
    refuse_replacing_data,
)
from harken.statements.dependents import recheck
from harken.statements.records import refuse_redefinition
from harken.values.types import ALIASES, LITERAL_TYPES, OBJECT, SYSTEM_TYPES, Type

BUILT_IN_FUNCTIONS = RESERVED_FUNCTIONS | (OPERATIONS.keys() - PRIVATE_OPERATIONS)


def change_schema(runtime: Runtime, node: syntax.Statement, text: str) -> bool:
    """Carry out a schema statement; False if the statement is not one. `text` is its own text."""
    functions = syntax.CreateFunction | syntax.DeleteFunction
    runtime.reactions.before_schema_change({node.name} if isinstance(node, functions) else None)
    match node:
        case syntax.CreateType():
            create_type(runtime, node)
        case syntax.DeleteType():
            delete_type(runtime, node)
        case syntax.CreateFunction():
            create_function(runtime, node, text)
        case syntax.DeleteFunction():
            delete_function(runtime, node)
        case _:
            return False
    return True


# --- types ---------------------------------------------------------------------------------


def create_type(runtime: Runtime, node: syntax.CreateType) -> None:
    catalog = runtime.catalog
    check_name(node.name, node.span)
    if catalog.type_named(node.name) is not None or node.name in ALIASES:
        raise NameFault(
            f"there is already a type {node.name}",
            code="exists",
            span=node.span,
            hint="choose another name, or delete it first",
        )
    supertypes = tuple(dict.fromkeys(node.supertypes)) or (OBJECT.name,)
    for name in supertypes:
        above = catalog.type_named(name)
        if above is None:
            raise unknown_type(catalog, name, node.span)
        if not above.surrogate or (name in SYSTEM_TYPES and name != OBJECT.name):
            raise TypeFault(
                f"{name} can have no subtypes",
                code="type-mismatch",
                span=node.span,
                hint="a supertype is `object` or a type made with `create type`",
            )
    least = sorted(catalog.hierarchy.most_specific(supertypes))
    type_ = catalog.add_type(node.name, tuple(least))
    for declaration in node.properties:
        _create_property(runtime, type_, declaration)


def _create_property(runtime: Runtime, owner: Type, declaration: syntax.Declaration) -> None:
    """`properties (name charstring)` is short for a stored function on the type."""
    result = Draft(runtime.catalog).type(declaration.type, declaration.span)
    name = declaration.name or declaration.type
    check_function_name(name, declaration.span)
    function = Function(
        name=name,
        parameters=(Column(owner.name, owner),),
        results=(Column(result.name, result),),
        kind=FunctionKind.STORED,
        text=f"create function {name}({owner}) -> {result} as stored",
    )
    if runtime.catalog.has_function(function.id):
        raise NameFault(
            f"there is already a function {function.id}",
            code="exists",
            span=declaration.span,
            hint="choose another name for the property",
        )
    store(runtime, function, property_of=owner.name)
    recheck(runtime, name)


def delete_type(runtime: Runtime, node: syntax.DeleteType) -> None:
    catalog = runtime.catalog
    name = node.name
    if catalog.type_named(name) is None:
        raise unknown_type(catalog, name, node.span)
    if name in LITERAL_TYPES or name in SYSTEM_TYPES or name in ALIASES:
        raise built_in(name, node.span)
    properties = catalog.properties_of(name)
    doomed = {function.id for function in properties}
    users = [f"function {f.id}" for f in catalog.users_of_type(name) if f.id not in doomed]
    users += [f"rule {rule}" for rule in catalog.rules_that_mention(name)]
    users += [f"type {child}" for child in catalog.hierarchy.children(name)]
    if users:
        raise IntegrityError(
            f"{name} cannot be deleted: it is used by {_listed(users)}",
            code="in-use",
            span=node.span,
            hint="delete those first",
        )
    for function in properties:
        catalog.remove_function(function)
    for function in properties:
        _recheck_after_removal(runtime, function, node.span)
    catalog.remove_type(name)
    runtime.objects.forget()


# --- functions -----------------------------------------------------------------------------


def create_function(runtime: Runtime, node: syntax.CreateFunction, text: str) -> None:
    catalog = runtime.catalog
    check_function_name(node.name, node.span)
    draft = Draft(catalog)
    function = Function(
        name=node.name,
        parameters=definitions.columns(node.parameters, draft),
        results=definitions.columns(node.results, draft),
        kind=definitions.kind_of(node, catalog),
        bag=node.bag,
        text=text,
    )
    refuse_replacing_data(catalog, function, node.span)
    match function.kind:
        case FunctionKind.STORED:
            assert isinstance(node.body, syntax.StoredBody)
            store(runtime, function, in_lake=node.body.in_lake, set_valued=node.set_valued)
        case FunctionKind.FOREIGN:
            _create_foreign(runtime, function, node)
        case FunctionKind.DERIVED:
            _create_derived(runtime, function, node)
        case FunctionKind.PROCEDURE:
            _create_procedure(runtime, function, node)
    recheck(runtime, function.name, skip=function.id)


def _create_foreign(runtime: Runtime, function: Function, node: syntax.CreateFunction) -> None:
    assert isinstance(node.body, syntax.ForeignBody)
    if node.body.target is not None:
        load_target(runtime.module_directories, node.body.target, node.body.span)
    catalog = runtime.catalog
    known = catalog.function(function.id) if catalog.has_function(function.id) else None
    replaced = runtime.replaced.pop(function.id, None)
    made = catalog.add_function(function)
    register_declared(runtime, made, node)
    if known is not None and (replaced is not None or known.text != function.text):
        runtime.reactions.foreign_changed(made)


def _create_derived(runtime: Runtime, function: Function, node: syntax.CreateFunction) -> None:
    function = replace(function, relation=relation_of(function))
    runtime.catalog.provisional(function, Dependencies())
    dependencies, single = definitions.check_function(function, runtime.catalog, node)
    runtime.catalog.add_function(function, dependencies, single)


def _create_procedure(runtime: Runtime, function: Function, node: syntax.CreateFunction) -> None:
    runtime.catalog.provisional(function, Dependencies())
    builder = Builder(runtime.engine, runtime.catalog, function=function)
    builder.procedure_body(function, node)
    runtime.catalog.add_function(function, builder.dependencies)


def delete_function(runtime: Runtime, node: syntax.DeleteFunction) -> None:
    catalog = runtime.catalog
    overloads = catalog.named(f"{node.qualifier}.{node.name}" if node.qualifier else node.name)
    if not overloads and node.name in BUILT_IN_FUNCTIONS and node.qualifier is None:
        raise built_in(node.name, node.span)
    if not overloads:
        find_overloads(catalog, node.name, node.qualifier, node.span)
    if len(overloads) > 1:
        raise TypeFault(
            f"{node.name} means {_listed(sorted(f.id for f in overloads))}",
            code="ambiguous",
            span=node.span,
            hint=f"name the type: delete function {example(overloads)}",
        )
    function = overloads[0]
    if function.system:
        raise built_in(function.id, node.span)
    refuse_redefinition(function)
    catalog.remove_function(function)
    runtime.objects.forget()
    _recheck_after_removal(runtime, function, node.span)


def _recheck_after_removal(runtime: Runtime, function: Function, span: Span | None) -> None:
    try:
        recheck(runtime, function.name)
    except HarkenError as error:
        watchers = runtime.monitors.users_of(function)
        dependents = runtime.catalog.dependents(function.name)
        users = sorted(each.id for each in dependents if not each.of_rule)
        users += [f"rule {rule}" for rule in runtime.catalog.rules_that_call(function.name)]
        first = [each.ending for each in watchers] + (["delete the others"] if users else [])
        users = [*(each.title for each in watchers), *users]
        raise IntegrityError(
            f"{function.id} cannot be deleted: {_listed(users)} would no longer work "
            f"({error.message})",
            code="in-use",
            span=span,
            hint=f"first {_listed(first)}" if watchers else "delete those first",
        ) from error


# --- names ---------------------------------------------------------------------------------


def built_in(name: str, span: Span | None) -> IntegrityError:
    return IntegrityError(
        f"{name} is built in and cannot be deleted",
        code="in-use",
        span=span,
        hint="only what was made with `create` can be deleted",
    )


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
    return ", ".join(shown[:5]) + more
