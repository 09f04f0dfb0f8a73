"""What evaluating an expression can fail with, in words that are the same on every engine."""

from __future__ import annotations

from harken.errors import ArithmeticFault, EvaluationError, ValueFault


def overflow() -> ArithmeticFault:
    return ArithmeticFault(
        "an integer result does not fit in 64 bits",
        code="overflow",
        hint="where values can grow this large use `number`, in SQL DOUBLE, in Datalog float",
    )


def decimal_overflow() -> ArithmeticFault:
    return ArithmeticFault(
        "a decimal does not fit: in units of its last digit it has more than 64 bits",
        code="overflow",
        hint="use fewer digits behind the point: CAST(... AS DECIMAL(18, 2))",
    )


def outside_calendar(what: str) -> ValueFault:
    return ValueFault(
        f"a {what} is outside the years 1 to 9999",
        code="overflow",
        hint="add a condition that leaves such values out",
    )


def division_by_zero() -> ArithmeticFault:
    return ArithmeticFault(
        "division by zero",
        code="division-by-zero",
        hint="add a condition that leaves the zeros out",
    )


def too_large() -> ArithmeticFault:
    return ArithmeticFault("a number is too large", code="overflow", hint="numbers are finite")


def many_rows() -> ValueFault:
    return ValueFault(
        "a query that stands for a value has more than one row",
        code="many-values",
        hint="restrict it to one row, or take an aggregate of them",
    )


def ambiguous(candidates: str) -> None:
    raise EvaluationError(
        f"an object is of two types, so {candidates} both apply to it",
        code="ambiguous",
        hint="define the function for a common subtype, or choose one with a dot",
    )


def bad_argument(message: str) -> ArithmeticFault:
    return ArithmeticFault(
        message, code="bad-value", hint="add a condition that leaves such values out"
    )
