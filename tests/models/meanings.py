"""What the built-in operations and aggregates mean, on Python values.

Both oracles use this: an operation gives its value, or a Failure where the language says that it
is an error. Integers have 64 bits, `/` gives a number, text has the order of its code points
(which is the order of its UTF-8 bytes).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harken import Object

SMALLEST, LARGEST = -(2**63), 2**63 - 1
LITERAL_TYPES = frozenset({"integer", "number", "charstring", "boolean"})


@dataclass(frozen=True)
class Failure:
    """Stands for a row whose computation met an error, such as a division by zero."""

    code: str


@dataclass(frozen=True)
class Static:
    """What is known of a value before the query runs: its types, exactly or as upper bounds."""

    types: tuple[str, ...]
    exact: bool = False


Row = tuple[Any, ...]
Outcome = Row | Failure
Environment = dict[str, tuple[Any, Static]]
"""The variables at some place of a text, with their values."""

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def literal_type(value: Any) -> str:
    """
    >>> literal_type(True), literal_type(1), literal_type(1.0), literal_type("")
    ('boolean', 'integer', 'number', 'charstring')
    """
    return {bool: "boolean", int: "integer", float: "number", str: "charstring"}[type(value)]


def tagged(row: Row) -> Row:
    """A row that is equal to another only if the types of the values are equal too.

    Numbers are taken to nine digits: a sum may be made in any order.
    """
    return tuple(_tagged(value) for value in row)


def _tagged(value: Any) -> tuple[str, Any]:
    if isinstance(value, Object):
        return "object", value.oid
    if isinstance(value, float):
        return "number", float(f"{value:.9g}") + 0.0
    return literal_type(value), value


# --- operations ----------------------------------------------------------------------------


def operate(name: str, given: Row) -> Outcome:
    """The value of an operation as a row of one, or its failure."""
    try:
        value = OPERATIONS[name](*given)
    except ZeroDivisionError:
        return Failure("division-by-zero")
    if type(value) is int and not SMALLEST <= value <= LARGEST:
        return Failure("overflow")
    return (value,)


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _substring(text: str, start: int, length: int | None = None) -> str:
    """Positions count from 1, from the end if negative; 0 is taken for 1."""
    begin = start - 1 if start > 0 else start and len(text) + start
    end = len(text) if length is None else begin + length
    return "".join(c for place, c in enumerate(text) if begin <= place < end)


def _like(text: str, pattern: str) -> bool:
    """`%` is any text, `_` any character, a backslash takes the next character as it is."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(_like(text[i:], pattern[1:]) for i in range(len(text) + 1))
    if pattern[0] == "\\" and len(pattern) > 1:
        return text[:1] == pattern[1] and _like(text[1:], pattern[2:])
    return bool(text) and pattern[0] in ("_", text[0]) and _like(text[1:], pattern[1:])


def _round(value: float) -> int:
    """Half away from zero."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: float(a) / float(b),
    "||": operator.add,
    "negate": operator.neg,
    "widen": float,
    "abs": abs,
    "div": _truncated,
    "mod": lambda a, b: a - _truncated(a, b) * b,
    "floor": math.floor,
    "ceiling": math.ceil,
    "round": _round,
    "upper": str.upper,
    "lower": str.lower,
    "trim": lambda text: text.strip(" "),
    "length": len,
    "substring": _substring,
    "concat": lambda *texts: "".join(texts),
    "replace": lambda text, old, new: text.replace(old, new) if old else text,
    "position": lambda part, text: text.find(part) + 1,
    "contains": lambda text, part: part in text,
    "like": _like,
    "to_string": _shown,
    **{f"is {sign}": compare for sign, compare in COMPARE.items()},
}

_FIXED_TYPES = {
    "/": "number",
    "||": "charstring",
    "widen": "number",
    "div": "integer",
    "mod": "integer",
    "floor": "integer",
    "ceiling": "integer",
    "round": "integer",
    "length": "integer",
    "position": "integer",
    "contains": "boolean",
    "like": "boolean",
    **dict.fromkeys(
        ("upper", "lower", "trim", "substring", "concat", "replace", "to_string"), "charstring"
    ),
}


def operation_type(name: str, *given: str) -> str:
    """
    >>> operation_type("+", "integer", "number"), operation_type("/", "integer", "integer")
    ('number', 'number')
    """
    if name in _FIXED_TYPES:
        return _FIXED_TYPES[name]
    return "number" if "number" in given else given[0]


# --- aggregates ----------------------------------------------------------------------------

AGGREGATES = frozenset({"count", "sum", "avg", "min", "max", "some", "notany"})


def aggregated(name: str, rows: Sequence[Row], type_name: str) -> list[Outcome]:
    """The value over the rows: none, or a row of one. `type_name` is that of what is summed."""
    match name:
        case "count":
            return [(len(rows),)]
        case "some":
            return [(bool(rows),)]
        case "notany":
            return [(not rows,)]
    values = [row[0] for row in rows]
    if name == "sum":
        return [_total(values, type_name)]
    if not values:
        return []
    if name == "avg":
        return [(math.fsum(values) / len(values),)]
    return [(min(values) if name == "min" else max(values),)]


def _total(values: list[Any], type_name: str) -> Outcome:
    if type_name == "number":
        return (math.fsum(values),)
    total = sum(values)
    return (total,) if SMALLEST <= total <= LARGEST else Failure("overflow")
