"""Numbers as they are written: in other bases, with commas between thousands; and their places in
histograms and lists. Functions that only SQL has, with the meaning of Spark's."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

from harken.values.encoding import LARGEST
from harken.values.failures import bad_argument, overflow

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LONGEST = 1_000
_ALL = 2**64
_WIDE = decimal.Context(prec=2_000, rounding=decimal.ROUND_HALF_EVEN)


def _conv(text: str, base: int, other: int) -> str | None:
    """A number of one base in another, as 64 bits without a sign unless the other base is negative.

    What follows the last digit that is one is left out.
    """
    given = text.strip(" ")
    if not given or not 2 <= base <= 36 or not 2 <= abs(other) <= 36:
        return None
    is_negative, value = given.startswith("-"), 0
    for each in given.removeprefix("-").upper():
        digit = _DIGITS.find(each)
        if not 0 <= digit < base:
            break
        value = value * base + digit
        if value >= _ALL:
            raise overflow()
    if is_negative and other > 0:
        value = (-value if value <= LARGEST else -1) % _ALL
    if other < 0 and value > LARGEST:
        value, is_negative = _ALL - value, True
    sign = "-" if is_negative and other < 0 else ""
    return sign + _in_base(value, abs(other))


def _in_base(value: int, base: int) -> str:
    found = ""
    while value or not found:
        value, digit = divmod(value, base)
        found = _DIGITS[digit] + found
    return found


def _format_numeral(text: str, digits: int) -> str | None:
    return _with_commas(decimal.Decimal(text), digits)


def _format_number(value: float, digits: int) -> str | None:
    """Of a double that is no integer all its digits are rounded, not only those that are shown."""
    exact = decimal.Decimal(value) if abs(value) < 2**53 else decimal.Decimal(repr(value))
    return _with_commas(exact, digits)


def _with_commas(value: decimal.Decimal, digits: int) -> str | None:
    if digits < 0:
        return None
    if digits > _LONGEST:
        raise bad_argument(f"a number is not written with {digits} digits behind the point")
    return f"{value.quantize(decimal.Decimal(1).scaleb(-digits), context=_WIDE):,f}"


def _round_even(value: float, digits: int) -> float:
    """What is in the middle goes to the even digit; the digits are those that are shown."""
    if not -_LONGEST <= digits <= _LONGEST:
        raise bad_argument(f"bround cannot keep {digits} digits")
    unit = decimal.Decimal(1).scaleb(-digits)
    return float(decimal.Decimal(repr(value)).quantize(unit, context=_WIDE)) + 0.0


def _width_bucket(value: float, start: float, end: float, buckets: int) -> int | None:
    """The number of the part, of several of equal width, that holds a value, from 1; 0 is before
    the first of them."""
    if buckets <= 0 or buckets == LARGEST or start == end:
        return None
    if (value < start) if start < end else (value > start):
        return 0
    if (value >= end) if start < end else (value <= end):
        return buckets + 1
    return int(float(buckets) * abs(value - start) / abs(end - start)) + 1


def _elt_place(place: int, size: int) -> int:
    if not 1 <= place <= size:
        raise bad_argument(f"elt has {size} values, and none at the place {place}")
    return place


NUMERAL_FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "conv": (_conv, 3),
    "format_numeral": (_format_numeral, 2),
    "format_number": (_format_number, 2),
    "round_even": (_round_even, 2),
    "width_bucket": (_width_bucket, 4),
    "elt_place": (_elt_place, 2),
}
