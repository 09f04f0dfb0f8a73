"""The primitive types of Datalog, and the declared ones above them.

`number`, `unsigned`, `float` and `symbol` never mix: a value is converted by a functor or not at
all. A subtype is a primitive type under a name of its own; values of two types meet only where some
type is a subtype of both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from harken.errors import NameFault, Span, TypeFault, nearest
from harken.lang.datalog import syntax
from harken.values.types import INTEGER, NUMBER, TEXT, Type

OTHER_NAMES = {
    **dict.fromkeys(("int", "integer", "bigint", "long", "i32", "i64"), "number"),
    **dict.fromkeys(("string", "str", "text", "varchar", "sym"), "symbol"),
    **dict.fromkeys(("real", "double", "decimal", "f64"), "float"),
    **dict.fromkeys(("uint", "u32", "u64"), "unsigned"),
}
"""What other systems call the primitive types."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A primitive type and what stands for it in clauses. A column of SQL or AMOSQL may be of a
    type that Datalog has no name for; it is a kind of its own."""

    name: str
    type: Type

    def __str__(self) -> str:
        return self.name


NUMBER_KIND = Kind("number", INTEGER)
UNSIGNED = Kind("unsigned", INTEGER)
FLOAT = Kind("float", NUMBER)
SYMBOL = Kind("symbol", TEXT)
PRIMITIVES = {kind.name: kind for kind in (NUMBER_KIND, UNSIGNED, FLOAT, SYMBOL)}
NUMERIC = frozenset({NUMBER_KIND, UNSIGNED, FLOAT})
WHOLE = frozenset({NUMBER_KIND, UNSIGNED})

_BY_TYPE = {INTEGER: NUMBER_KIND, NUMBER: FLOAT, TEXT: SYMBOL}


def kind_of(type_: Type) -> Kind:
    """The kind of a column that another language made."""
    plain = type_.or_null(False)
    return _BY_TYPE.get(plain) or Kind(plain.name, plain)


@dataclass(slots=True)
class Types:
    """The declared types: their kinds, and which is a subtype of which."""

    declared: dict[str, tuple[syntax.TypeDeclaration, str]] = field(default_factory=dict)
    """Each declaration with its text."""
    _kinds: dict[str, Kind] = field(default_factory=lambda: dict(PRIMITIVES))

    def declare(self, given: Iterable[tuple[syntax.TypeDeclaration, str]]) -> None:
        """Add declarations, in any order; the same one again changes nothing."""
        waiting: list[syntax.TypeDeclaration] = []
        for node, text in given:
            known = self.declared.get(node.name)
            if known is not None and known[0] == node:
                continue
            if known is not None or node.name in PRIMITIVES:
                raise NameFault(
                    f"there is already a type {node.name}", code="exists", span=node.span
                )
            self.declared[node.name] = (node, text)
            waiting.append(node)
        while waiting:
            ready = [node for node in waiting if all(base in self._kinds for base in node.bases)]
            if not ready:
                raise self._unresolved(waiting[0])
            for node in ready:
                waiting.remove(node)
                self._add(node)

    def _unresolved(self, node: syntax.TypeDeclaration) -> NameFault:
        missing = next(base for base in node.bases if base not in self._kinds)
        if missing in self.declared:
            return NameFault(f"the type {node.name} is its own base", code="syntax", span=node.span)
        return self.unknown(missing, node.span)

    def _add(self, node: syntax.TypeDeclaration) -> None:
        kinds = {self._kinds[base] for base in node.bases}
        if len(kinds) > 1:
            names = " and ".join(sorted(kind.name for kind in kinds))
            raise TypeFault(
                f"the type {node.name} would hold {names}, and these do not mix",
                code="type-mismatch",
                span=node.span,
            )
        self._kinds[node.name] = kinds.pop()

    def kind(self, name: str, span: Span) -> Kind:
        if name not in self._kinds:
            raise self.unknown(name, span)
        return self._kinds[name]

    def unknown(self, name: str, span: Span) -> NameFault:
        near = OTHER_NAMES.get(name.lower()) or nearest(name, self._kinds)
        return NameFault(
            f"there is no type {name}",
            code="unknown-type",
            span=span,
            hint=f"did you mean {near}?" if near else "declare it: .type ... <: number",
        )

    def is_subtype(self, sub: str, sup: str) -> bool:
        """May a value of `sub`, which is of the same kind, stand where `sup` is wanted?"""
        if sub == sup or sup in PRIMITIVES:
            return True
        parts, alternatives = self._parts(sub), self._parts(sup)
        if parts:
            return all(self.is_subtype(each, sup) for each in parts)
        if any(self.is_subtype(sub, each) for each in alternatives):
            return True
        base = self._base(sub)
        return base is not None and self.is_subtype(base, sup)

    def below(self, one: str, other: str) -> set[str]:
        """The greatest types that are subtypes of both; of two unions there may be several."""
        if self.is_subtype(one, other):
            return {one}
        if self.is_subtype(other, one):
            return {other}
        if not self._parts(one):
            one, other = other, one
        return {found for each in self._parts(one) for found in self.below(each, other)}

    def _parts(self, name: str) -> tuple[str, ...]:
        """The types of a union; another name for a type is the union of that one."""
        node = self.declared[name][0] if name in self.declared else None
        return node.bases if node is not None and not node.is_subtype else ()

    def _base(self, name: str) -> str | None:
        node = self.declared[name][0] if name in self.declared else None
        return node.bases[0] if node is not None and node.is_subtype else None

    def texts_of(self, names: Iterable[str]) -> list[str]:
        """The declarations that these types need, as they were written, bases first."""
        found: dict[str, str] = {}

        def add(name: str) -> None:
            if name in self.declared and name not in found:
                node, text = self.declared[name]
                for base in node.bases:
                    add(base)
                found[name] = text

        for name in names:
            add(name)
        return list(found.values())
