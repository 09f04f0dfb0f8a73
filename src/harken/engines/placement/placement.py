"""Which engine holds which relation: SQLite, and behind it the lake.

A statement over lake relations says which rows it can need (`planner.demand`). If they are few,
they are fetched and SQLite answers; if they are many, Spark answers from the lake. Either way the
rows are the same. Without lake relations the queries that are handed out are SQLite's own.

Law: whatever runs where, a lake relation is its table at the version the database stands on, with
what is pending.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from harken.calculus.states import delta
from harken.engines.access_paths import Reach
from harken.engines.placement.at_hand import RowsAtHand
from harken.engines.placement.database_copies import Copies
from harken.engines.placement.exchange import Exchange, Progress
from harken.engines.placement.fetching import fetching
from harken.engines.placement.lake_relations import LakeRelations
from harken.engines.placement.plan_access import reaches
from harken.engines.placement.query import LakeQuery
from harken.engines.protocol import NO_ANSWERS, Answers, DirectAccess, Query, RunWith
from harken.engines.sqlite import change_capture
from harken.engines.sqlite import engine as sqlite
from harken.engines.sqlite.compile import Compiler
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.faults import read_only
from harken.engines.sqlite.numbers import Numbers
from harken.engines.sqlite.recursion import Fetch
from harken.errors import EngineError, HarkenError
from harken.ir.clauses import Definition, stored_relations
from harken.ir.relations import Relation, is_extent
from harken.planner.demand import Demand, demands
from harken.planner.prepare import Plan, on_demand
from harken.values.rows import Row

if TYPE_CHECKING:
    from harken.engines.placement.left_out import LeftOut
    from harken.engines.placement.placed_relation import PlacedRelation
    from harken.engines.spark.reader import LakeReader


class Placement:
    """The resident engine and the lake, as one engine."""

    def __init__(self, connection: Connection, spark: Any = None) -> None:
        self.connection = connection
        self.resident = sqlite.SQLiteEngine(connection, self._fetching)
        self.indexes = self.resident.indexes
        self.statistics = self.resident.statistics
        self.numbers = Numbers(connection)
        self.keep = self.resident.keep
        self.histories = self.resident.histories
        self.histories.is_elsewhere = self.is_in_lake
        self.waves = self.resident.waves
        self.python = self.resident.python
        self.lake = LakeRelations(self.resident, spark)
        self.copies = Copies(connection, self.lake)
        self.exchange = Exchange(self.lake)
        self.at_hand = RowsAtHand(self.lake)
        self.lake_relations = self.lake.lake_relations
        self.large = self.exchange.large
        self.tally = self.lake.tally
        self.capture = change_capture.Capture(
            connection, self.is_in_lake, self.exchange.forget_large
        )
        self.statistics.elsewhere = self._lake_rows
        self.statistics.values_elsewhere = lambda relation, i: self.lake_relations[
            relation.id
        ].values(i)

    # --- the lake --------------------------------------------------------------------------

    def is_in_lake(self, relation: Relation) -> bool:
        return bool(self.lake_relations) and relation.id in self.lake_relations

    @property
    def has_lake(self) -> bool:
        return bool(self.lake_relations)

    def reaches(self, plan: Plan) -> tuple[Reach, ...]:
        return reaches(self, plan)

    def holds_changes(self, changed: Collection[str]) -> bool:
        """Are the Δ-sets of these relations held here, for whoever reads them?"""
        elsewhere = {each.lake_relation.relation.id for each in self.large.values()}
        return self.forced != "spark" and elsewhere.isdisjoint(changed)

    @property
    def forced(self) -> str | None:
        return self.at_hand.forced

    @forced.setter
    def forced(self, engine: str | None) -> None:
        self.at_hand.forced = engine

    @property
    def progress(self) -> Progress | None:
        return self.exchange.progress

    @progress.setter
    def progress(self, told: Progress | None) -> None:
        self.exchange.progress = told

    @property
    def has_spark(self) -> bool:
        return self.lake.has_spark

    @property
    def spark(self) -> Any:
        return self.lake.spark

    @property
    def reader(self) -> LakeReader:
        return self.lake.reader

    @property
    def spark_reader(self) -> Callable[[], LakeReader] | None:
        return self.lake.spark_reader

    def now(self) -> datetime.datetime:
        return self.connection.now()

    def resident_rows(self, relation: Relation) -> list[Row]:
        return self.resident.rows(relation)

    def create_in_lake(self, relation: Relation, path: str, kind: str, **options: Any) -> None:
        self.lake.create_in_lake(relation, path, kind, **options)

    def create_own(self, relation: Relation) -> None:
        self.lake.create_own(relation)

    def new_path_named(self, name: str) -> str:
        return self.lake.new_path_named(name)

    def establish(self, lake_relation: PlacedRelation) -> None:
        self.lake.establish(lake_relation)

    def attach(self, relations: Iterable[Relation]) -> None:
        self.lake.attach(relations)

    def news(self, *, set_aside: bool = False) -> list[tuple[PlacedRelation, int]]:
        return self.exchange.news(set_aside=set_aside)

    def take_in(
        self, lake_relation: PlacedRelation, version: int
    ) -> tuple[list[Row] | int, LeftOut | None]:
        return self.exchange.take_in(lake_relation, version)

    def move_on(self, lake_relation: PlacedRelation, version: int) -> None:
        self.exchange.move_on(lake_relation, version)

    def check_keys(self, lake_relation: PlacedRelation) -> None:
        from harken.engines.placement import keys

        keys.check_all(lake_relation, self.spark_reader)

    def left_out(self, lake_relation: PlacedRelation, given: Any = None) -> LeftOut | None:
        from harken.engines.placement import left_out

        if given is not None:
            return left_out.of_rows(given)
        return left_out.of_table(lake_relation, self.spark_reader)

    def flush(self, lazily: bool = False, give_way: bool = False) -> None:
        self.exchange.flush(lazily=lazily, give_way=give_way)

    def steady(self) -> AbstractContextManager[None]:
        return self.lake.steady()

    # --- transactions ----------------------------------------------------------------------

    def before_commit(self) -> None:
        self.exchange.before_commit()

    def after_commit(self) -> None:
        self.exchange.after_commit()

    def after_undo(self) -> None:
        self.lake.after_undo()

    def forget(self) -> None:
        self.lake.forget()

    def close(self) -> None:
        self.lake.close()

    # --- fetching rows ---------------------------------------------------------------------

    def expect(self, relation: Relation, rows: Sequence[Row]) -> None:
        """These rows, or keys, will be changed one by one: fetch all they need at once."""
        self.at_hand.expect(relation, rows)

    def foresee(self, query: Query, many: Callable[[], Sequence[Sequence[Any]]]) -> None:
        """A query will run with each of these values: fetch what it needs at once."""
        if isinstance(query, LakeQuery):
            self.at_hand.foresee(query, many())

    # --- stored relations ------------------------------------------------------------------

    def create(self, relation: Relation, supertypes: tuple[str, ...] = ()) -> None:
        self.resident.create(relation, supertypes)

    def drop(self, relation: Relation) -> None:
        lake_relation = self.lake_relations.get(relation.id)
        if lake_relation is None:
            self.resident.drop(relation)
            return
        self.lake.drop(lake_relation)

    def exists(self, relation: Relation) -> bool:
        if relation.id in self.lake_relations:
            return self.lake.places.find(relation.id) is not None
        return self.resident.exists(relation)

    def create_temporary(self, relation: Relation) -> None:
        self.resident.create_temporary(relation)

    def drop_temporary(self, relation: Relation) -> None:
        self.resident.drop_temporary(relation)

    def exists_temporary(self, relation: Relation) -> bool:
        return self.resident.exists_temporary(relation)

    def direct(self, relation: Relation) -> DirectAccess:
        return self.resident.direct(relation)

    def measure(self) -> None:
        self.resident.measure()

    def count(self, relation: Relation) -> int:
        rows = self._lake_rows(relation)
        return self.resident.count(relation) if rows is None else int(rows)

    def is_empty(self, relation: Relation) -> bool:
        rows = self._lake_rows(relation)
        return self.resident.is_empty(relation) if rows is None else rows == 0

    def insert_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        self.resident.insert_many(relation, self._brought(relation, rows))

    def add_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        self.resident.add_many(relation, self._brought(relation, rows))

    def remove_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        self.resident.remove_many(relation, self._brought(relation, rows))

    def _brought(
        self, relation: Relation, rows: Iterable[Sequence[Any]]
    ) -> Iterable[Sequence[Any]]:
        """The rows about to be changed, once their present state is fetched."""
        if relation.id not in self.lake_relations:
            return rows
        self.refuse_input(relation)
        given = [tuple(row) for row in rows]
        self.at_hand.expect(relation, given)
        return given

    def insert_column(self, relation: Relation, first: int, column: Sequence[Any]) -> None:
        if relation.id in self.lake_relations:
            self.insert_many(relation, zip(range(first, first + len(column)), column, strict=True))
            return
        self.resident.insert_column(relation, first, column)

    def set_row(self, relation: Relation, row: Sequence[Any]) -> None:
        if self.lake_relations:
            self._bring_row(relation, row)
        self.resident.set_row(relation, row)

    def remove_row(self, relation: Relation, row: Sequence[Any]) -> None:
        if self.lake_relations and is_extent(relation):
            self.at_hand.expect_deletion(row[0])
        if self.lake_relations:
            self._bring_row(relation, row)
        self.resident.remove_row(relation, row)

    def clear(self, relation: Relation, arguments: Sequence[Any]) -> None:
        if relation.id in self.lake_relations:
            self.refuse_input(relation)
            self.at_hand.bring_arguments(relation, arguments)
        self.resident.clear(relation, arguments)

    def rows(self, relation: Relation) -> list[Row]:
        if relation.id in self.lake_relations:
            return self.matching(relation, {})
        found = self.resident.rows(relation)
        return found if relation.arity else [() for _ in found]

    def contains(self, relation: Relation, row: Sequence[Any]) -> bool:
        if relation.id not in self.lake_relations:
            return self.resident.contains(relation, row)
        with self.steady():
            self.at_hand.expect(relation, [tuple(row)])
            return self.resident.contains(relation, row)

    def matching(self, relation: Relation, known: Mapping[int, Any]) -> list[Row]:
        if relation.id not in self.lake_relations:
            return self.resident.matching(relation, known)
        with self.steady():
            if known:
                self.at_hand.bring(relation, tuple(known), [tuple(known.values())])
            else:
                self.at_hand.bring_all(relation)
            return self.resident.matching(relation, known)

    def results(self, relation: Relation, arguments: Sequence[Any]) -> list[Row]:
        if relation.id not in self.lake_relations:
            return self.resident.results(relation, arguments)
        with self.steady():
            self.at_hand.bring_arguments(relation, arguments)
            return self.resident.results(relation, arguments)

    def _bring_row(self, relation: Relation, row: Sequence[Any]) -> None:
        if relation.id in self.lake_relations:
            self.refuse_input(relation)
            self.at_hand.expect(relation, [tuple(row)])

    def refuse_input(self, relation: Relation) -> None:
        if self.connection.read_only:
            raise read_only()
        if not self.lake_relations[relation.id].place.is_own:
            raise EngineError(
                f"{relation.name} is an input: others write it, and Harken reads it",
                code="read-only",
                hint="change it where it comes from; db.step() takes the changes in",
            )

    def _lake_rows(self, relation: Relation) -> float | None:
        lake_relation = self.lake_relations.get(relation.id)
        if lake_relation is None:
            return None
        pending = lake_relation.pending.balance() if lake_relation.place.is_own else 0
        return float(max(0, lake_relation.size() + pending))

    # --- queries ---------------------------------------------------------------------------

    def compile(self, plan: Plan, short: bool = False) -> Query:
        if not self.lake_relations:
            return self.resident.compile(plan, short)
        rewritten = replace(on_demand(plan), otherwise=None)
        query = self.resident.compile(rewritten, short)
        # Plans rewritten for a change are not what Spark would run.
        wanted = () if plan.layers else demands(plan, self.is_in_lake)
        deltas = self._deltas(plan)
        is_stepwise = bool(rewritten.layers) and self._reads_lake(plan)
        if not is_stepwise and not wanted and not deltas:
            return query
        asked = tuple((each, self._question(each)) for each in wanted)
        return LakeQuery(query, plan, asked, deltas, self, is_stepwise)

    def updating(
        self, plan: Plan, relation: Relation, assigned: Mapping[int, int]
    ) -> RunWith | None:
        in_lake = self.is_in_lake(relation) or self._reads_lake(plan)
        return None if in_lake else self.resident.updating(plan, relation, assigned)

    def deleting(self, plan: Plan, relation: Relation) -> RunWith | None:
        in_lake = self.is_in_lake(relation) or self._reads_lake(plan)
        return None if in_lake else self.resident.deleting(plan, relation)

    def explain_sql(self, plan: Plan) -> str:
        return self.resident.explain_sql(plan)

    def _fetching(self, definition: Definition, plan: Plan, compiler: Compiler) -> Fetch | None:
        return fetching(self, definition, plan, compiler) if self.lake_relations else None

    def _reads_lake(self, plan: Plan) -> bool:
        return any(map(self.is_in_lake, stored_relations(plan.program).values()))

    def _deltas(self, plan: Plan) -> frozenset[str]:
        """The Δ-sets of lake relations that a plan reads."""
        deltas = {delta(each.relation).id for each in self.lake_relations.values()}
        return frozenset(deltas & stored_relations(plan.program).keys())

    def _question(self, demand: Demand) -> sqlite.Query | None:
        return None if demand.plan is None else self.resident.compile(demand.plan)

    def is_at_hand(self, query: LakeQuery, values: Sequence[Any]) -> bool:
        """Fetch what a query needs; false if Spark should answer it. A recursive query fetches
        step by step and raises TooManyRows."""
        if self.forced == "spark" or query.deltas & self.large.keys():
            return False
        return query.is_stepwise or self.at_hand.have(
            [
                (demand, None if question is None else partial(question.rows, values))
                for demand, question in query.asked
            ]
        )

    def answer_together(self, queries: Iterable[Query]) -> Answers:
        """These queries will run, and their inputs do not change meanwhile. One job answers all
        of them that need Spark."""
        if not self.lake_relations:
            return NO_ANSWERS
        known: dict[Query, Query] = {}
        distant: list[LakeQuery] = []
        with self.steady(), self.connection.fixed_time():
            for query in queries:
                if not isinstance(query, LakeQuery):
                    continue
                if query.is_here(()):
                    known[query] = query.answered(None)
                else:
                    distant.append(query)
            if len(distant) > 1:
                known |= self._answered_by_spark(distant)
        return Answers(known)

    def _answered_by_spark(self, queries: list[LakeQuery]) -> dict[Query, Query]:
        from harken.engines.spark.distributed import answer_together

        try:
            found = answer_together(self, queries)
        except HarkenError:
            return {}  # one of them fails, and reports it when it runs by itself
        return {each: each.answered(rows) for each, rows in zip(queries, found, strict=True)}

    # --- foreign relations -----------------------------------------------------------------

    def register_foreign(
        self,
        relation: Relation,
        function: Callable[..., Any],
        decode: Sequence[Callable[[Any], Any]],
    ) -> None:
        self.resident.register_foreign(relation, function, decode)
