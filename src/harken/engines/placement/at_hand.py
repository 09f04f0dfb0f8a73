"""Rows of lake relations that are fetched before SQLite needs them.

What a statement can need is known by key, or not at all (`planner.demand`). If it is little, it is
fetched and SQLite answers; if it is much, Spark has to.

Law: after `have` returned true, SQLite finds all rows that were demanded.
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

if TYPE_CHECKING:
    from harken.engines.placement.placed_relation import PlacedRelation
    from harken.engines.placement.query import LakeQuery

Row = tuple[Any, ...]


class RowsAtHand:
    def __init__(self, lake: LakeRelations) -> None:
        self._lake = lake
        self.lake_relations = lake.lake_relations
        self.forced: str | None = None
        """`resident` or `spark`: where statements over lake relations run, whatever it costs."""

    def bring(
        self,
        relation: Relation,
        columns: tuple[int, ...],
        values: Collection[Row],
        most: int | None = None,
    ) -> None:
        """Have the rows with one of these values in the columns at hand, if they are not more than
        `most` (TooManyRows says that they are)."""
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
        """These rows, or keys, are going to be changed one by one: fetch all that takes at once."""
        if relation.id not in self.lake_relations or not rows:
            return
        home = self.lake_relations[relation.id].cache.home
        if not home:
            self.bring_all(relation)
        elif max(home) < len(rows[0]):
            self.bring(relation, home, {tuple(row[i] for i in home) for row in rows})

    def expect_deletion(self, oid: int) -> None:
        """An object is going to be deleted, or to lose a type, and what mentions it with it."""
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
        """Bring the rows that are demanded, of which keys it is asked; false if they are too many
        to come here. There are going to be demands like these `many_times`, one after the other,
        each for what was found with the last."""
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
            # What was asked too early may fail where the query itself does not.
            for demand, _ in asked:
                if not self._small_enough(demand.relation):
                    return False
            for demand, _ in asked:
                self.bring_all(demand.relation)
        return True

    def _is_worth_all(self, lake_relation: PlacedRelation) -> bool:
        """Have rows of a relation been sought so often that all of it would have come here in the
        meantime?"""
        size = lake_relation.size()
        return size <= min(limits.MOST_ROWS, limits.SEEK * lake_relation.cache.seeks)

    def _is_full(self, lake_relation: PlacedRelation) -> bool:
        """Are there as many rows at hand as there may ever be?"""
        most = limits.CACHE_ROWS
        return lake_relation.size() > most and lake_relation.cache.size() > most

    def _are_many(self, lake_relation: PlacedRelation, columns: Sequence[int], keys: int) -> bool:
        """Are there so many keys, or so many rows with one of them, that they are Spark's?"""
        size = lake_relation.size()
        if size <= limits.SMALL:
            return False
        if keys > limits.MOST_KEYS:
            return True
        values = max((lake_relation.values(i) or math.inf for i in columns), default=math.inf)
        return keys * size > limits.MOST_ROWS * values

    def foresee(self, query: LakeQuery, many: Sequence[Sequence[Any]]) -> None:
        """A query is going to be asked with many values, one after the other: fetch what it needs
        at once, as far as it is asked for by key."""
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
