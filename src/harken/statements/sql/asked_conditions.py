"""The conditions on a source in a SELECT that the source itself may decide.

A condition compares a column with a constant of its type, or asks whether it is NULL.

Law: a row for which one of them does not hold is in no answer of the SELECT.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from sqlglot import exp

from harken.sources.outside import Condition
from harken.values.types import BOOLEAN, DATE, INTEGER, NUMBER, TEXT, Type, is_decimal

_COMPARED: dict[type[exp.Expr], tuple[Any, Any]] = {
    exp.EQ: ("=", "="),
    exp.NEQ: ("<>", "<>"),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
}
"""Each operator, and what it is with its sides exchanged."""
_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """The columns of one source in one SELECT. If it reads nothing else, names need no prefix."""

    alias: str
    types: Mapping[str, Type]
    """By name, in the order of declaration."""
    alone: bool

    def find(self, node: exp.Expr) -> str | None:
        if not isinstance(node, exp.Column):
            return None
        qualified, name = node.table.lower(), node.name.lower()
        if name not in self.types or (qualified != self.alias and (qualified or not self.alone)):
            return None
        return name


def is_plain(select: exp.Select) -> bool:
    """Are rows that fail the WHERE surely left out, whatever they are joined with?"""
    joins = select.args.get("joins") or []
    return not any(each.side or each.method for each in joins)


def parts_of_where(select: exp.Select) -> list[exp.Expr]:
    where = select.args.get("where")
    return [] if where is None else parts_of(where.this)


def parts_of(condition: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND joins."""
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


def conditions_of(node: exp.Expr, names: ColumnNames) -> list[Condition] | None:
    """The conditions that together are this one; None if it is no comparison with constants."""
    node = node.unnest()
    if isinstance(node, exp.Between):
        given = node.copy()
        first = _comparison(exp.GTE(this=given.this.copy(), expression=given.args["low"]), names)
        last = _comparison(exp.LTE(this=given.this, expression=given.args["high"]), names)
        is_usual = not node.args.get("symmetric")
        return [first, last] if first and last and is_usual else None
    one = _condition(node, names)
    return None if one is None else [one]


def _condition(node: exp.Expr, names: ColumnNames) -> Condition | None:
    if isinstance(node, exp.Not) and isinstance(node.this.unnest(), exp.Is):
        return _null_test(node.this.unnest(), names, "is not null")
    if isinstance(node, exp.Is):
        return _null_test(node, names, "is null")
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        column = names.find(node.this)
        if column is None:
            return None
        values = [_constant(each, names.types[column]) for each in node.expressions]
        return None if None in values else Condition(column, "in", tuple(values))
    return _comparison(node, names)


def _null_test(
    node: exp.Expr, names: ColumnNames, operator: Literal["is null", "is not null"]
) -> Condition | None:
    column = names.find(node.this)
    if column is None or not isinstance(node.expression, exp.Null):
        return None
    return Condition(column, operator)


def _comparison(node: exp.Expr, names: ColumnNames) -> Condition | None:
    operators = _COMPARED.get(type(node))
    if operators is None:
        return None
    sides = ((node.this, node.expression, operators[0]), (node.expression, node.this, operators[1]))
    for side, other, operator in sides:
        column = names.find(side)
        if column is not None:
            value = _constant(other, names.types[column])
            return None if value is None else Condition(column, operator, (value,))
    return None


def _constant(node: exp.Expr, type_: Type) -> Any:
    """The value, if it is one of the column's type."""
    if isinstance(node, exp.Boolean):
        return bool(node.this) if type_ == BOOLEAN else None
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
        return _day(str(node.this.this), node.to) if type_ == DATE else None
    negative = isinstance(node, exp.Neg)
    inner = node.this if negative else node
    if not isinstance(inner, exp.Literal):
        return None
    text = str(inner.this)
    if inner.is_string:
        return text if type_ == TEXT and not negative else None
    if type_ == INTEGER and text.isdigit():
        return -int(text) if negative else int(text)
    if type_ == NUMBER:
        return -float(text) if negative else float(text)
    if is_decimal(type_):
        return -Decimal(text) if negative else Decimal(text)
    return None


def _day(text: str, type: exp.DataType) -> datetime.date | None:
    """Of DATE '2026-01-31'."""
    if not type.is_type(exp.DType.DATE) or not _ISO_DAY.fullmatch(text):
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return None
