"""The condition of a content trigger as it is written: events, and what joins them.

    condition ::= group | event | condition AND condition | condition OR condition | NOT condition
                | condition THEN condition | condition ELSE condition
                | ALL OF (condition, ...) | ANY OF (condition, ...)
    group     ::= test [WHERE test] [GROUP BY columns] [FOR MORE THAN duration]
    event     ::= ON INSERT | UPDATE | DELETE OF table [WHERE test] | SIGNAL name | FROM table ...

A test is an expression of SQL (a tree of sqlglot) in which the operators of `OPERATORS` may stand.
Which of its columns belong to which table is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

from harken.errors import Span
from harken.ir.event_trees import Length

CHANGES, INCREASES, DECREASES = "changes ", "increases ", "decreases "
INCREASES_PERCENT, DECREASES_PERCENT = "increases percent ", "decreases percent "
"""The operators that compare a value with the previous one, as functions: nobody can write a name
with a blank at its end."""
OPERATORS = {
    "CHANGES": CHANGES,
    "INCBY": INCREASES,
    "DECBY": DECREASES,
    "INCBYP": INCREASES_PERCENT,
    "DECBYP": DECREASES_PERCENT,
    "INCREASEBY": INCREASES,
    "DECREASEBY": DECREASES,
}
WITH_PERCENT = {INCREASES: INCREASES_PERCENT, DECREASES: DECREASES_PERCENT}
SINCE = "since execution "
"""Around an aggregate: only of the rows that have come since the last execution."""
CACHED = frozenset(OPERATORS.values()) | frozenset(WITH_PERCENT.values())
"""The thesis calls them cache operators: they need the previous value."""
SHOWN = {
    CHANGES: "CHANGES",
    INCREASES: "INCBY",
    DECREASES: "DECBY",
    INCREASES_PERCENT: "INCBYP",
    DECREASES_PERCENT: "DECBYP",
}


@dataclass(frozen=True, slots=True)
class Group:
    """A test of rows, or of groups of rows if it has aggregates: `test WHERE where GROUP BY by`."""

    test: exp.Expr
    span: Span = field(compare=False)
    where: exp.Expr | None = None
    by: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyChange:
    """FROM tables WHERE test: any change of a row for which the test holds."""

    tables: tuple[str, ...]
    where: exp.Expr | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class RowEvent:
    """ON INSERT OR DELETE OF table WHERE test."""

    kinds: frozenset[str]
    table: str
    columns: tuple[str, ...]
    where: exp.Expr | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Signal:
    """An event that an application raises."""

    name: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class All:
    """Conditions that hold at the same time (AND)."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """Conditions of which one holds (OR, ANY OF)."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Negation:
    part: Condition


@dataclass(frozen=True, slots=True)
class Sequence:
    """THEN: each after the one before it, all of them within a time."""

    parts: tuple[Condition, ...]
    within: Length | None = None


@dataclass(frozen=True, slots=True)
class Parallel:
    """ALL OF: each since the last execution, in any order."""

    parts: tuple[Condition, ...]
    within: Length | None = None


@dataclass(frozen=True, slots=True)
class Alternative:
    """ELSE: the first of these."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Lasting:
    """FOR MORE THAN 5 MINUTES: the condition has held for so long without a break."""

    part: Condition
    length: Length
    longer: bool
    """MORE THAN, rather than at least."""
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Trend:
    """INCREASED MONOTONICALLY FOR 2 HOURS: every change of the value in that time was upwards."""

    value: exp.Expr
    rising: bool
    length: Length
    span: Span = field(compare=False)
    where: exp.Expr | None = None


Condition: TypeAlias = (
    Group
    | AnyChange
    | RowEvent
    | Signal
    | All
    | Either
    | Negation
    | Sequence
    | Parallel
    | Alternative
    | Lasting
    | Trend
)


@dataclass(frozen=True, slots=True)
class Trigger:
    """WHEN condition, WHILE condition, or the condition alone in the layout of the thesis."""

    condition: Condition
    repeats: bool
    """WHILE: at each relevant change while it is true, rather than when it becomes true."""
    text: str
