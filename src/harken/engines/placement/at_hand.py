"""Rows of lake relations, fetched before SQLite needs them.

`planner.demand` tells which keys a statement can need, or that it needs everything. If that is
little, it is fetched and SQLite answers; otherwise Spark does.

Law: after `have` returned true, SQLite finds all demanded rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from harken.engines import fetch_limits as limits
from harken.engines.placement.fetching import Ask
from harken.engines.placement.lake_relations import LakeRelations
from harken.engines.protocol import TooManyRows
from harken.errors import HarkenError
from harken.ir.relations import Relation
from harken.planner.demand import Demand
from harken.values.rows import Row

if TYPE_CHECKING:
    from harken.engines.placement.placed_relation import PlacedRelation
    from harken.engines.placement.query import LakeQuery


class RowsAtHand:
    def __init__(self, lake: LakeRelations) -> None:
        self._lake = lake
        self.lake_relations = lake.lake_relations
        self.forced: str | None = None
        """`resident` or `spark` forces where statements over lake relations run, whatever the
        cost."""

    def bring(
        self,
        relation: Relation,
        columns: tuple[int, ...],
        values: Collection[Row],
        most: int | None = None,
    ) -> None:
        """Fetch the rows with one of these values in the columns, or raise TooManyRows if there
        are more than `most`."""
        lake_relation = self.lake_relations[relation.id]
        if lake_relation.cache.is_whole() or not values:
            return
        if lake_relation.size() <= limits.SMALL:
            lake_relation.cache.bring_all(lake_relation)
        else:
            lake_relation.cache.bring(
                columns, values, lake_relation if most is None else lake_relation.at_most(most)
            )

    def bring_all(self, relation: Relation) -> None:
        lake_relation = self.lake_relations[relation.id]
        lake_relation.cache.bring_all(lake_relation)

    def expect(self, relation: Relation, rows: Sequence[Row]) -> None:
        """These rows, or keys, will be changed one by one: fetch all they need at once."""
        if relation.id not in self.lake_relations or not rows:
            return
        home = self.lake_relations[relation.id].cache.home
        if not home:
            self.bring_all(relation)
        elif max(home) < len(rows[0]):
            self.bring(relation, home, {tuple(row[i] for i in home) for row in rows})

    def expect_deletion(self, oid: int) -> None:
        """An object will be deleted or lose a type, together with the rows that mention it."""
        for lake_relation in list(self.lake_relations.values()):
            for position, column in enumerate(lake_relation.relation.columns):
                if column.type.surrogate:
                    self.bring(lake_relation.relation, (position,), [(oid,)])

    def bring_arguments(self, relation: Relation, arguments: Sequence[Any]) -> None:
        if arguments:
            self.bring(relation, tuple(range(len(arguments))), [tuple(arguments)])
        else:
            self.bring_all(relation)

    def have(self, asked: Sequence[tuple[Demand, Ask]], many_times: bool = False) -> bool:
        """Fetch the demanded rows; `asked` says which keys. False if they are too many. With
        `many_times`, more demands like these will follow, each for what the last one found."""
        if not all(ask is not None or self._small_enough(demand.relation) for demand, ask in asked):
            return False
        try:
            for demand, ask in asked:
                lake_relation = self.lake_relations[demand.relation.id]
                if lake_relation.cache.is_whole():
                    continue
                keys = None if ask is None else set(ask())
                if keys is None or (many_times and self._is_worth_all(lake_relation)):
                    self.bring_all(demand.relation)
                    continue
                if self._lake.has_spark and self._are_many(
                    lake_relation, demand.columns, len(keys)
                ):
                    return False
                if self._lake.has_spark and many_times and self._is_full(lake_relation):
                    return False
                most = limits.MOST_ROWS if self._lake.has_spark else None
                self.bring(demand.relation, demand.columns, keys, most)
        except TooManyRows:
            return False
        except HarkenError:
            # A question asked too early may fail where the query itself does not.
            for demand, _ in asked:
                if not self._small_enough(demand.relation):
                    return False
            for demand, _ in asked:
                self.bring_all(demand.relation)
        return True

    def _is_worth_all(self, lake_relation: PlacedRelation) -> bool:
        """Has the relation been searched so often that fetching all of it would have been
        cheaper?"""
        size = lake_relation.size()
        return size <= min(limits.MOST_ROWS, limits.SEEK * lake_relation.cache.seeks)

    def _is_full(self, lake_relation: PlacedRelation) -> bool:
        """Are as many rows fetched as may ever be?"""
        most = limits.CACHE_ROWS
        return lake_relation.size() > most and lake_relation.cache.size() > most

    def _are_many(self, lake_relation: PlacedRelation, columns: Sequence[int], keys: int) -> bool:
        """Are there so many keys, or rows with these keys, that Spark should answer?"""
        size = lake_relation.size()
        if size <= limits.SMALL:
            return False
        if keys > limits.MOST_KEYS:
            return True
        values = max((lake_relation.values(i) or math.inf for i in columns), default=math.inf)
        return keys * size > limits.MOST_ROWS * values

    def foresee(self, query: LakeQuery, many: Sequence[Sequence[Any]]) -> None:
        """A query will run with many values, one after the other: fetch what it needs by key at
        once."""
        if self.forced == "spark":
            return
        for demand, question in query.asked:
            if question is None:
                return
            if self.lake_relations[demand.relation.id].cache.is_whole():
                continue
            keys = {key for values in many for key in question.rows(values)}
            if len(keys) > limits.MOST_KEYS:
                return
            self.bring(demand.relation, demand.columns, keys)

    def _small_enough(self, relation: Relation) -> bool:
        lake_relation = self.lake_relations[relation.id]
        return (
            self.forced == "resident"
            or lake_relation.cache.is_whole()
            or lake_relation.size() <= limits.MOST_ROWS
        )
