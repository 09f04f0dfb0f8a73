"""A condition on a monitored view, as compiled by a front end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from harken.database.catalog import Catalog
from harken.ir.clauses import Clause, Definition
from harken.ir.printer import print_literal
from harken.ir.relations import Column
from harken.ir.schema import Function
from harken.ir.terms import Constant, Variable
from harken.values.types import Type

_CONSTANT = re.compile(r"CONSTANT#\d+")
_COLUMN = re.compile(r"\b([A-Z][A-Z0-9_]*)#\d+")


@dataclass(frozen=True, slots=True)
class Restriction:
    """The rows of a view that meet a condition: a clause with its constants taken out, the
    constants, and the auxiliary relations of the clause.

    Conditions of the same `shape`, which is a digest, differ only in their constants.
    """

    shape: str
    clause: Clause
    constants: tuple[Constant, ...]
    own: tuple[Definition, ...]
    mentions: frozenset[str]
    """The names of the tables that the condition mentions."""

    def __str__(self) -> str:
        """The condition in readable form, equal for equal shapes."""
        _, *tests = map(print_literal, self.clause.body)
        shown = _CONSTANT.sub("?", " ∧ ".join(tests))
        columns = _COLUMN.sub(lambda found: found[1].lower(), shown)
        return f"{columns} [{self.shape}]"


def constant_variable(number: int, type_: Type) -> Variable:
    """The variable that replaces a constant in the clause of a restriction."""
    return Variable(f"CONSTANT#{number}", type_)


class Conditions(Protocol):
    """The front end that conditions of monitors are written in."""

    def text(self, where: str | Mapping[str, Any]) -> str:
        """A condition as normalised text: equal for conditions that say the same."""

    def columns(self, function: Function) -> tuple[Column, ...]:
        """The columns of the rows of a function, as conditions name them."""

    def restrict(self, function: Function, where: str, catalog: Catalog) -> Restriction:
        """The rows of a function that meet a condition."""
