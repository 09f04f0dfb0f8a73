"""TRY_CAST, try_add and the other functions that return NULL instead of an error.

Only an error of the function itself becomes NULL, not an error in its arguments.
"""

from __future__ import annotations

from sqlglot import exp

from harken.ir.terms import Constant, Term
from harken.lang.sql import decimals
from harken.lang.sql.conversions import NULL_TYPE, cast_to, decimal_of, numeric_type, to_shared_type
from harken.lang.sql.program_draft import Body, Draft
from harken.lang.sql.type_names import is_numeric
from harken.values.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Type,
    decimal_digits,
    decimal_type,
    is_decimal,
)

TRY_OPERATORS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.SafeAdd: ("try_add", "+"),
    exp.SafeSubtract: ("try_subtract", "-"),
    exp.SafeMultiply: ("try_multiply", "*"),
    exp.SafeDivide: ("try_divide", "/"),
}
_FROM_TEXT = {
    INTEGER: "try_to_integer",
    NUMBER: "try_to_number",
    BOOLEAN: "try_spark_boolean",
    DATE: "try_spark_date",
    TIMESTAMP: "try_spark_timestamp",
}


def try_cast_to(draft: Draft, given: Term, wanted: Type, body: Body, node: exp.Expr) -> Term:
    """What TRY_CAST makes of a value."""
    compute = draft.compute
    if given == Constant(None, NULL_TYPE):
        return cast_to(draft, given, wanted, body, node)
    if given.type == TEXT and wanted in _FROM_TEXT:
        return compute(_FROM_TEXT[wanted], (given,), wanted, body)
    if given.type == NUMBER and wanted == INTEGER:
        return compute("try_to_integer", (given,), wanted, body)
    if is_decimal(wanted) and given.type in (NUMBER, TEXT):
        return compute("try_to_decimal", (given,), wanted, body)
    if is_decimal(wanted) and is_numeric(given.type):
        return _try_rescaled(draft, given, wanted, body)
    return cast_to(draft, given, wanted, body, node)


def _try_rescaled(draft: Draft, given: Term, wanted: Type, body: Body) -> Term:
    if given.type == wanted:
        return given
    return draft.compute("try_rescale", (given,), wanted, body)


def try_arithmetic(draft: Draft, node: exp.Expr, left: Term, right: Term, body: Body) -> Term:
    """Arithmetic that is NULL where it would overflow or divide by zero."""
    name, symbol = TRY_OPERATORS[type(node)]
    if left == right == Constant(None, NULL_TYPE):
        return Constant(None, NUMBER.or_null())
    if Constant(None, NULL_TYPE) in (left, right):
        left, right = to_shared_type(draft, (left, right), body, node)
    if not (is_numeric(left.type) and is_numeric(right.type)):
        raise draft.unsupported(node, f"{name} takes numbers")
    types = (left.type, right.type)
    if any(map(is_decimal, types)) and NUMBER not in types:
        return _try_exact(draft, name, symbol, left, right, body)
    wanted = NUMBER if symbol == "/" else numeric_type(types)
    sides = [draft.coerce(each, wanted, body, node) for each in (left, right)]
    return draft.compute(name, sides, wanted, body)


def _try_exact(draft: Draft, name: str, symbol: str, left: Term, right: Term, body: Body) -> Term:
    one, other = decimal_of(draft, left), decimal_of(draft, right)
    result = decimals.result_of(symbol, one, other)
    sides = [_try_rescaled(draft, each, of, body) for each, of in ((left, one), (right, other))]
    if symbol == "*":
        (p1, s1), (p2, s2) = decimal_digits(one), decimal_digits(other)
        whole = decimal_type(p1 + p2 + 1, s1 + s2)
        product = draft.compute(name, sides, whole, body)
        return _try_rescaled(draft, product, result, body)
    if symbol != "/":
        sides = [_try_rescaled(draft, each, result, body) for each in sides]
    return draft.compute(name, sides, result, body)
