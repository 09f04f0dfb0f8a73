"""The built-in operations, comparisons and aggregates, with their types.

They mean what Spark's ANSI SQL means by them: overflow and division by zero are errors, `/` is
never integer division, text compares by its UTF-8 bytes. An engine spells each one in its SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harken.values.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    NUMBER,
    NUMERIC,
    OBJECT,
    ORDERED,
    TEXT,
    TIMESTAMP,
    Hierarchy,
    Type,
)

COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
NEGATED_COMPARISON = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class Signature:
    arguments: tuple[Type, ...]
    result: Type


@dataclass(frozen=True, slots=True)
class Operation:
    """`symbol` is set for what is written between its arguments.

    `fallible` says that an argument can make it fail, so it must not run before the other
    conditions of its clause have held. `fixed` says that it is constant within a transaction,
    `resident` that only the resident engine has it yet.
    """

    name: str
    signatures: tuple[Signature, ...]
    symbol: str | None = None
    fallible: bool = False
    fixed: bool = False
    resident: bool = False

    def resolve(self, types: Sequence[Type], hierarchy: Hierarchy) -> Signature | None:
        """The first signature, exact ones first, that the argument types fit."""
        for fits in (lambda given, wanted: given == wanted, hierarchy.is_subtype):
            for signature in self.signatures:
                if len(signature.arguments) == len(types) and all(
                    fits(given, wanted)
                    for given, wanted in zip(types, signature.arguments, strict=True)
                ):
                    return signature
        return None


def _sig(*types: Type) -> Signature:
    return Signature(types[:-1], types[-1])


_TIME_PARTS = ("year", "month", "day")
_CLOCK_PARTS = ("hour", "minute", "second")
_PRINTABLE = (INTEGER, NUMBER, BOOLEAN, DATE, TIMESTAMP, TEXT)
_BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_right", "shift_right_unsigned")
_TRIMMING = ("trim_start", "trim_end", "trim_both")
_GROWING = ("shift_left", "integer_power")
_OF_A_NUMBER = (
    *("exp", "expm1", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "degrees", "radians", "cot"),
)
_LOGARITHMS = ("ln", "log2", "log10", "log1p")
_TRIED = ("try_add", "try_subtract", "try_multiply")
_OF_A_TEXT = ("soundex", "hex_of_text", "md5", "sha1")
_READ = {"spark_boolean": BOOLEAN, "spark_date": DATE, "spark_timestamp": TIMESTAMP}

_SQL_OPERATIONS = (
    Operation("regexp_like", (_sig(TEXT, TEXT, BOOLEAN),), fallible=True),
    Operation("regexp_replace", (_sig(TEXT, TEXT, TEXT, TEXT),), fallible=True),
    Operation("regexp_extract", (_sig(TEXT, TEXT, INTEGER, TEXT),), fallible=True),
    Operation("pad_start", (_sig(TEXT, INTEGER, TEXT, TEXT),), fallible=True),
    Operation("pad_end", (_sig(TEXT, INTEGER, TEXT, TEXT),), fallible=True),
    Operation("repeat", (_sig(TEXT, INTEGER, TEXT),), fallible=True),
    Operation("reverse", (_sig(TEXT, TEXT),)),
    Operation("initcap", (_sig(TEXT, TEXT),)),
    Operation("ascii", (_sig(TEXT, INTEGER),)),
    Operation("chr", (_sig(INTEGER, TEXT),), fallible=True),
    Operation("split_part", (_sig(TEXT, TEXT, INTEGER, TEXT),), fallible=True),
    Operation("translate", (_sig(TEXT, TEXT, TEXT, TEXT),)),
    Operation("overlay", (_sig(TEXT, TEXT, INTEGER, INTEGER, TEXT),)),
    Operation("position_from", (_sig(TEXT, TEXT, INTEGER, INTEGER),)),
    Operation("substring_index", (_sig(TEXT, TEXT, INTEGER, TEXT),)),
    *(Operation(name, (_sig(TEXT, TEXT, INTEGER),)) for name in ("find_in_set", "levenshtein")),
    *(Operation(name, (_sig(TEXT, TEXT),)) for name in _OF_A_TEXT),
    *(Operation(name, (_sig(TEXT, INTEGER),)) for name in ("octet_length", "crc32")),
    *(Operation(name, (_sig(INTEGER, TEXT),)) for name in ("hex_of_integer", "bin")),
    Operation("bit_count", (_sig(INTEGER, INTEGER),)),
    Operation("sha2", (_sig(TEXT, INTEGER, TEXT),)),
    *(
        Operation(name, (_sig(TEXT, TEXT, INTEGER),), fallible=True)
        for name in ("regexp_count", "regexp_instr")
    ),
    Operation("regexp_substr", (_sig(TEXT, TEXT, TEXT),), fallible=True),
    Operation("rint", (_sig(NUMBER, NUMBER),)),
    Operation("round_even", (_sig(NUMBER, INTEGER, NUMBER),), fallible=True),
    Operation("factorial", (_sig(INTEGER, INTEGER),)),
    Operation("make_date", (_sig(INTEGER, INTEGER, INTEGER, DATE),), fallible=True),
    Operation("next_day", (_sig(DATE, TEXT, DATE),), fallible=True),
    Operation("months_between", (_sig(TIMESTAMP, TIMESTAMP, NUMBER),)),
    Operation("whole_months", (_sig(TIMESTAMP, TIMESTAMP, INTEGER),)),
    Operation("date_format", (_sig(TIMESTAMP, TEXT, TEXT),), fallible=True),
    Operation("floor_timestamp", (_sig(TIMESTAMP, INTEGER, TIMESTAMP),)),
    Operation("read_moment", (_sig(TEXT, TEXT, TIMESTAMP),), fallible=True),
    Operation("try_read_moment", (_sig(TEXT, TEXT, TIMESTAMP),), fallible=True),
    Operation("make_timestamp", (_sig(*(INTEGER,) * 6, TIMESTAMP),), fallible=True),
    Operation("unix_micros", (_sig(TIMESTAMP, INTEGER),)),
    Operation("timestamp_micros", (_sig(INTEGER, TIMESTAMP),), fallible=True),
    Operation("conv", (_sig(TEXT, INTEGER, INTEGER, TEXT),), fallible=True),
    Operation("format_numeral", (_sig(TEXT, INTEGER, TEXT),), fallible=True),
    Operation("format_number", (_sig(NUMBER, INTEGER, TEXT),), fallible=True),
    Operation("width_bucket", (_sig(NUMBER, NUMBER, NUMBER, INTEGER, INTEGER),)),
    Operation("elt_place", (_sig(INTEGER, INTEGER, INTEGER),), fallible=True),
    *(Operation(name, (_sig(DATE, INTEGER),)) for name in ("iso_week", "iso_year")),
    Operation("shift_left_wrapping", (_sig(INTEGER, INTEGER, INTEGER),)),
    *(Operation(name, (_sig(NUMBER, NUMBER),), fallible=True) for name in _OF_A_NUMBER),
    *(Operation(name, (_sig(NUMBER, NUMBER),)) for name in _LOGARITHMS),
    Operation("log", (_sig(NUMBER, NUMBER, NUMBER),), fallible=True),
    Operation("hypot", (_sig(NUMBER, NUMBER, NUMBER),), fallible=True),
    Operation("atan2", (_sig(NUMBER, NUMBER, NUMBER),)),
    *(Operation(name, tuple(_sig(t, t, t) for t in (INTEGER, NUMBER))) for name in _TRIED),
    Operation("number_mod", (_sig(NUMBER, NUMBER, NUMBER),), fallible=True),
    Operation("try_divide", (_sig(NUMBER, NUMBER, NUMBER),)),
    Operation("try_to_integer", (_sig(NUMBER, INTEGER), _sig(TEXT, INTEGER))),
    Operation("try_to_number", (_sig(TEXT, NUMBER),)),
    *(Operation(name, (_sig(TEXT, result),), fallible=True) for name, result in _READ.items()),
    *(Operation(f"try_{name}", (_sig(TEXT, result),)) for name, result in _READ.items()),
    Operation("try_rescale", ()),
    Operation("try_to_decimal", ()),
)
"""Those that only SQL has."""

OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        Operation(
            "+",
            (
                _sig(INTEGER, INTEGER, INTEGER),
                _sig(DATE, INTEGER, DATE),
                _sig(NUMBER, NUMBER, NUMBER),
                _sig(TIMESTAMP, NUMBER, TIMESTAMP),
                _sig(TEXT, TEXT, TEXT),
            ),
            symbol="+",
        ),
        Operation(
            "-",
            (
                _sig(INTEGER, INTEGER, INTEGER),
                _sig(DATE, DATE, INTEGER),
                _sig(DATE, INTEGER, DATE),
                _sig(NUMBER, NUMBER, NUMBER),
                _sig(TIMESTAMP, TIMESTAMP, NUMBER),
                _sig(TIMESTAMP, NUMBER, TIMESTAMP),
            ),
            symbol="-",
        ),
        Operation("*", (_sig(INTEGER, INTEGER, INTEGER), _sig(NUMBER, NUMBER, NUMBER)), symbol="*"),
        Operation("/", (_sig(NUMBER, NUMBER, NUMBER),), symbol="/", fallible=True),
        Operation("div", (_sig(INTEGER, INTEGER, INTEGER),), fallible=True),
        Operation("mod", (_sig(INTEGER, INTEGER, INTEGER),), fallible=True),
        Operation("negate", (_sig(INTEGER, INTEGER), _sig(NUMBER, NUMBER))),
        Operation("widen", (_sig(INTEGER, NUMBER),)),
        Operation("||", (_sig(TEXT, TEXT, TEXT),), symbol="||"),
        Operation("abs", (_sig(INTEGER, INTEGER), _sig(NUMBER, NUMBER))),
        Operation("round", (_sig(NUMBER, INTEGER), _sig(NUMBER, INTEGER, NUMBER)), fallible=True),
        Operation("floor", (_sig(NUMBER, INTEGER),), fallible=True),
        Operation("ceiling", (_sig(NUMBER, INTEGER),), fallible=True),
        Operation("sqrt", (_sig(NUMBER, NUMBER),), fallible=True),
        Operation("power", (_sig(NUMBER, NUMBER, NUMBER),), fallible=True),
        Operation("upper", (_sig(TEXT, TEXT),)),
        Operation("lower", (_sig(TEXT, TEXT),)),
        Operation("trim", (_sig(TEXT, TEXT),)),
        *(Operation(name, (_sig(TEXT, TEXT, TEXT),)) for name in _TRIMMING),
        Operation("length", (_sig(TEXT, INTEGER),)),
        Operation("substring", (_sig(TEXT, INTEGER, TEXT), _sig(TEXT, INTEGER, INTEGER, TEXT))),
        Operation("concat", (_sig(TEXT, TEXT, TEXT), _sig(TEXT, TEXT, TEXT, TEXT))),
        Operation("replace", (_sig(TEXT, TEXT, TEXT, TEXT),)),
        Operation("position", (_sig(TEXT, TEXT, INTEGER),)),
        Operation("contains", (_sig(TEXT, TEXT, BOOLEAN),)),
        Operation("like", (_sig(TEXT, TEXT, BOOLEAN),)),
        Operation("to_string", tuple(_sig(given, TEXT) for given in _PRINTABLE)),
        Operation("to_integer", (_sig(NUMBER, INTEGER), _sig(TEXT, INTEGER)), fallible=True),
        Operation("read_numeral", (_sig(TEXT, INTEGER),), fallible=True),
        Operation("to_number", (_sig(NUMBER, NUMBER), _sig(TEXT, NUMBER)), fallible=True),
        Operation("now", (_sig(TIMESTAMP),), fixed=True),
        Operation("today", (_sig(DATE),), fixed=True),
        Operation("rand", (_sig(TEXT, NUMBER),), fixed=True),
        Operation("uuid", (_sig(TEXT, TEXT),), fixed=True),
        Operation("fraction", (_sig(TEXT, NUMBER),)),
        Operation("object_text", (_sig(OBJECT, TEXT),)),
        Operation("to_date", (_sig(TIMESTAMP, DATE), _sig(TEXT, DATE)), fallible=True),
        Operation("to_timestamp", (_sig(DATE, TIMESTAMP), _sig(TEXT, TIMESTAMP)), fallible=True),
        *(Operation(part, (_sig(DATE, INTEGER), _sig(TIMESTAMP, INTEGER))) for part in _TIME_PARTS),
        *(Operation(part, (_sig(TIMESTAMP, INTEGER),)) for part in _CLOCK_PARTS),
        *(
            Operation(
                f"is {comparison}",
                tuple(_sig(given, given, BOOLEAN) for given in sorted(ORDERED, key=str)),
                symbol=comparison,
            )
            for comparison in sorted(COMPARISONS)
        ),
        Operation("add_months", (_sig(DATE, INTEGER, DATE),), fallible=True),
        Operation("spark_text", (_sig(NUMBER, TEXT),)),
        *_SQL_OPERATIONS,
        *(Operation(name, (_sig(INTEGER, INTEGER, INTEGER),)) for name in _BITWISE),
        *(
            Operation(name, (_sig(INTEGER, INTEGER, INTEGER),), fallible=True, resident=True)
            for name in _GROWING
        ),
        Operation("bitwise_not", (_sig(INTEGER, INTEGER),)),
        Operation("to_unsigned", (_sig(INTEGER, INTEGER),), fallible=True, resident=True),
        Operation("matches_pattern", (_sig(TEXT, TEXT, BOOLEAN),), resident=True),
        Operation("symbol_ordinal", (_sig(TEXT, INTEGER),), resident=True),
        Operation("ambiguous", (_sig(TEXT, BOOLEAN),), fallible=True),
        Operation("rescale", (), fallible=True),
        Operation("to_decimal", (), fallible=True),
        Operation("and", (_sig(BOOLEAN, BOOLEAN, BOOLEAN),)),
        Operation("or", (_sig(BOOLEAN, BOOLEAN, BOOLEAN),)),
        Operation("not", (_sig(BOOLEAN, BOOLEAN),)),
        Operation("is null", tuple(_sig(given, BOOLEAN) for given in _PRINTABLE)),
        Operation("choose", tuple(_sig(BOOLEAN, given, given, given) for given in _PRINTABLE)),
        Operation("is among", ()),
        Operation("coalesce", tuple(_sig(given, given, given) for given in _PRINTABLE)),
    )
}

PRIVATE_OPERATIONS = frozenset(
    {"widen", "negate", "ambiguous", "+", "-", "*", "/", "||"}
    | {"rescale", "to_decimal", "add_months", "spark_text", *_TRIMMING}
    | {"and", "or", "not", "is null", "is among", "choose", "coalesce"}
    | {f"is {comparison}" for comparison in COMPARISONS}
    | {operation.name for operation in _SQL_OPERATIONS}
    | {*_BITWISE, *_GROWING, "bitwise_not", "to_unsigned", "matches_pattern", "symbol_ordinal"}
    | {"read_numeral", "rand", "uuid", "fraction", "object_text"}
)
"""Operations that have no name of their own in a program text."""


OF_ANY_TYPE = frozenset({"is null", "choose", "coalesce", "is =", "is !="})
"""Operations that objects may be arguments of, too."""


_NULL_INSTEAD = frozenset(
    {*_LOGARITHMS, "log", "factorial", "sha2", "regexp_substr"}
    | {"conv", "format_numeral", "format_number", "width_bucket"}
    | {op.name for op in _SQL_OPERATIONS if op.name.startswith("try_")}
)
"""Operations that are NULL where they have no value."""


def may_be_null(operation: str, arguments: Sequence[Type]) -> bool:
    """Can the result be NULL, given which arguments can?"""
    match operation:
        case "is null":
            return False
        case "coalesce":
            return all(each.nullable for each in arguments)
        case "choose":
            return any(each.nullable for each in arguments[1:])
    return operation in _NULL_INSTEAD or any(each.nullable for each in arguments)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`on_nothing` is its value over no rows; None means that it has none. `single value` is that
    of the only row, and fails if there are several: a query of SQL that stands for a value."""

    name: str
    result: Type | None
    accepts: frozenset[Type] | None
    on_nothing: int | bool | None

    def result_type(self, value: Type) -> Type:
        return self.result or value


_OF_NUMBERS = (
    *("var_samp", "var_pop", "stddev_samp", "stddev_pop", "percentile"),
    *("covar_samp", "covar_pop", "corr", "skewness", "kurtosis"),
    *("regr_slope", "regr_intercept", "regr_r2", "regr_sxx", "regr_syy", "regr_sxy"),
)
_OF_BITS = ("bit_and", "bit_or", "bit_xor")
_OF_ANYTHING = ("mode", "percentile_disc", "max_by", "min_by", "nth_value")
FOLDED = frozenset({*_OF_NUMBERS, *_OF_BITS, *_OF_ANYTHING, "listagg", "try_sum"})
"""Aggregates that only SQL has, which every engine computes in Python, from all of a group."""

AGGREGATES: dict[str, Aggregate] = {
    aggregate.name: aggregate
    for aggregate in (
        Aggregate("count", INTEGER, None, 0),
        Aggregate("sum", None, NUMERIC, 0),
        Aggregate("avg", NUMBER, NUMERIC, None),
        Aggregate("min", None, ORDERED, None),
        Aggregate("max", None, ORDERED, None),
        Aggregate("single value", None, None, None),
        Aggregate("some", BOOLEAN, None, False),
        Aggregate("notany", BOOLEAN, None, True),
        *(Aggregate(name, NUMBER, NUMERIC, None) for name in _OF_NUMBERS),
        *(Aggregate(name, INTEGER, frozenset({INTEGER}), None) for name in _OF_BITS),
        *(Aggregate(name, None, ORDERED, None) for name in _OF_ANYTHING),
        Aggregate("try_sum", None, NUMERIC, None),
        Aggregate("listagg", TEXT, frozenset({TEXT}), None),
    )
}

NAMED_AGGREGATES = AGGREGATES.keys() - FOLDED
"""Those that have a name in AMOSQL."""
