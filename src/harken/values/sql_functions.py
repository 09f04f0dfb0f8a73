"""Functions that only SQL has, of stored values, with the meaning of Spark's ANSI SQL.

A function that gives None is NULL there. Numbers are finite: where Spark has an infinity or NaN, it
is an error. What a logarithm, a power or a sine is in its last digit the C library says, on every
engine; Java's own may differ in that digit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from harken.errors import ValueFault
from harken.values.encoding import LARGEST, SMALLEST, encode_date, encode_timestamp
from harken.values.failures import bad_argument, division_by_zero, too_large
from harken.values.java_patterns import compiled, refusal
from harken.values.matching import Match
from harken.values.parsing import parse_boolean, parse_date, parse_timestamp
from harken.values.sql_dates import DATE_FUNCTIONS
from harken.values.sql_numerals import NUMERAL_FUNCTIONS
from harken.values.sql_texts import TEXT_FUNCTIONS

LONGEST = 100_000_000
"""More characters than this are not made."""

# --- texts ---------------------------------------------------------------------------------


def _bounded(length: int) -> int:
    if length > LONGEST:
        raise ValueFault(f"a text would have {length} characters", code="overflow")
    return max(length, 0)


def _padding(text: str, length: int, fill: str) -> str:
    missing = _bounded(length) - len(text)
    return (fill * (missing // len(fill) + 1))[:missing] if fill and missing > 0 else ""


def _pad_start(text: str, length: int, fill: str) -> str:
    return _padding(text, length, fill) + text[: max(length, 0)]


def _pad_end(text: str, length: int, fill: str) -> str:
    return text[: max(length, 0)] + _padding(text, length, fill)


def _repeat(text: str, times: int) -> str:
    _bounded(len(text) * times)
    return text * times


def replace(text: str, old: str, new: str) -> str:
    """Each occurrence; of nothing there is none."""
    if not old:
        return text
    if len(new) > len(old):
        _bounded(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def _initcap(text: str) -> str:
    """Only a blank ends a word."""
    return " ".join(word[:1].title() + word[1:] for word in text.lower().split(" "))


def _chr(code: int) -> str:
    """Of its last eight bits."""
    if code < 0:
        return ""
    if code & 0xFF == 0:
        raise bad_argument("a text cannot hold the character NUL")
    return chr(code & 0xFF)


def _split_part(text: str, delimiter: str, number: int) -> str:
    if number == 0:
        raise bad_argument("the parts of a text are counted from 1, or from -1 at its end")
    parts = text.split(delimiter) if delimiter else [text]
    return parts[number - (number > 0)] if -len(parts) <= number <= len(parts) else ""


_REFERENCE = re.compile(r"\\(.)|\$(?:([0-9])([0-9]*)|\{([A-Za-z][A-Za-z0-9]*)\})|([\\$])", re.S)


def _regexp_replace(text: str, pattern: str, replacement: str) -> str:
    """`$1` and `${name}` in the replacement are groups; a backslash takes what follows as it is.

    Where nothing matches the replacement is not read, as in Java."""
    wanted = compiled(pattern)
    if not wanted.found_in(text):
        return text

    def referred(match: re.Match[str]) -> Callable[[Match], str]:
        literal, first, rest, name, broken = match.groups()
        if literal is not None:
            return lambda _: literal
        group: int | str = name or int(first or 0)
        following = rest or ""
        while following and isinstance(group, int) and group * 10 + int(following[0]) <= groups:
            group, following = group * 10 + int(following[0]), following[1:]
        known = group in wanted.names if isinstance(group, str) else group <= groups
        if broken or not known:
            raise ValueFault(
                f"the replacement '{replacement}' names no group of '{pattern}'", code="bad-value"
            )
        return lambda found: (found[group] or "") + following

    groups, parts, end = wanted.groups, list[Any](), 0
    for each in _REFERENCE.finditer(replacement):
        parts += [replacement[end : each.start()], referred(each)]
        end = each.end()
    parts.append(replacement[end:])
    pieces, last, size = list[str](), 0, 0
    for found in wanted.finditer(text):
        new = "".join(part if isinstance(part, str) else part(found) for part in parts)
        size = _bounded(size + found.start - last + len(new))
        pieces += [text[last : found.start], new]
        last = found.end
    return "".join([*pieces, text[last:]])


def _regexp_extract(text: str, pattern: str, group: int) -> str:
    """Nothing, where nothing matches."""
    wanted = compiled(pattern)
    if not 0 <= group <= wanted.groups:
        raise refusal(pattern, f"it has no group {group}")
    found = wanted.search(text)
    return "" if found is None else found[group] or ""


# --- numbers -------------------------------------------------------------------------------


def _finite(function: Callable[..., float]) -> Callable[..., float]:
    def value(*given: float) -> float:
        try:
            found = function(*given)
        except OverflowError:
            raise too_large() from None
        except (ValueError, ZeroDivisionError):
            shown = ", ".join(map(repr, given))
            raise bad_argument(f"a function has no finite value at {shown}") from None
        if not math.isfinite(found):
            raise too_large()
        return found

    return value


def _above(least: float, function: Callable[[float], float]) -> Callable[[float], float | None]:
    """A logarithm: NULL where there is none."""
    return lambda x: function(x) if x > least else None


def _log(base: float, x: float) -> float | None:
    return None if base <= 0 or x <= 0 else _finite(lambda: math.log(x) / math.log(base))()


_OF_ONE = (
    *("exp", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh"),
    *("tanh", "asinh", "acosh", "atanh", "degrees", "radians"),
)


def _cbrt(x: float) -> float:
    """Of the cube of a whole number exactly that."""
    root = math.cbrt(x)
    whole = float(round(root))
    return whole if whole**3 == x else root


def _wrapped(value: int) -> int:
    """The last 64 bits of a number."""
    return (value - SMALLEST) % 2**64 + SMALLEST


# --- what is NULL instead of an error ------------------------------------------------------


def _within(value: Any) -> Any:
    """NULL where a number leaves the range of its type."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if SMALLEST <= value <= LARGEST else None


def _number_mod(dividend: float, divisor: float) -> float:
    """With the sign of the dividend."""
    if divisor == 0:
        raise division_by_zero()
    return math.fmod(dividend, divisor) + 0.0


def _try_divide(dividend: float, divisor: float) -> float | None:
    if divisor == 0:
        return None
    try:
        return dividend / divisor
    except OverflowError:
        return None


SQL_FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "regexp_like": (lambda text, pattern: compiled(pattern).found_in(text), 2),
    "regexp_replace": (_regexp_replace, 3),
    "regexp_extract": (_regexp_extract, 3),
    "pad_start": (_pad_start, 3),
    "pad_end": (_pad_end, 3),
    "repeat": (_repeat, 2),
    "reverse": (lambda text: text[::-1], 1),
    "initcap": (_initcap, 1),
    "ascii": (lambda text: ord(text[0]) if text else 0, 1),
    "chr": (_chr, 1),
    "split_part": (_split_part, 3),
    "shift_left_wrapping": (lambda value, by: _wrapped(value << (by & 63)), 2),
    **{name: (_finite(getattr(math, name)), 1) for name in _OF_ONE},
    "cbrt": (_cbrt, 1),
    "cot": (_finite(lambda x: 1 / math.tan(x)), 1),
    "atan2": (lambda y, x: math.atan2(y + 0.0, x + 0.0), 2),
    "hypot": (_finite(math.hypot), 2),
    "ln": (_above(0, math.log), 1),
    "log": (_log, 2),
    "log2": (_above(0, lambda x: math.log(x) / math.log(2)), 1),
    "log10": (_above(0, math.log10), 1),
    "log1p": (_above(-1, math.log1p), 1),
    "try_add": (lambda a, b: _within(a + b), 2),
    "try_subtract": (lambda a, b: _within(a - b), 2),
    "try_multiply": (lambda a, b: _within(a * b), 2),
    "try_divide": (_try_divide, 2),
    "number_mod": (_number_mod, 2),
    "rint": (lambda x: float(round(x)), 1),
    "factorial": (lambda n: math.factorial(n) if 0 <= n <= 20 else None, 1),
    **TEXT_FUNCTIONS,
    **DATE_FUNCTIONS,
    **NUMERAL_FUNCTIONS,
    "spark_boolean": (parse_boolean, 1),
    "spark_date": (lambda text: encode_date(parse_date(text)), 1),
    "spark_timestamp": (lambda text: encode_timestamp(parse_timestamp(text)), 1),
}
