"""Tests with previous values as tests of SQL, one for each way in which a row can have changed.

    SAME     the row is as it was at the last execution        x CHANGES is false, OLD.x is x
    MOVED    it is there, and was another one or none          x CHANGES is x ≠ previous x
    GONE     it was there, and is no longer                    x CHANGES is true, x is previous x

    x INCBY n     x - previous x ≥ n
    x INCBYP n    (x - previous x) · 100 ≥ |previous x| · n

INC and DEC are false without a previous value, and percent of 0 is false. Previous values of NULL,
and values of NULL, are no previous values; CHANGES compares them like any other.

Law: for each row of a table, or of its previous values, exactly one of the three cases holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from sqlglot import exp

from harken.errors import LanguageError, Span, TypeFault, ValueFault
from harken.lang.continual.column_names import NEW, OLD, ROW
from harken.lang.continual.condition_tables import (
    WAS_THERE,
    ConditionTable,
    column,
    key_name,
    value_name,
)
from harken.lang.continual.row_tests import place
from harken.lang.continual.syntax import (
    CACHED,
    CHANGES,
    DECREASES,
    DECREASES_PERCENT,
    INCREASES,
    SHOWN,
)
from harken.lang.sql.type_names import type_name
from harken.values.types import INTEGER, NUMBER, Type, is_decimal

HUNDRED = exp.Literal.number(100)
TRUE, FALSE = exp.Boolean(this=True), exp.Boolean(this=False)


class Case(Enum):
    SAME = "same"
    MOVED = "moved"
    GONE = "gone"


def before(alias: str) -> str:
    """The alias of the previous values of a source."""
    return f"{alias} before"


def cached_sources(node: exp.Expr) -> set[str]:
    """The sources whose previous values a test needs."""
    found: set[str] = set()
    for each in node.find_all(exp.Anonymous):
        if each.this in CACHED or each.this == OLD:
            found |= {one.table for one in each.find_all(exp.Column)}
            found |= {row.expressions[0].name for row in _rows(each)}
    return found


def _rows(node: exp.Expr) -> list[exp.Anonymous]:
    return [each for each in node.find_all(exp.Anonymous) if each.this == ROW]


def sees_deleted_rows(node: exp.Expr, alias: str) -> bool:
    """Whether the test can hold for a row of the source that is no longer there."""
    return any(
        alias in cached_sources(each)
        for each in node.find_all(exp.Anonymous)
        if each.this in (CHANGES, OLD)
    )


class PreviousValues:
    """Writes a test out for one case of each of its cached sources."""

    def __init__(
        self, sources: Mapping[str, ConditionTable], cases: Mapping[str, Case], span: Span
    ) -> None:
        self._sources = sources
        self._cases = cases
        self._span = span

    def written(self, node: exp.Expr) -> exp.Expr:
        """The test, with TRUE and FALSE where nothing else is possible."""
        return folded(self._present(node.copy()))

    # --- as things are ---------------------------------------------------------------------

    def _present(self, node: exp.Expr) -> exp.Expr:
        match node:
            case exp.Query():
                return node.transform(self._in_subquery)
            case exp.Column():
                gone = self._cases.get(node.table) is Case.GONE
                return self._previous(node) if gone else node
            case exp.Anonymous(this=name, expressions=[value]) if name == NEW:
                gone = self._cases.get(value.table) is Case.GONE
                return exp.cast(exp.Null(), self._type_name(value)) if gone else value
            case exp.Anonymous(this=name, expressions=[value]) if name == OLD:
                return self._previous(value)
            case exp.Anonymous(this=name, expressions=[value]) if name == CHANGES:
                return self._changes(value)
            case exp.Anonymous(this=name, expressions=[value, amount]) if name in CACHED:
                return self._compared(name, value, amount)
        return _with_children(node, self._present)

    def _in_subquery(self, node: exp.Expr) -> exp.Expr:
        """A column of a row around the subquery that is no longer there."""
        is_gone = isinstance(node, exp.Column) and self._cases.get(node.table) is Case.GONE
        return self._previous(node) if is_gone else node

    # --- as they were ----------------------------------------------------------------------

    def _before(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query):
            raise LanguageError(
                "a subquery has no previous value",
                code="unsupported",
                span=place(node) or self._span,
                hint="watch a view that holds its rows",
            )
        if isinstance(node, exp.Column):
            return self._previous(node)
        return _with_children(node, self._before)

    def _previous(self, node: exp.Expr) -> exp.Expr:
        assert isinstance(node, exp.Column)
        alias, name = node.table, node.name
        case = self._cases.get(alias)
        if case is None or case is Case.SAME:
            return node.copy()
        if name not in self._sources[alias].key:
            return column(value_name(name), before(alias))
        there = column(WAS_THERE, before(alias))
        return exp.Case(ifs=[exp.If(this=there, true=column(key_name(name), before(alias)))])

    # --- operators -------------------------------------------------------------------------

    def _changes(self, value: exp.Expr) -> exp.Expr:
        if isinstance(value, exp.Anonymous) and value.this == ROW:
            return self._row_changes(value.expressions[0].name)
        cases = self._cases_of(value)
        if Case.GONE in cases.values():
            return TRUE.copy()
        if Case.MOVED not in cases.values():
            return FALSE.copy()
        differs = exp.NullSafeNEQ(this=_wrapped(value), expression=_wrapped(self._before(value)))
        uncounted = [alias for alias in cases if not self._sources[alias].has_key]
        copies = [self._row_changes(alias) for alias in uncounted]
        return exp.or_(*self._absent(cases), differs, *copies)

    def _row_changes(self, alias: str) -> exp.Expr:
        case = self._cases.get(alias, Case.SAME)
        if case is not Case.MOVED:
            return (TRUE if case is Case.GONE else FALSE).copy()
        pairs = [
            (column(each.name, alias), column(value_name(each.name), before(alias)))
            for each in self._sources[alias].values
        ]
        differs = [exp.NullSafeNEQ(this=now, expression=was) for now, was in pairs]
        return exp.or_(*self._absent({alias: case}), *differs)

    def _absent(self, cases: Mapping[str, Case]) -> list[exp.Expr]:
        return [
            exp.not_(column(WAS_THERE, before(alias)))
            for alias, case in cases.items()
            if case is Case.MOVED
        ]

    def _cases_of(self, value: exp.Expr) -> dict[str, Case]:
        named = {each.table for each in value.find_all(exp.Column)}
        return {alias: self._cases[alias] for alias in sorted(named) if alias in self._cases}

    def _compared(self, name: str, value: exp.Expr, amount: exp.Expr) -> exp.Expr:
        cases = self._cases_of(value)
        if Case.MOVED not in cases.values() or Case.GONE in cases.values():
            return FALSE.copy()
        now, was = self._number(value), self._number(self._before(value), value)
        amount = self._present(amount)
        if name in (DECREASES, DECREASES_PERCENT):
            difference: exp.Expr = exp.Sub(this=was.copy(), expression=now)
        else:
            difference = exp.Sub(this=now, expression=was.copy())
        if name in (INCREASES, DECREASES):
            test: exp.Expr = exp.GTE(this=difference, expression=_wrapped(amount))
        else:
            hundredfold = exp.Mul(this=exp.Paren(this=difference), expression=HUNDRED.copy())
            part = exp.Mul(this=exp.Abs(this=was.copy()), expression=_wrapped(amount))
            enough = exp.GTE(this=hundredfold, expression=part)
            zero = exp.NEQ(this=was.copy(), expression=exp.Literal.number(0))
            test = exp.and_(enough, zero)
        return exp.Coalesce(this=exp.Paren(this=test), expressions=[FALSE.copy()])

    def _number(self, value: exp.Expr, typed: exp.Expr | None = None) -> exp.Expr:
        """A number that cannot overflow when it is subtracted: exact, where it is exact."""
        given = value if typed is None else typed
        if isinstance(given, exp.Column):
            type_ = self._sources[given.table].type_of(given.name)
            if type_ == INTEGER:
                return exp.cast(value.copy(), "decimal(20,0)")
        return _wrapped(value.copy())

    def _type_name(self, node: exp.Expr) -> str:
        assert isinstance(node, exp.Column)
        type_ = self._sources[node.table].type_of(node.name)
        assert type_ is not None
        return sql_type(type_)


def check_operators(node: exp.Expr, sources: Mapping[str, ConditionTable], span: Span) -> None:
    """Reject operators that cannot compare what they are given."""
    for each in node.find_all(exp.Anonymous):
        if each.this in CACHED and each.this != CHANGES:
            value, amount = each.expressions
            _check(each.this, value, amount, sources, span)


def _check(
    name: str,
    value: exp.Expr,
    amount: exp.Expr,
    sources: Mapping[str, ConditionTable],
    whole: Span,
) -> None:
    span = place(value) or whole
    shown = SHOWN[name]
    for each in value.find_all(exp.Column):
        source = sources[each.table]
        if not source.has_key:
            raise TypeFault(
                f"{source.title} has no key, so {shown} cannot say which row had the previous "
                "value",
                code="no-key",
                span=span,
                hint="declare a PRIMARY KEY, or watch a view that groups by one",
            )
    given = value if isinstance(value, exp.Column) else None
    type_ = sources[given.table].type_of(given.name) if given is not None else None
    if type_ is not None and not _is_number(type_):
        raise TypeFault(
            f"{shown} compares numbers, but {value.name or 'this'} is {type_name(type_)}",
            code="type-mismatch",
            span=span,
            hint="CHANGES compares values of any type",
        )
    if amount.find(exp.Query):
        raise LanguageError(f"{shown} takes a number", code="unsupported", span=span)
    number = amount.this if isinstance(amount, exp.Neg) else amount
    if isinstance(number, exp.Literal) and (
        number is not amount or number.is_string or not float(number.this) > 0
    ):
        raise ValueFault(
            f"{shown} takes a number above 0",
            code="bad-value",
            span=place(value) or whole,
            hint="CHANGES says that a value is another one, by whatever it has changed",
        )


def without_failures(node: exp.Expr) -> exp.Expr:
    """The test with NULL where a division or a conversion would fail: one row must not keep the
    condition from being looked at for all others."""

    def harmless(each: exp.Expr) -> exp.Expr:
        match each:
            case exp.Div(this=left, expression=right):
                return exp.SafeDivide(this=left, expression=right)
            case exp.Mod(this=left, expression=right):
                return exp.Anonymous(this="try_mod", expressions=[left, right])
        return each

    return node.copy().transform(harmless)


def sql_type(type_: Type) -> str:
    named = {"integer": "bigint", "number": "double", "charstring": "string"}
    return named.get(type_.name, type_.name)


def _is_number(type_: Type) -> bool:
    return type_ in (INTEGER, NUMBER) or is_decimal(type_)


def _wrapped(node: exp.Expr) -> exp.Expr:
    simple = isinstance(node, exp.Column | exp.Literal | exp.Paren | exp.Cast)
    return node if simple else exp.Paren(this=node)


def _with_children(node: exp.Expr, change: object) -> exp.Expr:
    assert callable(change)
    for key, value in list(node.args.items()):
        if isinstance(value, exp.Expr) and not isinstance(value, exp.Identifier):
            node.set(key, change(value))
        elif isinstance(value, list):
            node.set(key, [change(e) if isinstance(e, exp.Expr) else e for e in value])
    return node


def folded(node: exp.Expr) -> exp.Expr:
    """The test without parts that are TRUE or FALSE.

    >>> print(folded(exp.and_(exp.column("a"), exp.not_(exp.false()))).sql())
    a
    """
    match node:
        case exp.Paren(this=inside):
            made = folded(inside)
            return made if isinstance(made, exp.Boolean | exp.Paren) else exp.Paren(this=made)
        case exp.Not(this=inside):
            made = folded(inside)
            return exp.Boolean(this=not made.this) if _is_constant(made) else exp.not_(made)
        case exp.And() | exp.Or():
            absorbing = isinstance(node, exp.Or)
            sides = [folded(node.left), folded(node.right)]
            if any(_is_constant(each) and bool(each.this) is absorbing for each in sides):
                return exp.Boolean(this=absorbing)
            left = [each for each in sides if not _is_constant(each)]
            if not left:
                return exp.Boolean(this=not absorbing)
            return exp.or_(*left) if absorbing else exp.and_(*left)
    return node


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(node, exp.Boolean)
