"""Bulk loading: many new objects of one type with their properties, in one transaction.

The numbers of the objects are a range, so their extents are filled inside SQLite; each property is
one prepared statement over a column. Values are checked by type as everywhere else.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain
from typing import Any

from harken.database.json_values import reader
from harken.database.objects import Object
from harken.database.runtime import Runtime
from harken.errors import TypeFault
from harken.ir.relations import extent_relation
from harken.lang.amosql.overload_resolution import Argument, resolve, unknown_type
from harken.statements.amosql.updates import Target, find_target
from harken.statements.bulk_rows import as_table, chunks, select
from harken.values.encoding import LARGEST, SMALLEST
from harken.values.types import INTEGER, NUMBER, TEXT, Type


class LoadedObjects(Sequence[Object]):
    """The objects of a bulk load: usually a range of numbers, so a million take no memory."""

    def __init__(self, numbers: Sequence[int], type_name: str, home: str) -> None:
        self._numbers = numbers
        self._type = type_name
        self._home = home

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return LoadedObjects(self._numbers[index], self._type, self._home)
        return Object(self._numbers[index], self._type, self._home)


def load_objects(
    runtime: Runtime, type_name: str, rows: Any, properties: Sequence[str] | None
) -> LoadedObjects:
    """Create an object for each row; returns the new objects in the order of the rows."""
    type_ = runtime.catalog.type_named(type_name)
    if type_ is None:
        raise unknown_type(runtime.catalog, type_name, None)
    runtime.objects.refuse_system(type_, "loaded")
    rows = as_table(rows)
    names = _property_names(rows, properties)
    if hasattr(rows, "select"):
        rows = select(rows, names)
    targets = [_target(runtime, type_, name) for name in names]
    is_arrow = hasattr(rows, "to_batches")
    ranges: list[range] = []
    for columns, length in chunks(rows, len(names)):
        start = runtime.catalog.allocate(length)
        _fill_extents(runtime, type_, start, start + length)
        for target, values in zip(targets, columns, strict=True):
            column = _objects(values, target) if is_arrow else values
            _fill_property(runtime, target, range(start, start + length), column)
        ranges.append(range(start, start + length))
    return LoadedObjects(_joined(ranges), type_name, runtime.catalog.home)


def _joined(ranges: list[range]) -> Sequence[int]:
    """One range, unless the rows themselves created objects in between."""
    if not ranges:
        return range(0)
    whole = range(ranges[0].start, ranges[-1].stop)
    return whole if len(whole) == sum(map(len, ranges)) else list(chain(*ranges))


def _property_names(rows: Any, properties: Sequence[str] | None) -> Sequence[str]:
    names = getattr(rows, "column_names", None) if properties is None else properties
    if names is None or isinstance(names, str):
        raise TypeFault(
            "the properties of the rows are not named",
            code="arity",
            hint='give a list: db.load("item", rows, properties=["name", "quantity"])',
        )
    if len(set(names)) != len(names):
        raise TypeFault("a property is named twice", code="arity")
    return list(names)


def _target(runtime: Runtime, type_: Type, name: str) -> Target:
    (function,) = resolve(runtime.catalog, name, [Argument((type_,), exact=True)])
    target = find_target(function, runtime.catalog, None)
    if not target.is_direct or target.relation.arity != 2:
        raise TypeFault(
            f"{function.id} is not a property with one stored value", code="not-updatable"
        )
    return target


def _objects(values: Sequence[Any], target: Target) -> Sequence[Any]:
    """An Arrow column holds objects in printed form: `#[item 7]`."""
    type_ = target.relation.columns[1].type
    return list(map(reader(type_), values)) if type_.surrogate else values


def _fill_extents(runtime: Runtime, type_: Type, start: int, stop: int) -> None:
    hierarchy = runtime.catalog.hierarchy
    oids = array("q", range(start, stop))
    for name in hierarchy.topological(hierarchy.ancestors(type_.name)):
        runtime.engine.insert_column(extent_relation(Type(name)), start, oids)


def _fill_property(runtime: Runtime, target: Target, oids: range, column: Sequence[Any]) -> None:
    type_ = target.relation.columns[1].type
    if _is_clean(column, type_):
        runtime.engine.insert_column(target.relation, oids.start, _packed(column, type_))
        return
    turn = runtime.objects.encoder(type_)
    pairs = zip(oids, column, strict=True)
    rows = [(oid, turn(value)) for oid, value in pairs if value is not None]
    runtime.engine.insert_many(target.relation, rows)


def _packed(column: Sequence[Any], type_: Type) -> Sequence[Any]:
    """An array of machine numbers, or a tuple of texts, which SQLite reads without calling
    Python."""
    if type_ == TEXT:
        return tuple(column)
    return array("d" if type_ == NUMBER else "q", column)


def _is_clean(column: Sequence[Any], type_: Type) -> bool:
    """Whether all values already have their stored form; decided for the whole column at once."""
    kinds = set(map(type, column))
    if type_ == INTEGER and kinds == {int}:
        return bool(min(column) >= SMALLEST and max(column) <= LARGEST)
    if type_ == NUMBER and kinds == {float}:
        total = sum(column)
        return bool(total - total == 0)
    return type_ == TEXT and kinds == {str} and not any("\0" in text for text in column)
