"""A compiled expression or query of a statement: the bridge from syntax to engine.

Constants and parameters alone are evaluated directly; everything else is a plan that the engine
prepares once and runs with different values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from harken.database.objects import Object
from harken.engines.protocol import Query
from harken.errors import NameFault
from harken.ir.terms import Constant, Parameter, Term
from harken.values.encoding import decoder, encode, encoder
from harken.values.types import Type


class ParameterOrigin(Protocol):
    """Where a parameter gets its value: from a `literal` in the text, an `interface` variable or a
    `local` one, with its slot or name."""

    @property
    def kind(self) -> str: ...

    @property
    def key(self) -> int | str: ...


@dataclass(slots=True)
class Frame:
    """The values of one run: the literals taken from its text, and local variables."""

    interface: dict[str, Any]
    literals: Sequence[Any] = ()
    variables: Sequence[str] = ()
    locals: dict[str, Any] = field(default_factory=dict)
    returned: list[tuple[Any, ...]] | None = None

    def value(self, source: ParameterOrigin) -> Any:
        match source.kind:
            case "literal":
                return self.literals[int(source.key)]
            case "interface":
                key = source.key
                name = self.variables[key] if isinstance(key, int) else key
                return self.interface[name]
        if source.key not in self.locals:
            raise NameFault(
                f"the variable {source.key} has no value yet",
                code="unknown-variable",
                hint=f"give it one with `set {source.key} = ...`",
            )
        return self.locals[str(source.key)]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`terms` is set if there is nothing to compute, otherwise `query`."""

    types: tuple[Type, ...]
    sources: tuple[ParameterOrigin, ...]
    terms: tuple[Term, ...] | None
    query: Query | None
    home: str | None = None
    """The database of any objects among the values."""

    def stored(self, frame: Frame) -> list[tuple[Any, ...]]:
        """The rows as stored values."""
        values = [frame.value(source) for source in self.sources]
        if self.query is not None:
            return self.query.rows(values)
        assert self.terms is not None
        return [tuple(_encoded(term, values) for term in self.terms)]

    def rows(self, frame: Frame) -> list[tuple[Any, ...]]:
        """The rows as Python values."""
        return decode_rows(self.stored(frame), self.types, self.home)


def _encoded(term: Term, values: Sequence[Any]) -> Any:
    match term:
        case Parameter():
            return encoder(term.type)(values[term.index])
        case Constant():
            return encode(term.value, term.type)
    raise ValueError(f"{term} has no value before the query runs")


def decode_rows(
    rows: list[tuple[Any, ...]], types: Sequence[Type], home: str | None = None
) -> list[tuple[Any, ...]]:
    """Decode stored rows; objects that leave Harken carry their `home`."""
    turns = _turns(tuple([(type_, type_.nullable) for type_ in types]), home)
    if turns is None or not rows:
        return rows
    return [
        tuple(turn(value) if turn else value for turn, value in zip(turns, row, strict=True))
        for row in rows
    ]


@lru_cache(maxsize=1024)
def _turns(types: tuple[tuple[Type, bool], ...], home: str | None) -> list[Any] | None:
    """What decodes each column; None if every value is stored as it is. Types are equal whether
    NULL may stand there or not, and are decoded differently, so that is part of the key."""
    turns = [_turn(type_, home) for type_, _ in types]
    return turns if any(turns) else None


def _turn(type_: Type, home: str | None) -> Any:
    if type_.surrogate:
        name = type_.name
        return lambda oid: Object(oid, name, home)
    return decoder(type_)
