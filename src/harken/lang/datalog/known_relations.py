"""The relations that rules can use, in whichever language they were defined."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from harken.errors import NameFault, Span, TypeFault, counted, nearest
from harken.ir.relations import Relation
from harken.lang.datalog import syntax
from harken.lang.datalog.kinds import Kind


@dataclass(frozen=True, slots=True)
class KnownRelation:
    """A relation as Datalog sees it: its attributes in the order of their declaration.

    `types` are the declared types of the attributes, `positions` where they are among the columns
    of the relation. A relation of no attributes has one column all the same, which is always true.
    """

    name: str
    relation: Relation
    attributes: tuple[str, ...]
    types: tuple[str, ...]
    kinds: tuple[Kind, ...]
    positions: tuple[int, ...]


class Relations(Protocol):
    def find(self, name: str) -> KnownRelation | None: ...

    def names(self) -> Iterable[str]: ...


def relation_named(relations: Relations, name: str, span: Span) -> KnownRelation:
    known = relations.find(name)
    if known is None:
        raise unknown_relation(name, relations.names(), span)
    return known


def unknown_relation(name: str, names: Iterable[str], span: Span) -> NameFault:
    near = nearest(name, names)
    return NameFault(
        f"there is no relation {name}",
        code="unknown-relation",
        span=span,
        hint=f"did you mean {near}?" if near else f"declare it: .decl {name}(...)",
    )


def relation_of(relations: Relations, atom: syntax.Atom) -> KnownRelation:
    """The relation of an atom, which must have as many arguments."""
    known = relation_named(relations, atom.name, atom.span)
    if len(atom.arguments) != len(known.attributes):
        raise TypeFault(
            f"{atom.name} has {counted(len(known.attributes), 'attribute')}, and "
            f"{counted(len(atom.arguments), 'argument')} here",
            code="arity",
            span=atom.span,
            hint=f"it is {atom.name}({', '.join(known.attributes)})",
        )
    return known
