"""Functions and operators that map to one operation each, with the types of their arguments.

Arguments are converted implicitly as in Spark: a number becomes a text where a text is expected, an
integer or a decimal a double where a double is expected.
"""

from __future__ import annotations

import math

from sqlglot import exp

from harken.lang.sql.function_rewrites import fill_template
from harken.values.types import DATE, INTEGER, NUMBER, TEXT, TIMESTAMP, Type

Call = tuple[str, list[exp.Expr], tuple[Type, ...]]

_OF_A_NUMBER = (
    *(exp.Exp, exp.Ln, exp.Cbrt, exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Sinh),
    *(exp.Cosh, exp.Tanh, exp.Asinh, exp.Acosh, exp.Atanh, exp.Cot, exp.Degrees, exp.Radians),
    exp.Sqrt,
)
_BITS = (INTEGER, INTEGER)
_NUMBERS = (NUMBER, NUMBER)
_PAIR = ("this", "expression")
CALLS: dict[type[exp.Expr], tuple[str, tuple[str, ...], tuple[Type, ...]]] = {
    **{each: (each.__name__.lower(), ("this",), (NUMBER,)) for each in _OF_A_NUMBER},
    exp.Pow: ("power", _PAIR, _NUMBERS),
    exp.Log: ("log", _PAIR, _NUMBERS),
    exp.Atan2: ("atan2", _PAIR, _NUMBERS),
    exp.BitwiseAnd: ("bitwise_and", _PAIR, _BITS),
    exp.BitwiseOr: ("bitwise_or", _PAIR, _BITS),
    exp.BitwiseXor: ("bitwise_xor", _PAIR, _BITS),
    exp.BitwiseNot: ("bitwise_not", ("this",), (INTEGER,)),
    exp.BitwiseLeftShift: ("shift_left_wrapping", _PAIR, _BITS),
    exp.BitwiseRightShift: ("shift_right", _PAIR, _BITS),
    exp.RegexpLike: ("regexp_like", _PAIR, (TEXT, TEXT)),
    exp.RegexpReplace: ("regexp_replace", (*_PAIR, "replacement"), (TEXT, TEXT, TEXT)),
    exp.RegexpExtract: ("regexp_extract", (*_PAIR, "group"), (TEXT, TEXT, INTEGER)),
    exp.RegexpCount: ("regexp_count", _PAIR, (TEXT, TEXT)),
    exp.RegexpInstr: ("regexp_instr", _PAIR, (TEXT, TEXT)),
    exp.RegexpSubstr: ("regexp_substr", _PAIR, (TEXT, TEXT)),
    exp.Translate: ("translate", ("this", "from_", "to"), (TEXT, TEXT, TEXT)),
    exp.SubstringIndex: ("substring_index", ("this", "delimiter", "count"), (TEXT, TEXT, INTEGER)),
    exp.Levenshtein: ("levenshtein", _PAIR, (TEXT, TEXT)),
    exp.Soundex: ("soundex", ("this",), (TEXT,)),
    exp.MD5: ("md5", ("this",), (TEXT,)),
    exp.SHA: ("sha1", ("this",), (TEXT,)),
    exp.SHA2: ("sha2", ("this", "length"), (TEXT, INTEGER)),
    exp.BitwiseCount: ("bit_count", ("this",), (INTEGER,)),
    exp.Rint: ("rint", ("this",), (NUMBER,)),
    exp.Factorial: ("factorial", ("this",), (INTEGER,)),
    exp.NextDay: ("next_day", _PAIR, (DATE, TEXT)),
    exp.MonthsBetween: ("months_between", _PAIR, (TIMESTAMP, TIMESTAMP)),
    exp.WeekOfYear: ("iso_week", ("this",), (DATE,)),
    exp.Reverse: ("reverse", ("this",), (TEXT,)),
    exp.Repeat: ("repeat", ("this", "times"), (TEXT, INTEGER)),
    exp.Ascii: ("ascii", ("this",), (TEXT,)),
    exp.SplitPart: (
        "split_part",
        ("this", "delimiter", "part_index"),
        (TEXT, TEXT, INTEGER),
    ),
}
NAMED: dict[str, tuple[str, tuple[Type, ...]]] = {
    **{name: (name, (NUMBER,)) for name in ("log2", "log10", "log1p", "expm1")},
    "hypot": ("hypot", _NUMBERS),
    "shiftleft": ("shift_left_wrapping", _BITS),
    "shiftright": ("shift_right", _BITS),
    "shiftrightunsigned": ("shift_right_unsigned", _BITS),
    "regexp": ("regexp_like", (TEXT, TEXT)),
    "octet_length": ("octet_length", (TEXT,)),
    "find_in_set": ("find_in_set", (TEXT, TEXT)),
    "crc32": ("crc32", (TEXT,)),
    "bin": ("bin", (INTEGER,)),
    "make_date": ("make_date", (INTEGER, INTEGER, INTEGER)),
    "date_format": ("date_format", (TIMESTAMP, TEXT)),
    "whole_months": ("whole_months", (TIMESTAMP, TIMESTAMP)),
    "floor_timestamp": ("floor_timestamp", (TIMESTAMP, INTEGER)),
    "iso_week": ("iso_week", (DATE,)),
    "iso_year": ("iso_year", (DATE,)),
    "locate_from": ("position_from", (TEXT, TEXT, INTEGER)),
    "unix_micros": ("unix_micros", (TIMESTAMP,)),
    "timestamp_micros": ("timestamp_micros", (INTEGER,)),
    "conv": ("conv", (TEXT, INTEGER, INTEGER)),
    "width_bucket": ("width_bucket", (NUMBER, NUMBER, NUMBER, INTEGER)),
    "elt_place": ("elt_place", (INTEGER, INTEGER)),
}
"""Functions that sqlglot has no node for."""
PATTERNS = frozenset(
    f"regexp_{name}" for name in ("like", "replace", "extract", "count", "instr", "substr")
)
"""Operations whose second argument is a pattern."""
UNREAD = ("null_if_pos_overflow", "negate", "safe")
"""Arguments that sqlglot adds for other dialects."""
CONSTANTS = {"pi": math.pi, "e": math.e}


def operation_call(node: exp.Expr) -> Call | None:
    """The operation that a node maps to; None if it is not one of these."""
    match node:
        case exp.Pad():
            fill = node.args.get("fill_pattern") or exp.Literal.string(" ")
            name = "pad_start" if node.args["is_left"] else "pad_end"
            return name, [node.this, node.expression, fill], (TEXT, INTEGER, TEXT)
        case exp.Overlay():
            length = node.args.get("for_") or exp.Literal.number("-1")
            given = [node.this, node.expression, node.args["from_"], length]
            return "overlay", given, (TEXT, TEXT, INTEGER, INTEGER)
        case exp.Anonymous(expressions=[*parts, seconds]) if (
            node.name.lower() == "make_timestamp" and len(parts) == 5
        ):
            micros = fill_template("CAST(CAST(x AS DECIMAL(16, 6)) * 1000000 AS BIGINT)", seconds)
            return "make_timestamp", [*parts, micros], (INTEGER,) * 6
        case exp.Initcap(expression=exp.Literal(this=" ")):
            return "initcap", [node.this], (TEXT,)
        case exp.Chr(expressions=[code]):
            return "chr", [code], (INTEGER,)
        case exp.Anonymous() if node.name.lower() in NAMED:
            name, types = NAMED[node.name.lower()]
            return (name, node.expressions, types) if len(types) == len(node.expressions) else None
    if type(node) not in CALLS:
        return None
    name, keys, types = CALLS[type(node)]
    given = [node.args.get(key) for key in keys]
    if any(value and key not in (*keys, *UNREAD) for key, value in node.args.items()):
        return None
    return None if None in given else (name, [each for each in given if each], types)


def constant(node: exp.Expr) -> float | None:
    """pi() and e()."""
    if isinstance(node, exp.Pi):
        return math.pi
    named = isinstance(node, exp.Anonymous) and not node.expressions
    return CONSTANTS.get(node.name.lower()) if named else None
