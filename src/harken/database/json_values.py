"""Encodes values as JSON, and decodes them by the types of their columns.

JavaScript reads every JSON number as a double, so values that a double would change are sent as
strings: integers beyond 2^53, and every decimal, with all its digits. Dates and timestamps are ISO
strings, timestamps with a space; an object is `#[type number]`, as it prints. See docs/json.md.

Law: decoding with the types of the columns gives back what was encoded, even after a round trip
through JavaScript.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from harken.database.objects import Object
from harken.errors import ValueFault
from harken.values.builtin_functions import show_timestamp
from harken.values.rows import Row
from harken.values.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Type,
    is_decimal,
    literal_type_named,
)

NameObject = Callable[[Object], str]
LARGEST_EXACT = 2**53 - 1
"""Up to this integer, a double (and so JavaScript) has every integer."""
MAX_DIGITS = 40
"""More digits than any 64-bit integer has; longer numbers are not parsed."""
MAX_SHOWN = 60
"""Characters of a wrong value that an error shows."""
_OBJECT = re.compile(r"#\[(\w+) (\d+)\]")
_INTEGER = re.compile(r"-?[0-9]{1,40}")
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,4})?")


def json_value(value: Any, name_object: NameObject = repr) -> Any:
    """The value to pass to `json.dumps`.

    >>> json_value(decimal.Decimal("205039.00")), json_value(7), json_value(9007199254740993)
    ('205039.00', 7, '9007199254740993')
    """
    match value:
        case bool() | str() | None:
            return value
        case int():
            return value if -LARGEST_EXACT <= value <= LARGEST_EXACT else str(value)
        case float():
            return int(value) if value.is_integer() and abs(value) <= LARGEST_EXACT else value
        case decimal.Decimal():
            return f"{value:f}"
        case datetime.datetime():
            return show_timestamp(value)
        case datetime.date():
            return value.isoformat()
        case Object():
            return name_object(value)
    return value


def read_json(text: str | bytes, **how: Any) -> Any:
    """Parse JSON without losing digits: a decimal may be a JSON number."""
    return json.loads(text, parse_float=_exact, **how)


def _exact(digits: str) -> decimal.Decimal | float:
    try:
        return decimal.Decimal(digits)
    except decimal.InvalidOperation:  # an endless exponent
        return float(digits)


def column_type(name: str, nullable: bool) -> Type:
    return (literal_type_named(name) or Type(name)).or_null(nullable)


def row_reader(types: Sequence[Type]) -> Callable[[Sequence[Any]], Row]:
    """Returns a function that decodes a row of JSON."""
    readers = [reader(type_) for type_ in types]

    def read(row: Sequence[Any]) -> Row:
        return tuple(turn(value) for turn, value in zip(readers, row, strict=True))

    return read


READ_ALREADY: dict[Type, type] = {INTEGER: int, TEXT: str, BOOLEAN: bool}
"""Types whose values JSON has, too."""


def reader(type_: Type) -> Callable[[Any], Any]:
    """
    >>> reader(DATE)("2026-01-31"), reader(Type("item"))("#[item 7]")
    (datetime.date(2026, 1, 31), #[item 7])
    """

    read_already = READ_ALREADY.get(type_)

    def read(value: Any) -> Any:
        if value is None or type(value) is read_already:
            return value
        try:
            return _read(value, type_)
        except (ValueError, decimal.InvalidOperation):
            raise ValueFault(
                f"{shown(value)} is not of type {type_}", code="bad-value", hint=_written(type_)
            ) from None

    return read


def _read(value: Any, type_: Type) -> Any:
    if type_.surrogate and isinstance(value, str):
        found = _OBJECT.fullmatch(value)
        if found is None:
            raise ValueError
        return Object(int(found[2]), found[1])
    if type_ == DATE and isinstance(value, str):
        return datetime.date.fromisoformat(value)
    if type_ == TIMESTAMP and isinstance(value, str):
        moment = datetime.datetime.fromisoformat(value)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
    if is_decimal(type_) and not isinstance(value, bool):
        if isinstance(value, str) and not _DECIMAL.fullmatch(value):
            raise ValueError
        exact = decimal.Decimal(value if isinstance(value, str) else str(value))
        if exact.is_finite() and exact.adjusted() >= MAX_DIGITS:
            raise ValueError
        return exact
    if type_ == INTEGER and isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if type_ == INTEGER and isinstance(value, decimal.Decimal) and value.adjusted() < MAX_DIGITS:
        whole = int(value)  # JSON has one kind of number: 1.0 and 1e3 are integers
        return whole if whole == value else _finite(value)
    if isinstance(value, float | decimal.Decimal):
        return _finite(value)
    if type_ == NUMBER and isinstance(value, int) and not isinstance(value, bool):
        return _finite(value)
    return value


def _finite(value: float | decimal.Decimal) -> float:
    try:
        found = float(value)
    except OverflowError:
        raise ValueError(value) from None
    if not math.isfinite(found):
        raise ValueError(value)
    return found


def shown(value: Any) -> str:
    """A wrong value in a message, shortened if it is long.

    >>> print(shown(decimal.Decimal("1E+400")), shown(True), shown("a"), shown([1, None]))
    1E+400 true "a" [1, null]
    """
    if isinstance(value, decimal.Decimal | Object):
        text = str(value)
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def _written(type_: Type) -> str | None:
    if type_.surrogate:
        return f'write an object as it is printed: "#[{type_.name} 7]"'
    if is_decimal(type_):
        return 'write it as a text with all its digits: "12.50"'
    return {DATE: 'as "2026-01-31"', TIMESTAMP: 'as "2026-01-31 12:00:00"'}.get(type_)


# --- values of parameters ------------------------------------------------------------------

_TYPED: dict[type, tuple[str, Callable[[Any], str]]] = {
    decimal.Decimal: ("decimal", lambda value: f"{value:f}"),
    datetime.date: ("date", datetime.date.isoformat),
    datetime.datetime: ("timestamp", datetime.datetime.isoformat),
}
_READ: dict[str, Callable[[str], Any]] = {
    "decimal": decimal.Decimal,
    "date": datetime.date.fromisoformat,
    "timestamp": datetime.datetime.fromisoformat,
}


def parameter_to_json(value: Any) -> Any:
    """Encodes the value of a parameter. If JSON has no such type, the type is named.

    >>> parameter_to_json([1, decimal.Decimal("2.50"), datetime.date(2026, 1, 31)])
    [1, {'decimal': '2.50'}, {'date': '2026-01-31'}]
    """
    if isinstance(value, list | tuple | set | frozenset):
        return [parameter_to_json(each) for each in value]
    if type(value) in _TYPED:
        name, written = _TYPED[type(value)]
        return {name: written(value)}
    return value


def parameter_from_json(value: Any) -> Any:
    """Decodes what `parameter_to_json` encoded; anything else is unchanged.

    >>> parameter_from_json({"decimal": "2.50"})
    Decimal('2.50')
    """
    if isinstance(value, list):
        return [parameter_from_json(each) for each in value]
    if not isinstance(value, dict):
        return value
    try:
        ((name, text),) = value.items()
        return _READ[name](text)
    except (ValueError, KeyError, TypeError, decimal.InvalidOperation):
        raise ValueFault(
            f"{value} is not the value of a parameter",
            code="bad-value",
            hint='write {"decimal": "2.50"}, {"date": "2026-01-31"} or '
            '{"timestamp": "2026-01-31T12:00:00+00:00"}',
        ) from None


def parameters_from_json(values: list[Any] | dict[str, Any] | None) -> Any:
    if isinstance(values, dict):
        return {name: parameter_from_json(value) for name, value in values.items()}
    return values if values is None else tuple(map(parameter_from_json, values))
