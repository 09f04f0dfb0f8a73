"""Terms: what stands in an argument of a literal.

A variable is known by its name within one clause; a parameter is a value that the caller gives
when the statement runs, so one plan serves every value.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from harken.values.types import Type

Value: TypeAlias = (
    int | float | str | bool | datetime.date | datetime.datetime | decimal.Decimal | None
)


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    type: Type

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal value, or for a surrogate type the number of the object; None is NULL."""

    value: Value
    type: Type

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if self.type.surrogate:
            return f"#[{self.type} {self.value}]"
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        if isinstance(self.value, str):
            escaped = self.value.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Parameter:
    """The value number `index` of those that come with the call."""

    index: int
    type: Type

    def __str__(self) -> str:
        return f"?{self.index + 1}"


Term: TypeAlias = Variable | Constant | Parameter


def variables(terms: Iterable[Term]) -> tuple[Variable, ...]:
    """The variables among terms, in their order."""
    return tuple(term for term in terms if isinstance(term, Variable))


def is_generated(variable: Variable) -> bool:
    """Did a translation make the variable, for an expression that has no name?"""
    return variable.name.startswith("_G")
