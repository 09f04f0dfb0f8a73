"""What became of each execution: the relation `continual_execution`.

`outcome` tells apart what people mix up: the answer has `changed`, it is `unchanged`, there is `no
data`, the query ended in an `error`, or the execution came too late (`missed`).
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, field
from typing import Any

from harken.continual.own_relations import OwnRelation
from harken.continual.trigger_kinds import Cause
from harken.database.runtime import Runtime
from harken.ir.relations import Column
from harken.values.rows import Row
from harken.values.types import INTEGER, NUMBER, TEXT, TIMESTAMP

PARTS = 10
"""The oldest executions of a query are forgotten together, this part of the kept ones at a time."""
NAME = "continual_execution"
CHANGED, UNCHANGED, NO_DATA = "changed", "unchanged", "no data"
ERROR, MISSED = "error", "missed"
COLUMNS = (
    Column("query", TEXT),
    Column("execution", INTEGER),
    Column("at", TIMESTAMP),
    Column("event", TEXT),
    Column("cause", TEXT),
    Column("outcome", TEXT),
    Column("strategy", TEXT),
    Column("inserted", INTEGER),
    Column("deleted", INTEGER),
    Column("rows", INTEGER),
    Column("seconds", NUMBER),
    Column("error", TEXT),
    Column("result", TEXT),
    Column("query_number", INTEGER),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One execution. `inserted` and `deleted` are the difference of the answer since the execution
    before, as values; of the first, `inserted` is the whole answer."""

    query: str
    number: int
    """Of the query."""
    execution: int
    """The first is 1. Of an execution that failed, the number that it would have had."""
    at: datetime.datetime
    cause: Cause
    outcome: str
    strategy: str
    columns: tuple[str, ...] = ()
    inserted: list[Row] = field(default_factory=list)
    deleted: list[Row] = field(default_factory=list)
    rows: int = 0
    """How many rows the answer has."""
    seconds: float = field(default=0.0, compare=False)
    error: str = ""


class ExecutionLog:
    def __init__(self, runtime: Runtime) -> None:
        self._relation = OwnRelation(
            runtime, NAME, COLUMNS, "executions of continual queries", ("query_number",)
        )

    def declare(self) -> bool:
        return self._relation.declare()

    def add(self, done: Execution, result: dict[str, Any], keep: int, failures: int = 0) -> int:
        """In a transaction: record an execution with its result, and keep only the last ones of its
        query, which has failed so often since it last worked."""
        number = self._relation.number()
        values = {
            "query": done.query,
            "execution": done.execution,
            "at": done.at,
            "event": done.cause.kind,
            "cause": done.cause.as_json(),
            "outcome": done.outcome,
            "strategy": done.strategy,
            "inserted": len(done.inserted),
            "deleted": len(done.deleted),
            "rows": done.rows,
            "seconds": done.seconds,
            "error": done.error,
            "result": json.dumps(result, ensure_ascii=False) if result else "",
            "query_number": done.number,
        }
        self._relation.write(number, values)
        beyond = done.execution + failures - keep
        if beyond > 0 and beyond % max(1, keep // PARTS) == 0:
            self._trim(done.number, keep)
        return number

    def _trim(self, query: int, keep: int) -> None:
        found = self._relation.matching(query_number=query)
        for row in found[: max(0, len(found) - keep)]:
            self._relation.remove(row["number"])

    def forget(self, query: int) -> None:
        for row in self._relation.matching(query_number=query):
            self._relation.remove(row["number"])

    def last(self, query: int) -> dict[str, Any] | None:
        found = self._relation.matching(query_number=query)
        return found[-1] if found else None

    def of_query(self, query: int, execution: int | None = None) -> list[dict[str, Any]]:
        """The recorded executions of a query, oldest first; or those with one number, which are
        several if it failed at first."""
        if execution is None:
            return self._relation.matching(query_number=query)
        return self._relation.matching(query_number=query, execution=execution)
