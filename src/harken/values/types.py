"""Types and their hierarchy.

A type is a *literal* type (integer, number, ...), whose values stand for themselves, or a
*surrogate* type, whose values are objects with an identity. Surrogate types form a directed
acyclic graph under `object`. Among literal types only `integer` may stand for `number`; the
translation makes that widening explicit, so two terms that meet in a clause agree exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Type:
    """`nullable` says that NULL may stand where a value of the type is wanted. It is not part of
    what the type is: a column that may be NULL still meets one that may not."""

    name: str
    surrogate: bool = True
    nullable: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return self.name

    def or_null(self, nullable: bool = True) -> Type:
        return self if self.nullable == nullable else replace(self, nullable=nullable)


INTEGER = Type("integer", surrogate=False)
NUMBER = Type("number", surrogate=False)
TEXT = Type("charstring", surrogate=False)
BOOLEAN = Type("boolean", surrogate=False)
DATE = Type("date", surrogate=False)
TIMESTAMP = Type("timestamp", surrogate=False)
OBJECT = Type("object")
TYPE = Type("type")
FUNCTION = Type("function")
RULE = Type("rule")

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def decimal_type(precision: int, scale: int) -> Type:
    """Exact numbers with a given count of digits, some of them after the point. A value is stored
    as an integer, in units of its last digit."""
    return Type(f"decimal({precision},{scale})", surrogate=False)


def is_decimal(type_: Type) -> bool:
    return not type_.surrogate and type_.name.startswith("decimal(")


def decimal_digits(type_: Type) -> tuple[int, int]:
    """Precision and scale."""
    found = _DECIMAL.fullmatch(type_.name)
    assert found is not None, type_
    return int(found[1]), int(found[2])


def literal_type_named(name: str) -> Type | None:
    """The type of this name whose values stand for themselves."""
    return Type(name, surrogate=False) if _DECIMAL.fullmatch(name) else LITERAL_TYPES.get(name)


LITERAL_TYPES = {t.name: t for t in (INTEGER, NUMBER, TEXT, BOOLEAN, DATE, TIMESTAMP)}
ALIASES = {"real": "number", "string": "charstring", "timeval": "timestamp", "time": "timestamp"}
SYSTEM_TYPES = {t.name: t for t in (OBJECT, TYPE, FUNCTION, RULE)}
NUMERIC = frozenset({INTEGER, NUMBER})
ORDERED = frozenset({INTEGER, NUMBER, TEXT, DATE, TIMESTAMP, BOOLEAN})


@dataclass(frozen=True)
class Hierarchy:
    """The surrogate types with their direct supertypes; every type but `object` has at least one.

    >>> h = Hierarchy({"person": ("object",), "student": ("person",)})
    >>> h.is_subtype(Type("student"), Type("person")), h.is_subtype(INTEGER, NUMBER)
    (True, True)
    """

    supertypes: Mapping[str, tuple[str, ...]]
    _ancestors: dict[str, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)

    def __contains__(self, name: str) -> bool:
        return name == OBJECT.name or name in self.supertypes

    def __iter__(self) -> Iterator[str]:
        yield OBJECT.name
        yield from self.supertypes

    def ancestors(self, name: str) -> frozenset[str]:
        """The type itself and everything above it."""
        known = self._ancestors.get(name)
        if known is None:
            above = [self.ancestors(parent) for parent in self.supertypes.get(name, ())]
            known = frozenset({name}).union(*above)
            self._ancestors[name] = known
        return known

    def descendants(self, name: str) -> tuple[str, ...]:
        """The type itself and everything below it."""
        return tuple(other for other in self if name in self.ancestors(other))

    def children(self, name: str) -> tuple[str, ...]:
        return tuple(sub for sub, above in self.supertypes.items() if name in above)

    def topological(self, names: Iterable[str]) -> list[str]:
        """The given types with supertypes before subtypes."""
        return sorted(names, key=lambda name: (len(self.ancestors(name)), name))

    def is_subtype(self, sub: Type, sup: Type) -> bool:
        """May a value of `sub` stand where `sup` is wanted?"""
        if sub == sup:
            return True
        if sub.surrogate and sup.surrogate:
            return sup.name in self.ancestors(sub.name)
        return sub == INTEGER and sup == NUMBER

    def related(self, one: Type, other: Type) -> bool:
        return self.is_subtype(one, other) or self.is_subtype(other, one)

    def most_specific(self, names: Iterable[str]) -> frozenset[str]:
        """Drop every type that another one of them implies."""
        given = set(names)
        return frozenset(
            name
            for name in given
            if not any(name != other and name in self.ancestors(other) for other in given)
        )

    def common(self, one: Type, other: Type) -> Type | None:
        """The least type that holds the values of both, or None if no single type does.

        Where several are least (multiple inheritance) the alphabetically first is taken, so that
        the answer does not depend on the order of definitions.
        """
        if self.is_subtype(one, other):
            return other
        if self.is_subtype(other, one):
            return one
        if not (one.surrogate and other.surrogate):
            return None
        shared = self.ancestors(one.name) & self.ancestors(other.name)
        return Type(min(self.most_specific(shared)))
