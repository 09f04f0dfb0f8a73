"""Production rules: a body, and what each solution of it inserts, deletes and calls.

The body is a derived relation of its own, with a column for each variable and one for each value
that a head computes. So a head literal is a relation with terms over those columns, and everything
else about a rule is made from relations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from harken.errors import Span
from harken.ir.clauses import Definition
from harken.ir.relations import Relation
from harken.ir.terms import Term, Variable

PRESENT_NAME = "head#0"
"""The column of a rule without variables, which is always true."""


class Firing(Enum):
    """Section 2 of the paper: a rule fires for all its instances at once, or for one."""

    SET = "set"
    INSTANCE = "instance"


@dataclass(frozen=True, slots=True)
class HeadLiteral:
    """`P(t, ...)` or `¬P(t, ...)`. Its terms are columns of the rule's instances, or constants."""

    relation: Relation
    terms: tuple[Term, ...]
    deletes: bool
    span: Span | None = None

    @property
    def sign(self) -> str:
        return "¬" if self.deletes else ""


@dataclass(frozen=True, slots=True)
class HeadCall:
    """A procedure that a rule calls for each new solution, and its arguments."""

    name: str
    terms: tuple[Term, ...]
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class ProductionRule:
    """`instances` has a row for each solution of the body: the variables in the order in which they
    are written, then what the heads compute."""

    name: str
    instances: Definition
    auxiliaries: tuple[Definition, ...]
    variables: tuple[Variable, ...]
    computed: tuple[Variable, ...]
    heads: tuple[HeadLiteral, ...]
    calls: tuple[HeadCall, ...]
    firing: Firing
    number: int
    """Its place in the text."""
    text: str = ""
    facts: tuple[tuple[Relation, tuple[Term, ...]], ...] | None = None
    """The facts that an instance is made of, if each follows from its row: what timestamps need."""

    @property
    def columns(self) -> tuple[Variable, ...]:
        return (*self.variables, *self.computed)

    @property
    def computes(self) -> bool:
        """Whether it may insert values that no fact has."""
        return any(each.name != PRESENT_NAME for each in self.computed)


def opposites(literal: HeadLiteral, heads: Iterable[HeadLiteral]) -> list[HeadLiteral]:
    """The literals of a head that may take back what this one does."""
    return [
        each
        for each in heads
        if each.relation == literal.relation and each.deletes != literal.deletes
    ]
