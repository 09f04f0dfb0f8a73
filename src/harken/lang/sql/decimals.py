"""Decimals: the types of their results, as Spark has them.

A decimal of precision p and scale s has p digits, s of them behind the point. Where a result would
have more than 38 digits it keeps those before the point, and at least six behind it if it had them.
"""

from __future__ import annotations

import decimal

from harken.values.types import INTEGER, Type, decimal_digits, decimal_type

MOST_DIGITS = 38
LEAST_SCALE = 6
INTEGER_DIGITS = 20
STORED_DIGITS = 18
"""The most digits that always fit in 64 bits. A quotient has at most this many where Spark's has
more, but at least six behind the point."""

_EXACT = decimal.Context(prec=2 * MOST_DIGITS, rounding=decimal.ROUND_HALF_UP)


def rounded(value: decimal.Decimal, type_: Type) -> decimal.Decimal | None:
    """A value with the digits of a type; None if it has too many before the point.

    >>> rounded(decimal.Decimal("1.005"), decimal_type(5, 2)), rounded(
    ...     decimal.Decimal(1), decimal_type(38, 30)
    ... )
    (Decimal('1.01'), None)
    """
    precision, scale = decimal_digits(type_)
    try:
        found = value.quantize(decimal.Decimal(1).scaleb(-scale), context=_EXACT)
    except decimal.InvalidOperation:
        return None
    units = abs(found.scaleb(scale, context=_EXACT))
    return found if units < min(10**precision, 2**63) else None


def as_decimal(type_: Type) -> Type:
    """An integer as a decimal."""
    return decimal_type(INTEGER_DIGITS, 0) if type_ == INTEGER else type_


def of_integer(value: int) -> Type:
    """An integer that is written out has its own number of digits."""
    return decimal_type(max(1, len(str(abs(value)))), 0)


def _bounded(precision: int, scale: int) -> Type:
    if precision > MOST_DIGITS:
        scale = max(MOST_DIGITS - (precision - scale), min(scale, LEAST_SCALE))
        precision = MOST_DIGITS
    return decimal_type(precision, scale)


def common(left: Type, right: Type) -> Type:
    """A type that holds the values of both."""
    (p1, s1), (p2, s2) = decimal_digits(left), decimal_digits(right)
    scale = max(s1, s2)
    return _bounded(max(p1 - s1, p2 - s2) + scale, scale)


def result_of(symbol: str, left: Type, right: Type) -> Type:
    (p1, s1), (p2, s2) = decimal_digits(left), decimal_digits(right)
    match symbol:
        case "*":
            return _bounded(p1 + p2 + 1, s1 + s2)
        case "/":
            before = p1 - s1 + s2
            scale = max(LEAST_SCALE, min(s1 + p2 + 1, STORED_DIGITS - before))
            return _bounded(before + scale, scale)
        case "%":
            return common(left, right)
    scale = max(s1, s2)
    return _bounded(max(p1 - s1, p2 - s2) + scale + 1, scale)


def sum_of(type_: Type) -> Type:
    precision, scale = decimal_digits(type_)
    return _bounded(precision + 10, scale)


def average_of(type_: Type) -> Type:
    precision, scale = decimal_digits(type_)
    return _bounded(precision + 4, scale + 4)


def of_literal(text: str) -> Type:
    """The type of a number as it is written: 1.50 has three digits, two behind the point."""
    whole, _, part = text.partition(".")
    digits = len(whole.lstrip("0")) + len(part)
    return decimal_type(max(digits, len(part), 1), len(part))
