"""Rounding to a number of digits: round, bround, floor and ceil.

The result for an exact number is exact, with the precision that Spark gives it. A unit is the value
of the last digit that is kept.

bround(x, 1)    x without x % 0.1 where that is half a unit, and the digit before it even
floor(x, 1)     x without x % 0.1, and a unit less below zero
"""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from harken.ir.terms import Constant, Term
from harken.lang.sql import decimals
from harken.lang.sql.conversions import NULL_TYPE, apply, as_numeric
from harken.lang.sql.function_rewrites import fill_template
from harken.lang.sql.program_draft import Body, Draft
from harken.lang.sql.scope import Scope
from harken.lang.sql.translation import Translation
from harken.lang.sql.whole_numbers import whole_number
from harken.values.types import INTEGER, NUMBER, Type, decimal_digits, decimal_type, is_decimal

TO_TENS = (
    "CASE WHEN x >= 0 THEN CAST(x + y AS BIGINT) DIV z * z "
    "WHEN x < 0 THEN CAST(x - y AS BIGINT) DIV z * z END"
)
"""x to the nearest multiple of z, which y is half of."""
TO_EVEN = "CASE WHEN abs(x % {unit}) = {half} AND (x - x % {unit}) % {two} = 0 THEN x - x % {unit} ELSE {nearest} END"  # noqa: E501
DOWN = "CASE WHEN x % {unit} < 0 THEN x - x % {unit} - {unit} ELSE x - x % {unit} END"
UP = "CASE WHEN x % {unit} > 0 THEN x - x % {unit} + {unit} ELSE x - x % {unit} END"


def round_value(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """round: to a number of digits behind the point, or before it if negative."""
    given = translation.value(node.this, scope, body)
    if given.type != INTEGER and not is_decimal(given.type):
        return _round_number(translation, "round", given, node, scope, body)
    wanted = _digits(translation.draft, node)
    precision, scale = decimal_digits(decimals.as_decimal(given.type))
    if wanted >= scale:
        return given
    if wanted < 0:
        half, unit = (exp.Literal.number(10**-wanted // n) for n in (2, 1))
        tens = fill_template(TO_TENS, node.this, half, unit)
        rounded = translation.value(tens, scope, body)
        if given.type == INTEGER:
            return rounded
        return translation.draft.coerce(rounded, decimal_type(precision - scale + 1, 0), body, node)
    return translation.draft.coerce(given, _kept(given.type, wanted), body, node)


def round_to_even(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """bround: ties go to the even digit."""
    given = translation.value(node.this, scope, body)
    if given.type != INTEGER and not is_decimal(given.type):
        return _round_number(translation, "round_even", given, node, scope, body)
    wanted = _digits(translation.draft, node)
    scale = decimal_digits(decimals.as_decimal(given.type))[1]
    if wanted >= scale:
        return given
    text = TO_EVEN.format(nearest=f"round(x, {wanted})", **_units(wanted))
    rounded = translation.value(fill_template(text, node.this), scope, body)
    if given.type == INTEGER:
        return rounded
    return translation.draft.coerce(rounded, _kept(given.type, wanted), body, node)


def _round_number(
    translation: Translation, name: str, given: Term, node: exp.Expr, scope: Scope, body: Body
) -> Term:
    number = translation.draft.coerce(
        as_numeric(translation.draft, given, body, node), NUMBER, body, node
    )
    digits = node.args.get("decimals") or exp.Literal.number(0)
    return apply(
        translation.draft, name, [number, translation.value(digits, scope, body)], body, node
    )


def _digits(draft: Draft, node: exp.Expr) -> int:
    given = node.args.get("decimals")
    digits = 0 if given is None else whole_number(given)
    if digits is None:
        raise draft.unsupported(node, "round takes a literal number of digits")
    return max(min(digits, decimals.STORED_DIGITS), -decimals.STORED_DIGITS)


def floor_or_ceil(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """The whole number below another, or above it."""
    if node.args.get("decimals") is not None:
        return _floor_or_ceil_to_digits(translation, node, scope, body)
    given = as_numeric(translation.draft, translation.value(node.this, scope, body), body, node)
    if given.type == INTEGER:
        return given
    name, text = (
        "floor",
        "CAST(x AS BIGINT) - CASE WHEN x < CAST(x AS BIGINT) THEN 1 ELSE 0 END",
    )
    if isinstance(node, exp.Ceil):
        name, text = "ceiling", text.replace("-", "+").replace("<", ">")
    if is_decimal(given.type):
        precision, scale = decimal_digits(given.type)
        whole = translation.value(fill_template(text, node.this), scope, body)
        return translation.draft.coerce(whole, decimal_type(precision - scale + 1, 0), body, node)
    return apply(translation.draft, name, [given], body, node)


def _floor_or_ceil_to_digits(
    translation: Translation, node: exp.Expr, scope: Scope, body: Body
) -> Term:
    """floor and ceil to a number of digits. The result is a decimal."""
    given = translation.value(node.this, scope, body)
    if given == Constant(None, NULL_TYPE):
        return Constant(None, decimal_type(1, 0).or_null())
    if given.type != INTEGER and not is_decimal(given.type):
        name = "floor" if isinstance(node, exp.Floor) else "ceil"
        raise translation.draft.unsupported(node, f"{name} with a number of digits takes a DECIMAL")
    wanted = _digits(translation.draft, node)
    type_ = decimals.as_decimal(given.type)
    if wanted >= decimal_digits(type_)[1]:
        return translation.draft.coerce(given, type_, body, node)
    text = (DOWN if isinstance(node, exp.Floor) else UP).format(**_units(wanted))
    whole = translation.value(fill_template(text, node.this), scope, body)
    return translation.draft.coerce(whole, _kept(type_, wanted), body, node)


def _kept(type_: Type, wanted: int) -> Type:
    """The type of a decimal after rounding to this number of digits."""
    precision, scale = decimal_digits(type_)
    if wanted < 0:
        return decimal_type(max(precision - scale, -wanted) + 1, 0)
    return decimal_type(precision - scale + wanted + 1, wanted)


def _units(wanted: int) -> dict[str, str]:
    unit = Decimal(1).scaleb(-wanted)
    return {"unit": f"{unit:f}", "half": f"{unit / 2:f}", "two": f"{unit * 2:f}"}
