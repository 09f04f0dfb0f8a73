"""Foreign functions and procedures: Python implementations of AMOSQL functions.

A function declared `as foreign "module:function"` is imported again whenever the database is
opened; one registered with `db.foreign` belongs to the session. Its signature is the one declared
in AMOSQL, otherwise that of its Python annotations; without either it is a procedure with any
arguments.
"""

from __future__ import annotations

import collections.abc
import datetime
import inspect
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from harken import limits
from harken.database.language_names import PYTHON
from harken.database.objects import Object
from harken.database.runtime import Runtime
from harken.database.system import relation_of
from harken.errors import ForeignFault, Span, TypeFault
from harken.ir.operations import NAMED_AGGREGATES, OPERATIONS
from harken.ir.relations import Column
from harken.ir.schema import Function, FunctionKind
from harken.lang.amosql import syntax
from harken.lang.amosql.parser import parse_statement
from harken.statements.amosql.modules import find_module
from harken.values.encoding import decoder
from harken.values.types import BOOLEAN, DATE, INTEGER, NUMBER, OBJECT, TEXT, TIMESTAMP, Type

PYTHON_TYPES: dict[object, Type] = {
    int: INTEGER,
    float: NUMBER,
    str: TEXT,
    bool: BOOLEAN,
    datetime.date: DATE,
    datetime.datetime: TIMESTAMP,
    Object: OBJECT,
}

SESSION = "db.foreign"
"""Stored instead of a definition for functions registered by the session."""

BAGS = (list, collections.abc.Iterator, collections.abc.Iterable, collections.abc.Generator)


def load_target(directories: Sequence[str], target: str, span: Span | None) -> Callable[..., Any]:
    """The Python function named `module:function`."""
    module_name, separator, path = target.partition(":")
    if not separator or not module_name or not path:
        raise ForeignFault(
            f'"{target}" does not name a Python function',
            code="foreign",
            span=span,
            hint='write it as "module:function"',
        )
    try:
        found: Any = find_module(module_name, directories)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise ForeignFault(
            f'"{target}" cannot be loaded: {type(error).__name__}: {error}',
            code="foreign",
            span=span,
            hint=(
                "modules are imported from the directory of the script, or from Python's own path"
            ),
        ) from error
    if not callable(found):
        raise ForeignFault(
            f'"{target}" is not a function',
            code="foreign",
            span=span,
            hint="name a callable",
        )
    return found  # type: ignore[no-any-return]


def deferred(runtime: Runtime, function: Function, target: str | None) -> Callable[..., Any]:
    """The Python function of a reopened database, imported at its first call: from the directory of
    the script that declared it, or else of the script that runs."""
    declared_in = runtime.module_directories

    def call(*arguments: Any) -> Any:
        if target is None:
            raise no_python(function)
        directories = declared_in or runtime.module_directories
        watch = limits.current()
        if watch is None:
            return load_target(directories, target, None)(*arguments)
        return watch.call(lambda *given: load_target(directories, target, None)(*given), arguments)

    return call


def register_declared(runtime: Runtime, function: Function, node: syntax.CreateFunction) -> None:
    """Implement a function declared `as foreign`, if its module can be imported here."""
    assert isinstance(node.body, syntax.ForeignBody)
    python = runtime.replaced.get(function.id) or deferred(runtime, function, node.body.target)
    register(runtime, function, python)


def register_in_session(runtime: Runtime, name: str, python: Callable[..., Any]) -> None:
    """Implement everything that AMOSQL declares foreign under a name; if nothing is declared, the
    function belongs to the session."""
    _check_registration(name, python)
    declared = [f for f in runtime.catalog.overloads(name) if f.language != PYTHON and not f.system]
    foreign_ones = [f for f in declared if f.kind is FunctionKind.FOREIGN]
    if declared and not foreign_ones:
        raise _mismatch(name, declared)
    if foreign_ones:
        for each in foreign_ones:
            runtime.replaced[each.id] = python
            register(runtime, each, python)
        return
    _add_to_session(runtime, signature_of(name, python), python)


def offer_in_session(runtime: Runtime, name: str, python: Callable[..., Any]) -> None:
    """Implement a function that every session has."""
    _add_to_session(runtime, replace(signature_of(name, python), system=True), python)


def _add_to_session(runtime: Runtime, made: Function, python: Callable[..., Any]) -> None:
    runtime.catalog.add_session_function(made)
    register(runtime, made, python)


def replaced_by(runtime: Runtime, name: str, python: object) -> list[Function]:
    """The functions whose implementation `db.foreign(name, python)` would replace."""
    found = []
    for each in runtime.catalog.overloads(name):
        if each.kind is not FunctionKind.FOREIGN or each.system:
            continue
        is_of_session = each.language == PYTHON or each.id in runtime.replaced
        if runtime.python.get(each.id) is not python and (is_of_session or _target(each)):
            found.append(each)
    return found


@contextmanager
def put_back(runtime: Runtime, functions: list[Function]) -> Iterator[None]:
    """If the block fails, restore the previous implementations of these functions."""
    python = {each.id: runtime.python[each.id] for each in functions}
    replaced = dict(runtime.replaced)
    try:
        yield
    except BaseException:
        runtime.replaced.clear()
        runtime.replaced.update(replaced)
        for each in functions:
            register(runtime, each, python[each.id])
        raise


def _target(function: Function) -> str | None:
    """The `module:function` of a foreign function's declaration."""
    node = parse_statement(function.text)
    assert isinstance(node, syntax.CreateFunction)
    assert isinstance(node.body, syntax.ForeignBody)
    return node.body.target


def _check_registration(name: str, python: object) -> None:
    """Reject what could never be called."""
    if not callable(python):
        raise ForeignFault(f"{python!r} is not a function", code="foreign", hint="pass a callable")
    if name in NAMED_AGGREGATES or name in OPERATIONS or name in ("tclose", "print"):
        raise TypeFault(
            f"{name} is built into the language", code="exists", hint="choose another name"
        )


def register(runtime: Runtime, function: Function, python: Callable[..., Any]) -> None:
    """Implement a foreign function that is in the catalog."""
    if any(column.type.surrogate for column in function.results):
        python = _of_this_database(runtime, python)
    runtime.python[function.id] = python
    if function.relation is not None:
        decode = [_decode(runtime, column.type) for column in function.parameters]
        runtime.engine.register_foreign(function.relation, python, decode)


def _of_this_database(runtime: Runtime, python: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, except that returning an object of another database is an error."""

    def own(row: Any) -> Any:
        for value in row if isinstance(row, tuple | list) else (row,):
            runtime.objects.own(value)
        return row

    def call(*arguments: Any) -> Any:
        produced = python(*arguments)
        if isinstance(produced, collections.abc.Iterator):
            return map(own, produced)
        several = isinstance(produced, collections.abc.Iterable) and not isinstance(produced, str)
        for row in produced if several else (produced,):
            own(row)
        return produced

    return call


def _decode(runtime: Runtime, type_: Type) -> Callable[[Any], Any]:
    if type_.surrogate:
        return runtime.objects.handle
    return decoder(type_) or (lambda value: value)


def signature_of(name: str, python: Callable[..., Any]) -> Function:
    """The function that `db.foreign(name, python)` declares, from the annotations of the Python
    function."""
    made = Function(name, (), (), FunctionKind.FOREIGN, text=SESSION, language=PYTHON)
    signature = _annotations(name, python)
    if signature is None:
        return replace(made, variadic=True)
    parameters, results, bag = signature
    function = replace(made, parameters=parameters, results=results, bag=bag)
    return replace(function, relation=relation_of(function))


def _annotations(
    name: str, python: Callable[..., Any]
) -> tuple[tuple[Column, ...], tuple[Column, ...], bool] | None:
    """Columns from annotations; None if a parameter or the result has none."""
    try:
        hints = typing.get_type_hints(python)
        signature = inspect.signature(python)
    except (TypeError, ValueError, NameError):
        return None
    columns = []
    for parameter in signature.parameters.values():
        type_ = PYTHON_TYPES.get(hints.get(parameter.name))
        if type_ is None or parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            return None
        columns.append(Column(parameter.name, type_))
    result = hints.get("return")
    bag = typing.get_origin(result) in BAGS
    if bag:
        (result, *_) = typing.get_args(result)
    parts = typing.get_args(result) if typing.get_origin(result) is tuple else (result,)
    types = [PYTHON_TYPES.get(_without_none(part)) for part in parts]
    if None in types:
        return None
    results = tuple(
        Column(f"result{i + 1}" if len(types) > 1 else name, type_)
        for i, type_ in enumerate(types)
        if type_ is not None
    )
    return tuple(columns), results, bag


def _without_none(annotation: Any) -> Any:
    """`int | None` is an integer that may be missing."""
    parts = [part for part in typing.get_args(annotation) if part is not type(None)]
    return parts[0] if len(parts) == 1 and typing.get_origin(annotation) is not list else annotation


def _mismatch(name: str, declared: list[Function]) -> TypeFault:
    return TypeFault(
        f"{name} is declared in AMOSQL, but not as foreign",
        code="exists",
        hint="it is " + ", ".join(f.id for f in declared),
    )


def no_python(function: Function) -> ForeignFault:
    return ForeignFault(
        f"{function.id} has no Python function in this session",
        code="foreign",
        hint=f'register one with db.foreign("{function.name}", ...)',
    )
