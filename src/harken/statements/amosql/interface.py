"""Interface variables (`:x`) in a statement: the types of their present values."""

from __future__ import annotations

from collections.abc import Iterable

from harken.database.runtime import Runtime
from harken.errors import NameFault, ValueFault, nearest
from harken.lang.amosql import syntax
from harken.lang.amosql.overload_resolution import Argument


def argument_of(runtime: Runtime, name: str, node: syntax.InterfaceVariable) -> Argument:
    """The types of the value of the variable `name`; `node` is its place in the text."""
    if name not in runtime.interface:
        raise _unknown(name, runtime.interface, node)
    types = runtime.types_of_variable(name)
    if not types:
        raise _deleted(name, node)
    return Argument(types, exact=True)


def _unknown(name: str, known: Iterable[str], node: syntax.InterfaceVariable) -> NameFault:
    meant = nearest(name, known)
    return NameFault(
        f"there is no interface variable :{name}",
        code="unknown-variable",
        span=node.span,
        hint=f"did you mean :{meant}?" if meant else "make one with `create T instances :x`",
    )


def _deleted(name: str, node: syntax.InterfaceVariable) -> ValueFault:
    return ValueFault(
        f"the object that :{name} held was deleted",
        code="wrong-object",
        span=node.span,
        hint="assign another value with `set :x = ...`",
    )
