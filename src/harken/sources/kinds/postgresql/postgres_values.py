"""Types of PostgreSQL as columns of ours, and its texts as values.

| PostgreSQL                                   | here                                             |
| -------------------------------------------- | ------------------------------------------------ |
| smallint, integer, bigint, oid               | integer                                          |
| real, double precision                       | number                                           |
| numeric(p, s) of at most 38 digits           | decimal(p, s)                                    |
| other numeric                                | number                                           |
| boolean, date, timestamp                     | the same                                         |
| timestamptz                                  | timestamp, in UTC                                |
| arrays                                       | text: a JSON array                               |
| text, uuid, json, enums, bytea, all others   | text, as PostgreSQL writes it                    |

No type of ours holds NaN, an infinity, or a date outside of the years 1 to 9999: they become NULL,
or are refused. A domain is as its base type.

Law: a value is the same whether it comes in a snapshot or in a change.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

BOOL, INT8, INT2, INT4, TEXT, OID = 16, 20, 21, 23, 25, 26
FLOAT4, FLOAT8, BPCHAR, VARCHAR, NUMERIC = 700, 701, 1042, 1043, 1700
DATE, TIMESTAMP, TIMESTAMPTZ, UUID, NAME = 1082, 1114, 1184, 2950, 19
BOX = 603
"""Its arrays have semicolons between their elements, because it has commas itself."""
VECTORS = frozenset({22, 30})
"""int2vector and oidvector, which are arrays and are not written as such."""
INTEGERS = frozenset({INT2, INT4, INT8, OID})
FLOATS = frozenset({FLOAT4, FLOAT8})
MOST_DIGITS = 38
ISO_DATE = 10
"""Characters of a date of the years 1 to 9999."""


@dataclass(frozen=True, slots=True)
class ValueType:
    """How the values of a column become ours. `read` gives None for an odd value; `is_exact` says
    that no value of the type is odd."""

    base: int
    """The type's number in PostgreSQL, of a domain that of its base type."""
    arrow: pa.DataType
    read: Callable[[str], Any] = field(compare=False)
    is_exact: bool = True
    in_csv: pa.DataType | None = None
    """As what Arrow reads it, if not as `arrow`."""


def value_type(base: int, modifier: int, element: int = 0) -> ValueType:
    """The type with this number and modifier. `element` is that of an array's elements."""
    if element and base not in VECTORS:
        return ValueType(base, pa.string(), _array_reader(element), in_csv=pa.string())
    if base in INTEGERS:
        return ValueType(base, pa.int64(), int)
    if base == BOOL:
        return ValueType(base, pa.bool_(), _boolean)
    if base in FLOATS:
        return ValueType(base, pa.float64(), _finite, is_exact=False)
    if base == NUMERIC:
        return _numeric(modifier)
    if base == DATE:
        return ValueType(base, pa.date32(), _date, is_exact=False)
    if base == TIMESTAMP:
        return ValueType(base, pa.timestamp("us"), _timestamp, is_exact=False)
    if base == TIMESTAMPTZ:
        return ValueType(base, pa.timestamp("us", "UTC"), _timestamp, is_exact=False)
    return ValueType(base, pa.string(), str)


def _numeric(modifier: int) -> ValueType:
    if modifier >= 0:
        precision, scale = numeric_digits(modifier)
        if scale < 0:
            precision, scale = precision - scale, 0
        precision = max(precision, scale)
        if precision <= MOST_DIGITS:
            exact = pa.decimal128(precision, scale)
            return ValueType(NUMERIC, exact, _decimal, is_exact=False)
    return ValueType(NUMERIC, pa.float64(), _finite, is_exact=False)


def numeric_digits(modifier: int) -> tuple[int, int]:
    """Precision and scale of numeric(p, s).

    >>> numeric_digits(((10 << 16) | 2) + 4), numeric_digits(((3 << 16) | (-2 & 0x7FF)) + 4)
    ((10, 2), (3, -2))
    """
    packed = modifier - 4
    return (packed >> 16) & 0xFFFF, ((packed & 0x7FF) ^ 1024) - 1024


def _boolean(text: str) -> bool:
    return text == "t"


def _finite(text: str) -> float | None:
    found = float(text)
    return found if math.isfinite(found) else None


def _decimal(text: str) -> decimal.Decimal | None:
    found = decimal.Decimal(text)
    return found if found.is_finite() else None


def _date(text: str) -> datetime.date | None:
    return datetime.date.fromisoformat(text) if len(text) == ISO_DATE else None


def _timestamp(text: str) -> datetime.datetime | None:
    if text[0] not in "0123456789" or text[4] != "-" or text.endswith("BC"):
        return None
    return datetime.datetime.fromisoformat(text)


# --- arrays --------------------------------------------------------------------------------

_TOKENS = {
    each: re.compile(rf'[{{}}{each}]|"(?:[^"\\]|\\.)*"|[^{{}}{each}"]+', re.DOTALL) for each in ",;"
}
"""Of arrays, by what stands between their elements."""
_BOUNDS = re.compile(r"(\[[-+\d]+:[-+\d]+\])+=")


def _array_reader(element: int) -> Callable[[str], str]:
    make: Callable[[str], Any] = str
    if element in INTEGERS:
        make = int
    elif element == BOOL:
        make = _boolean
    elif element in FLOATS:
        make = _finite

    def read(text: str) -> str:
        delimiter = ";" if element == BOX else ","
        return json.dumps(array(text, make, delimiter), ensure_ascii=False)

    return read


def array(text: str, make: Callable[[str], Any] = str, delimiter: str = ",") -> list[Any]:
    """The elements of an array that PostgreSQL wrote. Other lower bounds than 1 are forgotten.

    >>> array('{a,"b,\\\\"c\\\\"",NULL,"NULL"}'), array("{{1,2},{3,4}}", int), array("[0:1]={t,f}")
    (['a', 'b,"c"', None, 'NULL'], [[1, 2], [3, 4]], ['t', 'f'])
    >>> array("{(1,1),(0,0);(3,3),(2,2)}", delimiter=";")
    ['(1,1),(0,0)', '(3,3),(2,2)']
    """
    bounds = _BOUNDS.match(text)
    stack: list[list[Any]] = [[]]
    for token in _TOKENS[delimiter].findall(text, bounds.end() if bounds else 0):
        if token == "{":
            stack.append([])
        elif token == "}":
            done = stack.pop()
            stack[-1].append(done)
        elif token.startswith('"'):
            stack[-1].append(make(re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.DOTALL)))
        elif token != delimiter:
            stack[-1].append(None if token.upper() == "NULL" else make(token))
    found: list[Any] = stack[0][0]
    return found
