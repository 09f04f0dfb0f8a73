"""Facts as rows of values, from a transaction in JSON: many at once, without parsing.

Law: the same as the facts `+r(...)` and `-r(...)`, one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harken.database.json_values import reader
from harken.database.results import to_json
from harken.database.runtime import Runtime
from harken.errors import HarkenError, Span, TypeFault, ValueFault, counted
from harken.lang.datalog.components import expand
from harken.lang.datalog.kinds import FLOAT, NUMBER_KIND, SYMBOL, UNSIGNED, Kind
from harken.lang.datalog.known_relations import KnownRelation, relation_named
from harken.lang.datalog.parser import parse
from harken.statements.datalog.declarations import Schema
from harken.statements.datalog.facts import Facts
from harken.statements.datalog.reading import Reading
from harken.values.encoding import encoder
from harken.values.rows import Row

NOWHERE = Span(0, 0)
_PYTHON: dict[Kind, tuple[type, ...]] = {
    NUMBER_KIND: (int,),
    UNSIGNED: (int,),
    FLOAT: (float,),
    SYMBOL: (str,),
}


def add_facts(runtime: Runtime, name: str, rows: Sequence[Sequence[Any]]) -> None:
    facts, known = _relation(runtime, name)
    facts.add(name, list(_read(known, rows)), NOWHERE)


def remove_facts(runtime: Runtime, name: str, rows: Sequence[Sequence[Any]]) -> None:
    facts, known = _relation(runtime, name)
    facts.remove(name, list(_read(known, rows)), NOWHERE)


def _relation(runtime: Runtime, name: str) -> tuple[Facts, KnownRelation]:
    schema = Schema(runtime, expand(parse("")))
    known = relation_named(schema.relations, name, NOWHERE)
    return Facts(runtime, schema, Reading(runtime, schema.relations, schema.types)), known


def _read(known: KnownRelation, rows: Sequence[Sequence[Any]]) -> Iterator[Row]:
    """The rows in stored form, with attributes in the order of declaration."""
    readers = [_reader(f"{known.name}.{name}", kind) for name, kind in _attributes(known)]
    for row in rows:
        if not readers and len(row) == 1 and row[0] is True:
            row = ()  # as for a user who sees the relation as a table
        if len(row) != len(readers):
            raise TypeFault(
                f"{known.name} has {counted(len(readers), 'attribute')}, but a row has "
                f"{counted(len(row), 'value')}",
                code="arity",
                hint=f"it is {known.name}({', '.join(known.attributes)})",
            )
        yield tuple(read(value) for read, value in zip(readers, row, strict=True))


def _attributes(known: KnownRelation) -> Iterator[tuple[str, Kind]]:
    return zip(known.attributes, known.kinds, strict=True)


def _reader(attribute: str, kind: Kind) -> Callable[[Any], Any]:
    of_json, wanted = reader(kind.type), _PYTHON.get(kind)

    def read(value: Any) -> Any:
        if value is None:
            raise ValueFault(f"{attribute}: a relation of Datalog has no NULLs", code="bad-value")
        try:
            found = of_json(value)
            if wanted is not None and type(found) not in wanted:
                raise TypeFault(f"{to_json(found)} is not of type {kind}", code="type-mismatch")
            if kind is UNSIGNED and found < 0:
                raise TypeFault(f"{found} is below zero", code="type-mismatch")
            return encoder(kind.type)(found)
        except HarkenError as error:
            error.message = f"{attribute}: {error.message}"
            raise

    return read
