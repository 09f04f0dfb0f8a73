"""Values between Python and SQLite.

A date is stored as days and a timestamp as microseconds since 1970 (UTC), a boolean as 0 or 1, a
decimal in units of its last digit, an object as its number.

Law: decode(encode(v)) = v, and the stored order is the order of the values.
"""

from __future__ import annotations

import datetime
import decimal
import math
from array import array
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from harken.errors import ValueFault
from harken.values.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Type,
    decimal_digits,
    is_decimal,
)

Stored: TypeAlias = int | float | str | None
Encoder: TypeAlias = Callable[[Any], Stored]
Decoder: TypeAlias = Callable[[Any], Any]

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
MICROSECOND = datetime.timedelta(microseconds=1)
WIDE = decimal.Context(prec=80)
SMALLEST, LARGEST = -(2**63), 2**63 - 1

COLUMN_TYPES = {
    INTEGER: "INTEGER",
    NUMBER: "REAL",
    TEXT: "TEXT",
    BOOLEAN: "INTEGER",
    DATE: "INTEGER",
    TIMESTAMP: "INTEGER",
}


def column_type(type_: Type) -> str:
    return "INTEGER" if type_.surrogate or is_decimal(type_) else COLUMN_TYPES[type_]


def _bad(value: object, type_: Type, hint: str | None = None) -> ValueFault:
    return ValueFault(f"{_shown(value)} is not of type {type_}", code="bad-value", hint=hint)


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def encode_integer(value: Any) -> int:
    if type(value) is not int:
        if not hasattr(value, "__index__") or isinstance(value, bool):
            raise _bad(value, INTEGER)
        value = value.__index__()
    if not SMALLEST <= value <= LARGEST:
        raise ValueFault(f"{value} does not fit in 64 bits", code="overflow")
    return value  # type: ignore[no-any-return]


def encode_number(value: Any) -> float:
    if type(value) is float:
        if math.isfinite(value):
            return value
        raise _bad(value, NUMBER, "numbers are finite")
    if isinstance(value, bool) or not hasattr(value, "__float__") or isinstance(value, str):
        raise _bad(value, NUMBER)
    try:
        result = float(value)
    except OverflowError:
        raise ValueFault(f"{value} is too large for a number", code="overflow") from None
    if not math.isfinite(result):
        raise _bad(value, NUMBER, "numbers are finite")
    return result


def encode_text(value: Any) -> str:
    if not isinstance(value, str):
        raise _bad(value, TEXT)
    if "\0" in value:
        raise _bad(value, TEXT, "text cannot hold the character NUL")
    if not _is_unicode(value):
        raise _bad(value, TEXT, "it holds half of a surrogate pair")
    return str(value)


def encode_boolean(value: Any) -> int:
    if value is True or value is False:
        return int(value)
    raise _bad(value, BOOLEAN)


def encode_date(value: Any) -> int:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value.toordinal() - EPOCH_DAY
    raise _bad(value, DATE)


def encode_timestamp(value: Any) -> int:
    if not isinstance(value, datetime.datetime):
        raise _bad(value, TIMESTAMP)
    if value.tzinfo is None:
        raise _bad(value, TIMESTAMP, "give it a time zone, for example datetime.timezone.utc")
    return (value - EPOCH) // MICROSECOND


def encode_object(value: Any) -> int:
    """The number of an object, given its handle. A bare number is not an object: it would name
    whichever object happens to have it."""
    oid = getattr(value, "oid", None)
    if type(oid) is not int:
        raise not_an_object(value)
    if not 0 <= oid <= LARGEST:
        raise ValueFault(f"there is no object with the number {oid}", code="wrong-object")
    return oid


def not_an_object(value: object) -> ValueFault:
    return ValueFault(
        f"{_shown(value)} is not an object",
        code="wrong-object",
        hint="give a harken.Object: from a query, from db.variables, or from db.load",
    )


ENCODERS: dict[Type, Encoder] = {
    INTEGER: encode_integer,
    NUMBER: encode_number,
    TEXT: encode_text,
    BOOLEAN: encode_boolean,
    DATE: encode_date,
    TIMESTAMP: encode_timestamp,
}


def encode_decimal(type_: Type) -> Encoder:
    precision, scale = decimal_digits(type_)
    unit = decimal.Decimal(1).scaleb(-scale)

    def encode(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
            raise _bad(value, type_)
        try:
            given = decimal.Decimal(repr(value) if isinstance(value, float) else value)
            exact = given.quantize(unit, rounding=decimal.ROUND_HALF_UP, context=WIDE)
        except decimal.InvalidOperation:
            raise _bad(value, type_) from None
        stored = int(exact.scaleb(scale, context=WIDE))
        if abs(stored) >= 10**precision:
            raise ValueFault(f"{value} does not fit in {type_}", code="overflow")
        if not SMALLEST <= stored <= LARGEST:
            raise decimal_too_wide(value, type_)
        return stored

    return encode


def decimal_too_wide(value: object, type_: Type) -> ValueFault:
    """
    >>> decimal_too_wide("99999999999999999999", Type("decimal(20,0)", False)).message[:61]
    '99999999999999999999 as decimal(20,0) does not fit in 64 bits'
    """
    most = decimal.Decimal(LARGEST).scaleb(-decimal_digits(type_)[1], WIDE)
    return ValueFault(
        f"{value} as {type_} does not fit in 64 bits: the largest is {most:f}",
        code="overflow",
        hint="use fewer digits behind the point",
    )


def decode_decimal(type_: Type) -> Decoder:
    _, scale = decimal_digits(type_)
    return lambda stored: decimal.Decimal(stored).scaleb(-scale, context=WIDE)


def encoder(type_: Type) -> Encoder:
    if is_decimal(type_):
        encode = encode_decimal(type_)
    else:
        encode = encode_object if type_.surrogate else ENCODERS[type_]
    return _or_null(encode) if type_.nullable else encode


def encode_all(values: Sequence[Any], type_: Type) -> Sequence[Stored]:
    """The values of a column, as `encoder` does it for each of them.

    Plain integers, numbers and texts are checked all at once. If there is anything else among
    them, or one is wrong, they are looked at one by one.

    >>> encode_all([1, None, True], INTEGER.or_null())
    Traceback (most recent call last):
    harken.errors.ValueFault: True is not of type integer
    """
    kinds = set(map(type, values))
    present = values
    if type_.nullable and type(None) in kinds:
        kinds.discard(type(None))
        present = [value for value in values if value is not None]
    if not present or _are_stored_as_they_are(present, kinds, type_):
        return values
    return list(map(encoder(type_), values))


def _are_stored_as_they_are(values: Sequence[Any], kinds: set[type], type_: Type) -> bool:
    if type_.surrogate:
        return False
    if type_ == INTEGER and kinds == {int}:
        return _fit_in_64_bits(values)
    if type_ == NUMBER and kinds == {float}:
        return all(map(math.isfinite, values))
    if type_ == TEXT and kinds == {str}:
        joined = "".join(values)
        return "\0" not in joined and (joined.isascii() or _is_unicode(joined))
    return False


def _fit_in_64_bits(values: Sequence[int]) -> bool:
    try:
        array("q", values)
    except OverflowError:
        return False
    return True


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _or_null(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else function(value)


def encode(value: Any, type_: Type) -> Stored:
    """What a constant is stored as: one of a surrogate type is the number of its object already."""
    return value if type_.surrogate else encoder(type_)(value)


def _outside_calendar(what: str) -> ValueFault:
    return ValueFault(
        f"a {what} is outside the years 1 to 9999",
        code="overflow",
        hint="add a condition that leaves such values out",
    )


def decode_boolean(stored: int) -> bool:
    return bool(stored)


def decode_date(stored: int) -> datetime.date:
    try:
        return datetime.date.fromordinal(stored + EPOCH_DAY)
    except (ValueError, OverflowError):
        raise _outside_calendar("date") from None


def decode_timestamp(stored: int) -> datetime.datetime:
    try:
        return EPOCH + datetime.timedelta(microseconds=stored)
    except OverflowError:
        raise _outside_calendar("timestamp") from None


DECODERS: dict[Type, Decoder] = {
    BOOLEAN: decode_boolean,
    DATE: decode_date,
    TIMESTAMP: decode_timestamp,
}


def decoder(type_: Type) -> Decoder | None:
    """How to turn what SQLite returns into a Python value; None where it is one already."""
    decode = decode_decimal(type_) if is_decimal(type_) else DECODERS.get(type_)
    return _or_null(decode) if decode is not None and type_.nullable else decode


def literal_type(value: object) -> Type:
    match value:
        case bool():
            return BOOLEAN
        case int():
            return INTEGER
        case float():
            return NUMBER
        case str():
            return TEXT
        case datetime.datetime():
            return TIMESTAMP
        case datetime.date():
            return DATE
    raise ValueFault(
        f"{value!r} is not a value of the language",
        code="bad-value",
        hint="it has integers, numbers, texts, booleans, dates, timestamps and objects",
    )
