"""What operators and functors take and give, and the operations that compute them.

All arguments of an arithmetic operator, and its result, are of one kind. An overflow is an error,
and so is an unsigned number below zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harken.ir.terms import Constant, Term
from harken.lang.datalog.kinds import FLOAT, NUMBER_KIND, NUMERIC, SYMBOL, UNSIGNED, WHOLE, Kind
from harken.values.types import BOOLEAN, INTEGER, NUMBER, TEXT, Type

Compute = Callable[[str, Sequence[Term], Type], Term]
"""Adds an operation to a body, and gives the term of its result."""


@dataclass(frozen=True, slots=True)
class Signature:
    """`same` says that all arguments and the result are of one kind, one of `kinds`. Else
    `arguments` are their kinds (None for any of `kinds`) and `result` is that of the result."""

    least: int
    most: int | None
    kinds: frozenset[Kind] = frozenset()
    same: bool = False
    arguments: tuple[Kind | None, ...] = ()
    result: Kind | None = None


def _same(kinds: frozenset[Kind], least: int, most: int | None) -> Signature:
    return Signature(least, most, kinds, same=True)


def _convert(result: Kind, kinds: frozenset[Kind]) -> Signature:
    return Signature(1, 1, kinds, arguments=(None,), result=result)


PRINTABLE = NUMERIC | {SYMBOL}

SIGNATURES: dict[str, Signature] = {
    **{name: _same(NUMERIC, 2, 2) for name in ("-", "*", "/", "^")},
    "+": _same(PRINTABLE, 2, 2),
    "range": _same(NUMERIC, 2, 3),
    "negate": _same(NUMERIC - {UNSIGNED}, 1, 1),
    "%": _same(WHOLE, 2, 2),
    **{name: _same(WHOLE, 2, 2) for name in ("band", "bor", "bxor", "bshl", "bshr", "bshru")},
    "bnot": _same(WHOLE, 1, 1),
    **{name: _same(WHOLE, 2, 2) for name in ("land", "lor", "lxor")},
    "lnot": _same(WHOLE, 1, 1),
    **{name: _same(PRINTABLE, 2, None) for name in ("min", "max")},
    "cat": _same(frozenset({SYMBOL}), 2, None),
    "strlen": Signature(1, 1, arguments=(SYMBOL,), result=NUMBER_KIND),
    "ord": Signature(1, 1, arguments=(SYMBOL,), result=NUMBER_KIND),
    "substr": Signature(3, 3, arguments=(SYMBOL, NUMBER_KIND, NUMBER_KIND), result=SYMBOL),
    "to_string": _convert(SYMBOL, PRINTABLE),
    "to_number": _convert(NUMBER_KIND, PRINTABLE),
    "to_unsigned": _convert(UNSIGNED, PRINTABLE),
    "to_float": _convert(FLOAT, PRINTABLE),
}

_BITWISE = {
    "band": "bitwise_and",
    "bor": "bitwise_or",
    "bxor": "bitwise_xor",
    "bnot": "bitwise_not",
    "bshl": "shift_left",
    "bshr": "shift_right",
    "bshru": "shift_right_unsigned",
}
_WHOLE = {"/": "div", "%": "mod", "^": "integer_power", **_BITWISE}
_FLOAT = {"/": "/", "^": "power"}
_BELOW_ZERO = frozenset({"-", "bnot"})
"""What can make a number below zero of unsigned ones."""

_ZERO, _ONE = Constant(0, INTEGER), Constant(1, INTEGER)


def compute(name: str, given: Sequence[Term], kinds: Sequence[Kind], add: Compute) -> Term:
    """The term of a functor applied to terms of these kinds."""
    match name:
        case "land" | "lor" | "lxor" | "lnot":
            return _logical(name, given, add)
        case "min" | "max":
            return _extreme("is <" if name == "min" else "is >", given, kinds[0].type, add)
        case "cat":
            return _joined(given, add)
        case "+" if kinds[0] == SYMBOL:
            return _joined(given, add)
        case "strlen":
            return add("length", given, INTEGER)
        case "ord":
            return add("symbol_ordinal", given, INTEGER)
        case "substr":
            return _part(given, add)
        case "to_string" | "to_number" | "to_unsigned" | "to_float":
            return _converted(name, given[0], kinds[0], add)
    return _arithmetic(name, given, kinds[0], add)


def _arithmetic(name: str, given: Sequence[Term], kind: Kind, add: Compute) -> Term:
    operation = (_FLOAT if kind == FLOAT else _WHOLE).get(name, name)
    result = add(operation, given, kind.type)
    if kind == UNSIGNED and name in _BELOW_ZERO:
        return add("to_unsigned", (result,), INTEGER)
    return result


def _logical(name: str, given: Sequence[Term], add: Compute) -> Term:
    """Zero is false and all else true; the result is 0 or 1."""
    truths = [add("is !=", (term, _ZERO), BOOLEAN) for term in given]
    match name:
        case "lnot":
            holds = add("not", truths, BOOLEAN)
        case "lxor":
            holds = add("is !=", truths, BOOLEAN)
        case _:
            holds = add("and" if name == "land" else "or", truths, BOOLEAN)
    return add("choose", (holds, _ONE, _ZERO), INTEGER)


def _extreme(test: str, given: Sequence[Term], type_: Type, add: Compute) -> Term:
    best = given[0]
    for term in given[1:]:
        better = add(test, (term, best), BOOLEAN)
        best = add("choose", (better, term, best), type_)
    return best


def _joined(given: Sequence[Term], add: Compute) -> Term:
    whole = given[0]
    for term in given[1:]:
        whole = add("||", (whole, term), TEXT)
    return whole


def _part(given: Sequence[Term], add: Compute) -> Term:
    """From a place that counts from 0; nothing where the place or the length is below zero."""
    text, start, length = given
    found = add("substring", (text, add("+", (start, _ONE), INTEGER), length), TEXT)
    placed = add("is >=", (start, _ZERO), BOOLEAN)
    sized = add("is >=", (length, _ZERO), BOOLEAN)
    fits = add("and", (placed, sized), BOOLEAN)
    return add("choose", (fits, found, Constant("", TEXT)), TEXT)


def _converted(name: str, term: Term, kind: Kind, add: Compute) -> Term:
    match name:
        case "to_string":
            return term if kind == SYMBOL else add("to_string", (term,), TEXT)
        case "to_float":
            if kind == FLOAT:
                return term
            return add("to_number" if kind == SYMBOL else "widen", (term,), NUMBER)
    if kind in WHOLE:
        whole = term
    else:
        whole = add("read_numeral" if kind == SYMBOL else "to_integer", (term,), INTEGER)
    if name == "to_unsigned" and kind != UNSIGNED:
        return add("to_unsigned", (whole,), INTEGER)
    return whole
