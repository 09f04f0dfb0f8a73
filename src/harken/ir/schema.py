"""The schema as front ends see it: types, functions, and the relations behind them.

A function is the user's side of a relation; a procedure is a function with effects and has no
relation. The database keeps the schema and hands it, as this interface, to every translation.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from harken.ir.clauses import Definition
from harken.ir.relations import Column, Relation
from harken.values.types import Hierarchy, Type


class FunctionKind(enum.Enum):
    STORED = "stored"
    DERIVED = "derived"
    FOREIGN = "foreign"
    PROCEDURE = "procedure"


@dataclass(frozen=True, slots=True)
class Function:
    """One overload of a named function.

    `oid` is the object that stands for it; `text` its definition as the user wrote it, in its
    `language`. The rows of a `materialized` view are stored. `facts_of` names the relation of
    Datalog whose stated facts a stored function holds. `order` are the positions of its columns in
    the order of declaration, where that is another than in the relation. A variadic function takes
    any values (a Python procedure registered without a signature). The condition and the action of
    a rule can be called as a function and a procedure, which are `of_rule`; their text is the
    rule's.
    """

    name: str
    parameters: tuple[Column, ...]
    results: tuple[Column, ...]
    kind: FunctionKind
    bag: bool = False
    oid: int = 0
    text: str = ""
    relation: Relation | None = None
    variadic: bool = False
    system: bool = False
    language: str = "amosql"
    materialized: bool = False
    facts_of: str = ""
    order: tuple[int, ...] = ()
    of_rule: str = ""

    @property
    def id(self) -> str:
        """`netincome(employee)`: unique among all functions."""
        return f"{self.name}({','.join(column.type.name for column in self.parameters)})"

    @property
    def is_set_valued(self) -> bool:
        """Whether it is stored with a set of values for each argument."""
        relation = self.relation
        return (
            self.kind is FunctionKind.STORED
            and relation is not None
            and relation.key == tuple(range(relation.arity))
            and relation.arity > len(self.parameters)
        )

    @property
    def has_effects(self) -> bool:
        return self.kind is FunctionKind.PROCEDURE or (
            self.kind is FunctionKind.FOREIGN and self.relation is None
        )


@dataclass(frozen=True, slots=True)
class Table:
    """A stored or derived relation as SQL sees it: its columns by name, in the order in which they
    were declared. `positions` are those of the columns in the relation."""

    name: str
    relation: Relation
    columns: tuple[Column, ...]
    positions: tuple[int, ...]


def example(overloads: Iterable[Function]) -> str:
    """The full name of one of several functions of a name: `employee.netincome`."""
    one = next(each for each in overloads if each.parameters)  # no two of them have none
    return f"{one.parameters[0].type}.{one.name}"


class Schema(Protocol):
    @property
    def hierarchy(self) -> Hierarchy: ...

    def overloads(self, name: str) -> tuple[Function, ...]:
        """The functions of that name; empty if there is none."""

    def function_names(self) -> tuple[str, ...]: ...

    def type_named(self, name: str) -> Type | None: ...

    def type_names(self) -> tuple[str, ...]: ...

    def extent(self, type_: Type) -> Relation:
        """The relation of the objects of a surrogate type."""

    def definitions(self, relation: Relation) -> tuple[Definition, ...]:
        """The definition of a derived relation, and of the auxiliary ones made with it."""
