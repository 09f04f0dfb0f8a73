"""The keys that joins need of a source, read from stored tables when a query begins.

Law: a key that the query can join with is among them, or none is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harken.database.evaluation import decode_rows
from harken.database.runtime import Runtime
from harken.intake.source_needs import Need
from harken.lang.sql.parser import Statement
from harken.sources.outside import Condition
from harken.statements.sql.asked_keys import KeyQuery
from harken.statements.sql.reading import Reading

MOST_KEYS = 1_000
"""Values that are asked for: some databases take no longer lists."""


class AskedKeys:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._reading = Reading(runtime)

    def added(self, need: Need, queries: Sequence[KeyQuery]) -> Need:
        """A LIMIT stays out: who joins has none."""
        found = [each for each in map(self._condition, queries) if each is not None]
        return replace(need, conditions=(*need.conditions, *found))

    def _condition(self, key: KeyQuery) -> Condition | None:
        statement = Statement(key.query, key.query.sql(), 0)
        found = self._reading.rows(statement, key.query)
        rows = [row for row in found.rows if row[0] is not None]
        if len(rows) > MOST_KEYS:
            return None
        values = sorted(decode_rows(rows, found.types, self._runtime.catalog.home))
        return Condition(key.column, "in", tuple(value for (value,) in values))
