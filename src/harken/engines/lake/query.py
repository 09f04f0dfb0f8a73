"""A compiled plan that touches far relations: answered here if its rows can be at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harken.engines.sqlite import layout
from harken.engines.sqlite.engine import Query
from harken.engines.sqlite.expressions import quote
from harken.errors import EngineError
from harken.ir.clauses import Computation
from harken.ir.operations import OPERATIONS
from harken.planner.demand import Demand
from harken.planner.prepare import Plan

if TYPE_CHECKING:
    from harken.engines.lake.engine import LakeEngine

ANSWER = "harken_answer"


@dataclass(frozen=True, slots=True)
class FarQuery(Query):
    """`asked` is what it needs, with the queries that say which keys; `deltas` are the changes of
    far relations that it reads."""

    plan: Plan
    asked: tuple[tuple[Demand, Query | None], ...]
    deltas: frozenset[str]
    engine: LakeEngine

    def rows(self, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self.engine.steady(), self.connection.fixed_time():
            if self.is_here(values):
                return Query.rows(self, values)
            return self._by_spark(values)

    def run_from(
        self, before: str, after: str, insert: str = "", conflict: str = ""
    ) -> list[tuple[Any, ...]]:
        with self.engine.steady(), self.connection.fixed_time():
            if self.is_here(()):
                return Query.run_from(self, before, after, insert, conflict)
            rows = self._by_spark(())
        columns = layout.typed_columns(self.relation) or "c0 INTEGER"
        table = quote(ANSWER)
        self.connection.run(f"DROP TABLE IF EXISTS temp.{table}")
        self.connection.run(f"CREATE TEMP TABLE {table} ({columns})")
        marks = ", ".join("?" for _ in range(max(1, self.relation.arity)))
        self.connection.run_many(
            f"INSERT INTO temp.{table} VALUES ({marks})", (row or (1,) for row in rows)
        )
        select = f"{before} (SELECT * FROM temp.{table}) {after}"
        found = self.connection.rows(f"{insert} {select} {conflict}")
        self.connection.run(f"DROP TABLE temp.{table}")
        return found

    def counted(
        self, columns: Sequence[int], values: Sequence[int], present: int | None, many: bool
    ) -> list[tuple[Any, ...]] | None:
        from harken.engines.spark.distributed import counted

        with self.engine.steady(), self.connection.fixed_time():
            if self.is_here(()):
                return Query.counted(self, columns, values, present, many)
            return counted(self.engine, self, columns, values, present)

    def is_here(self, values: Sequence[Any]) -> bool:
        """Are the rows that it needs at hand? If not, Spark answers, or has answered already."""
        if id(self) in self.engine.ahead:
            return self.engine.ahead[id(self)] is None
        return self.engine.is_at_hand(self, values)

    def _by_spark(self, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        from harken.engines.spark.distributed import answer

        refuse_resident(self.plan)
        answered = self.engine.ahead.get(id(self))
        return answer(self.engine, self, values) if answered is None else answered


def refuse_resident(plan: Plan) -> None:
    """Refuse a plan with operations that only the resident engine has."""
    named = {
        literal.operation
        for definition in plan.program.definitions.values()
        for clause in definition.clauses
        for literal in clause.body
        if isinstance(literal, Computation) and OPERATIONS[literal.operation].resident
    }
    if named:
        raise EngineError(
            f"this is for Spark to answer, which has no {', '.join(sorted(named))}",
            code="unsupported",
            hint="ask for fewer rows, so that they can be brought here",
        )
