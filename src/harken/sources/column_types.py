"""The types of columns whose source does not say them: pages, feeds, JSON, texts.

A column's type is the least that holds each of its values exactly:

    integer ≤ number        date ≤ timestamp        everything ≤ text

Laws: the type depends on the set of values alone, not on their order or count. Each value fits the
inferred type and is not rounded: what a double does not hold becomes a decimal, or text.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import json
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from harken.errors import HarkenError, SourceFault
from harken.values.parsing import parse_boolean

LARGEST_INTEGER = 2**63 - 1
EXACT_IN_DOUBLE = 2**53
"""Up to here each integer is a double."""
DECIMAL_DIGITS = 18
"""A decimal is stored as an integer of 64 bits."""
SURE_DIGITS = 15
"""A double holds each decimal of this many digits."""
LONGEST_NUMBER = 400
"""Characters; a longer number is text."""

TEXT = pa.string()
TIMESTAMP = pa.timestamp("us")
"""In UTC."""

_INTEGER = re.compile(r"-?(0|[1-9]\d*)", re.ASCII)
_WRITTEN = re.compile(
    r"(?P<number>-?(?:0|[1-9]\d*)?(?:\.\d+(?:[eE][+-]?\d+)?)?)|(?P<boolean>(?i:true|false))",
    re.ASCII,
)
_NUMERAL = re.compile(r"-?\d*(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?) ?(Z|[+-]\d{2}:?\d{2})?",
    re.ASCII,
)
_ZERO_OFFSET = "+00:00"


class Numeral(str):
    """A number as its source writes it. A JSON number is one; a text that looks like one is not."""

    __slots__ = ()


class DoesNotFit(ValueError):
    """A value is not one of the type."""


# --- inference -----------------------------------------------------------------------------------


class Inferred:
    """What is known of a column after some of its values."""

    def __init__(self, *, textual: bool) -> None:
        self._textual = textual
        self._seen: set[str] = set()
        self._whole_digits = 1
        self._scale = 0

    def add(self, values: Iterable[Any]) -> Inferred:
        for value in set(values) if self._textual else values:
            if value is not None:
                self._seen.add(self._sort(value))
        return self

    def type(self) -> pa.DataType:
        seen = self._seen
        if not seen or "text" in seen:
            return TEXT
        if seen == {"boolean"}:
            return pa.bool_()
        if seen == {"date"}:
            return pa.date32()
        if seen <= {"date", "timestamp"}:
            return TIMESTAMP
        if seen <= {"integer", "wide"}:
            return pa.int64()
        if seen <= {"integer", "number"}:
            return pa.float64()
        digits = self._whole_digits + self._scale
        if seen <= {"integer", "wide", "number", "exact"} and digits <= DECIMAL_DIGITS:
            return pa.decimal128(max(digits, 1), self._scale)
        return TEXT

    def _sort(self, value: Any) -> str:
        if isinstance(value, Numeral):
            return self._sort_of_number(value)
        if isinstance(value, str):
            return self._sort_of_text(value)
        if isinstance(value, bool):
            return "boolean"
        if isinstance(value, int):
            return self._sort_of_number(str(value)) if abs(value) <= LARGEST_INTEGER else "text"
        if isinstance(value, float):
            return self._sort_of_number(repr(value))
        if isinstance(value, Decimal):
            found = self._sort_of_number(str(value))
            return "exact" if found == "number" else found
        if isinstance(value, datetime.datetime):
            return "timestamp"
        return "date" if isinstance(value, datetime.date) else "text"

    def _sort_of_text(self, text: str) -> str:
        if self._textual:
            found = _WRITTEN.fullmatch(text)
            if found is not None and text and text != "-":
                return self._sort_of_number(text) if found["boolean"] is None else "boolean"
        if _DATE.match(text) is None:
            return "text"
        for sort, convert in (("date", _date), ("timestamp", _timestamp)):
            try:
                convert(text)
            except DoesNotFit:
                continue
            return sort
        return "text"

    def _sort_of_number(self, text: str) -> str:
        if len(text) > LONGEST_NUMBER:
            return "text"
        if _INTEGER.fullmatch(text):
            self._whole_digits = max(self._whole_digits, len(text.removeprefix("-")))
            value = int(text)
            if abs(value) <= EXACT_IN_DOUBLE:
                return "integer"
            return "wide" if -LARGEST_INTEGER - 1 <= value <= LARGEST_INTEGER else "text"
        try:
            exact = Decimal(text)
        except decimal.InvalidOperation:
            return "text"
        _, digits, exponent = exact.as_tuple()
        if not isinstance(exponent, int) or abs(exponent) > LONGEST_NUMBER:
            return "text"
        self._scale = max(self._scale, -exponent)
        self._whole_digits = max(self._whole_digits, len(digits) + exponent)
        if exact.is_zero() or (
            exact.adjusted() in range(-300, 300)
            and (len(digits) <= SURE_DIGITS or Decimal(repr(float(text))) == exact)
        ):
            return "number"
        return "exact"


def infer(values: Iterable[Any], *, textual: bool = False) -> pa.DataType:
    """The type of a column. With `textual`, texts may be numbers and booleans, too.

    >>> infer(["1", "2.5", None], textual=True), infer(["1", "2.5"]), infer(["2026-01-05"])
    (DataType(double), DataType(string), DataType(date32[day]))
    >>> infer([Numeral("12345678901234567890")]), infer([Numeral("0.1234567890123456789")])
    (DataType(string), DataType(string))
    >>> infer(["007"], textual=True)
    DataType(string)
    """
    return Inferred(textual=textual).add(values).type()


# --- conversion ----------------------------------------------------------------------------------


def converter(type_: pa.DataType) -> Callable[[Any], Any]:
    """A function from a value of the source to one of the type, or `DoesNotFit`."""
    if pa.types.is_decimal(type_):
        return functools.partial(_decimal, type_.precision, type_.scale)
    if pa.types.is_timestamp(type_):
        return _zoned if type_.tz else _timestamp
    tests: tuple[tuple[Callable[[Any], bool], Callable[[Any], Any]], ...] = (
        (pa.types.is_string, text_of),
        (pa.types.is_large_string, text_of),
        (pa.types.is_boolean, _boolean),
        (pa.types.is_integer, _integer),
        (pa.types.is_floating, _number),
        (pa.types.is_date, _date),
    )
    for test, convert in tests:
        if test(type_):
            return convert
    raise SourceFault(f"a column cannot have the type {type_}", code="bad-option")


def text_of(value: Any) -> str:
    """A value as text. Objects and lists are JSON with sorted keys, so that equal ones are equal
    texts.

    >>> text_of({"b": Numeral("1.50"), "a": [True, None]})
    '{"a": [true, null], "b": 1.50}'
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list | tuple):
        return json_text(value)
    if isinstance(value, datetime.datetime):
        return _utc(value).isoformat(sep=" ")
    if isinstance(value, int | float | Decimal | datetime.date):
        return str(value)
    raise DoesNotFit(f"a value is a {type(value).__name__}, which no column holds")


def json_text(value: Any) -> str:
    if isinstance(value, dict):
        members = sorted((str(name), each) for name, each in value.items())
        return "{" + ", ".join(f"{_quoted(n)}: {json_text(each)}" for n, each in members) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(json_text, value)) + "]"
    if isinstance(value, Numeral):
        return str(value)
    if value is None:
        return "null"
    return text_of(value) if isinstance(value, bool | int) else _quoted(text_of(value))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _integer(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        found = value
    else:
        exact = _exact(value)
        if exact.adjusted() > DECIMAL_DIGITS or exact != exact.to_integral_value():
            raise DoesNotFit("integer")
        found = int(exact)
    if not -LARGEST_INTEGER - 1 <= found <= LARGEST_INTEGER:
        raise DoesNotFit("integer")
    return found


def _number(value: Any) -> float:
    if isinstance(value, float):
        found = value
    else:
        exact = _exact(value)
        found = float(exact)
        if exact == exact.to_integral_value() and abs(exact) > EXACT_IN_DOUBLE and found != exact:
            raise DoesNotFit("number")
    if found != found or found in (float("inf"), float("-inf")):
        raise DoesNotFit("number")
    return found + 0.0


def _decimal(precision: int, scale: int, value: Any) -> Decimal:
    exact = _exact(value)
    try:
        found = exact.quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    except decimal.InvalidOperation:
        raise DoesNotFit("decimal") from None
    is_wide = not found.is_zero() and found.adjusted() >= precision - scale
    if found != exact or is_wide:
        raise DoesNotFit("decimal")
    return found


_WIDE = decimal.Context(prec=76)


def _exact(value: Any) -> Decimal:
    if isinstance(value, str):
        if len(value) > LONGEST_NUMBER or not _NUMERAL.fullmatch(value):
            raise DoesNotFit("number")
        value = str(value)
    elif isinstance(value, float):
        value = repr(value)
    elif isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise DoesNotFit("number")
    try:
        found = Decimal(value)
    except decimal.InvalidOperation:
        raise DoesNotFit("number") from None
    if not found.is_finite() or abs(found.adjusted()) > LONGEST_NUMBER:
        raise DoesNotFit("number")
    return found


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or isinstance(value, Numeral):
        raise DoesNotFit("boolean")
    try:
        return bool(parse_boolean(value))
    except HarkenError:
        raise DoesNotFit("boolean") from None


def _date(value: Any) -> datetime.date:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            pass
    raise DoesNotFit("date")


def _timestamp(value: Any) -> datetime.datetime:
    """In UTC, without a zone."""
    if isinstance(value, datetime.datetime):
        return _utc(value)
    if isinstance(value, str):
        found = _TIMESTAMP.fullmatch(value)
        try:
            if found is not None:
                day, time, zone = found.groups()
                zone = _ZERO_OFFSET if zone in (None, "Z") else zone
                return _utc(datetime.datetime.fromisoformat(f"{day}T{time[:15]}{zone}"))
        except (ValueError, OverflowError):
            raise DoesNotFit("timestamp") from None
    try:
        return datetime.datetime.combine(_date(value), datetime.time())
    except DoesNotFit:
        raise DoesNotFit("timestamp") from None


def _zoned(value: Any) -> datetime.datetime:
    return _timestamp(value).replace(tzinfo=datetime.UTC)


def _utc(moment: datetime.datetime) -> datetime.datetime:
    return moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo else moment


# --- names of types ------------------------------------------------------------------------------

_NAMES: dict[str, pa.DataType] = {
    **dict.fromkeys(("text", "string", "varchar", "char", "charstring"), TEXT),
    **dict.fromkeys(("integer", "int", "bigint", "smallint", "long"), pa.int64()),
    **dict.fromkeys(("number", "double", "real", "float", "double precision"), pa.float64()),
    **dict.fromkeys(("boolean", "bool"), pa.bool_()),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
}
_DECIMAL_NAME = re.compile(r"(?:decimal|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", re.ASCII)


def type_named(name: str) -> pa.DataType:
    """The type that an option names, as SQL or AMOSQL does.

    >>> type_named("Decimal(8, 2)"), type_named("BIGINT")
    (Decimal128Type(decimal128(8, 2)), DataType(int64))
    """
    plain = " ".join(name.lower().split())
    found = _DECIMAL_NAME.fullmatch(plain)
    if found is not None:
        precision, scale = int(found[1]), int(found[2] or 0)
        if 0 <= scale <= precision and 1 <= precision <= DECIMAL_DIGITS:
            return pa.decimal128(precision, scale)
    if plain not in _NAMES:
        raise SourceFault(
            f"there is no type {name.strip()[:60]!r} for a column",
            code="bad-option",
            hint="the types are text, integer, number, boolean, date, timestamp and "
            f"decimal(p, s) with up to {DECIMAL_DIGITS} digits",
        )
    return _NAMES[plain]


def name_of(type_: pa.DataType) -> str:
    """
    >>> name_of(pa.decimal128(8, 2)), name_of(pa.int64()), name_of(TIMESTAMP)
    ('decimal(8, 2)', 'integer', 'timestamp')
    """
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision}, {type_.scale})"
    if pa.types.is_timestamp(type_):
        return "timestamp"
    return next((name for name, known in _NAMES.items() if known == type_), str(type_))
