"""A compiled plan that reads lake relations: answered here if its rows can be fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harken.engines.fetch_limits import MOST_EVALUATED
from harken.engines.protocol import BrokenOff, TooManyRows
from harken.engines.sqlite import layout
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.engine import Query
from harken.engines.sqlite.recursion import Fixpoint
from harken.engines.sqlite.sql_expressions import quote
from harken.engines.sqlite.weighing_statement import around, beside_rows, summed_by_row
from harken.engines.weighing import Weighing
from harken.errors import EngineError
from harken.ir.clauses import Computation
from harken.ir.operations import OPERATIONS
from harken.ir.relations import Relation
from harken.planner.demand import Demand
from harken.planner.prepare import Plan
from harken.values.rows import Row

if TYPE_CHECKING:
    from harken.engines.placement.placement import Placement


ANSWER = "harken_answer"


@dataclass(frozen=True, slots=True)
class Known:
    """The state of a query before it runs: Spark's rows, or None if SQLite can answer."""

    rows: list[Row] | None


@dataclass(frozen=True, slots=True, eq=False)
class LakeQuery:
    """`local` answers if the rows that are `asked` for can be fetched; otherwise Spark answers
    the plan. `asked` holds the demands with the queries that find their keys; `deltas` the
    changes of lake relations that the plan reads."""

    local: Query
    plan: Plan
    asked: tuple[tuple[Demand, Query | None], ...]
    deltas: frozenset[str]
    engine: Placement
    is_stepwise: bool
    """Do the rules of its fixpoints fetch what they need, round by round?"""
    known: Known | None = None

    def answered(self, rows: list[Row] | None) -> LakeQuery:
        """The same query with Spark's rows; None if everything it needs is fetched."""
        return replace(self, known=Known(rows))

    @property
    def relation(self) -> Relation:
        return self.local.relation

    @property
    def sql(self) -> str:
        return self.local.sql

    @property
    def connection(self) -> Connection:
        return self.local.connection

    @property
    def fixpoints(self) -> tuple[Fixpoint, ...]:
        return self.local.fixpoints

    @property
    def tables(self) -> Mapping[str, str]:
        return self.local.tables

    def rows(self, values: Sequence[Any]) -> list[Row]:
        with self.engine.steady(), self.connection.fixed_time():
            if self.is_here(values):
                with suppress(TooManyRows):
                    return self.local.rows(values)
            return self._by_spark(values)

    def run_into(self, insert: str, beside: str = "") -> None:
        self.run_from(*beside_rows(self.relation, beside), insert)

    def summed(self) -> list[Row]:
        return self.run_from(*summed_by_row(self.relation))

    def run_from(self, before: str, after: str, insert: str = "", conflict: str = "") -> list[Row]:
        with self.engine.steady(), self.connection.fixed_time():
            if self.is_here(()):
                with suppress(TooManyRows):
                    return self.local.run_from(before, after, insert, conflict)
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
    ) -> list[Row] | None:
        from harken.engines.spark.distributed import counted

        with self.engine.steady(), self.connection.fixed_time():
            if self.is_here(()):
                with suppress(TooManyRows):
                    return self.local.counted(columns, values, present, many)
                self._refuse_spark()
            self.connection.answered_elsewhere += 1
            return counted(self.engine, self, columns, values, present)

    def weighed(self, weighing: Weighing, insert: str, conflict: str) -> None:
        """Spark aggregates its rows itself: little remains of a large change."""
        from harken.engines.spark.distributed import weighed

        with self.engine.steady(), self.connection.fixed_time():
            if self.is_here(()):
                with suppress(TooManyRows):
                    self.local.run_from(*around(weighing), insert, conflict)
                    return
            self._refuse_spark()
            self.connection.answered_elsewhere += 1
            rows = weighed(self.engine, self, weighing)
        marks = ", ".join("?" for _ in range(weighing.width))
        self.connection.run_many(f"{insert} VALUES ({marks}) {conflict}", rows)

    def is_here(self, values: Sequence[Any]) -> bool:
        """Are the needed rows fetched? If not, Spark answers, or has answered already."""
        if self.known is not None:
            return self.known.rows is None
        return self.engine.is_at_hand(self, values)

    def clear(self) -> None:
        self.local.clear()

    def release(self) -> None:
        self.local.release()

    @contextmanager
    def evaluated(self) -> Iterator[Callable[[Relation], list[Row]]]:
        with self.engine.steady(), self.connection.fixed_time():
            if self.is_here(()):
                with self.local.evaluated() as rows_of:
                    yield rows_of
                return
            with self.connection.snapshot():
                try:
                    self._fill_by_spark()
                    yield self.local.table_rows
                finally:
                    self.clear()

    def _fill_by_spark(self) -> None:
        """Let Spark evaluate the wanted recursive relations, and fetch their rows."""
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

    def _by_spark(self, values: Sequence[Any]) -> list[Row]:
        from harken.engines.spark.distributed import answer

        self._refuse_spark()
        self.connection.answered_elsewhere += 1
        if self.known is not None and self.known.rows is not None:
            return self.known.rows
        return answer(self.engine, self, values)

    def _refuse_spark(self) -> None:
        """A plan rewritten for a change depends on layers, which Spark does not have. The caller
        is told that it is too much, and uses another strategy."""
        if self.plan.layers:
            raise TooManyRows
        refuse_resident(self.plan)


def refuse_resident(plan: Plan) -> None:
    """Reject a plan with operations that only the resident engine has."""
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
