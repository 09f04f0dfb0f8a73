"""Constants of a condition that become values of its subscription.

    price > 100 AND symbol = 'IBM'      →      price > c0 AND symbol = c1, with (100, 'IBM')

A constant is lifted if it is compared with a column of its type, or is the amount of INCBY and the
like. All others stay: a pattern, or the argument of a function, can decide what a condition means.

Law: the condition with its constants put back is the condition.
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from harken.lang.continual.condition_tables import ConditionTable, column
from harken.lang.continual.syntax import CACHED, CHANGES
from harken.values.types import INTEGER, NUMBER, TEXT, Type

PARAMETERS = " parameters"
"""The table of constants, one row for each subscription."""
SUBSCRIPTION = "subscription"
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_SAFE_INTEGER = 2**63


@dataclass(slots=True)
class Constants:
    """The lifted constants of one condition."""

    sources: Mapping[str, ConditionTable]
    values: list[tuple[Any, Type]] = field(default_factory=list)
    places: list[int | None] = field(default_factory=list)
    """Where each stands in the text."""

    def lifted(self, node: exp.Expr) -> exp.Expr:
        return self._lifted(node.copy())

    def _lifted(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query):
            return node
        match node:
            case exp.Anonymous(this=name, expressions=[_, amount]) if (
                name in CACHED and name != CHANGES
            ):
                made = self._number(amount, NUMBER)
                if made is not None:
                    node.expressions[1].replace(made)
                return node
            case exp.Between(this=exp.Column() as value):
                for part in ("low", "high"):
                    self._replace(value, node.args[part])
                return node
        if isinstance(node, _COMPARED):
            if isinstance(node.this, exp.Column):
                self._replace(node.this, node.expression)
            elif isinstance(node.expression, exp.Column):
                self._replace(node.expression, node.this)
            return node
        if isinstance(node, exp.And | exp.Or | exp.Not | exp.Paren):
            for child in list(node.iter_expressions()):
                self._lifted(child)
        return node

    def _replace(self, value: exp.Expr, constant: exp.Expr) -> None:
        source = self.sources.get(value.args["table"].name if value.args.get("table") else "")
        type_ = source.type_of(value.name) if source is not None else None
        if type_ is None:
            return
        made = self._text(constant) if type_ == TEXT else self._number(constant, type_)
        if made is not None:
            constant.replace(made)

    def _text(self, node: exp.Expr) -> exp.Expr | None:
        is_text = isinstance(node, exp.Literal) and node.is_string
        return self.take(node.this, TEXT, node) if is_text else None

    def _number(self, node: exp.Expr, type_: Type) -> exp.Expr | None:
        negative = isinstance(node, exp.Neg)
        literal = node.this if negative else node
        if not isinstance(literal, exp.Literal) or literal.is_string:
            return None
        try:
            value = decimal.Decimal(literal.this)
        except decimal.InvalidOperation:
            return None
        value = -value if negative else value
        if type_ == NUMBER:
            return self.take(float(value), NUMBER, literal)
        if type_ == INTEGER and literal.this.isdigit() and abs(value) < _SAFE_INTEGER:
            return self.take(int(value), INTEGER, literal)
        return None

    def take(self, value: Any, type_: Type, literal: exp.Expr | None = None) -> exp.Expr:
        """The column that has a value of each subscription."""
        self.places.append(None if literal is None else literal.meta.get("start"))
        self.values.append((value, type_))
        return column(f"c{len(self.values) - 1}", PARAMETERS)
