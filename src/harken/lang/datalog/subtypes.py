"""Which declared types the variables of a clause have.

A positive atom gives its variables the types that it declares, `as` gives one, and a comparison
gives both of its sides the same. Law: a variable is of all types that it is given, so there must be
one below them all, and a head takes it only if what it declares is above one of them. Numbers,
symbols and what functors compute are of every type of their kind.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from harken.errors import Span, TypeFault
from harken.lang.datalog.kinds import Types


@dataclass(slots=True)
class _Value:
    """What is of one type: how it is called, and the greatest types below all that it was given;
    none were given to what may be of any type."""

    shown: str
    types: tuple[str, ...] = ()
    parent: _Value | None = None

    def root(self) -> _Value:
        return self if self.parent is None else self.parent.root()


@dataclass(slots=True)
class Subtypes:
    """What is said of the types of variables and other values, each known by a key."""

    _values: dict[Hashable, _Value] = field(default_factory=dict)
    _given: list[tuple[_Value, str, Span]] = field(default_factory=list)
    _alike: list[tuple[_Value, _Value, Span]] = field(default_factory=list)
    _wanted: list[tuple[_Value, str, Span]] = field(default_factory=list)

    def give(self, key: Hashable, shown: str, declared: str, span: Span) -> None:
        """What has this key is of a type that was declared."""
        self._given.append((self._value(key, shown), declared, span))

    def want(self, key: Hashable, shown: str, declared: str, span: Span) -> None:
        """It stands where only values of this type do."""
        self._wanted.append((self._value(key, shown), declared, span))

    def link(self, one: tuple[Hashable, str], other: tuple[Hashable, str], span: Span) -> None:
        """Two values are compared, so they are of the same type."""
        self._alike.append((self._value(*one), self._value(*other), span))

    def _value(self, key: Hashable, shown: str) -> _Value:
        return self._values.setdefault(key, _Value(shown))

    def check(self, types: Types) -> None:
        """When all is said."""
        for value, declared, span in self._given:
            value.types = _meeting(types, value, (declared,), span)
        for one, other, span in self._alike:
            first, second = one.root(), other.root()
            if first is not second:
                second.types = _meeting(types, first, second.types, span)
                first.parent = second
        for value, wanted, span in self._wanted:
            found = value.root().types
            if not all(types.is_subtype(each, wanted) for each in found):
                raise _clash(value.shown, found, (wanted,), span)


def _meeting(types: Types, value: _Value, given: tuple[str, ...], span: Span) -> tuple[str, ...]:
    if not value.types or not given:
        return value.types or given
    found = {each for one in value.types for other in given for each in types.below(one, other)}
    if not found:
        raise _clash(value.shown, value.types, given, span)
    return tuple(sorted(found))


def _clash(shown: str, given: Iterable[str], wanted: Iterable[str], span: Span) -> TypeFault:
    other = " | ".join(wanted)
    return TypeFault(
        f"{shown} is of type {' | '.join(given)}, which is no subtype of {other}",
        code="type-mismatch",
        span=span,
        hint=f"as(x, {other}) takes it for one" if "|" not in other else None,
    )
