"""Operations as Spark SQL expressions, the same in a session with ANSI semantics and without.

Integers are computed with `try_add` and its kin: an overflow makes the whole NULL, and an
expression that is still `raw` is checked once, where its value is used. No value is NULL otherwise,
so what is NULL has overflowed. What Spark does not do exactly as the rest of Harken does (texts
into numbers, powers, letters in upper case) is done by the same Python functions as on SQLite.

A value that can fail is computed only behind `after(...)`: Spark moves no expression that it takes
for random, neither before a join nor before another condition.
"""

from __future__ import annotations

import datetime
import enum
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from harken.engines.spark import chance, dates
from harken.engines.spark.faults import raising, raising_ambiguity
from harken.ir.operations import OPERATIONS, may_be_null
from harken.ir.terms import Constant, Parameter
from harken.values.encoding import decode_date, decode_timestamp, encode
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
"""An expression longer than this gets a column of its own before it is written twice."""

LARGEST_NUMBER = "1.7976931348623157E308D"
END_OF_INTEGERS = "9.223372036854775808E18D"

TYPES = {
    INTEGER: "BIGINT",
    NUMBER: "DOUBLE",
    TEXT: "STRING",
    BOOLEAN: "BOOLEAN",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP_NTZ",
}


def spark_type(type_: Type) -> str:
    if is_decimal(type_):
        precision, scale = decimal_digits(type_)
        return f"DECIMAL({min(precision, 38)}, {scale})"
    return "BIGINT" if type_.surrogate else TYPES[type_]


HOLDS = "spark_partition_id() >= 0"


class Risk(enum.IntEnum):
    """Can evaluating an expression fail: never, where numbers grow too large, or readily?"""

    NONE = 0
    OVERFLOW = 1
    FAILURE = 2


@dataclass(frozen=True, slots=True)
class Sql:
    """SQL text with its type, the risk of evaluating it, and the sources it reads."""

    text: str
    type: Type
    raw: bool = False
    risk: Risk = Risk.NONE
    sources: frozenset[str] = frozenset()
    nulls: tuple[str, ...] = ()
    """Of a raw one, what it is computed of and may be NULL: then it is NULL, and not too large."""

    def checked(self) -> Sql:
        """The value, or an error where the arithmetic left the range of its type."""
        if not self.raw:
            return self
        check = _checked_decimal if is_decimal(self.type) else _checked_integer
        text = _CHECKS.get(self.type, check)(self.text)
        if self.nulls:
            missing = " OR ".join(f"{each} IS NULL" for each in self.nulls)
            text = f"CASE WHEN {missing} THEN NULL ELSE {text} END"
        return replace(self, text=text, raw=False, risk=max(self.risk, Risk.OVERFLOW), nulls=())

    @property
    def missing(self) -> tuple[str, ...]:
        """What makes it NULL."""
        if self.raw:
            return self.nulls
        return (self.text,) if self.type.nullable else ()


def _checked_integer(x: str) -> str:
    return f"coalesce({x}, {raising('overflow')})"


def _checked_decimal(x: str) -> str:
    return f"coalesce({x}, {raising('decimal-overflow')})"


def _checked_number(x: str) -> str:
    fits = f"abs({x}) <= {LARGEST_NUMBER}"
    return f"CASE WHEN {fits} THEN {x} ELSE {raising('number-overflow')} END"


def _checked_date(x: str) -> str:
    fits = f"{x} BETWEEN DATE'0001-01-01' AND DATE'9999-12-31'"
    return f"CASE WHEN {fits} THEN {x} ELSE {raising('date-overflow')} END"


def _checked_timestamp(x: str) -> str:
    first, last = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
    fits = f"{x} BETWEEN TIMESTAMP_NTZ'{first}' AND TIMESTAMP_NTZ'{last}'"
    return f"CASE WHEN {fits} THEN {x} ELSE {raising('timestamp-overflow')} END"


_CHECKS = {NUMBER: _checked_number, DATE: _checked_date, TIMESTAMP: _checked_timestamp}


def after(text: str, otherwise: str = "NULL") -> str:
    """The value of an expression, computed where it stands and nowhere before.

    The test always holds. Spark may not know: it sees through `rand(0) >= 0`.
    """
    return f"CASE WHEN {HOLDS} THEN {text} ELSE {otherwise} END"


# --- values --------------------------------------------------------------------------------

_PLAIN = re.compile(r"[A-Za-z0-9 _.,;:+*/=<>()-]*")


def literal(value: Any, type_: Type) -> str:
    """A value as Spark reads it, whatever the session says about quotes and time zones."""
    if value is None:
        return f"CAST(NULL AS {spark_type(type_)})"
    if is_decimal(type_):
        return f"CAST('{value:f}' AS {spark_type(type_)})"
    stored = encode(value, type_)
    match type_:
        case _ if type_.surrogate or type_ == INTEGER:
            return f"{stored}L" if stored >= 0 else f"({stored}L)"  # type: ignore[operator]
        case _ if type_ == NUMBER:
            return f"{stored!r}D" if not str(stored).startswith("-") else f"({stored!r}D)"
        case _ if type_ == BOOLEAN:
            return "true" if stored else "false"
        case _ if type_ == DATE:
            return f"DATE'{decode_date(stored).isoformat()}'"  # type: ignore[arg-type]
        case _ if type_ == TIMESTAMP:
            moment = decode_timestamp(stored)  # type: ignore[arg-type]
            return f"TIMESTAMP_NTZ'{moment.replace(tzinfo=None).isoformat(sep=' ')}'"
    return text_literal(str(stored))


def text_literal(text: str) -> str:
    """In quotes only if nothing in it could mean anything else to a parser."""
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def constant(term: Constant) -> Sql:
    return Sql(literal(term.value, term.type), term.type.or_null(term.value is None))


def placeholder(parameter: Parameter) -> str:
    """Where the value of a parameter goes when the query is run."""
    return f"⟦{parameter.index} {parameter.type.name}⟧"


NOW, TODAY = "⟦now⟧", "⟦today⟧"


def quote(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


# --- operations ----------------------------------------------------------------------------


def operation(name: str, arguments: tuple[Sql, ...], result: Type) -> Sql:
    """The expression of an operation applied to its arguments."""
    own = Risk.FAILURE if OPERATIONS[name].fallible else Risk.NONE
    risk = max((own, *(argument.risk for argument in arguments)))
    sources = frozenset[str]().union(*(argument.sources for argument in arguments))
    types = tuple(argument.type for argument in arguments)
    result = result.or_null(may_be_null(name, types))
    nulls = tuple(dict.fromkeys(each for argument in arguments for each in argument.missing))
    if is_decimal(result) or any(map(is_decimal, types)):
        made = _decimal(name, tuple(argument.checked().text for argument in arguments), result)
        if made is not None:
            # What does not fit is NULL, and what is NULL has not fitted, unless something was.
            raw = is_decimal(result) and not name.startswith("try_")
            return Sql(made, result, raw, max(risk, Risk.OVERFLOW), sources, nulls if raw else ())
    arithmetic = _ARITHMETIC.get((name, types))
    if arithmetic is not None:
        text = arithmetic(*(argument.text for argument in arguments))
        return Sql(text, result, True, max(risk, Risk.OVERFLOW), sources, nulls)
    given = [argument.checked() for argument in arguments]
    if name == "ambiguous":
        # It stands for a value of any type, which there never is.
        text = f"CAST({raising_ambiguity(given[0].text)} AS {spark_type(result)})"
        return Sql(text, result, risk=risk, sources=sources)
    risk = max((risk, *(argument.risk for argument in given)))
    native = _NATIVE.get((name, types)) or _NATIVE.get((name, None))
    if native is None:
        text = _by_python(function_name(name, types), [argument.text for argument in given])
        return Sql(text, result, risk=risk, sources=sources)
    raw = name in _CAN_OVERFLOW and result != TEXT
    text = native(*(argument.text for argument in given))
    if name in ("/", "div", "mod") and types[0].nullable:
        text = f"CASE WHEN {given[0].text} IS NULL THEN NULL ELSE {text} END"
    if name == "substring" and any(each.nullable for each in types[1:]):
        # Where a place is NULL, so is the text: `least` and `greatest` take what is there.
        places = (each.text for each in given[1:] if each.type.nullable)
        missing = " OR ".join(f"{place} IS NULL" for place in places)
        text = f"CASE WHEN {missing} THEN NULL ELSE {text} END"
    grown = max(risk, Risk.OVERFLOW) if raw else risk
    return Sql(text, result, raw, grown, sources, nulls if raw else ())


def _decimal(name: str, given: tuple[str, ...], result: Type) -> str | None:
    """What is done to decimals, which Spark has itself; None for what is done to all alike."""
    wanted = spark_type(result)
    match name:
        case "rescale" | "to_decimal":
            return f"try_cast({given[0]} AS {wanted})"
        case "try_rescale" | "try_to_decimal":
            return f"try_cast({given[0]} AS {wanted})"
        case "try_add" | "try_subtract" | "try_multiply" | "try_divide":
            return f"try_cast({name}({', '.join(given)}) AS {wanted})"
        case "+" | "-" | "*":
            function = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}[name]
            return f"try_cast({function}({', '.join(given)}) AS {wanted})"
        case "/":
            zero = raising("division-by-zero")
            whole = f"try_cast(try_divide({given[0]}, {given[1]}) AS {wanted})"
            return f"CASE WHEN {given[1]} = 0 THEN {zero} ELSE {whole} END"
        case "div":
            zero = raising("division-by-zero")
            return f"CASE WHEN {given[1]} = 0 THEN {zero} ELSE {given[0]} div {given[1]} END"
        case "negate":
            return f"try_cast(try_subtract(0, {given[0]}) AS {wanted})"
        case "abs":
            return f"try_cast(abs({given[0]}) AS {wanted})"
        case "to_number" | "to_integer" | "to_string":
            return f"CAST({given[0]} AS {wanted})"
    return None


def function_name(name: str, types: tuple[Type, ...]) -> str:
    """The name of a built-in among the functions of `harken.values.builtin_functions`."""
    return "_".join((name, *(type_.name for type_ in types))) if name in _BY_TYPE else name


def python_name(function: str, arguments: int) -> str:
    return f"harken_{function}_{arguments}"


def _by_python(function: str, given: list[str]) -> str:
    return by_python(python_name(function, len(given)), given)


def fold_name(aggregate: str, result: Type) -> str:
    """The Python function that gives an aggregate of a whole group."""
    return f"harken_fold_{aggregate}__{'_'.join(re.findall('[a-z0-9]+', result.name))}"


def by_python(name: str, given: list[str]) -> str:
    """Spark runs Python functions ahead of the rows that need them, so they return their errors."""
    call = f"{name}({', '.join(given)})"
    return f"CASE WHEN {call}.e IS NULL THEN {call}.v ELSE raise_error({call}.e) END"


_CAN_OVERFLOW = frozenset({"+", "-", "/", "div", "abs"})

_BY_TYPE = frozenset(
    {"to_string", "to_integer", "to_number", "to_date", "to_timestamp"}
    | {"try_to_integer", "try_to_number"}
)


def _call(function: str) -> Callable[..., str]:
    return lambda *given: f"{function}({', '.join(given)})"


def _infix(symbol: str) -> Callable[..., str]:
    return lambda a, b: f"({a} {symbol} {b})"


def _whole(text: Callable[..., str]) -> Callable[..., str]:
    """Spark counts with 32 bits where we have 64."""
    return lambda *given: f"CAST({text(*given)} AS BIGINT)"


_ARITHMETIC: dict[tuple[str, tuple[Type, ...]], Callable[..., str]] = {
    ("+", (INTEGER, INTEGER)): _call("try_add"),
    ("-", (INTEGER, INTEGER)): _call("try_subtract"),
    ("*", (INTEGER, INTEGER)): _call("try_multiply"),
    ("negate", (INTEGER,)): lambda a: f"try_subtract(0L, {a})",
    **{(symbol, (NUMBER, NUMBER)): _infix(symbol) for symbol in "+-*"},
    ("negate", (NUMBER,)): lambda a: f"(- {a})",
}


def _divide(a: str, b: str) -> str:
    return f"CASE WHEN {b} = 0D THEN {raising('division-by-zero')} ELSE {a} / {b} END"


def _div(a: str, b: str) -> str:
    zero = raising("division-by-zero")
    return (
        f"CASE WHEN {b} = 0L THEN {zero} WHEN {b} = -1L THEN try_subtract(0L, {a}) "
        f"ELSE {a} DIV {b} END"
    )


def _mod(a: str, b: str) -> str:
    zero = raising("division-by-zero")
    return f"CASE WHEN {b} = 0L THEN {zero} WHEN {b} = -1L THEN 0L ELSE {a} % {b} END"


def _to_integer(rounded: str) -> Callable[..., str]:
    """A number that is at least 2**52 is whole, so rounding does not make one too large."""

    def text(x: str) -> str:
        fits = f"{x} >= -{END_OF_INTEGERS} AND {x} < {END_OF_INTEGERS}"
        whole, missing = rounded.format(x=x), f"WHEN {x} IS NULL THEN NULL"
        fault = raising("overflow")
        return f"CASE WHEN {fits} THEN CAST({whole} AS BIGINT) {missing} ELSE {fault} END"

    return text


def _sqrt(x: str) -> str:
    return f"CASE WHEN {x} < 0D THEN {raising('negative-root')} ELSE sqrt({x}) END"


def _like(text: str, pattern: str) -> str:
    """Spark refuses a backslash before an ordinary character; everyone else takes it away."""
    escapes, alone = text_literal(r"(?s)(\\[%_\\])|\\(.)"), text_literal(r"(?s)^([^\\]|\\.)*\\$")
    kept = text_literal("$1$2")
    return (
        f"(CASE WHEN {pattern} RLIKE {alone} THEN false "
        f"ELSE {text} LIKE regexp_replace({pattern}, {escapes}, {kept}) END)"
    )


_SMALL = re.compile(r"\d{1,9}L|\(-\d{1,9}L\)")


def _substring(text: str, start: str, length: str | None = None) -> str:
    """Spark counts characters with 32 bits, so large positions are first brought into the text."""
    given = [start] if length is None else [start, length]
    if all(_SMALL.fullmatch(each) for each in given):
        return f"substring({text}, {', '.join(f'CAST({each} AS INT)' for each in given)})"
    size = f"char_length({text})"
    counted = f"CASE WHEN {start} > 0L THEN {start} - 1L ELSE {size} + {start} END"
    begin = f"(CASE WHEN {start} = 0L THEN 0L ELSE {counted} END)"
    if length is None:
        end = size
    else:
        beyond = f"CASE WHEN {length} > 0L THEN {size} ELSE 0 END"
        end = f"coalesce(try_add({begin}, {length}), {beyond})"
    first = f"CAST(least(greatest({begin}, 0L), {size}) AS INT)"
    last = f"CAST(least(greatest({end}, 0L), {size}) AS INT)"
    return f"substring({text}, {first} + 1, greatest({last} - {first}, 0))"


def _shift(function: str) -> Callable[..., str]:
    """By the last six bits of a number: Spark counts them with 32."""
    return lambda a, b: f"{function}({a}, CAST(pmod({b}, 64L) AS INT))"


def _as(type_: Type) -> Callable[..., str]:
    return lambda a: f"CAST({a} AS {spark_type(type_)})"


def _same(a: str) -> str:
    return a


_TRIED = ("add", "subtract", "multiply")

_NATIVE: dict[tuple[str, tuple[Type, ...] | None], Callable[..., str]] = {
    ("+", (DATE, INTEGER)): dates.days(""),
    ("-", (DATE, INTEGER)): dates.days("-"),
    ("-", (DATE, DATE)): _whole(_call("datediff")),
    ("add_months", None): dates.months,
    ("+", (TIMESTAMP, NUMBER)): dates.seconds("+"),
    ("-", (TIMESTAMP, NUMBER)): dates.seconds("-"),
    ("-", (TIMESTAMP, TIMESTAMP)): dates.between_timestamps,
    ("unix_micros", None): lambda a: dates.micros_since(a, "TIMESTAMP_NTZ'1970-01-01 00:00:00'"),
    ("||", None): _call("concat"),
    ("+", (TEXT, TEXT)): _call("concat"),
    ("concat", None): _call("concat"),
    ("/", None): _divide,
    ("div", None): _div,
    ("mod", None): _mod,
    ("widen", None): _as(NUMBER),
    ("length", None): _whole(_call("char_length")),
    ("abs", (INTEGER,)): lambda a: f"(CASE WHEN {a} < 0L THEN try_subtract(0L, {a}) ELSE {a} END)",
    ("abs", (NUMBER,)): _call("abs"),
    ("floor", None): _to_integer("floor({x})"),
    ("ceiling", None): _to_integer("ceil({x})"),
    ("round", (NUMBER,)): _to_integer("round({x}, 0)"),
    ("sqrt", None): _sqrt,
    ("bitwise_and", None): _infix("&"),
    ("bitwise_or", None): _infix("|"),
    ("bitwise_xor", None): _infix("^"),
    ("bitwise_not", None): lambda a: f"(~ {a})",
    ("shift_left_wrapping", None): _shift("shiftleft"),
    ("shift_right", None): _shift("shiftright"),
    ("shift_right_unsigned", None): _shift("shiftrightunsigned"),
    **{(f"try_{name}", (INTEGER, INTEGER)): _call(f"try_{name}") for name in _TRIED},
    ("reverse", None): _call("reverse"),
    ("trim", None): lambda a: f"trim(BOTH ' ' FROM {a})",
    ("trim_start", None): lambda a, b: f"trim(LEADING {b} FROM {a})",
    ("trim_end", None): lambda a, b: f"trim(TRAILING {b} FROM {a})",
    ("trim_both", None): lambda a, b: f"trim(BOTH {b} FROM {a})",
    ("substring", None): _substring,
    ("like", None): _like,
    ("replace", None): _call("replace"),
    ("contains", None): _call("contains"),
    ("position", None): _whole(_call("locate")),
    ("to_string", (TEXT,)): _same,
    ("to_string", (INTEGER,)): _as(TEXT),
    ("to_string", (BOOLEAN,)): _as(TEXT),
    ("to_string", (DATE,)): _as(TEXT),
    ("to_string", (TIMESTAMP,)): _as(TEXT),
    ("to_integer", (NUMBER,)): _to_integer("{x}"),
    ("to_number", (NUMBER,)): _same,
    ("to_date", (TIMESTAMP,)): _as(DATE),
    ("to_timestamp", (DATE,)): _as(TIMESTAMP),
    ("now", None): lambda: NOW,
    ("today", None): lambda: TODAY,
    ("rand", None): lambda text: chance.fraction(chance.drawn(NOW, text)),
    ("uuid", None): lambda text: chance.uuid(chance.drawn(NOW, text)),
    ("object_text", None): _as(TEXT),
    ("fraction", None): lambda text: chance.fraction(f"md5({text})"),
    **{
        (part, None): _whole(_call(part))
        for part in ("year", "month", "day", "hour", "minute", "second")
    },
    **{(f"is {op}", None): _infix(op) for op in ("=", "!=", "<", "<=", ">", ">=")},
    ("and", None): _infix("AND"),
    ("or", None): _infix("OR"),
    ("not", None): lambda a: f"(NOT {a})",
    ("is null", None): lambda a: f"({a} IS NULL)",
    ("is among", None): lambda a, *others: f"({a} IN ({', '.join(others)}))",
    ("choose", None): lambda test, a, b: f"(CASE WHEN {test} THEN {a} ELSE {b} END)",
    ("coalesce", None): _call("coalesce"),
}


def fixed_time(now: datetime.datetime) -> dict[str, str]:
    """What `now` and `today` are while a query runs."""
    return {NOW: literal(now, TIMESTAMP), TODAY: literal(now.date(), DATE)}
