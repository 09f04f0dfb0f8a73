"""The rows for which a condition became true, as objects by column: what `triggered` has.

A row of a leaf is a key for each of its tables. The values are those at the end of the transaction;
of a row that is gone, those at the last execution.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from harken.continual.trigger_conditions import (
    CompiledLeaf,
    CompiledTrigger,
    RowReading,
    subscription,
)
from harken.database.evaluation import decode_rows
from harken.database.json_values import json_value
from harken.database.runtime import Runtime
from harken.engines.protocol import Query
from harken.ir.clauses import Program
from harken.planner.prepare import prepare
from harken.values.rows import Row

Names: TypeAlias = Sequence[str]
MOST_PLANS = 500
"""How many plans that read rows a session keeps."""


class FiredRows:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._queries: dict[tuple[str, str], Query] = {}
        self._epoch = -1

    def present(self, leaf: CompiledLeaf, number: int) -> list[Row]:
        """The rows of a leaf for a subscription."""
        return self._query(leaf, "holding", leaf.holding).rows((number,))

    def values(
        self, query: int, trigger: CompiledTrigger, fired: Iterable[tuple[int, Row]]
    ) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for number, key in fired:
            leaf = trigger.leaves[number]
            row = self._values(leaf, subscription(query, number), key)
            if row and row not in found[-1:]:
                found.append(row)
        return found

    def _values(self, leaf: CompiledLeaf, number: int, key: Row) -> dict[str, Any]:
        if not leaf.readings:
            columns = leaf.view.program.goal.columns[1 : 1 + len(leaf.names)]
            types = tuple(each.type for each in columns)
            return _shown(leaf.names, decode_rows([key], types, self._runtime.catalog.home)[0])
        found: dict[str, Any] = {}
        start = 0
        for reading in leaf.readings:
            width = len(reading.key_types)
            part = key[start : start + width]
            start += width
            names = leaf.names[start - width : start]
            for name, value in self._row(leaf, reading, number, part, names).items():
                found.setdefault(name, value)
        return found

    def _row(
        self, leaf: CompiledLeaf, reading: RowReading, number: int, key: Row, key_names: Names
    ) -> dict[str, Any]:
        catalog = self._runtime.catalog
        types = tuple(each.type for each in reading.columns)
        names = [each.name for each in reading.columns]
        values = decode_rows([key], reading.key_types, catalog.home)[0] if key else ()
        rows = self._query(leaf, f"now {reading.alias}", reading.now).rows(values)
        if not rows and reading.was is not None:
            query = self._query(leaf, f"was {reading.alias}", reading.was)
            rows = query.rows((number, *values))
        if not rows and leaf.kind == "events":  # it came and went since the last execution
            gone = dict.fromkeys(names) | dict(zip(key_names, values, strict=True))
            return _shown(names, [gone[name] for name in names])
        if not rows:
            return {}
        shown = decode_rows([rows[0][: len(types)]], types, catalog.home)[0]
        return _shown(names, shown)

    def _query(self, leaf: CompiledLeaf, name: str, program: Program) -> Query:
        catalog = self._runtime.catalog
        if self._epoch != catalog.epoch or len(self._queries) >= MOST_PLANS:
            for each in self._queries.values():
                each.release()
            self._queries.clear()
            self._epoch = catalog.epoch
        key = (leaf.view.label, name)
        if key not in self._queries:
            plan = prepare(program, catalog.hierarchy)
            self._queries[key] = self._runtime.engine.compile(plan)
        return self._queries[key]


def _shown(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    return {name: json_value(value) for name, value in zip(names, values, strict=True)}
