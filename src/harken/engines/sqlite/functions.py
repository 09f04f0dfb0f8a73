"""The functions we register with SQLite where its own differ from Spark's ANSI SQL."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable
from typing import Any

import apsw

from harken.ir.operations import OPERATIONS
from harken.limits import Watch
from harken.values.builtin_functions import FUNCTIONS
from harken.values.encoding import LARGEST, encode_date, encode_timestamp
from harken.values.failures import (
    ambiguous,
    decimal_overflow,
    division_by_zero,
    many_rows,
    overflow,
    too_large,
)
from harken.values.folds import FOLDS, fold
from harken.values.random_values import drawn, fraction, uuid


def register(
    connection: apsw.Connection, clock: Callable[[], datetime.datetime], watch: Watch
) -> None:
    """Functions that can fail are not declared deterministic: SQLite would run constant calls
    early."""
    for name, (function, arguments) in FUNCTIONS.items():
        operation = name if name in OPERATIONS else name.rpartition("_")[0]
        operation = {"decimal": "/", "try_decimal": "try_divide"}.get(operation, operation)
        connection.create_scalar_function(
            f"harken_{name}",
            _of_values(function, watch),
            arguments,
            deterministic=not OPERATIONS[operation].fallible,
        )
    for name, (function, arguments) in _FAILING.items():
        connection.create_scalar_function(f"harken_{name}", function, arguments)
    for name in FOLDS:
        connection.create_aggregate_function(f"harken_{name}", _folding(name, watch))
    clocks: dict[str, tuple[Callable[..., Any], int]] = {
        "harken_now": (lambda: encode_timestamp(clock()), 0),
        "harken_today": (lambda: encode_date(clock().date()), 0),
        "harken_rand": (lambda text: fraction(drawn(encode_timestamp(clock()), text)), 1),
        "harken_uuid": (lambda text: uuid(drawn(encode_timestamp(clock()), text)), 1),
    }
    for name, (function, arguments) in clocks.items():
        connection.create_scalar_function(name, function, arguments)


def use_linear(connection: apsw.Connection, watch: Watch) -> None:
    """SQLite's own `instr` and `replace` take time proportional to the product of the lengths
    and cannot be interrupted. Ours are linear, but slower on short texts."""
    for name, function, arguments in (
        ("instr", lambda text, part: text.find(part) + 1, 2),
        ("replace", FUNCTIONS["replace"][0], 3),
    ):
        called = _of_values(function, watch)
        connection.create_scalar_function(name, called, arguments, deterministic=True)


def _of_values(function: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    """An aggregate over nothing has no value, and neither has a function of it.

    SQLite's planner calls deterministic functions, too, to estimate how many rows of an index
    match, and passes arguments of the index's type: `f('', 1)` becomes `f('', '1')`. No row has
    such arguments, so any estimate will do.
    """

    def called(*values: Any) -> Any:
        if watch.is_armed:
            watch.check()
        try:
            return None if None in values else function(*values)
        except (TypeError, AttributeError):
            return None

    return called


def _folding(name: str, watch: Watch) -> Callable[[], Any]:
    """An aggregate that keeps the rows of its group, except those without a value."""

    def step(state: dict[str, Any], settings: str, *row: Any) -> None:
        state["settings"] = settings
        if row[0] is not None:
            state["rows"].append(row)
            state["bytes"] += watch.hold(row)

    def final(state: dict[str, Any]) -> Any:
        rows = state["rows"]
        watch.let_go(state["bytes"])
        return fold(name, json.loads(state["settings"]), rows) if rows else None

    return lambda: ({"rows": [], "bytes": 0}, step, final)


def _overflow() -> None:
    raise overflow()


def _decimal_overflow() -> None:
    raise decimal_overflow()


def _number_overflow() -> None:
    raise too_large()


def _division_by_zero() -> None:
    raise division_by_zero()


def _many_rows() -> None:
    raise many_rows()


def _checked_integer(value: float | int | None) -> int | None:
    """SQLite turns an integer that overflows into a real."""
    if isinstance(value, float):
        raise overflow()
    return value


def _checked_decimal(value: float | int | None) -> int | None:
    if isinstance(value, float):
        raise decimal_overflow()
    return value


def _checked_number(value: float | None) -> float | None:
    """A number that grows without bound becomes infinite, then NULL."""
    if value is None or not math.isfinite(value):
        raise too_large()
    return value


def _or_null(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else function(value)


def _divide(dividend: float | None, divisor: float | None) -> float | None:
    if dividend is None or divisor is None:
        return None
    if divisor == 0:
        raise division_by_zero()
    return dividend / divisor


def _div(dividend: int | None, divisor: int | None) -> int | float | None:
    """Division towards zero. The one quotient that overflows is returned as a real, as SQLite
    does."""
    if dividend is None or divisor is None:
        return None
    if divisor == 0:
        raise division_by_zero()
    quotient = abs(dividend) // abs(divisor)
    signed = quotient if (dividend < 0) == (divisor < 0) else -quotient
    return signed if signed <= LARGEST else float(signed)


def _absolute(value: int | None) -> int | float | None:
    """The one absolute value that overflows is returned as a real."""
    if value is None or abs(value) <= LARGEST:
        return None if value is None else abs(value)
    return float(abs(value))


def _mod(dividend: int | None, divisor: int | None) -> int | None:
    """With the sign of the dividend."""
    if dividend is None or divisor is None:
        return None
    if divisor == 0:
        raise division_by_zero()
    rest = abs(dividend) % abs(divisor)
    return rest if dividend >= 0 else -rest


_FAILING: dict[str, tuple[Callable[..., Any], int]] = {
    "overflow": (_overflow, 0),
    "checked_integer": (_checked_integer, 1),
    "checked_integer_or_null": (_checked_integer, 1),
    "checked_decimal": (_checked_decimal, 1),
    "checked_decimal_or_null": (_checked_decimal, 1),
    "checked_number": (_checked_number, 1),
    "checked_number_or_null": (_or_null(_checked_number), 1),
    "checked_/": (_divide, 2),
    "checked_div": (_div, 2),
    "checked_mod": (_mod, 2),
    "checked_abs": (_absolute, 1),
    "decimal_overflow": (_decimal_overflow, 0),
    "number_overflow": (_number_overflow, 0),
    "division_by_zero": (_division_by_zero, 0),
    "ambiguous": (ambiguous, 1),
    "many_rows": (_many_rows, 0),
}
