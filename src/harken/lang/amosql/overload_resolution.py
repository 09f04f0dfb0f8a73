"""Overload resolution: which functions a call can mean, given the types of its arguments.

Early binding where the argument types decide; late binding where a more specific overload may
apply to the object that turns up at run time. The answer is the list of candidates: one means
early, several mean that the types of the objects choose among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harken.errors import NameFault, Span, TypeFault, nearest
from harken.ir.operations import NAMED_AGGREGATES, OPERATIONS, PRIVATE_OPERATIONS
from harken.ir.schema import Function, Schema, example
from harken.values.types import Hierarchy, Type


@dataclass(frozen=True, slots=True)
class Argument:
    """The types an argument is known to have.

    They are exact for a value at hand (an interface variable), else an upper bound.
    """

    types: tuple[Type, ...]
    exact: bool = False

    def fits(self, wanted: Type, hierarchy: Hierarchy) -> bool:
        return any(hierarchy.is_subtype(given, wanted) for given in self.types)

    def may_fit(self, wanted: Type, hierarchy: Hierarchy) -> bool:
        if self.exact or not wanted.surrogate:
            return self.fits(wanted, hierarchy)
        return any(given.surrogate and hierarchy.related(given, wanted) for given in self.types)

    def __str__(self) -> str:
        return " and ".join(type_.name for type_ in self.types) or "a deleted object"


def resolve(
    schema: Schema,
    name: str,
    arguments: Sequence[Argument],
    qualifier: str | None = None,
    span: Span | None = None,
) -> tuple[Function, ...]:
    """The candidates of a call, most specific first."""
    overloads = find_overloads(schema, name, qualifier, span)
    fitting = [f for f in overloads if f.variadic or len(f.parameters) == len(arguments)]
    if not fitting:
        raise _wrong_arity(name, overloads, len(arguments), span)
    hierarchy = schema.hierarchy
    applicable = [f for f in fitting if _accepts(f, arguments, hierarchy, certain=True)]
    if applicable:
        best = _most_specific(applicable, hierarchy, name, span)
        if qualifier is not None or best.variadic:
            return (best,)
        narrower = [
            f
            for f in fitting
            if f is not best
            and is_narrower(f, best, hierarchy)
            and _accepts(f, arguments, hierarchy, certain=False)
        ]
        return _specific_first([*narrower, best], hierarchy)
    possible = [f for f in fitting if _accepts(f, arguments, hierarchy, certain=False)]
    if not possible:
        raise _no_overload(name, fitting, arguments, span)
    return _specific_first(possible, hierarchy)


def is_narrower(one: Function, other: Function, hierarchy: Hierarchy) -> bool:
    """Is `one` defined for a subset of what `other` is defined for, column by column?"""
    return len(one.parameters) == len(other.parameters) and all(
        hierarchy.is_subtype(mine.type, theirs.type)
        for mine, theirs in zip(one.parameters, other.parameters, strict=True)
    )


def find_overloads(
    schema: Schema, name: str, qualifier: str | None, span: Span | None
) -> tuple[Function, ...]:
    """The functions of a name, with a qualifier those on that type; at least one."""
    overloads = schema.overloads(name)
    if not overloads:
        raise unknown_function(schema, name, span)
    if qualifier is None:
        return overloads
    if schema.type_named(qualifier) is None:
        raise unknown_type(schema, qualifier, span)
    chosen = tuple(f for f in overloads if f.parameters and f.parameters[0].type.name == qualifier)
    if not chosen:
        offers = ", ".join(sorted(f.id for f in overloads))
        raise NameFault(
            f"there is no function {name} on {qualifier}",
            code="unknown-function",
            span=span,
            hint=f"there is {offers}",
        )
    return chosen


def _accepts(
    function: Function, arguments: Sequence[Argument], hierarchy: Hierarchy, certain: bool
) -> bool:
    if function.variadic:
        return True
    return all(
        argument.fits(parameter.type, hierarchy)
        if certain
        else argument.may_fit(parameter.type, hierarchy)
        for argument, parameter in zip(arguments, function.parameters, strict=True)
    )


def _most_specific(
    functions: list[Function], hierarchy: Hierarchy, name: str, span: Span | None
) -> Function:
    exact = [f for f in functions if not f.variadic] or functions
    best = [f for f in exact if not any(g is not f and is_narrower(g, f, hierarchy) for g in exact)]
    if len(best) > 1:
        raise TypeFault(
            f"the call of {name} is ambiguous: {' and '.join(sorted(f.id for f in best))} both fit",
            code="ambiguous",
            span=span,
            hint=f"choose one with a dot, for example {example(best)}(...)",
        )
    return best[0]


def _specific_first(functions: list[Function], hierarchy: Hierarchy) -> tuple[Function, ...]:
    """A linear order in which no function comes after one it is narrower than."""
    depth = {
        f.id: sum(len(hierarchy.ancestors(p.type.name)) for p in f.parameters) for f in functions
    }
    return tuple(sorted(functions, key=lambda f: (-depth[f.id], f.id)))


def unknown_function(schema: Schema, name: str, span: Span | None) -> NameFault:
    built_in = (set(OPERATIONS) - PRIVATE_OPERATIONS) | set(NAMED_AGGREGATES) | {"tclose", "print"}
    if name in built_in:
        return NameFault(
            f"{name} is built into the language, not a function of the database",
            code="unknown-function",
            span=span,
            hint=f"call it where a value is wanted: {name}(...)",
        )
    known = (*schema.function_names(), *sorted(built_in))
    meant = "some" if name.lower() == "exists" else nearest(name, known)
    hint = f"did you mean {meant}?" if meant else "create it first with `create function`"
    return NameFault(f"there is no function {name}", code="unknown-function", span=span, hint=hint)


def unknown_type(schema: Schema, name: str, span: Span | None) -> NameFault:
    meant = nearest(name, schema.type_names())
    hint = f"did you mean {meant}?" if meant else "create it first with `create type`"
    return NameFault(f"there is no type {name}", code="unknown-type", span=span, hint=hint)


def _wrong_arity(
    name: str, overloads: tuple[Function, ...], given: int, span: Span | None
) -> TypeFault:
    wanted = sorted({len(f.parameters) for f in overloads})
    numbers = " or ".join(str(n) for n in wanted)
    return TypeFault(
        f"{name} takes {numbers} argument{'' if wanted == [1] else 's'}, not {given}",
        code="arity",
        span=span,
        hint="it is " + ", ".join(sorted(f.id for f in overloads)),
    )


def _no_overload(
    name: str, overloads: list[Function], arguments: Sequence[Argument], span: Span | None
) -> TypeFault:
    given = ", ".join(str(argument) for argument in arguments)
    return TypeFault(
        f"{name} is not defined for ({given})",
        code="type-mismatch",
        span=span,
        hint="it is " + ", ".join(sorted(f.id for f in overloads)),
    )
