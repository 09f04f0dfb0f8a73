"""Functions whose operation depends on the type of their argument.

to_timestamp(x, pattern)     a text is read; a date or a timestamp is that moment
format_number(x, digits)     a double is written as one, and what is exact by its digits
"""

from __future__ import annotations

from sqlglot import exp

from harken.ir.terms import Constant, Term
from harken.lang.sql.conversions import (
    MOMENTS,
    NULL_TYPE,
    apply,
    as_numeric,
    as_text,
    as_timestamp,
    cast_to,
)
from harken.lang.sql.program_draft import Body
from harken.lang.sql.rounding import round_to_even
from harken.lang.sql.scope import Scope
from harken.lang.sql.translation import Translation
from harken.lang.sql.type_names import is_numeric, type_name
from harken.values.types import INTEGER, NUMBER, TIMESTAMP

READING = {"to_timestamp": "read_moment", "try_to_timestamp": "try_read_moment"}


def call_by_type(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term | None:
    """The value of a call to one of these functions; None for any other node."""
    if not isinstance(node, exp.Anonymous):
        return None
    match node.name.lower(), node.expressions:
        case ("to_timestamp" | "try_to_timestamp" as name, [text, pattern]):
            given = translation.value(text, scope, body)
            if given.type in MOMENTS:
                return as_timestamp(translation.draft, given, body)
            given = as_text(translation.draft, given, body, node)
            terms = [given, translation.value(pattern, scope, body)]
            return apply(translation.draft, READING[name], terms, body, node)
        case "timestamp_seconds", [seconds]:
            given = translation.value(seconds, scope, body)
            if given == Constant(None, NULL_TYPE) or not is_numeric(given.type):
                given = as_numeric(translation.draft, given, body, node)
            return cast_to(translation.draft, given, TIMESTAMP, body, node)
        case "format_number", [number, digits]:
            return _with_commas(translation, number, digits, node, scope, body)
        case "hex", [number]:
            given = translation.value(number, scope, body)
            if not is_numeric(given.type):
                return apply(
                    translation.draft,
                    "hex_of_text",
                    [as_text(translation.draft, given, body, node)],
                    body,
                    node,
                )
            whole = cast_to(translation.draft, given, INTEGER, body, node)
            return apply(translation.draft, "hex_of_integer", [whole], body, node)
        case "to_char", [moment, pattern]:
            given = translation.value(moment, scope, body)
            if given.type not in MOMENTS:
                raise translation.draft.unsupported(node, "to_char takes a DATE or a TIMESTAMP")
            terms = [
                as_timestamp(translation.draft, given, body),
                translation.value(pattern, scope, body),
            ]
            return apply(translation.draft, "date_format", terms, body, node)
        case "bround", [number, *digits] if len(digits) <= 1:
            rounded = exp.Round(this=number, decimals=digits[0] if digits else None)
            return round_to_even(translation, rounded, scope, body)
    return None


def _with_commas(
    translation: Translation,
    number: exp.Expr,
    digits: exp.Expr,
    node: exp.Expr,
    scope: Scope,
    body: Body,
) -> Term:
    given = as_numeric(translation.draft, translation.value(number, scope, body), body, node)
    if not is_numeric(given.type):
        raise translation.draft.unsupported(
            node, f"format_number does not take {type_name(given.type)}"
        )
    wanted = translation.value(digits, scope, body)
    if given.type == NUMBER:
        return apply(translation.draft, "format_number", [given, wanted], body, node)
    return apply(
        translation.draft,
        "format_numeral",
        [as_text(translation.draft, given, body, node), wanted],
        body,
        node,
    )
