"""The syntax tree of Datalog: expressions, formulas, statements. Each node knows its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from harken.errors import Span

# --- expressions ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Named:
    """A variable."""

    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Unnamed:
    """`_`: some value, nobody asks which."""

    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Number:
    """`form` is how it is written: integer (12), unsigned (12u) or float (1.5)."""

    value: int | float
    form: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Text:
    value: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Functor:
    """An operator or a function of values: `+`, `cat`."""

    name: str
    arguments: tuple[Expression, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cast:
    """`as(x, T)`: the same value as one of another declared type."""

    value: Expression
    type: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`sum x : { body }`; `value` is None for a count."""

    name: str
    value: Expression | None
    body: Formula
    span: Span = field(compare=False, repr=False)


Expression: TypeAlias = Named | Unnamed | Number | Text | Functor | Cast | Aggregate


# --- formulas ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Atom:
    name: str
    arguments: tuple[Expression, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A comparison of two values, or `match` or `contains`."""

    operator: str
    left: Expression
    right: Expression
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Truth:
    """`true` or `false`."""

    value: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Not:
    part: Formula
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Formula, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Formula, ...]
    span: Span = field(compare=False, repr=False)


Formula: TypeAlias = Atom | Constraint | Truth | Not | And | Or


# --- statements ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    type: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Declaration:
    """`.decl name(attributes) qualifiers`."""

    name: str
    attributes: tuple[Attribute, ...]
    qualifiers: tuple[tuple[str, Span], ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """`.type name <: base` makes a subtype, `.type name = a | b` a union or another name."""

    name: str
    bases: tuple[str, ...]
    is_subtype: bool
    span: Span = field(compare=False, repr=False)
    made: bool = field(default=False, compare=False, repr=False)
    """By a component: it is not what stands at its place in the text."""


@dataclass(frozen=True, slots=True)
class Rule:
    heads: tuple[Atom, ...]
    body: Formula | None
    span: Span = field(compare=False, repr=False)
    made: bool = field(default=False, compare=False, repr=False)
    """By a component: it is not what stands at its place in the text."""

    @property
    def is_fact(self) -> bool:
        """Without a body it is a fact, but `total(sum x : { r(x) }).` follows the rows of r, and
        `low(range(0, 9)).` is many."""
        given = (each for head in self.heads for each in head.arguments)
        parts = (part for each in given for part in subexpressions(each))
        return self.body is None and not any(
            isinstance(part, Aggregate) or (isinstance(part, Functor) and part.name == "range")
            for part in parts
        )


@dataclass(frozen=True, slots=True)
class Directive:
    """`.input`, `.output`, `.printsize` or `.limitsize` of one relation."""

    kind: str
    relation: str
    parameters: dict[str, str]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Monitor:
    relation: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Commit:
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Change:
    """`+fact.` or `-fact.`"""

    adds: bool
    atom: Atom
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Query:
    """`?- body.` asks for the variables that were written in it: `made` are those that were added
    when inline relations were written out."""

    body: Formula
    span: Span = field(compare=False, repr=False)
    made: frozenset[str] = frozenset()

    @property
    def variables(self) -> tuple[str, ...]:
        found = direct_variables(expressions(self.body))
        return tuple(name for name in found if name not in self.made)


@dataclass(frozen=True, slots=True)
class Ignored:
    """What is read and has no meaning here."""

    what: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ComponentType:
    """`C<T>`: a component, with a type for each of its parameters."""

    name: str
    arguments: tuple[str, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Component:
    """`.comp name<parameters> : bases { statements }`."""

    name: str
    parameters: tuple[str, ...]
    bases: tuple[ComponentType, ...]
    statements: tuple[Statement, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Instance:
    """`.init name = component`."""

    name: str
    component: ComponentType
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Override:
    """`.override relation`: the rules that the bases of a component give it do not hold."""

    relation: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class HeadLiteral:
    """What a production rule does for a solution of its body: it inserts a fact, or deletes it."""

    atom: Atom
    deletes: bool


@dataclass(frozen=True, slots=True)
class ProductionRule:
    """`rule name [priority n]: body -> head.`"""

    name: str
    priority: int | None
    semantics: str | None
    body: Formula | None
    heads: tuple[HeadLiteral, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Priority:
    """`.priority a, b > c`: each rule of a group goes before each of the next group."""

    groups: tuple[tuple[tuple[str, Span], ...], ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ProgramOption:
    """`.semantics`, `.timestamps`, `.refraction` or `.resolution`: how the rules are meant. The
    semantics may be that of some rules only."""

    kind: str
    value: str
    rules: tuple[tuple[str, Span], ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Run:
    """`.run`: fire rules until none is firable."""

    limit: int | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Activation:
    """`.activate [limit n]` and `.deactivate`: whether the rules run at each commit."""

    on: bool
    limit: int | None
    span: Span = field(compare=False, repr=False)


ScriptStep: TypeAlias = Monitor | Commit | Change | Query | Run | Activation
ProgramPart: TypeAlias = ProductionRule | Priority | ProgramOption
"""What a program of production rules is made of."""
Structure: TypeAlias = Component | Instance | Override
"""What is gone when components are expanded."""
Statement: TypeAlias = (
    Declaration
    | TypeDeclaration
    | Rule
    | Directive
    | ScriptStep
    | ProgramPart
    | Ignored
    | Structure
)


# --- variables -----------------------------------------------------------------------------


def without_cast(expression: Expression) -> Expression:
    """What a cast is about: it is the same value, so `p(as(x, T))` gives one to x."""
    while isinstance(expression, Cast):
        expression = expression.value
    return expression


def subexpressions(expression: Expression) -> Iterator[Expression]:
    """The expression and all in it, down to aggregates but not into them."""
    yield expression
    match expression:
        case Functor():
            for each in expression.arguments:
                yield from subexpressions(each)
        case Cast():
            yield from subexpressions(expression.value)


def expressions(formula: Formula) -> tuple[Expression, ...]:
    """The arguments of a formula without connectives."""
    match formula:
        case Atom():
            return formula.arguments
        case Constraint():
            return (formula.left, formula.right)
        case Not():
            return expressions(formula.part)
        case And() | Or():
            return tuple(each for part in formula.parts for each in expressions(part))
    return ()


def direct_variables(given: tuple[Expression, ...]) -> dict[str, Span]:
    """The variables that are mentioned outside the braces of aggregates, in order."""
    found: dict[str, Span] = {}
    for expression in given:
        for each in subexpressions(expression):
            if isinstance(each, Named):
                found.setdefault(each.name, each.span)
    return found


def aggregates(given: tuple[Expression, ...]) -> list[Aggregate]:
    """The aggregates among expressions, not those inside other aggregates."""
    return [
        each
        for expression in given
        for each in subexpressions(expression)
        if isinstance(each, Aggregate)
    ]


def inner_expressions(aggregate: Aggregate) -> tuple[Expression, ...]:
    """What stands in an aggregate: its value and the arguments of its body."""
    value = () if aggregate.value is None else (aggregate.value,)
    return (*value, *expressions(aggregate.body))


def deep_variables(aggregate: Aggregate) -> dict[str, Span]:
    """All variables in an aggregate, those of aggregates in it included."""
    inside = inner_expressions(aggregate)
    found = direct_variables(inside)
    for nested in aggregates(inside):
        found = {**deep_variables(nested), **found}
    return found
