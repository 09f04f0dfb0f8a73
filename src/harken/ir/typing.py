"""The type check: terms fit the columns they stand in, and operands fit their operation.

Law: a program that passes never compares or stores values of unrelated types, so an engine needs
no check at run time beyond those of its tables.
"""

from __future__ import annotations

from harken.errors import Span, TypeFault
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Comparison,
    Computation,
    Definition,
    Literal,
    Program,
)
from harken.ir.operations import AGGREGATES, OF_ANY_TYPE, OPERATIONS
from harken.values.types import Hierarchy, Type, is_decimal


def check_types(program: Program, hierarchy: Hierarchy) -> None:
    for definition in program.definitions.values():
        check_definition(definition, hierarchy)


def check_definition(definition: Definition, hierarchy: Hierarchy) -> None:
    for clause in definition.clauses:
        for literal in clause.body:
            _check_literal(literal, hierarchy)
        _check_atom(clause.head)


def _check_literal(literal: Literal, hierarchy: Hierarchy) -> None:
    match literal:
        case Atom():
            _check_atom(literal)
        case Comparison():
            _check_comparison(literal)
        case Computation():
            _check_computation(literal, hierarchy)
        case Aggregation():
            _check_atom(literal.atom)
            _check_aggregate(literal)


def _check_atom(atom: Atom) -> None:
    for term, column in zip(atom.terms, atom.relation.columns, strict=True):
        if not _meet(term.type, column.type):
            raise _mismatch(
                f"{atom.relation.name} has {column.type} where this gives {term.type}",
                atom.span,
                f"give a value of type {column.type}",
            )


def _check_comparison(literal: Comparison) -> None:
    left, right = literal.left.type, literal.right.type
    if not _meet(left, right):
        raise _mismatch(
            f"{left} cannot be compared with {right}",
            literal.span,
            "compare values of the same type; to_string and to_number convert",
        )
    if left.surrogate and literal.operator not in ("=", "!="):
        raise _mismatch(
            f"objects have no order, so `{literal.operator}` cannot compare {left}",
            literal.span,
            "compare a property of theirs",
        )


def _check_computation(literal: Computation, hierarchy: Hierarchy) -> None:
    operation = OPERATIONS[literal.operation]
    types = tuple(term.type for term in literal.arguments)
    if any(map(is_decimal, types)) or is_decimal(literal.result.type):
        return  # there are too many of these types to list; whoever computes with them knows
    if literal.operation == "is among":  # a value, and as many others of its type
        return
    if literal.operation in OF_ANY_TYPE and any(type_.surrogate for type_ in types):
        return
    if operation.resolve(types, hierarchy) is None:
        raise operation_mismatch(literal.operation, types, literal.span)


def _check_aggregate(literal: Aggregation) -> None:
    accepts = AGGREGATES[literal.aggregate].accepts
    if literal.value is None or accepts is None or is_decimal(literal.value.type):
        return
    if literal.value.type not in accepts:
        offers = ", ".join(sorted(type_.name for type_ in accepts))
        raise _mismatch(
            f"{literal.aggregate} cannot take {literal.value.type}",
            literal.span,
            f"it takes {offers}",
        )


def operation_mismatch(name: str, types: tuple[Type, ...], span: Span | None) -> TypeFault:
    given = " and ".join(type_.name for type_ in types) or "nothing"
    shown = OPERATIONS[name].symbol or name
    offers = "; ".join(
        ", ".join(t.name for t in signature.arguments) or "no argument"
        for signature in OPERATIONS[name].signatures
    )
    counts = {len(signature.arguments) for signature in OPERATIONS[name].signatures}
    return TypeFault(
        f"`{shown}` cannot take {given}",
        code="type-mismatch" if len(types) in counts else "arity",
        span=span,
        hint=f"it takes {offers}",
    )


def _mismatch(message: str, span: Span | None, hint: str) -> TypeFault:
    return TypeFault(message, code="type-mismatch", span=span, hint=hint)


def _meet(one: Type, other: Type) -> bool:
    """Can a value be of both types? An object can: it may be given any type later."""
    if one.surrogate and other.surrogate:
        return True
    return one == other
