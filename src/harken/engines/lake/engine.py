"""The engine of a database that may have far relations: SQLite, with the lake behind it.

A statement that touches far relations says which rows it can need (`planner.demand`). If they are
few, they are brought here and SQLite answers; if they are many, Spark answers from the lake. Either
way the rows are the same.

Law: whatever runs where, a far relation is its table at the version the database stands on, with
what is pending.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from harken.calculus.states import delta
from harken.engines.lake import limits
from harken.engines.lake.exchange import Exchange
from harken.engines.lake.fetching import Ask, fetching
from harken.engines.lake.query import FarQuery
from harken.engines.protocol import TooManyRows
from harken.engines.sqlite.compile import Compiler
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.engine import Query
from harken.engines.sqlite.faults import read_only
from harken.engines.sqlite.recursion import Fetch
from harken.errors import EngineError, HarkenError
from harken.ir.clauses import Definition, stored_relations
from harken.ir.relations import Relation, is_extent
from harken.planner.demand import Demand, demands
from harken.planner.prepare import Plan, on_demand

if TYPE_CHECKING:
    from harken.engines.lake.far import FarRelation

Row = tuple[Any, ...]


class LakeEngine(Exchange):
    def __init__(self, connection: Connection, spark: Any = None) -> None:
        super().__init__(connection, spark)
        self.forced: str | None = None
        """`resident` or `spark`: where statements over far relations run, whatever it costs."""
        self.ahead: dict[int, list[Row] | None] = {}
        """Queries that were seen to ahead, by identity, with what Spark answered; None says that
        all they need is at hand. See `together`."""
        self.statistics.elsewhere = self._rows_far_away
        self.statistics.values_elsewhere = lambda relation, i: self.far[relation.id].values(i)

    # --- bringing rows ---------------------------------------------------------------------

    def bring(
        self,
        relation: Relation,
        columns: tuple[int, ...],
        values: Collection[Row],
        most: int | None = None,
    ) -> None:
        """Have the rows with one of these values in the columns at hand, if they are not more than
        `most` (TooManyRows says that they are)."""
        far = self.far[relation.id]
        if far.cache.is_whole() or not values:
            return
        if far.size() <= limits.SMALL:
            far.cache.bring_all(far)
        else:
            far.cache.bring(columns, values, far if most is None else far.at_most(most))

    def bring_all(self, relation: Relation) -> None:
        far = self.far[relation.id]
        far.cache.bring_all(far)

    def expect(self, relation: Relation, rows: Sequence[Row]) -> None:
        """These rows, or keys, are going to be changed one by one: fetch all that takes at once."""
        if relation.id not in self.far or not rows:
            return
        home = self.far[relation.id].cache.home
        if not home:
            self.bring_all(relation)
        elif max(home) < len(rows[0]):
            self.bring(relation, home, {tuple(row[i] for i in home) for row in rows})

    def _expect_deletion(self, oid: int) -> None:
        """An object is going to be deleted, or to lose a type, and what mentions it with it."""
        for far in list(self.far.values()):
            for position, column in enumerate(far.relation.columns):
                if column.type.surrogate:
                    self.bring(far.relation, (position,), [(oid,)])

    def _bring_row(self, relation: Relation, row: Sequence[Any]) -> None:
        if relation.id in self.far:
            self.refuse_input(relation)
            self.expect(relation, [tuple(row)])

    def refuse_input(self, relation: Relation) -> None:
        if self.connection.read_only:
            raise read_only()
        if not self.far[relation.id].place.is_own:
            raise EngineError(
                f"{relation.name} is an input: others write it, and Harken reads it",
                code="read-only",
                hint="change it where it comes from; db.step() takes the changes in",
            )

    def _rows_far_away(self, relation: Relation) -> float | None:
        far = self.far.get(relation.id)
        if far is None:
            return None
        pending = far.pending.balance() if far.place.is_own else 0
        return float(max(0, far.size() + pending))

    # --- what SQLiteEngine does, with the rows brought first -------------------------------

    def drop(self, relation: Relation) -> None:
        far = self.far.get(relation.id)
        if far is None:
            super().drop(relation)
            return
        self._detach(far)
        far.pending.drop()
        self._places.remove(relation.id)

    def exists(self, relation: Relation) -> bool:
        if relation.id in self.far:
            return self._places.find(relation.id) is not None
        return super().exists(relation)

    def count(self, relation: Relation) -> int:
        rows = self._rows_far_away(relation)
        return super().count(relation) if rows is None else int(rows)

    def is_empty(self, relation: Relation) -> bool:
        rows = self._rows_far_away(relation)
        return super().is_empty(relation) if rows is None else rows == 0

    def insert_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        super().insert_many(relation, self._brought(relation, rows))

    def add_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        super().add_many(relation, self._brought(relation, rows))

    def remove_many(self, relation: Relation, rows: Iterable[Sequence[Any]]) -> None:
        super().remove_many(relation, self._brought(relation, rows))

    def _brought(
        self, relation: Relation, rows: Iterable[Sequence[Any]]
    ) -> Iterable[Sequence[Any]]:
        """Rows that are going to be changed, when what is there of them is at hand."""
        if relation.id not in self.far:
            return rows
        self.refuse_input(relation)
        given = [tuple(row) for row in rows]
        self.expect(relation, given)
        return given

    def insert_column(self, relation: Relation, first: int, column: Sequence[Any]) -> None:
        if relation.id in self.far:
            self.insert_many(relation, zip(range(first, first + len(column)), column, strict=True))
            return
        super().insert_column(relation, first, column)

    def set_row(self, relation: Relation, row: Sequence[Any]) -> None:
        self._bring_row(relation, row)
        super().set_row(relation, row)

    def remove_row(self, relation: Relation, row: Sequence[Any]) -> None:
        if self.far and is_extent(relation):
            self._expect_deletion(row[0])
        self._bring_row(relation, row)
        super().remove_row(relation, row)

    def clear(self, relation: Relation, arguments: Sequence[Any]) -> None:
        if relation.id in self.far:
            self.refuse_input(relation)
            self._bring_arguments(relation, arguments)
        super().clear(relation, arguments)

    def contains(self, relation: Relation, row: Sequence[Any]) -> bool:
        with self.steady():
            if relation.id in self.far:
                self.expect(relation, [tuple(row)])
            return super().contains(relation, row)

    def matching(self, relation: Relation, known: Mapping[int, Any]) -> list[Row]:
        if relation.id not in self.far:
            return super().matching(relation, known)
        with self.steady():
            if known:
                self.bring(relation, tuple(known), [tuple(known.values())])
            else:
                self.bring_all(relation)
            return super().matching(relation, known)

    def results(self, relation: Relation, arguments: Sequence[Any]) -> list[Row]:
        if relation.id not in self.far:
            return super().results(relation, arguments)
        with self.steady():
            self._bring_arguments(relation, arguments)
            return super().results(relation, arguments)

    def _bring_arguments(self, relation: Relation, arguments: Sequence[Any]) -> None:
        if arguments:
            self.bring(relation, tuple(range(len(arguments))), [tuple(arguments)])
        else:
            self.bring_all(relation)

    # --- queries ---------------------------------------------------------------------------

    def compile(self, plan: Plan, most: int | None = None) -> Query:
        if not self.far:
            return super().compile(plan, most)
        rewritten = on_demand(plan)
        query = super().compile(rewritten, most)
        # What is rewritten for a change is not what Spark would be asked.
        wanted = () if plan.layers else demands(plan, self.is_far)
        deltas = self._deltas(plan)
        is_stepwise = bool(rewritten.layers) and self._reads_far(plan)
        if not is_stepwise and not wanted and not deltas:
            return query
        asked = tuple((each, self._question(each)) for each in wanted)
        return FarQuery(
            query.relation,
            query.sql,
            query.slots,
            query.fixpoints,
            query.connection,
            query.tables,
            plan,
            asked,
            deltas,
            self,
            is_stepwise,
            fetch=query.fetch,
        )

    def holds_changes(self, changed: Collection[str]) -> bool:
        elsewhere = {each.far.relation.id for each in self.large.values()}
        return self.forced != "spark" and elsewhere.isdisjoint(changed)

    def _fetching(self, definition: Definition, plan: Plan, compiler: Compiler) -> Fetch | None:
        return fetching(self, definition, plan, compiler) if self.far else None

    def _reads_far(self, plan: Plan) -> bool:
        return any(map(self.is_far, stored_relations(plan.program).values()))

    def _deltas(self, plan: Plan) -> frozenset[str]:
        """The Δ-sets of far relations that a plan reads."""
        far = {delta(each.relation).id for each in self.far.values()}
        return frozenset(far & stored_relations(plan.program).keys())

    def _question(self, demand: Demand) -> Query | None:
        return None if demand.plan is None else super().compile(demand.plan)

    def is_at_hand(self, query: FarQuery, values: Sequence[Any]) -> bool:
        """Bring what a query needs; false if Spark is to answer it. One that goes step by step
        brings it by itself, and says when it is too much."""
        if self.forced == "spark" or query.deltas & self.large.keys():
            return False
        return query.is_stepwise or self.have(
            [
                (demand, None if question is None else partial(question.rows, values))
                for demand, question in query.asked
            ]
        )

    def have(self, asked: Sequence[tuple[Demand, Ask]], many_times: bool = False) -> bool:
        """Bring the rows that are demanded, of which keys it is asked; false if they are too many
        to come here. There are going to be demands like these `many_times`, one after the other,
        each for what was found with the last."""
        if not all(ask is not None or self._small_enough(demand.relation) for demand, ask in asked):
            return False
        try:
            for demand, ask in asked:
                far = self.far[demand.relation.id]
                if far.cache.is_whole():
                    continue
                keys = None if ask is None else set(ask())
                if keys is None or (many_times and self._is_worth_all(far)):
                    self.bring_all(demand.relation)
                    continue
                if self.has_spark and self._are_many(far, demand.columns, len(keys)):
                    return False
                if self.has_spark and many_times and self._is_full(far):
                    return False
                most = limits.MOST_ROWS if self.has_spark else None
                self.bring(demand.relation, demand.columns, keys, most)
        except TooManyRows:
            return False
        except HarkenError:
            # What was asked too early may fail where the query itself does not.
            for demand, _ in asked:
                if not self._small_enough(demand.relation):
                    return False
            for demand, _ in asked:
                self.bring_all(demand.relation)
        return True

    def _is_worth_all(self, far: FarRelation) -> bool:
        """Have rows of a relation been sought so often that all of it would have come here in the
        meantime?"""
        size = far.size()
        return size <= min(limits.MOST_ROWS, limits.SEEK * far.cache.seeks)

    def _is_full(self, far: FarRelation) -> bool:
        """Are there as many rows at hand as there may ever be?"""
        most = limits.CACHE_ROWS
        return far.size() > most and far.cache.size() > most

    def _are_many(self, far: FarRelation, columns: Sequence[int], keys: int) -> bool:
        """Are there so many keys, or so many rows with one of them, that they are Spark's?"""
        size = far.size()
        if size <= limits.SMALL:
            return False
        if keys > limits.MOST_KEYS:
            return True
        values = max((far.values(i) or math.inf for i in columns), default=math.inf)
        return keys * size > limits.MOST_ROWS * values

    @contextmanager
    def together(self, queries: Iterable[Query]) -> Iterator[None]:
        """These queries are going to be run, and what they read does not change meanwhile. Those
        that Spark is to answer, it answers as one."""
        with self.steady(), self.connection.fixed_time():
            asked = [each for each in queries if isinstance(each, FarQuery)]
            distant = []
            for query in asked:
                if query.is_here(()):
                    self.ahead[id(query)] = None
                else:
                    distant.append(query)
            if len(distant) > 1:
                self._ask_ahead(distant)
        try:
            yield
        finally:
            self.ahead.clear()

    def _ask_ahead(self, queries: list[FarQuery]) -> None:
        from harken.engines.spark.distributed import answer_together

        try:
            found = answer_together(self, queries)
        except HarkenError:
            return  # one of them fails, and says so when it is run by itself
        self.ahead |= {id(query): rows for query, rows in zip(queries, found, strict=True)}

    def foresee(self, query: FarQuery, many: Sequence[Sequence[Any]]) -> None:
        """A query is going to be asked with many values, one after the other: fetch what it needs
        at once, as far as it is asked for by key."""
        if self.forced == "spark":
            return
        for demand, question in query.asked:
            if question is None:
                return
            if self.far[demand.relation.id].cache.is_whole():
                continue
            keys = {key for values in many for key in question.rows(values)}
            if len(keys) > limits.MOST_KEYS:
                return
            self.bring(demand.relation, demand.columns, keys)

    def _small_enough(self, relation: Relation) -> bool:
        far = self.far[relation.id]
        return self.forced == "resident" or far.cache.is_whole() or far.size() <= limits.MOST_ROWS
