"""A compiled plan that touches far relations: answered here if its rows can be at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harken.engines.lake.limits import MOST_EVALUATED
from harken.engines.protocol import BrokenOff, TooManyRows
from harken.engines.sqlite import layout
from harken.engines.sqlite.engine import Query
from harken.engines.sqlite.expressions import quote
from harken.engines.sqlite.weighing import around
from harken.engines.weighing import Weighing
from harken.errors import EngineError
from harken.ir.clauses import Computation
from harken.ir.operations import OPERATIONS
from harken.ir.relations import Relation
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
    is_stepwise: bool
    """Do the rules of its fixpoints bring what they need, round by round?"""

    def rows(self, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self.engine.steady(), self.connection.fixed_time():
            if self.is_here(values):
                with suppress(TooManyRows):
                    return Query.rows(self, values)
            return self._by_spark(values)

    def run_from(
        self, before: str, after: str, insert: str = "", conflict: str = ""
    ) -> list[tuple[Any, ...]]:
        with self.engine.steady(), self.connection.fixed_time():
            if self.is_here(()):
                with suppress(TooManyRows):
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
            self.connection.answered_elsewhere += 1
            return counted(self.engine, self, columns, values, present)

    def weighed(self, weighing: Weighing, insert: str, conflict: str) -> None:
        """What Spark finds is put together there: of a large change little is left then."""
        from harken.engines.spark.distributed import weighed

        with self.engine.steady(), self.connection.fixed_time():
            if self.is_here(()):
                with suppress(TooManyRows):
                    Query.run_from(self, *around(weighing), insert, conflict)
                    return
            self._refuse_spark()
            self.connection.answered_elsewhere += 1
            rows = weighed(self.engine, self, weighing)
        marks = ", ".join("?" for _ in range(weighing.width))
        self.connection.run_many(f"{insert} VALUES ({marks}) {conflict}", rows)

    def is_here(self, values: Sequence[Any]) -> bool:
        """Are the rows that it needs at hand? If not, Spark answers, or has answered already."""
        if id(self) in self.engine.ahead:
            return self.engine.ahead[id(self)] is None
        return self.engine.is_at_hand(self, values)

    @contextmanager
    def evaluated(self) -> Iterator[Callable[[Relation], list[tuple[Any, ...]]]]:
        with self.engine.steady(), self.connection.fixed_time():
            if self.is_here(()):
                with Query.evaluated(self) as rows_of:
                    yield rows_of
                return
            with self.connection.snapshot():
                try:
                    self._fill_by_spark()
                    yield self._table_rows
                finally:
                    self.clear()

    def _fill_by_spark(self) -> None:
        """Let Spark evaluate the recursive relations that are wanted; their rows come here."""
        from harken.engines.spark.distributed import recursive_rows

        self._refuse_spark()
        if self.connection.is_limited:
            raise BrokenOff  # nobody knows how long it will take, and it could not be stopped
        wanted = [
            (each.relation, fixpoint, number)
            for stratum, fixpoint in zip(self.plan.computed, self.fixpoints, strict=True)
            for number, each in enumerate(stratum.definitions)
            if stratum.recursive and each.relation.id in self.plan.tabulated
        ]
        relations = [relation for relation, _, _ in wanted]
        found = recursive_rows(self.engine, self, relations, MOST_EVALUATED)
        for (relation, fixpoint, number), rows in zip(wanted, found, strict=True):
            fixpoint.create(self.connection)
            fixpoint.filled.add(number)
            marks = ", ".join("?" for _ in range(max(1, relation.arity)))
            self.connection.run_many(
                f"INSERT INTO temp.{quote(self.tables[relation.id])} VALUES ({marks})",
                (row or (1,) for row in rows),
            )

    def _by_spark(self, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        from harken.engines.spark.distributed import answer

        self._refuse_spark()
        self.connection.answered_elsewhere += 1
        answered = self.engine.ahead.get(id(self))
        return answer(self.engine, self, values) if answered is None else answered

    def _refuse_spark(self) -> None:
        """What is rewritten for a change has no meaning without the layers, and Spark has none:
        whoever asked is told that it is too much, and knows another way."""
        if self.plan.layers:
            raise TooManyRows
        refuse_resident(self.plan)


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
