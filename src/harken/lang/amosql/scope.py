"""Scopes: what a name means at one place of a program text.

A name is a variable of the clause being built, or a parameter: a value that comes with the call
(a literal cut out of the text, an interface variable, a local variable of a procedure).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from harken.ir.terms import Parameter, Variable
from harken.lang.amosql.overload_resolution import Argument
from harken.values.types import Type


@dataclass(frozen=True, slots=True)
class ParameterSource:
    """Where the value of a parameter comes from when the statement runs.

    `kind` is `literal` (key: slot), `interface` (key: slot, or name where there are no slots) or
    `local` (key: name).
    """

    kind: str
    key: int | str


@dataclass(slots=True)
class Parameters:
    """The parameters of one statement, numbered as they are met."""

    sources: list[ParameterSource] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)

    def number(self, source: ParameterSource, argument: Argument) -> Parameter:
        if source not in self.sources:
            self.sources.append(source)
            self.arguments.append(argument)
        index = self.sources.index(source)
        types = self.arguments[index].types
        return Parameter(index, types[0])

    def argument(self, parameter: Parameter) -> Argument:
        return self.arguments[parameter.index]


@dataclass(slots=True)
class Local:
    """A parameter or local variable of a procedure."""

    name: str
    type: Type


@dataclass(slots=True)
class Scope:
    parent: Scope | None = None
    names: dict[str, Variable | Local] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def child(self) -> Scope:
        return Scope(parent=self)

    def find(self, name: str) -> Variable | Local | None:
        if name in self.names:
            self.used.add(name)
            return self.names[name]
        return self.parent.find(name) if self.parent else None

    def known(self) -> Iterator[str]:
        yield from self.names
        if self.parent:
            yield from self.parent.known()

    def variables(self) -> frozenset[Variable]:
        """Every variable of the clauses around this place."""
        own = frozenset(term for term in self.names.values() if isinstance(term, Variable))
        return own | self.parent.variables() if self.parent else own
