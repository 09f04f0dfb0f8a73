"""The nodes between the tables and the conditions: how each of them takes in what changed below.

Derived relations are filled by differentials or from scratch, kept totals and stored rounds follow
their members, recursive relations take their turn. What is above and goes naive needs none of it.

Law: the Δ-set of a node that was not missed holds its exact change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from harken.calculus.counting import Derivations
from harken.database.catalog import Catalog
from harken.engines.protocol import Engine, Query
from harken.errors import HarkenError, SafetyFault, is_of_data
from harken.maintenance.choices import COPY_LIMIT
from harken.maintenance.chooser import FOLLOWED, TookTooLong
from harken.maintenance.recursive_choice import Turn
from harken.planner.network import Part
from harken.propagation.graph import Topology
from harken.propagation.nodes import (
    APART,
    COPIED,
    COUNTING,
    INCREMENTAL,
    NAIVE,
    WITH_TOTALS,
    ConditionNode,
    DerivedNode,
    Node,
    Planning,
    TotalsNode,
)
from harken.propagation.recursive_nodes import EXTERNAL, MATERIALIZED, RecursiveNode
from harken.propagation.round_nodes import IN_ROUNDS, RoundsNode
from harken.propagation.watched import Condition
from harken.propagation.wave import NodeChange, Wave

SEVERAL = 3
"""Plans for so many changed relations are long, and there are many combinations: each is made when
it is worth it. Those for one or two are made at once."""
LITERALS = 5e-6
"""To make a plan takes so many seconds, times the square of the literals in its statement."""
SHORT_PLAN = 0.1
"""What takes fewer seconds is done at once."""
BUILT_AGAIN = 3.0
"""Totals that were not followed are built again, and what reads them has gone naive twice."""


class Between(Topology):
    def __init__(self, engine: Engine, catalog: Catalog) -> None:
        super().__init__(engine, catalog)
        self._planning = Planning(engine, catalog)
        self.observer: Callable[[NodeChange], None] | None = None
        """Who is told of the changes of nodes between the tables and the conditions."""

    def _advance(self, node: DerivedNode, wave: Wave) -> None:
        """Fill the Δ-set of a node; if it holds anything, the wave goes on from there."""
        if self.choices.forced == NAIVE or self._passes(node, wave):
            self._miss(node, wave)
            return
        changed = frozenset(wave.changed & node.part.influents.keys())
        try:
            strategy = self._take_in_change(node, wave, changed)
        except HarkenError as error:
            if not is_of_data(error):
                raise
            # It failed for rows that nobody may ask for: what is above finds out.
            self._miss(node, wave)
            wave.flooded.add(node.id)
            strategy = f"passed by: {error.message}"
        if self.observer is not None:
            plus, minus = node.delta.rows()
            relation = node.delta.relation
            self.observer(NodeChange(relation, plus, minus, changed, strategy))
        size = node.delta.size()
        if size:
            wave.changed.add(node.id)
            wave.sizes[node.id] = size
            wave.reach(node.id, self._affects[node.id].values())

    def _take_in_change(self, node: DerivedNode, wave: Wave, changed: frozenset[str]) -> str:
        if isinstance(node, TotalsNode):
            return self._follow(node, wave, changed)
        if isinstance(node, RecursiveNode) and node.refused is None:
            return self._recur(node, wave, changed)
        if isinstance(node, RoundsNode) and node.refused is None:
            return self._go_round(node, wave, changed)
        return self._fill(node, wave)

    def _passes(self, node: DerivedNode, wave: Wave) -> bool:
        """Is the node to be evaluated as a whole, in both states, only for views that have their
        old rows? To evaluate the views takes one state."""
        if isinstance(node, TotalsNode):
            return False
        if self._is_flooded(node, wave):
            return True
        if isinstance(node, RoundsNode) and node.refused is None:
            return False
        return self._is_for_kept(node) and self._choose(node, wave) == NAIVE

    def _is_for_kept(self, node: Node, through_totals: bool = False) -> bool:
        """Is all that lies above views that have their old rows, with nothing kept between?"""
        if isinstance(node, ConditionNode):
            return node.old_state is not None
        if node.copy is not None or (isinstance(node, TotalsNode) and not through_totals):
            return False
        above = self._affects[node.id].values()
        return all(self._is_for_kept(each, through_totals) for each in above)

    def _miss(self, node: DerivedNode, wave: Wave) -> None:
        """A change passes the node by: what it keeps is not up to date any more. Totals that are
        not kept need not be read; of others the change must be known, or all above goes naive."""
        node.delta.clear()
        if isinstance(node, TotalsNode):
            node.table.validity.revoke()
            return
        if node.copy is not None:
            node.copy.validity.revoke()
        if isinstance(node, RecursiveNode):
            node.kept_rows.drop()
        if isinstance(node, RoundsNode):
            node.table.validity.revoke()
        wave.ways.missed.add(node.id)
        wave.reach(node.id, self._affects[node.id].values())

    def _follow(self, node: TotalsNode, wave: Wave, changed: frozenset[str]) -> str:
        ways = wave.ways
        if not self.choices.wants_totals(node):
            self._miss(node, wave)
            return "not kept"
        flood = ways.is_unknown(node) and self.choices.is_flood(node, wave.sizes)
        flood = flood and not ways.is_followed_quickly(node)
        if flood or not ways.is_needed(node) or ways.depends_on_missed(node):
            self._miss(node, wave)
            wave.flooded.add(node.id)
            return "not kept: all from scratch takes less"
        if not node.table.validity.holds():
            wave.to_build.append(node)
            return "not kept yet"
        if self._waits(node, FOLLOWED, changed, wave, BUILT_AGAIN):
            self._miss(node, wave)
            wave.flooded.add(node.id)
            return "not kept: a plan for so many changes takes longer"
        try:
            followers = self._followers(node, wave, changed)
        except SafetyFault as fault:
            if fault.code != "too-complex":
                raise
            self._miss(node, wave)
            wave.flooded.add(node.id)
            return "not kept: the statement is more than SQLite takes"
        try:
            with self._tallied(node, wave):
                followed = ways.run(node, FOLLOWED, lambda: node.follow(followers))
        except TookTooLong:
            ways.give_up_above(node)
            self._miss(node, wave)
            wave.flooded.add(node.id)
            return "not kept: it took too long"
        if not followed:
            wave.to_build.append(node)
            return "not kept yet"
        ways.note(node, FOLLOWED)
        return COUNTING if isinstance(node.totals, Derivations) else "kept totals"

    def _followers(
        self, node: TotalsNode, wave: Wave, changed: frozenset[str]
    ) -> list[tuple[Query, str]]:
        if changed not in node.followers:
            wave.fresh.add(node.id)
        return node.followers_of(changed, self._planning)

    @contextmanager
    def _tallied(self, node: TotalsNode, wave: Wave) -> Iterator[None]:
        """Let the time that derivations take to be counted be that of what is above."""
        if not isinstance(node.totals, Derivations):
            yield
            return
        started = self._clock()
        yield
        wave.counting[node.id] = self._clock() - started

    def _clock(self) -> float:
        return self._engine.connection.working_time()

    def _go_round(self, node: RoundsNode, wave: Wave, changed: frozenset[str]) -> str:
        """Fill the Δ-set of a recursion that counts derivations: by its stored rounds, if they are
        there; otherwise by all of them, and they are stored when all has settled."""
        if not wave.ways.is_needed(node):
            self._miss(node, wave)
            return "passed by: what is above goes naive"
        is_naive = any(each.strategy == NAIVE for each in self._conditions_above(node))
        if is_naive or wave.ways.depends_on_missed(node) or not node.table.validity.holds():
            node.table.validity.revoke()
            if not is_naive:
                wave.to_store.append(node)
            return self._fill(node, wave)
        node.follow(changed, self._planning)
        if node.table.size() > COPY_LIMIT:
            node.table.drop()
            node.refused = f"there are more than {COPY_LIMIT} rows"
        return IN_ROUNDS

    def _recur(self, node: RecursiveNode, wave: Wave, changed: frozenset[str]) -> str:
        """Fill the Δ-set of a recursive relation."""
        wanted = NAIVE if wave.ways.depends_on_missed(node) else self._wanted_of(node)
        if wanted is None and not wave.ways.is_needed(node):
            self._miss(node, wave)
            return "passed by: what is above goes naive"
        stored = frozenset(wave.stored & node.part.stored.keys())
        size = sum(wave.sizes[name] for name in changed)
        return Turn(node, changed, stored, size, self.choices, self._planning).go(wanted)

    def _wanted_of(self, node: RecursiveNode) -> str | None:
        """The way that those above a recursive relation want it to go, if they do."""
        if self.choices.forced is not None:
            return EXTERNAL if self.choices.forced == INCREMENTAL else NAIVE
        wanted = {each.strategy for each in self._conditions_above(node)}
        return next((each for each in (NAIVE, MATERIALIZED, EXTERNAL) if each in wanted), None)

    def _conditions_above(self, node: Node) -> Iterator[Condition]:
        if isinstance(node, ConditionNode):
            yield node.condition
        else:
            for above in self._affects[node.id].values():
                yield from self._conditions_above(above)

    def _queries_below(
        self, node: DerivedNode, wave: Wave
    ) -> tuple[str, frozenset[str], tuple[Query, ...]]:
        """How the change of a node is computed, from what, and the queries: of a bag for its
        weighted change, of a set for what it gained and for what it lost."""
        while True:
            strategy = self._choose(node, wave)
            if strategy == NAIVE and node.copy is not None and node.copy.validity.holds():
                strategy = COPIED
            if strategy == NAIVE and node.is_apart:
                strategy = APART
            below = frozenset(wave.changed & node.influents(strategy).keys())
            if not below:
                return strategy, below, ()
            if strategy == APART:  # it is found by what lies above
                return strategy, below, ()
            try:
                found = self._queries_made(node, strategy, below)
                return strategy, below, tuple(map(wave.answers.of, found))
            except SafetyFault as fault:
                if not node.is_refused(fault, strategy, below, self._planning):
                    raise

    def _queries_made(
        self, node: DerivedNode, strategy: str, below: frozenset[str]
    ) -> tuple[Query, ...]:
        if not node.part.relation.is_set:
            return (node.weighted_query(strategy, below, self._planning),)
        return tuple(node.query(sign, strategy, below, self._planning) for sign in (1, -1))

    def _fill(self, node: DerivedNode, wave: Wave) -> str:
        ways = wave.ways
        if not ways.is_needed(node):
            self._miss(node, wave)
            return "passed by: what is above goes naive"
        strategy, below, queries = self._queries_below(node, wave)
        if not below:
            return "no change"
        while True:
            if strategy == APART:
                self._miss(node, wave)
                return "passed by: the statement is too long"
            try:
                ways.run(node, strategy, partial(_take_in, node, queries))
                break
            except TookTooLong:
                node.delta.clear()
                if ways.give_up_above(node):
                    self._miss(node, wave)
                    return "passed by: it took too long"
                ways.give_up(node, strategy)
                strategy, below, queries = self._queries_below(node, wave)
        ways.note(node, strategy)
        if node.part.relation.is_set:
            self._keep_copy(node, strategy)
        return strategy

    def _keep_copy(self, node: DerivedNode, strategy: str) -> None:
        copy = node.copy if strategy in (NAIVE, COPIED) else None
        if strategy == COPIED:
            assert copy is not None
            copy.follow(node.delta)
        elif copy is not None:
            copy.take(self._planning.compile(node.part.program))
            if copy.size() > COPY_LIMIT:
                copy.drop()
                node.copy = None

    def _choose(self, node: Node, wave: Wave) -> str:
        ways = wave.ways
        if isinstance(node, ConditionNode):
            is_naive = node.condition.strategy == NAIVE and not node.part.below
            if node.condition.moves or is_naive:
                return NAIVE
        if self.choices.forced == NAIVE or ways.depends_on_missed(node) or ways.goes_naive(node):
            return NAIVE
        if self._is_flooded(node, wave):
            return NAIVE
        part, incremental = node.part, INCREMENTAL
        if node.counted is not None and self._are_kept(node.counted, wave):
            part, incremental = node.counted, COUNTING
        elif node.kept is not None and self._are_kept(node.kept, wave):
            part, incremental = node.kept, WITH_TOTALS
        sizes = {name: size for name, size in wave.sizes.items() if name in part.influents}
        known = partial(ways.prefers_naive, node, incremental)
        strategy = self.choices.strategy(node, sizes, wave.sizes, incremental, known)
        if strategy == INCREMENTAL and self._are_coming(node, wave):
            ways.pass_over(node)
            return NAIVE
        changed = frozenset(sizes)
        if strategy == NAIVE or node.is_unwieldy(strategy, changed):
            return NAIVE
        return NAIVE if self._waits(node, strategy, changed, wave) else strategy

    def _waits(
        self, node: Node, strategy: str, changed: frozenset[str], wave: Wave, times: float = 1.0
    ) -> bool:
        """Is a plan for what has changed still to be made, and does that take longer than naive
        evaluation has for want of it, this time included? It takes `times` as long here."""
        if node.id in wave.waiting:
            return True
        if len(changed) < SEVERAL or node.is_planned(strategy, changed) or self._is_bound(node):
            return False
        to_plan = LITERALS * node.length(strategy, changed) ** 2
        waited = node.waited.get(changed, 0.0) + times * self.choices.naive_seconds(node)
        if to_plan < SHORT_PLAN or waited >= to_plan:
            return False
        node.waited[changed] = waited
        wave.waiting.add(node.id)
        return True

    def _is_bound(self, node: Node) -> bool:
        """Is it settled how its change is found, or is it Spark that would evaluate it?"""
        settled = self.choices.forced is not None or self.choices.is_of_far(node)
        return settled or any(each.strategy != "auto" for each in self._conditions_above(node))

    def _is_flooded(self, node: Node, wave: Wave) -> bool:
        """Is so much new that to evaluate the views above takes less than to follow it? They have
        their old rows; totals between are made anew when they are wanted again."""
        return (
            self.choices.is_flood(node, wave.sizes)
            and wave.ways.is_first(node)
            and self._is_for_kept(node, through_totals=True)
        )

    def _are_coming(self, node: Node, wave: Wave) -> bool:
        """Are totals of a query of SQL wanted and not there yet? Without them its groups are looked
        at again, one by one in both states; all of it from scratch takes no longer than they do
        to be built."""
        if node.kept is None or node.part.relation.is_set or self.choices.forced is not None:
            return False
        wanted = {each.relation.id for each in node.kept.totals}
        return any(each.id in wanted for each in wave.to_build)

    def _are_kept(self, part: Part, wave: Wave) -> bool:
        """Are the totals that a part reads those of now? Those whose members have not changed
        since they are wanted are there the next time."""
        found = [self._derived.get(each.relation.id) for each in part.totals]
        nodes = [node for node in found if isinstance(node, TotalsNode)]
        if len(nodes) < len(found):
            return False  # a node between has another way to its rows, and keeps none
        missing = [node for node in nodes if not node.table.validity.holds()]
        for node in missing:
            known = node in wave.to_build or node.id in wave.flooded
            if not known and self.choices.wants_totals(node):
                wave.to_build.append(node)
        return not missing and not any(node in wave.to_build for node in nodes)


def _take_in(node: DerivedNode, queries: Sequence[Query]) -> None:
    """Fill the Δ-set of a node."""
    if not node.part.relation.is_set:
        node.delta.fill_weighted(queries[0])
        return
    for query, sign in zip(queries, (1, -1), strict=True):
        node.delta.fill(query, sign)
