"""Operations as SQLite expressions that mean what Spark's ANSI SQL means.

SQLite turns an integer overflow into a real and a division by zero into NULL. So an integer
expression stays `raw` while it is only added, subtracted or multiplied (an overflow inside it
makes the whole a real), and is checked once where its value is used. A number that grows past all
bounds becomes infinite, and then nothing at all (NULL); the same check stops it.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass

from harken.engines.sqlite.table_names import stored_name
from harken.ir.operations import OPERATIONS, may_be_null
from harken.ir.terms import Constant
from harken.values.encoding import encode
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

LONG = 400
"""Expressions longer than this, in characters, are not repeated in the text: a function checks
them."""

INTEGER_DIGITS = 19
LARGEST_NUMBER = "1.7976931348623157e308"


class Risk(enum.IntEnum):
    """Can evaluating an expression fail: never, only by overflow, or readily?

    Whether an aggregate has a value is tested between overflow and the readily failing ones.
    """

    NONE = 0
    OVERFLOW = 1
    PRESENCE = 2
    FAILURE = 3


@dataclass(frozen=True, slots=True)
class Sql:
    """SQL text with its type, and the risk of evaluating it."""

    text: str
    type: Type
    raw: bool = False
    risk: Risk = Risk.NONE
    asks: bool = False
    """Does it read other tables?"""
    equation: tuple[str, str, str] | None = None
    """Of an equation: its sides, with `=` or `IS` between them."""

    def checked(self) -> Sql:
        """The value, or an error where the arithmetic left the range of its type."""
        if not self.raw:
            return self
        x = self.text
        if len(x) > LONG:
            kind = _kind(self.type)
            if self.type.nullable:
                kind += "_or_null"
            return Sql(f"harken_checked_{kind}({x})", self.type, risk=max(self.risk, Risk.OVERFLOW))
        if self.type == NUMBER:
            test = f"CASE WHEN {x} BETWEEN -{LARGEST_NUMBER} AND {LARGEST_NUMBER} THEN {x}"
            if self.type.nullable:
                test += f" WHEN {x} IS NULL THEN NULL"
        else:
            test = f"CASE typeof({x}) WHEN 'integer' THEN {x}"
            if self.type.nullable:
                test += " WHEN 'null' THEN NULL"
        kind = _kind(self.type)
        failure = "harken_overflow" if kind == "integer" else f"harken_{kind}_overflow"
        risk = max(self.risk, Risk.OVERFLOW)
        return Sql(f"({test} ELSE {failure}() END)", self.type, risk=risk)

    def or_passed(self) -> Sql:
        """A test that passes where its arithmetic left the range of its type."""
        if self.risk is Risk.NONE:
            return self
        if "harken_checked_" in self.text:
            return Sql("1", self.type, risk=self.risk)
        text = _OVERFLOWS.sub("NULL", self.text)
        return Sql(f"coalesce({text}, 1)", self.type, risk=self.risk)


_OVERFLOWS = re.compile(r"harken_(number_|decimal_)?overflow\(\)")


def _kind(type_: Type) -> str:
    """The word for what overflowed, in error messages."""
    if is_decimal(type_):
        return "decimal"
    return "number" if type_ == NUMBER else "integer"


def constant(term: Constant) -> Sql:
    if term.value is None:
        return Sql("NULL", term.type.or_null())
    value = encode(term.value, term.type)
    if isinstance(value, str):
        escaped = value.replace("'", "''")
        return Sql(f"'{escaped}'", term.type)
    return Sql(repr(value), term.type)


def quote(name: str) -> str:
    escaped = stored_name(name).replace('"', '""')
    return f'"{escaped}"'


def literal_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def operation(name: str, arguments: tuple[Sql, ...], result: Type) -> Sql:
    """The expression of an operation applied to its arguments."""
    own = Risk.FAILURE if OPERATIONS[name].fallible else Risk.NONE
    risk = max(own, *(argument.risk for argument in arguments), Risk.NONE)
    types = tuple(argument.type for argument in arguments)
    result = result.or_null(may_be_null(name, types))
    if is_decimal(result) or any(map(is_decimal, types)):
        made = _decimal(name, arguments, result, risk)
        if made is not None:
            return made
        types = tuple(INTEGER if is_decimal(each) else each for each in types)
    arithmetic = _ARITHMETIC.get((name, types))
    if arithmetic is not None:
        text = arithmetic(*(argument.text for argument in arguments))
        return Sql(_unless_null(name, arguments, text), result, raw=True, risk=risk)
    given = [argument.checked().text for argument in arguments]
    native = _NATIVE.get((name, types)) or _NATIVE.get((name, None))
    if name == "replace" and types[2].nullable and not _is_some_text(given[1]):
        native = None  # SQLite returns the text unchanged if the replacement is NULL
    if native is not None:
        overflows = name in _CAN_OVERFLOW and result != TEXT
        text = native(*given)
        if name in ("/", "div", "mod") and types[0].nullable and len(given[0]) <= LONG:
            text = f"(CASE WHEN {given[0]} IS NULL THEN NULL ELSE {text} END)"
        return Sql(_unless_null(name, arguments, text), result, raw=overflows, risk=risk)
    suffix = "".join(f"_{type_.name}" for type_ in types) if name in _BY_TYPE else ""
    return Sql(f"harken_{name}{suffix}({', '.join(given)})", result, risk=risk)


NULL_DECIDES = frozenset({"+", "-", "*", "||", "like", "is among"}) | {
    f"is {each}" for each in ("=", "!=", "<", "<=", ">", ">=")
}
"""Operations that are NULL if their first argument is NULL: as in Spark, the other arguments are
not evaluated then."""


def _unless_null(name: str, arguments: tuple[Sql, ...], text: str) -> str:
    """The same, without another argument's failure where the first is NULL."""
    first, *others = arguments
    may_fail = any(each.risk is Risk.FAILURE for each in others)
    given = first.checked().text
    if not (may_fail and name in NULL_DECIDES and first.type.nullable) or len(given) > LONG:
        return text
    return f"(CASE WHEN {given} IS NULL THEN NULL ELSE {text} END)"


def _is_some_text(text: str) -> bool:
    """Is it a non-empty literal?"""
    return text.startswith("'") and text != "''"


def compare(operator: str, left: Sql, right: Sql) -> Sql:
    """Equality and inequality are defined for NULL as well: see `Comparison`."""
    left, right = left.checked(), right.checked()
    if operator == "=" and left.type.nullable and right.type.nullable:
        operator = "IS"
    elif operator == "!=" and (left.type.nullable or right.type.nullable):
        operator = "IS NOT"
    parts = left.text, operator, right.text
    equation = parts if operator in ("=", "IS") else None
    risk = max(left.risk, right.risk)
    return Sql(" ".join(parts), BOOLEAN, risk=risk, equation=equation)


def _decimal(name: str, arguments: tuple[Sql, ...], result: Type, risk: Risk) -> Sql | None:
    """Operations on decimals that differ from those on integers; sums, differences and products
    work on units."""
    given = [argument.checked().text for argument in arguments]
    scales = [decimal_digits(a.type)[1] if is_decimal(a.type) else 0 for a in arguments]
    scale = decimal_digits(result)[1] if is_decimal(result) else 0
    match name:
        case "rescale":
            shift = scale - scales[0]
            if shift >= 0:
                made = Sql(f"({given[0]} * {10**shift})", result, raw=True, risk=risk)
            else:
                made = Sql(f"harken_rescale({given[0]}, {shift})", result, risk=risk)
            return _of_digits(made) if _is_narrower(result, arguments[0].type) else made
        case "to_decimal":
            kind = arguments[0].type.name
            text = f"harken_to_decimal_{kind}({given[0]}, {scale})"
            return _of_digits(Sql(text, result, risk=risk))
        case "/":
            shift = scale - scales[0] + scales[1]
            text = f"harken_decimal_divide({given[0]}, {given[1]}, {shift})"
            return Sql(text, result, risk=risk)
        case "try_to_decimal":
            precision, kind = decimal_digits(result)[0], arguments[0].type.name
            text = f"harken_try_to_decimal_{kind}({given[0]}, {scale}, {precision})"
            return Sql(text, result, risk=risk)
        case "try_rescale":
            shift, precision = scale - scales[0], decimal_digits(result)[0]
            return Sql(f"harken_try_rescale({given[0]}, {shift}, {precision})", result, risk=risk)
        case "try_divide":
            shift = scale - scales[0] + scales[1]
            text = f"harken_try_decimal_divide({given[0]}, {given[1]}, {shift})"
            return Sql(text, result, risk=risk)
        case "to_number":
            return Sql(f"(CAST({given[0]} AS REAL) / {10 ** scales[0]}.0)", result, risk=risk)
        case "to_integer" | "to_string":
            return Sql(f"harken_{name}_decimal({given[0]}, {scales[0]})", result, risk=risk)
    return None


def _is_narrower(type_: Type, than: Type) -> bool:
    """Has the type fewer digits before the point than the other, or as many while rounding may
    need one more?"""
    precision, scale = decimal_digits(type_)
    others, behind = decimal_digits(than) if is_decimal(than) else (INTEGER_DIGITS, 0)
    before, before_then = precision - scale, others - behind
    return before < before_then or (before == before_then and scale < behind)


def _of_digits(made: Sql) -> Sql:
    """The decimal, or an error where it has more digits than its type."""
    precision = decimal_digits(made.type)[0]
    if precision >= INTEGER_DIGITS:  # what is stored has no more
        return made
    text = f"harken_rescale_checked({made.checked().text}, {precision})"
    return Sql(text, made.type, risk=made.risk)


_CAN_OVERFLOW = frozenset({"+", "-", "/", "div", "abs"})

_BY_TYPE = frozenset(
    {"to_string", "to_integer", "to_number", "to_date", "to_timestamp"}
    | {"try_to_integer", "try_to_number"}
    | {"year", "month", "day", "hour", "minute", "second"}
)
"""Operations whose registered function depends on the types of its arguments."""


def _infix(symbol: str) -> Callable[..., str]:
    return lambda a, b: f"({a} {symbol} {b})"


_ARITHMETIC: dict[tuple[str, tuple[Type, ...]], Callable[..., str]] = {
    (symbol, (type_, type_)): _infix(symbol) for symbol in "+-*" for type_ in (INTEGER, NUMBER)
} | {
    ("negate", (INTEGER,)): lambda a: f"(0 - {a})",
    ("negate", (NUMBER,)): lambda a: f"(- {a})",
}


def _divide(symbol: str, function: str) -> Callable[..., str]:
    def text(a: str, b: str) -> str:
        if len(b) > LONG or len(a) > LONG:
            return f'"harken_checked_{function}"({a}, {b})'
        return f"(CASE WHEN {b} = 0 THEN harken_division_by_zero() ELSE {a} {symbol} {b} END)"

    return text


def _absolute(a: str) -> str:
    if len(a) > LONG:
        return f"harken_checked_abs({a})"
    return f"(CASE WHEN {a} < 0 THEN 0 - {a} ELSE {a} END)"


def _seconds(symbol: str) -> Callable[..., str]:
    return lambda a, b: f"({a} {symbol} CAST(round({b} * 1000000) AS INTEGER))"


_NATIVE: dict[tuple[str, tuple[Type, ...] | None], Callable[..., str]] = {
    ("object_text", None): lambda a: f"CAST({a} AS TEXT)",
    ("+", (DATE, INTEGER)): _infix("+"),
    ("-", (DATE, INTEGER)): _infix("-"),
    ("-", (DATE, DATE)): _infix("-"),
    ("+", (TIMESTAMP, NUMBER)): _seconds("+"),
    ("-", (TIMESTAMP, NUMBER)): _seconds("-"),
    ("-", (TIMESTAMP, TIMESTAMP)): lambda a, b: f"(({a} - {b}) / 1000000.0)",
    ("bitwise_and", None): _infix("&"),
    ("bitwise_or", None): _infix("|"),
    ("bitwise_not", None): lambda a: f"(~ {a})",
    ("||", None): _infix("||"),
    ("+", (TEXT, TEXT)): _infix("||"),
    ("concat", None): lambda *given: "(" + " || ".join(given) + ")",
    ("/", None): _divide("/", "/"),
    ("div", None): _divide("/", "div"),
    ("mod", None): _divide("%", "mod"),
    ("widen", None): lambda a: f"CAST({a} AS REAL)",
    ("length", None): lambda a: f"length({a})",
    ("abs", (INTEGER,)): _absolute,
    ("abs", (NUMBER,)): lambda a: f"abs({a})",
    ("like", None): lambda a, b: f"({a} LIKE {b} ESCAPE '\\')",
    ("replace", None): lambda a, b, c: f"replace({a}, {b}, {c})",
    ("contains", None): lambda a, b: f"(instr({a}, {b}) > 0)",
    ("position", None): lambda a, b: f"instr({b}, {a})",
    **{(f"is {op}", None): _infix(op) for op in ("=", "!=", "<", "<=", ">", ">=")},
    ("and", None): _infix("AND"),
    ("or", None): _infix("OR"),
    ("not", None): lambda a: f"(NOT {a})",
    ("is null", None): lambda a: f"({a} IS NULL)",
    ("is among", None): lambda a, *others: f"({a} IN ({', '.join(others)}))",
    ("choose", None): lambda test, a, b: f"(CASE WHEN {test} THEN {a} ELSE {b} END)",
    ("coalesce", None): lambda a, b: f"coalesce({a}, {b})",
}
