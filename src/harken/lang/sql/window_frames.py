"""Window frames: the rows of a partition that a window function sees.

ROWS counts rows, GROUPS counts groups of peers, and RANGE compares the values of the order key.
NULL is at distance zero from itself and further than any distance from other values.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from harken.errors import LanguageError, TypeFault
from harken.ir.clauses import Comparison, Literal
from harken.ir.terms import Constant, Term, Variable
from harken.lang.sql.ordering import Order, comes_before
from harken.lang.sql.program_draft import Body, Draft
from harken.lang.sql.type_names import type_name
from harken.values.types import DATE, INTEGER, NUMBER, TIMESTAMP, Type, decimal_digits, is_decimal

Distance = int | Decimal | datetime.timedelta
UNITS = ("weeks", "days", "hours", "minutes", "seconds")


@dataclass(frozen=True, slots=True)
class Frame:
    """How far after the row it begins and ends: None is without bound, 0 this row (but for ROWS:
    and its equals)."""

    kind: str
    start: Distance | None
    end: Distance | None

    @property
    def is_plain(self) -> bool:
        """No distance: only bounds, and the row itself."""
        return not self.start and not self.end

    @property
    def is_whole(self) -> bool:
        return self.start is None and self.end is None


CUMULATIVE = Frame("RANGE", None, 0)
WHOLE = Frame("RANGE", None, None)


def frame_of(node: exp.Window, draft: Draft) -> Frame:
    """The frame of a window. The default is up to the current row with an order, else all rows."""
    spec = node.args.get("spec")
    if spec is None:
        return WHOLE if node.args.get("order") is None else CUMULATIVE
    kind = str(spec.args.get("kind")).upper()
    if kind == "GROUPS" and node.args.get("order") is None:
        raise _fault("a frame of GROUPS is one of an order", node, draft)
    start = _bound(spec.args.get("start"), spec.args.get("start_side"), "PRECEDING", node, draft)
    end = _bound(spec.args.get("end"), spec.args.get("end_side"), "FOLLOWING", node, draft)
    whole = all(each is None or isinstance(each, int) for each in (start, end))
    if kind != "RANGE" and not whole:
        raise _fault(f"a frame of {kind} counts whole {kind.lower()}", node, draft)
    return Frame(kind, start, end)


def _bound(
    value: object, side: object, outermost: str, node: exp.Window, draft: Draft
) -> Distance | None:
    """How far after this row; None for no bound."""
    before = str(side).upper() == "PRECEDING"
    if not isinstance(value, exp.Expr):
        word = str(value or "CURRENT ROW").upper()
        if word == "CURRENT ROW":
            return 0
        if word == "UNBOUNDED" and str(side).upper() == outermost:
            return None
        raise _fault("a frame does not begin at its end", node, draft)
    distance: Distance
    if isinstance(value, exp.Interval):
        unit = str(value.args.get("unit")).lower().removesuffix("s") + "s"
        if unit not in UNITS or not re.fullmatch("[0-9]{1,19}", value.this.name):
            raise _fault(f"a distance in a frame is so many {', '.join(UNITS)}", node, draft)
        try:
            distance = datetime.timedelta(**{unit: int(value.this.name)})
        except OverflowError:
            raise _fault("a distance in a frame is less than a billion days", node, draft) from None
    elif isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit():
        distance = int(value.name)
    elif isinstance(value, exp.Literal) and not value.is_string and "e" not in value.name.lower():
        distance = Decimal(value.name)
    else:
        raise _fault("a distance in a frame is a number that is written out", node, draft)
    return -distance if before else distance


def within(
    frame: Frame,
    row: Sequence[Variable],
    other: Sequence[Variable],
    keys: Sequence[Order],
    node: exp.Expr,
    draft: Draft,
) -> list[list[Literal]]:
    """When another row is in a frame of RANGE: the ways in which it can, at most one of which
    holds."""
    equal: list[Literal] = [Comparison("=", other[p], row[p]) for p, _, _ in keys]

    def ways(bound: Distance | None, *, start: bool) -> list[list[Literal]]:
        if bound is None:
            return [[]]
        if bound == 0:
            one, than = (row, other) if start else (other, row)
            return [*comes_before(one, than, keys), equal]
        return _at_a_distance(bound, row, other, keys, start, node, draft)

    return [
        [*one, *two]
        for one in ways(frame.start, start=True)
        for two in ways(frame.end, start=False)
    ]


def _at_a_distance(
    bound: Distance,
    row: Sequence[Variable],
    other: Sequence[Variable],
    keys: Sequence[Order],
    start: bool,
    node: exp.Expr,
    draft: Draft,
) -> list[list[Literal]]:
    if len(keys) != 1:
        raise _fault("a frame of RANGE with a distance takes one column to order by", node, draft)
    ((place, down, nulls_first),) = keys
    own, theirs = row[place], other[place]
    body = Body()
    limit = _moved(own, -bound if down else bound, body, node, draft)
    inside = ">=" if start != down else "<="
    body.add(Comparison(inside, theirs, limit))
    if not own.type.nullable:
        return [body.literals]
    nothing = Constant(None, own.type.or_null())
    same: list[Literal] = [Comparison("=", own, nothing), Comparison("=", theirs, nothing)]
    # Where NULLs are at the far end of the order they are beyond the other bound only.
    far, near = (own, theirs) if nulls_first == start else (theirs, own)
    apart: list[Literal] = [Comparison("=", far, nothing), Comparison("!=", near, nothing)]
    present: list[Literal] = [Comparison("!=", own, nothing), Comparison("!=", theirs, nothing)]
    return [[*present, *body.literals], same, apart]


def _moved(term: Term, distance: Distance, body: Body, node: exp.Expr, draft: Draft) -> Term:
    type_ = term.type.or_null(False)
    added = _as_added(distance, type_)
    if added is None:
        raise TypeFault(
            f"a frame of RANGE cannot have this distance from {type_name(type_)}",
            code="type-mismatch",
            span=draft.place(node),
            hint="numbers for numbers, and days for dates",
        )
    return draft.compute("+", (term, added), type_, body)


def _as_added(distance: Distance, type_: Type) -> Constant | None:
    """The distance as a term to add to a value of the type; None if that is not possible."""
    if isinstance(distance, datetime.timedelta):
        if type_ == TIMESTAMP:
            return Constant(distance.total_seconds(), NUMBER)
        whole = type_ == DATE and distance % datetime.timedelta(days=1) == datetime.timedelta()
        return Constant(distance.days, INTEGER) if whole else None
    if type_ in (INTEGER, DATE):
        return Constant(int(distance), INTEGER) if distance == int(distance) else None
    if type_ == NUMBER:
        return Constant(float(distance), NUMBER)
    if is_decimal(type_):
        exact = round(Decimal(distance), decimal_digits(type_)[1])
        return Constant(exact, type_) if exact == distance else None
    return None


def _fault(message: str, node: exp.Expr, draft: Draft) -> LanguageError:
    return LanguageError(message, code="unsupported", span=draft.place(node))
