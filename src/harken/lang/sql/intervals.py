"""Intervals: how many months, days and seconds one is. Its parts are added up before a date moves.

INTERVAL 1 YEAR 2 MONTHS                  14 months
INTERVAL '1 02:03:04.5' DAY TO SECOND     1 day, 7384.5 seconds
3 * INTERVAL '1' MONTH                    3 * 1 months
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal

from sqlglot import exp

from harken.lang.sql.whole_numbers import whole_number

IN_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
IN_DAYS = {"WEEK": 7, "DAY": 1}
IN_SECONDS = {
    "HOUR": Decimal(3600),
    "MINUTE": Decimal(60),
    "SECOND": Decimal(1),
    "MILLISECOND": Decimal("0.001"),
    "MICROSECOND": Decimal("0.000001"),
}
UNITS = {**IN_MONTHS, **IN_DAYS, **IN_SECONDS}
_PART = re.compile(r"\s*([+-]?\s*\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_SPAN = ("DAY", "HOUR", "MINUTE", "SECOND")


@dataclass(slots=True)
class Interval:
    """Each is a sum of numbers and expressions, from the largest unit to the smallest."""

    months: list[exp.Expr] = field(default_factory=list)
    days: list[exp.Expr] = field(default_factory=list)
    seconds: list[exp.Expr] = field(default_factory=list)
    is_plain: bool = True
    """Is it written out? Of the days of one that is computed a timestamp is made, as in Spark."""

    def __add__(self, other: Interval) -> Interval:
        return Interval(
            self.months + other.months,
            self.days + other.days,
            self.seconds + other.seconds,
            self.is_plain and other.is_plain,
        )

    def times(self, factor: exp.Expr) -> Interval:
        def multiplied(parts: list[exp.Expr]) -> list[exp.Expr]:
            by = exp.Paren(this=factor)
            return [exp.Mul(this=exp.Paren(this=e), expression=by.copy()) for e in parts]

        return Interval(
            multiplied(self.months), multiplied(self.days), multiplied(self.seconds), is_plain=False
        )

    def negative(self) -> Interval:
        plain = self.is_plain
        made = self.times(exp.Literal.number(-1))
        made.is_plain = plain
        return made


def interval_of(node: exp.Expr) -> Interval | None:
    """The interval that an expression is; None if it is none, or cannot be read."""
    match node:
        case exp.Paren():
            return interval_of(node.this)
        case exp.Neg():
            found = interval_of(node.this)
            return None if found is None else found.negative()
        case exp.Add() | exp.Sub():
            left, right = interval_of(node.this), interval_of(node.expression)
            if left is None or right is None:
                return None
            return left + (right if isinstance(node, exp.Add) else right.negative())
        case exp.Mul():
            for one, other in ((node.this, node.expression), (node.expression, node.this)):
                found = interval_of(one)
                if found is not None:
                    return found.times(other)
        case exp.Interval():
            return _read(node)
    return None


def total(parts: list[exp.Expr]) -> exp.Expr:
    """Their sum; of whole numbers it is one."""
    known = [whole_number(each) for each in parts]
    if None not in known:
        return exp.Literal.number(sum(each for each in known if each is not None))
    whole: exp.Expr = exp.Paren(this=parts[0])
    for each in parts[1:]:
        whole = exp.Add(this=whole, expression=exp.Paren(this=each))
    return whole


def _read(node: exp.Interval) -> Interval | None:
    size, unit = node.this, node.args.get("unit")
    text = size.this if isinstance(size, exp.Literal) else None
    if isinstance(unit, exp.IntervalSpan):
        return None if text is None else _spanned(text.strip(), unit)
    if unit is not None:
        if text is not None:
            return _sized(text.strip(), unit.name)
        made = _of(unit.name, size)
        if made is not None:
            made.is_plain = False
        return made
    if text is None:
        return None
    found, place = Interval(), 0
    for match in _PART.finditer(text):
        part = _sized(match[1].replace(" ", ""), match[2]) if match.start() == place else None
        if part is None:
            return None
        found, place = found + part, match.end()
    return found if place and not text[place:].strip() else None


def _spanned(text: str, unit: exp.Expr) -> Interval | None:
    """'1-2' YEAR TO MONTH, '1 02:03:04' DAY TO SECOND."""
    first, last = unit.this.name.upper(), unit.expression.name.upper()
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text.removeprefix("+"))
    if (first, last) == ("YEAR", "MONTH"):
        names, sizes = [first, last], text.split("-")
    elif first in _SPAN and last in _SPAN:
        names = list(_SPAN[_SPAN.index(first) : _SPAN.index(last) + 1])
        sizes = re.split(r"[ :]", text)
    else:
        return None
    if len(sizes) != len(names):
        return None
    found = Interval()
    for size, name in zip(sizes, names, strict=True):
        part = _sized(sign + size, name)
        if part is None:
            return None
        found += part
    return found


def _sized(text: str, unit: str) -> Interval | None:
    """So many units: a whole number of them, or a fraction of seconds."""
    if re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        return _of(unit, exp.Literal.number(int(text)))
    if re.fullmatch(r"[+-]?\d+\.\d+", text) and _singular(unit) == "SECOND":
        return _of(unit, exp.Literal.number(text))
    return None


def _of(unit: str, size: exp.Expr) -> Interval | None:
    name = _singular(unit)
    if name in IN_MONTHS:
        return Interval(months=[_times(size, IN_MONTHS[name])])
    if name in IN_DAYS:
        return Interval(days=[_times(size, IN_DAYS[name])])
    if name in IN_SECONDS:
        return Interval(seconds=[_times(size, IN_SECONDS[name])])
    return None


def _singular(unit: str) -> str:
    return unit.upper().removesuffix("S")


def _times(size: exp.Expr, units: int | Decimal) -> exp.Expr:
    if units == 1:
        return size
    return exp.Mul(
        this=exp.Paren(this=size.copy()), expression=exp.Literal.number(f"{Decimal(units):f}")
    )
