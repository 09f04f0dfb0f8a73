"""The built-in operations as Python functions of stored values, for what an engine's own SQL cannot
do as Spark's ANSI SQL does it.

Law: every engine that calls these gives the same bytes. A stored value is what SQLite holds: days
for a date, microseconds for a timestamp.
"""

from __future__ import annotations

import calendar
import datetime
import decimal
import math
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any

from harken.errors import (
    ArithmeticFault,
    EvaluationError,
    HarkenError,
    LimitFault,
    ValueFault,
)
from harken.values import datalog_patterns
from harken.values.encoding import (
    LARGEST,
    SMALLEST,
    decode_date,
    decode_timestamp,
    encode_date,
    encode_timestamp,
)
from harken.values.failures import (
    bad_argument,
    decimal_overflow,
    division_by_zero,
    outside_calendar,
    overflow,
    too_large,
)
from harken.values.sql_functions import SQL_FUNCTIONS, replace
from harken.values.sql_texts import substring

UTC = datetime.UTC
LONGEST_RANGE = 10_000_000


def show_number(value: float) -> str:
    """A number as people write it: 7875, 0.75, 1e+300.

    >>> show_number(7875.0), show_number(0.1)
    ('7875', '0.1')
    """
    if value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return repr(value)


def _integer(value: float) -> int:
    if not math.isfinite(value) or not SMALLEST <= value <= LARGEST:
        raise overflow()
    return int(value)


def _whole(function: Callable[[float], int]) -> Callable[[float], int]:
    """An average of numbers that are too large is infinite."""
    return lambda value: _integer(function(value) if math.isfinite(value) else value)


def _round(value: float, digits: int | None = None) -> float | int:
    """Half away from zero, as in SQL; to an integer if no digits are asked for."""
    if not math.isfinite(value):
        raise overflow()
    if digits is not None and not -300 <= digits <= 300:
        raise ValueFault(f"round cannot keep {digits} digits", code="bad-value")
    with decimal.localcontext() as context:
        context.prec = 700
        unit = decimal.Decimal(1).scaleb(-(digits or 0))
        exact = decimal.Decimal(repr(value)).quantize(unit, rounding=decimal.ROUND_HALF_UP)
    return _integer(float(exact)) if digits is None else float(exact)


def _sqrt(value: float) -> float:
    if value < 0:
        raise bad_argument("the square root of a negative number")
    return math.sqrt(value)


def _power(base: float, exponent: float) -> float:
    try:
        result = base**exponent
    except ZeroDivisionError:
        raise division_by_zero() from None
    except OverflowError:
        raise too_large() from None
    if isinstance(result, complex):
        raise bad_argument("a fractional power of a negative number")
    return float(result)


def _parse(kind: str, parse: Callable[[str], Any]) -> Callable[[str], Any]:
    def parsed(text: str) -> Any:
        try:
            return parse(text.strip())
        except (ValueError, OverflowError):
            raise ValueFault(
                f'"{text}" is not {kind}',
                code="bad-value",
                hint="test the text first, or leave such rows out",
            ) from None

    return parsed


def _plain(text: str) -> str:
    """Python takes 1_000 and ١ for numbers."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return text


def _parse_numeral(text: str) -> int:
    """An integer as Datalog writes it: also as 0x1f or 0b101."""
    has_base = text.lstrip("+-")[:2].lower() in ("0x", "0b")
    return _integer(int(_plain(text), 0)) if has_base else _parse_integer(text)


def _parse_integer(text: str) -> int:
    value = int(_plain(text))
    if not SMALLEST <= value <= LARGEST:
        raise overflow()
    return value


def _parse_number(text: str) -> float:
    value = float(_plain(text))
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _parse_timestamp(text: str) -> int:
    value = datetime.datetime.fromisoformat(text.replace("/", "T"))
    return encode_timestamp(value if value.tzinfo else value.replace(tzinfo=UTC))


def show_timestamp(value: datetime.datetime) -> str:
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ")


def timestamp_text(micros: int) -> str:
    """As Spark does: of the fraction of a second the zeros at the end are not written."""
    text = show_timestamp(decode_timestamp(micros))
    return text.rstrip("0") if "." in text else text


def _date_part(part: str) -> Callable[[int], int]:
    return lambda days: int(getattr(decode_date(days), part))


def _timestamp_part(part: str) -> Callable[[int], int]:
    return lambda micros: int(getattr(decode_timestamp(micros), part))


def _fitting(value: int) -> int:
    if not SMALLEST <= value <= LARGEST:
        raise decimal_overflow()
    return value


def _add_months(days: int, months: int) -> int:
    """The same day of another month, or its last one if it has fewer."""
    date = decode_date(days)
    year, month = divmod(date.year * 12 + date.month - 1 + months, 12)
    if not datetime.MINYEAR <= year <= datetime.MAXYEAR:
        raise outside_calendar("date")
    last = calendar.monthrange(year, month + 1)[1]
    return encode_date(datetime.date(year, month + 1, min(date.day, last)))


def spark_text(value: float) -> str:
    """A double as Spark writes it: 0.5, 1.0, 1.0E10. The digits are the fewest that tell it from
    its neighbours."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return f"{decimal.Decimal(repr(value)):f}" if "e" in repr(value) else repr(value)
    text = repr(value)
    if len(text.strip("-").split("e")[0]) == 1:  # it has two digits at least, the nearest ones
        text = f"{value:.1e}"
    sign, digits, exponent = decimal.Decimal(text).normalize().as_tuple()
    assert isinstance(exponent, int)
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{rest}E{exponent + len(digits) - 1}"


def rounded_quotient(dividend: int, divisor: int) -> int:
    """Half away from zero."""
    whole, rest = divmod(abs(dividend), abs(divisor))
    rounded = whole + int(2 * rest >= abs(divisor))
    return rounded if (dividend < 0) == (divisor < 0) else -rounded


def _rescale(value: int, shift: int) -> int:
    unit: int = 10**-shift
    return rounded_quotient(value, unit)


def _of_digits(value: int, precision: int) -> int:
    """A decimal, in units of its last digit, that has no more digits than its type."""
    if abs(value) >= 10**precision:
        raise ArithmeticFault(
            f"a decimal does not fit in {precision} digits",
            code="overflow",
            hint="convert it to a type with more: CAST(... AS DECIMAL(18, 2))",
        )
    return value


def _decimal_divide(dividend: int, divisor: int, shift: int) -> int:
    if divisor == 0:
        raise division_by_zero()
    if shift < 0:
        return _fitting(rounded_quotient(dividend, divisor * 10**-shift))
    return _fitting(rounded_quotient(dividend * 10**shift, divisor))


def _to_decimal(value: float | str, scale: int) -> int:
    unit = decimal.Decimal(1).scaleb(-scale)
    try:
        text = _plain(value.strip()) if isinstance(value, str) else repr(value)
        given = decimal.Decimal(text)
        with decimal.localcontext() as context:
            context.prec = 80
            exact = given.quantize(unit, rounding=decimal.ROUND_HALF_UP).scaleb(scale)
        return _fitting(int(exact))
    except (decimal.InvalidOperation, ValueError, OverflowError):
        raise ValueFault(f'"{value}" is not a decimal', code="bad-value") from None


def _to_decimal_of(value: float | str, scale: int, precision: int) -> int:
    return _of_digits(_to_decimal(value, scale), precision)


def _rescale_to(value: int, shift: int, precision: int) -> int:
    shifted = _rescale(value, shift) if shift < 0 else _fitting(value * 10**shift)
    return _of_digits(shifted, precision)


def _whole_part(value: int, scale: int) -> int:
    whole: int = abs(value) // 10**scale
    return whole if value >= 0 else -whole


def _decimal_text(value: int, scale: int) -> str:
    return f"{decimal.Decimal(value).scaleb(-scale):f}"


def _checked(value: int) -> int:
    if not SMALLEST <= value <= LARGEST:
        raise overflow()
    return value


def _shift_left(value: int, by: int) -> int:
    return _checked(value << (by & 63))


def _shift_right_unsigned(value: int, by: int) -> int:
    """As if it were of 64 bits without a sign; by nothing it is the same number."""
    by &= 63
    return (value & 0xFFFF_FFFF_FFFF_FFFF) >> by if by else value


def _integer_power(base: int, exponent: int) -> int:
    """Towards zero where the exponent is below zero."""
    if exponent < 0:
        if base == 0:
            raise division_by_zero()
        return (base if exponent % 2 else 1) if abs(base) == 1 else 0
    if abs(base) > 1 and exponent > 63:
        raise overflow()
    return _checked(base**exponent)


def _to_unsigned(value: int) -> int:
    if value < 0:
        raise ArithmeticFault(
            "an unsigned number is below zero",
            code="overflow",
            hint="use `number` where values can fall below zero",
        )
    return value


def values_in_range(start: float, end: float, step: float) -> Iterator[float]:
    """From the start on, before the end; a step of nothing is done once."""
    if not step:
        return iter([start] if start != end else [])
    if isinstance(step, int):
        size = -((start - end) // step)  # `/` is not exact
    else:
        size = max(0, min((end - start) / step, LONGEST_RANGE + 1))  # it may be infinite
    if size > LONGEST_RANGE:
        raise EvaluationError(
            "this range has too many values",
            code="too-complex",
            hint=f"there may be {LONGEST_RANGE}",
        )
    return (start + number * step for number in range(math.ceil(size)))


def _symbol_ordinal(text: str) -> int:
    """A number that stands for a text, the same in every database."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def _or_nothing(function: Callable[..., Any]) -> Callable[..., Any]:
    """NULL, where there is an error."""

    def tried(*given: Any) -> Any:
        try:
            return function(*given)
        except LimitFault:
            raise
        except HarkenError:
            return None

    return tried


FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    **SQL_FUNCTIONS,
    "bitwise_xor": (lambda a, b: a ^ b, 2),
    "shift_left": (_shift_left, 2),
    "shift_right": (lambda value, by: value >> (by & 63), 2),
    "shift_right_unsigned": (_shift_right_unsigned, 2),
    "integer_power": (_integer_power, 2),
    "to_unsigned": (_to_unsigned, 1),
    "matches_pattern": (datalog_patterns.matches, 2),
    "symbol_ordinal": (_symbol_ordinal, 1),
    "round": (_round, -1),
    "floor": (_whole(math.floor), 1),
    "ceiling": (_whole(math.ceil), 1),
    "sqrt": (_sqrt, 1),
    "power": (_power, 2),
    "rescale": (_rescale, 2),
    "rescale_checked": (_of_digits, 2),
    "decimal_divide": (_decimal_divide, 3),
    "decimal_average": (_decimal_divide, 3),
    "to_decimal_number": (_to_decimal, 2),
    "to_decimal_charstring": (_to_decimal, 2),
    "to_integer_decimal": (_whole_part, 2),
    "to_string_decimal": (_decimal_text, 2),
    "replace": (replace, 3),
    "upper": (lambda text: text.upper(), 1),
    "lower": (lambda text: text.lower(), 1),
    "trim": (lambda text: text.strip(" "), 1),
    "trim_start": (lambda text, characters: text.lstrip(characters), 2),
    "trim_end": (lambda text, characters: text.rstrip(characters), 2),
    "trim_both": (lambda text, characters: text.strip(characters), 2),
    "substring": (substring, -1),
    "add_months": (_add_months, 2),
    "spark_text": (spark_text, 1),
    "to_string_integer": (str, 1),
    "to_string_number": (show_number, 1),
    "to_string_boolean": (lambda value: "true" if value else "false", 1),
    "to_string_date": (lambda days: decode_date(days).isoformat(), 1),
    "to_string_timestamp": (timestamp_text, 1),
    "to_string_charstring": (lambda text: text, 1),
    "to_integer_number": (_whole(math.trunc), 1),
    "to_integer_charstring": (_parse("an integer", _parse_integer), 1),
    "read_numeral": (_parse("an integer", _parse_numeral), 1),
    "to_number_number": (lambda value: value, 1),
    "to_number_charstring": (_parse("a number", _parse_number), 1),
    "to_date_timestamp": (lambda micros: encode_date(decode_timestamp(micros).date()), 1),
    "to_date_charstring": (
        _parse("a date", lambda text: encode_date(datetime.date.fromisoformat(text))),
        1,
    ),
    "to_timestamp_date": (lambda days: days * 86_400_000_000, 1),
    "to_timestamp_charstring": (_parse("a timestamp", _parse_timestamp), 1),
    **{f"{part}_date": (_date_part(part), 1) for part in ("year", "month", "day")},
    **{
        f"{part}_timestamp": (_timestamp_part(part), 1)
        for part in ("year", "month", "day", "hour", "minute", "second")
    },
}
_CAN_BE_TRIED = (
    *("to_integer_number", "to_integer_charstring", "to_number_charstring", "decimal_divide"),
    *("spark_boolean", "spark_date", "spark_timestamp"),
)
FUNCTIONS |= {f"try_{n}": (_or_nothing(FUNCTIONS[n][0]), FUNCTIONS[n][1]) for n in _CAN_BE_TRIED}
for _kind in ("number", "charstring"):
    FUNCTIONS[f"try_to_decimal_{_kind}"] = (_or_nothing(_to_decimal_of), 3)
FUNCTIONS["try_rescale"] = (_or_nothing(_rescale_to), 3)
