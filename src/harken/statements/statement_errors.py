"""Errors of statements that are raised in several places."""

from __future__ import annotations

from collections.abc import Sequence

from harken.errors import (
    LanguageError,
    NameFault,
    SafetyFault,
    Span,
)
from harken.ir.relations import Relation
from harken.ir.schema import Function, Schema, example
from harken.lang.amosql import syntax
from harken.lang.amosql.overload_resolution import find_overloads
from harken.values.types import Type


def not_one_to_watch(
    name: str, named: Sequence[Function], span: Span | None, schema: Schema
) -> LanguageError:
    """The event of a rule names no function, several, or one without values."""
    plain = name.rpartition(".")[2]
    if not named:
        find_overloads(schema, plain, name.rpartition(".")[0] or None, span)
    values = [function for function in named if function.relation is not None]
    if not values:
        return SafetyFault(
            f"{name} is a procedure, so it has no values that could change",
            code="side-effect",
            span=span,
            hint="name the function that it changes",
        )
    return NameFault(
        f"{name} means {', '.join(sorted(function.id for function in values))}",
        code="ambiguous",
        span=span,
        hint=f"name the type: {example(values)}",
    )


def no_local(name: str, span: Span | None) -> NameFault:
    return NameFault(
        f"there is no local variable {name}",
        code="unknown-variable",
        span=span,
        hint=f"declare it in the procedure, `declare integer {name};`, or write :{name}",
    )


def named_twice(name: str, span: Span | None, hint: str) -> NameFault:
    return NameFault(f"{name} is named twice", code="exists", span=span, hint=hint)


def outside(node: syntax.Node) -> SafetyFault:
    return SafetyFault(
        f"{spoken(node)} belongs in a procedure",
        code="side-effect",
        span=node.span,
        hint="write it between `begin` and `end` of a `create function`",
    )


def not_inside(place: str, node: syntax.Node) -> SafetyFault:
    return SafetyFault(
        f"{spoken(node)} is not allowed inside a {place}",
        code="side-effect",
        span=node.span,
        hint=f"make it a statement of its own, outside the {place}",
    )


def no_old_values(relation: Relation) -> SafetyFault:
    return SafetyFault(
        f"the old values of {relation.label} are not known in this transaction, which began before "
        "anyone asked for them",
        code="unsafe",
        hint="from the next transaction on they are: commit, or roll back, and ask again",
    )


def counted(number: int, one: str, many: str | None = None) -> str:
    return f"1 {one} is" if number == 1 else f"{number} {many or one + 's'} are"


def how_to_convert(wanted: Type) -> str:
    if wanted.surrogate:
        return f"`add {wanted} to :x` makes an object one of that type"
    converters = {"charstring": "to_string", "integer": "to_integer", "number": "to_number"}
    converter = converters.get(wanted.name)
    return f"{converter}(...) converts" if converter else f"give a value of type {wanted}"


def spoken(node: syntax.Node) -> str:
    words = {
        syntax.CreateType: "`create type`",
        syntax.DeleteType: "`delete type`",
        syntax.CreateFunction: "`create function`",
        syntax.DeleteFunction: "`delete function`",
        syntax.Commit: "`commit`",
        syntax.DeclareLocals: "`declare`",
        syntax.Return: "`return`",
    }
    return words.get(type(node), type(node).__name__)
