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
from harken.engines.protocol import Query
from harken.errors import HarkenError, SafetyFault, is_of_data
from harken.maintenance.choices import COPY_LIMIT, Choices
from harken.maintenance.chooser import TookTooLong
from harken.maintenance.nodes import DerivedNode, Planning, TotalsNode
from harken.maintenance.recursive_choice import Turn
from harken.maintenance.recursive_nodes import RecursiveNode
from harken.maintenance.round_nodes import RoundsNode
from harken.maintenance.strategies import Strategy
from harken.propagation.graph import Graph
from harken.propagation.strategy_choice import StrategyChoice
from harken.propagation.wave import NodeChange, Wave

BUILT_AGAIN = 3.0
"""Totals that were not followed are built again, and what reads them has gone naive twice."""


class DerivedChanges:
    def __init__(
        self, graph: Graph, planning: Planning, choices: Choices, choice: StrategyChoice
    ) -> None:
        self._graph = graph
        self._planning = planning
        self._choices = choices
        self._choice = choice
        self.observer: Callable[[NodeChange], None] | None = None
        """Who is told of the changes of nodes between the tables and the views."""

    def advance(self, node: DerivedNode, wave: Wave) -> None:
        """Fill the Δ-set of a node; if it holds anything, the wave goes on from there."""
        if self._choices.forced == Strategy.NAIVE or self._choice.passes(node, wave):
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
            wave.reach(node.id, self._graph.above(node))

    def _take_in_change(self, node: DerivedNode, wave: Wave, changed: frozenset[str]) -> str:
        if isinstance(node, TotalsNode):
            return self._follow(node, wave, changed)
        if isinstance(node, RecursiveNode) and node.refused is None:
            return self._recur(node, wave, changed)
        if isinstance(node, RoundsNode) and node.refused is None:
            return self._go_round(node, wave, changed)
        return self._fill(node, wave)

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
        wave.reach(node.id, self._graph.above(node))

    def _follow(self, node: TotalsNode, wave: Wave, changed: frozenset[str]) -> str:
        ways = wave.ways
        if not self._choices.wants_totals(node):
            self._miss(node, wave)
            return "not kept"
        flood = ways.is_unknown(node) and self._choices.is_flood(node, wave.sizes)
        flood = flood and not ways.is_followed_quickly(node)
        if flood or not ways.is_needed(node) or ways.depends_on_missed(node):
            self._miss(node, wave)
            wave.flooded.add(node.id)
            return "not kept: all from scratch takes less"
        if not node.table.validity.holds():
            wave.to_build.append(node)
            return "not kept yet"
        if self._choice.waits(node, Strategy.FOLLOWED, changed, wave, BUILT_AGAIN):
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
                followed = ways.run(node, Strategy.FOLLOWED, lambda: node.follow(followers))
        except TookTooLong:
            ways.give_up_above(node)
            self._miss(node, wave)
            wave.flooded.add(node.id)
            return "not kept: it took too long"
        if not followed:
            wave.to_build.append(node)
            return "not kept yet"
        ways.note(node, Strategy.FOLLOWED)
        return Strategy.COUNTING if isinstance(node.totals, Derivations) else "kept totals"

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
        started = self._planning.clock()
        yield
        wave.counting[node.id] = self._planning.clock() - started

    def _go_round(self, node: RoundsNode, wave: Wave, changed: frozenset[str]) -> str:
        """Fill the Δ-set of a recursion that counts derivations: by its stored rounds, if they are
        there; otherwise by all of them, and they are stored when all has settled."""
        if not wave.ways.is_needed(node):
            self._miss(node, wave)
            return "passed by: what is above goes naive"
        is_naive = any(each.strategy == Strategy.NAIVE for each in self._graph.views_above(node))
        if is_naive or wave.ways.depends_on_missed(node) or not node.table.validity.holds():
            node.table.validity.revoke()
            if not is_naive:
                wave.to_store.append(node)
            return self._fill(node, wave)
        node.follow(changed, self._planning)
        if node.table.size() > COPY_LIMIT:
            node.table.drop()
            node.refused = f"there are more than {COPY_LIMIT} rows"
        return Strategy.ROUNDS

    def _recur(self, node: RecursiveNode, wave: Wave, changed: frozenset[str]) -> str:
        """Fill the Δ-set of a recursive relation."""
        wanted = Strategy.NAIVE if wave.ways.depends_on_missed(node) else self._wanted_of(node)
        if wanted is None and not wave.ways.is_needed(node):
            self._miss(node, wave)
            return "passed by: what is above goes naive"
        stored = frozenset(wave.stored & node.part.stored.keys())
        size = sum(wave.sizes[name] for name in changed)
        return Turn(node, changed, stored, size, self._choices, self._planning).go(wanted)

    def _wanted_of(self, node: RecursiveNode) -> str | None:
        """The way that those above a recursive relation want it to go, if they do."""
        if self._choices.forced is not None:
            return (
                Strategy.EXTERNAL
                if self._choices.forced == Strategy.INCREMENTAL
                else Strategy.NAIVE
            )
        wanted = {each.strategy for each in self._graph.views_above(node)}
        return next(
            (
                each
                for each in (Strategy.NAIVE, Strategy.MATERIALIZED, Strategy.EXTERNAL)
                if each in wanted
            ),
            None,
        )

    def queries(
        self, node: DerivedNode, wave: Wave
    ) -> tuple[str, frozenset[str], tuple[Query, ...]]:
        """How the change of a node is computed, from what, and the queries: of a bag for its
        weighted change, of a set for what it gained and for what it lost."""
        while True:
            strategy = self._choice.choose(node, wave)
            if strategy == Strategy.NAIVE and node.copy is not None and node.copy.validity.holds():
                strategy = Strategy.COPIED
            if strategy == Strategy.NAIVE and node.is_apart:
                strategy = Strategy.APART
            below = frozenset(wave.changed & node.influents(strategy).keys())
            if not below:
                return strategy, below, ()
            if strategy == Strategy.APART:  # it is found by what lies above
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
        strategy, below, queries = self.queries(node, wave)
        if not below:
            return "no change"
        while True:
            if strategy == Strategy.APART:
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
                strategy, below, queries = self.queries(node, wave)
        ways.note(node, strategy)
        if node.part.relation.is_set:
            self._keep_copy(node, strategy)
        return strategy

    def _keep_copy(self, node: DerivedNode, strategy: str) -> None:
        copy = node.copy if strategy in (Strategy.NAIVE, Strategy.COPIED) else None
        if strategy == Strategy.COPIED:
            assert copy is not None
            copy.follow(node.delta)
        elif copy is not None:
            copy.take(self._planning.compile(node.part.program))
            if copy.size() > COPY_LIMIT:
                copy.drop()
                node.copy = None


def _take_in(node: DerivedNode, queries: Sequence[Query]) -> None:
    """Fill the Δ-set of a node."""
    if not node.part.relation.is_set:
        node.delta.fill_weighted(queries[0])
        return
    for query, sign in zip(queries, (1, -1), strict=True):
        node.delta.fill(query, sign)
