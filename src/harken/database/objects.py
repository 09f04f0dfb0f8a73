"""Objects: things with an identity of their own, known to the database by a number.

Law: an object is in the extent of a type iff it is in the extents of all that type's supertypes,
and no function keeps a row for an object that is not in the extents its signature names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from harken.database.catalog import Catalog
from harken.engines.protocol import Engine
from harken.errors import IntegrityError, ValueFault
from harken.ir.relations import extent_relation
from harken.values.encoding import Encoder, encode_object, encoder, not_an_object
from harken.values.types import FUNCTION, OBJECT, RULE, TYPE, Type


@dataclass(frozen=True, slots=True, eq=False)
class Object:
    """A handle on an object. Two handles are equal iff they refer to the same object.

    `home` is the database it belongs to; None, in a handle that a user made, matches any database.
    """

    oid: int
    type: str = "object"
    home: str | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Object):
            return NotImplemented
        return self.oid == other.oid and (
            self.home == other.home or self.home is None or other.home is None
        )

    def __hash__(self) -> int:
        return hash(self.oid)

    def __repr__(self) -> str:
        return f"#[{self.type} {self.oid}]"


class Objects:
    """Creates, classifies and deletes objects."""

    def __init__(self, engine: Engine, catalog: Catalog) -> None:
        self._engine = engine
        self._catalog = catalog
        self._types: dict[int, frozenset[str]] = {}
        self.deletions = 0
        """The number of objects deleted in this session, including deletions that were rolled
        back."""

    @property
    def home(self) -> str:
        return self._catalog.home

    def forget(self) -> None:
        """Types may have changed: by another process, a rollback or a statement."""
        self._types.clear()

    def create(self, type_: Type) -> Object:
        self.refuse_system(type_, "created")
        oid = self._catalog.allocate(1)
        for name in self._catalog.hierarchy.topological(
            self._catalog.hierarchy.ancestors(type_.name)
        ):
            self._engine.set_row(extent_relation(Type(name)), (oid,))
        self._types[oid] = frozenset({type_.name})
        return Object(oid, type_.name, self.home)

    def add_type(self, oid: int, type_: Type) -> None:
        self.refuse_system(type_, "added")
        self._refuse_system_object(oid)
        if not self.types_of(oid):
            raise deleted()
        hierarchy = self._catalog.hierarchy
        for name in hierarchy.topological(hierarchy.ancestors(type_.name)):
            self._engine.set_row(extent_relation(Type(name)), (oid,))
        self.forget()

    def remove_type(self, oid: int, type_: Type) -> None:
        """Also removes the object from all subtypes, and the rows that functions have for it as one
        of these types."""
        self.refuse_system(type_, "removed")
        self._refuse_system_object(oid)
        self._index_mentions(type_.name)
        self._engine.remove_row(extent_relation(type_), (oid,))
        self.forget()

    def delete(self, oid: int) -> None:
        types = self.types_of(oid)
        if not types:
            raise deleted()
        self._refuse_system_object(oid)
        for name in types:
            self._index_mentions(name)
        self._engine.remove_row(extent_relation(OBJECT), (oid,))
        self.deletions += 1
        self.forget()

    def types_of(self, oid: int) -> frozenset[str]:
        """The most specific types of an object; empty if it does not exist."""
        known = self._types.get(oid)
        if known is None:
            known = self._catalog.hierarchy.most_specific(self._extents_with(oid))
            if len(self._types) > 100_000:
                self._types.clear()
            self._types[oid] = known
        return known

    def handle(self, oid: int) -> Object:
        types = self.types_of(oid)
        return Object(oid, min(types) if types else "object", self.home)

    def encoder(self, type_: Type) -> Encoder:
        """A function that encodes Python values of this type."""
        if not type_.surrogate:
            return encoder(type_)
        home = self.home

        def number(value: Any) -> int | None:
            if type(value) is Object and value.home is home:
                return value.oid
            if value is None and type_.nullable:
                return None
            if not isinstance(value, Object):
                raise not_an_object(value)
            return encode_object(self.own(value))

        return number

    def own(self, value: Any) -> Any:
        """Return the value, unless it is an object of another database."""
        if isinstance(value, Object) and value.home not in (self.home, None):
            raise ValueFault(
                f"{value!r} is an object of another database",
                code="wrong-object",
                hint="find the object in this database, by a query or an interface variable",
            )
        return value

    def _extents_with(self, oid: int) -> Iterable[str]:
        """From the top of the hierarchy down: an object that is not of a type is of none of its
        subtypes."""
        found: set[str] = set()
        waiting = [OBJECT.name]
        while waiting:
            name = waiting.pop()
            if name not in found and self._engine.contains(extent_relation(Type(name)), (oid,)):
                found.add(name)
                waiting += self._catalog.hierarchy.children(name)
        return found

    def _index_mentions(self, type_name: str) -> None:
        """SQLite looks for rows that mention a deleted object: let it use an index instead of a
        scan."""
        hierarchy = self._catalog.hierarchy
        concerned = hierarchy.ancestors(type_name) | set(hierarchy.descendants(type_name))
        self._engine.indexes.ensure(
            (relation, (position,))
            for relation in self._catalog.stored_relations()
            for position, column in enumerate(relation.columns)
            if column.type.surrogate and column.type.name in concerned
        )

    def refuse_system(self, type_: Type, what: str) -> None:
        if not type_.surrogate or type_ in (OBJECT, TYPE, FUNCTION, RULE):
            raise IntegrityError(
                f"objects of type {type_} cannot be {what} directly",
                code="in-use",
                hint="use a type made with `create type`",
            )

    def _refuse_system_object(self, oid: int) -> None:
        if self.types_of(oid) & {TYPE.name, FUNCTION.name, RULE.name}:
            raise IntegrityError(
                "types and functions have statements of their own",
                code="in-use",
                hint="use `create`, `delete type` and `delete function`",
            )


def deleted() -> ValueFault:
    return ValueFault(
        "the object does not exist: it was deleted, or its creation was rolled back",
        code="wrong-object",
    )
