"""Relations of continual queries that SQL can read: `continual_query`, `continual_execution`.

They are stored functions with a number as their key, like any other table; nothing but Harken
should write them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harken.database.runtime import Runtime
from harken.database.stored_functions import store
from harken.errors import NameFault
from harken.ir.relations import Column, Relation
from harken.ir.schema import Function, FunctionKind
from harken.values.encoding import decode_timestamp, encode_timestamp
from harken.values.rows import Row
from harken.values.types import INTEGER, TIMESTAMP

NUMBER = Column("number", INTEGER)


class OwnRelation:
    """A table of ours with the key `number`, which is created with its first row."""

    def __init__(
        self,
        runtime: Runtime,
        name: str,
        columns: Sequence[Column],
        holds: str,
        looked_up: Sequence[str] = (),
    ) -> None:
        self._runtime, self._name, self._holds = runtime, name, holds
        self.columns = tuple(columns)
        self._text = f"create function {name}(integer number) -> {holds}"
        self._indexed = [i + 1 for i, each in enumerate(self.columns) if each.name in looked_up]
        self._times = [i for i, each in enumerate(self.columns) if each.type.name == TIMESTAMP.name]

    @property
    def is_declared(self) -> bool:
        catalog, name = self._runtime.catalog, f"{self._name}(integer)"
        return catalog.has_function(name) and catalog.function(name).text == self._text

    def declare(self) -> bool:
        """Create the relation, in a transaction, if it does not exist; whether it did not."""
        if self.is_declared:
            return False
        if self._runtime.catalog.named(self._name):
            raise NameFault(
                f"{self._holds} are kept in {self._name}, and there is another table of that name",
                code="exists",
                hint=f"rename yours first: ALTER TABLE {self._name} RENAME TO ...",
            )
        stored = FunctionKind.STORED
        function = Function(self._name, (NUMBER,), self.columns, stored, text=self._text)
        made = store(self._runtime, function, resident=True)
        assert made.relation is not None
        self._runtime.engine.indexes.ensure([(made.relation, (each,)) for each in self._indexed])
        return True

    def number(self) -> int:
        return self._runtime.catalog.allocate(1)

    def write(self, number: int, values: Mapping[str, Any]) -> None:
        """Add a row, or replace the one with this number."""
        row = [values[column.name] for column in self.columns]
        for i in self._times:
            row[i] = None if row[i] is None else encode_timestamp(row[i])
        self._runtime.engine.set_row(self._relation(), (number, *row))

    def remove(self, number: int) -> None:
        self._runtime.engine.clear(self._relation(), (number,))

    def find(self, number: int) -> dict[str, Any] | None:
        if not self.is_declared:
            return None
        rows = self._runtime.engine.results(self._relation(), (number,))
        return self._read((number, *rows[0])) if rows else None

    def matching(self, **known: Any) -> list[dict[str, Any]]:
        """The rows with these values, in order of number."""
        if not self.is_declared:
            return []
        places = {each.name: i + 1 for i, each in enumerate(self.columns)}
        chosen = {places[name]: value for name, value in known.items()}
        return [self._read(row) for row in sorted(self._stored(chosen), key=lambda row: row[0])]

    def _stored(self, known: Mapping[int, Any]) -> list[Row]:
        return self._runtime.engine.matching(self._relation(), known)

    def _read(self, row: Row) -> dict[str, Any]:
        values = list(row[1:])
        for i in self._times:
            values[i] = None if values[i] is None else decode_timestamp(values[i])
        named = {each.name: value for each, value in zip(self.columns, values, strict=True)}
        return {"number": row[0], **named}

    def _relation(self) -> Relation:
        relation = self._runtime.catalog.function(f"{self._name}(integer)").relation
        assert relation is not None
        return relation
