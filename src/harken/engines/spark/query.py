"""A plan as Spark runs it: fixpoints first, then one statement.

    query = compile_plan(plan, {"quantity(item)": "quantity_v7"})
    query.dataframe(session, values)

The session is the user's: it is asked, never configured.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harken.engines.spark import functions
from harken.engines.spark.compile import Compiler
from harken.engines.spark.faults import translated
from harken.engines.spark.functions import ForeignFunction
from harken.engines.spark.recursion import CompileClauses, Fixpoint, compile_stratum
from harken.engines.spark.sql_expressions import fixed_time, literal, quote
from harken.errors import ForeignFault
from harken.ir.relations import Relation
from harken.planner.prepare import Plan
from harken.values.encoding import encode_object
from harken.values.types import Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Parameters = Mapping[str, tuple[int, Type]]

_MARKED = re.compile(r"⟦[^⟧]*⟧")


@dataclass(frozen=True, slots=True)
class SparkQuery:
    """A compiled plan. `sql` has marks where values, the time and the rows of fixpoints go."""

    relation: Relation
    sql: str
    fixpoints: tuple[Fixpoint, ...]
    parameters: Parameters
    foreign: Mapping[str, Relation]
    python: Mapping[str, ForeignFunction]
    tables: Mapping[str, str]
    """By the id of a relation what stands for its rows, be they stored or found by a fixpoint."""

    def dataframe(
        self,
        session: SparkSession,
        values: Sequence[Any] = (),
        now: datetime.datetime | None = None,
        stored: Mapping[str, DataFrame] | None = None,
    ) -> DataFrame:
        """The rows, in the columns c0, c1, ...; of a relation without columns, c0 says yes.

        A fixpoint is computed at once, everything else when the rows are asked for: do that inside
        `faults.translated()`, and while the DataFrame itself is there. `stored` are the stored
        relations that are given as DataFrames, by their marks.
        """
        with translated():
            frames = self.evaluated(session, values, now, stored)
            found = _sql(session, _filled(self.sql, self._texts(values, now)), frames)
            # Spark Connect drops a checkpoint when nobody on this side holds it any more.
            found.__dict__["_fixpoints"] = frames
            return found

    def evaluated(
        self,
        session: SparkSession,
        values: Sequence[Any] = (),
        now: datetime.datetime | None = None,
        stored: Mapping[str, DataFrame] | None = None,
    ) -> dict[str, DataFrame]:
        """What the fixpoints find, beside what is given, by the marks in `tables`."""
        texts = self._texts(values, now)

        def evaluate(sql: str, frames: Mapping[str, DataFrame]) -> DataFrame:
            return _sql(session, _filled(sql, texts), frames)

        with translated():
            self.register(session)
            frames: dict[str, DataFrame] = dict(stored or {})
            for fixpoint in self.fixpoints:
                frames |= fixpoint.run(evaluate, frames)
            return frames

    def rows(
        self,
        session: SparkSession,
        values: Sequence[Any] = (),
        now: datetime.datetime | None = None,
        stored: Mapping[str, DataFrame] | None = None,
    ) -> list[tuple[Any, ...]]:
        """The rows, as stored values."""
        found = self.dataframe(session, values, now, stored)
        with translated():
            return collected(self.relation, found)

    def text(self, values: Sequence[Any] = (), now: datetime.datetime | None = None) -> str:
        """The statement with its values; only where there is no recursion is it all there is."""
        return _filled(self.sql, self._texts(values, now))

    def register(self, session: SparkSession) -> None:
        """Make the Python functions of the statement known to the session."""
        statements = [self.sql]
        for fixpoint in self.fixpoints:
            for each in fixpoint.relations:
                statements += [each.start, each.step or ""]
        for name in functions.built_ins_in(" ".join(statements)):
            functions.register_built_in(session, name)
        for name, relation in self.foreign.items():
            functions.register_foreign(session, name, relation, self.python[relation.id])

    def _texts(self, values: Sequence[Any], now: datetime.datetime | None) -> dict[str, str]:
        moment = now or datetime.datetime.now(datetime.UTC)
        given = {
            mark: literal(_constant(values[index], type_), type_)
            for mark, (index, type_) in self.parameters.items()
        }
        return {**fixed_time(moment), **given}


def _constant(value: Any, type_: Type) -> Any:
    """A given value as a constant of the IR is: an object is its number."""
    return encode_object(value) if type_.surrogate and value is not None else value


def collected(relation: Relation, frame: DataFrame) -> list[tuple[Any, ...]]:
    rows = [tuple(map(functions.to_stored, row)) for row in frame.collect()]
    return rows if relation.arity else [() for _ in rows]


def compile_plan(
    plan: Plan,
    tables: Mapping[str, str],
    python: Mapping[str, ForeignFunction] | None = None,
    marked: bool = False,
) -> SparkQuery:
    """`tables` names the view of each stored relation by the id of the relation, `python` the
    function behind each foreign one. If the tables are `marked`, they are no views, but names of
    DataFrames that are given when the query runs."""
    known = {name: f"⟦{view}⟧" if marked else quote(view) for name, view in tables.items()}
    definitions = dict(plan.program.definitions)
    parameters: dict[str, tuple[int, Type]] = {}
    foreign: dict[str, Relation] = {}

    def compiler(tables: Mapping[str, str]) -> Compiler:
        return Compiler(definitions, plan.needs, tables, parameters, foreign)

    def clauses(tables: Mapping[str, str]) -> CompileClauses:
        return compiler(tables).rows_of

    fixpoints = tuple(
        compile_stratum(stratum, clauses, known, f"r{number}")
        for number, stratum in enumerate(plan.recursive)
    )
    goal = plan.program.goal
    sql = compiler(known).statement(goal)
    missing = [each for each in foreign.values() if each.id not in (python or {})]
    if missing:
        raise ForeignFault(
            f"the foreign function {missing[0].name} is not registered",
            code="foreign",
            hint="register it with db.foreign before it is used",
        )
    return SparkQuery(goal, sql, fixpoints, parameters, foreign, python or {}, known)


def _filled(sql: str, texts: Mapping[str, str]) -> str:
    return _MARKED.sub(lambda mark: texts.get(mark[0], mark[0]), sql)


def _sql(session: SparkSession, sql: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Run a statement in which marked names stand for DataFrames."""
    used: Any = {mark[1:-1]: frames[mark] for mark in set(_MARKED.findall(sql))}
    if not used:
        return session.sql(sql)
    escaped = sql.replace("{", "{{").replace("}", "}}")
    return session.sql(_MARKED.sub(lambda mark: "{" + mark[0][1:-1] + "}", escaped), **used)
