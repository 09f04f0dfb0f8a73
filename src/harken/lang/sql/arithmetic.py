"""Arithmetic of numbers, decimals and dates into computations.

Decimal arithmetic is exact, and a result has the precision that Spark gives it. Intervals are added
to dates. A constant date plus a constant interval is a constant.
"""

from __future__ import annotations

import calendar
import datetime
from dataclasses import replace

from sqlglot import exp

from harken.errors import TypeFault
from harken.ir.terms import Constant, Term
from harken.lang.sql import decimals
from harken.lang.sql.conversions import (
    NULL_TYPE,
    apply,
    as_numeric,
    as_timestamp,
    convert_to,
    decimal_of,
    to_same_type,
)
from harken.lang.sql.intervals import Interval, interval_of, total
from harken.lang.sql.program_draft import Body, Draft
from harken.lang.sql.scope import Scope
from harken.lang.sql.translation import Translation
from harken.lang.sql.type_names import type_name
from harken.lang.sql.whole_numbers import whole_number
from harken.values.types import (
    DATE,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    decimal_digits,
    decimal_type,
    is_decimal,
)

SYMBOLS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
DAY = exp.Literal.number(86_400)


def arithmetic(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    symbol = SYMBOLS[type(node)]
    interval = interval_of(node.expression) if symbol in ("+", "-") else None
    if interval is not None:
        by = interval if symbol == "+" else interval.negative()
        return _add_interval(translation, by, node.this, scope, body)
    before = interval_of(node.this) if symbol == "+" else None
    if before is not None:
        return _add_interval(translation, before, node.expression, scope, body)
    if isinstance(node.expression, exp.Interval):
        raise translation.draft.unsupported(
            node.expression,
            "an interval is a whole number of units, as INTERVAL 2 DAYS or INTERVAL '1 year 2 "
            "months'; of seconds it may be a fraction",
        )
    left = translation.value(node.this, scope, body)
    right = translation.value(node.expression, scope, body)
    left, right = _null_beside_decimal(left, right), _null_beside_decimal(right, left)
    types = (left.type, right.type)
    if any(map(is_decimal, types)) and all(t == INTEGER or is_decimal(t) for t in types):
        return _exact(translation.draft, symbol, left, right, body, node)
    match symbol:
        case "/":
            sides = [_as_number(translation.draft, each, body, node) for each in (left, right)]
            return translation.draft.compute("/", sides, NUMBER, body)
        case "%" | "div":
            left, right = to_same_type(translation.draft, left, right, body, node)
            if symbol == "%" and left.type == NUMBER:
                return apply(translation.draft, "number_mod", [left, right], body, node)
            return apply(
                translation.draft, "mod" if symbol == "%" else "div", [left, right], body, node
            )
    if symbol == "+" and left.type == INTEGER and right.type == DATE:
        left, right = right, left
    return _added(translation.draft, symbol, left, right, body, node)


def _added(draft: Draft, symbol: str, left: Term, right: Term, body: Body, node: exp.Expr) -> Term:
    """A sum, a difference or a product that involves no decimals."""
    if TEXT in (left.type, right.type) and any(is_decimal(e.type) for e in (left, right)):
        left, right = (convert_to(draft, each, NUMBER, body, node) for each in (left, right))
    if not {left.type, right.type} & {DATE, TIMESTAMP}:
        left, right = to_same_type(draft, left, right, body, node)
    if left.type == TEXT and Constant(None, NULL_TYPE) not in (left, right):
        raise TypeFault(
            f"{symbol} cannot be applied to texts",
            code="type-mismatch",
            span=draft.place(node),
            hint="convert them to numbers with CAST, or join texts with ||",
        )
    return apply(draft, symbol, [left, right], body, node)


def _as_number(draft: Draft, term: Term, body: Body, node: exp.Expr) -> Term:
    return draft.coerce(as_numeric(draft, term, body, node), NUMBER, body, node)


def _exact(draft: Draft, symbol: str, left: Term, right: Term, body: Body, node: exp.Expr) -> Term:
    """Arithmetic of decimals, or of one and an integer."""
    one, other = (decimal_of(draft, each) for each in (left, right))
    left = draft.coerce(left, one, body, node)
    right = draft.coerce(right, other, body, node)
    if symbol == "div":
        left, right = to_same_type(draft, left, right, body, node)
        return draft.compute("div", (left, right), INTEGER, body)
    result = decimals.result_of(symbol, one, other)
    if symbol == "/":
        return draft.compute("/", (left, right), result, body)
    if symbol == "%":
        sides = to_same_type(draft, left, right, body, node)
        return draft.compute("mod", sides, sides[0].type, body)
    if symbol == "*":
        (p1, s1), (p2, s2) = decimal_digits(one), decimal_digits(other)
        whole = decimal_type(p1 + p2 + 1, s1 + s2)
        product = draft.compute("*", (left, right), whole, body)
        return draft.coerce(product, result, body, node)
    left = draft.coerce(left, result, body, node)
    right = draft.coerce(right, result, body, node)
    return draft.compute(symbol, (left, right), result, body)


def _add_interval(
    translation: Translation, interval: Interval, node: exp.Expr, scope: Scope, body: Body
) -> Term:
    """A date or a timestamp plus an interval: first its months, then its days, then its seconds."""
    given = translation.value(node, scope, body)
    if given == Constant(None, NULL_TYPE):
        given = Constant(None, TIMESTAMP.or_null())
    if given.type not in (DATE, TIMESTAMP):
        raise translation.draft.unsupported(
            node, f"an interval moves a DATE or a TIMESTAMP, but this is {type_name(given.type)}"
        )
    if interval.months:
        given = _months_later(translation, given, total(interval.months), scope, body, node)
    if interval.seconds or (interval.days and not interval.is_plain):
        given = as_timestamp(translation.draft, given, body)
    if interval.days and given.type == DATE:
        given = _days_later(translation, given, total(interval.days), scope, body, node)
    elif interval.days:
        whole = (exp.Mul(this=each, expression=DAY.copy()) for each in interval.days)
        interval = replace(interval, seconds=[*whole, *interval.seconds])
    if interval.seconds:
        seconds = translation.value(total(interval.seconds), scope, body)
        given = apply(
            translation.draft,
            "+",
            [given, _as_number(translation.draft, seconds, body, node)],
            body,
            node,
        )
    return given


def _months_later(
    translation: Translation,
    given: Term,
    months: exp.Expr,
    scope: Scope,
    body: Body,
    node: exp.Expr,
) -> Term:
    size = whole_number(months)
    if size is not None and isinstance(given, Constant) and given.type == DATE:
        moved = _moved(given.value, size, "MONTH")
        if moved is not None:
            return Constant(moved, given.type)
    later = translation.value(months, scope, body)
    if given.type == DATE:
        return apply(translation.draft, "add_months", [given, later], body, node)
    day = translation.draft.compute("to_date", (given,), DATE, body)
    whole = as_timestamp(translation.draft, day, body)
    rest = apply(translation.draft, "-", [given, whole], body, node)
    moved_day = as_timestamp(
        translation.draft, apply(translation.draft, "add_months", [day, later], body, node), body
    )
    return apply(translation.draft, "+", [moved_day, rest], body, node)


def _days_later(
    translation: Translation, given: Term, days: exp.Expr, scope: Scope, body: Body, node: exp.Expr
) -> Term:
    size = whole_number(days)
    if size is not None and isinstance(given, Constant):
        moved = _moved(given.value, size, "DAY")
        if moved is not None:
            return Constant(moved, given.type)
    return apply(translation.draft, "+", [given, translation.value(days, scope, body)], body, node)


def _null_beside_decimal(term: Term, other: Term) -> Term:
    """NULL is a decimal beside one."""
    is_null = term == Constant(None, NULL_TYPE) and is_decimal(other.type)
    return Constant(None, other.type.or_null()) if is_null else term


def _moved(value: object, size: int, unit: str) -> datetime.date | None:
    """The date that many days or months later; None outside the calendar."""
    if not isinstance(value, datetime.date):
        return None
    year, month = divmod(value.year * 12 + value.month - 1 + size, 12)
    try:
        if unit == "DAY":
            return value + datetime.timedelta(days=size)
        last = calendar.monthrange(year, month + 1)[1]
        return value.replace(year=year, month=month + 1, day=min(value.day, last))
    except (ValueError, OverflowError):
        return None
