"""The changes of the nodes between the tables and the views.

Derived relations are filled by differentials or recomputed, kept totals and stored rounds are
updated by the changes of their members, and recursive relations run their own strategies. A node
whose readers are all recomputed is skipped.

Law: the Δ-set of a node that was not skipped holds its exact change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from harken.calculus.counting import Derivations
from harken.engines.protocol import Query
from harken.errors import HarkenError, SafetyFault, is_of_data
from harken.maintenance.chooser import Chooser
from harken.maintenance.decisions import Decision, DecisionReason
from harken.maintenance.nodes import DerivedNode, Planning, TotalsNode
from harken.maintenance.recursion_update import RecursionUpdate
from harken.maintenance.recursive_nodes import RecursiveNode
from harken.maintenance.round_nodes import RoundsNode
from harken.maintenance.strategies import Strategy
from harken.maintenance.strategies.base import Job
from harken.maintenance.strategies.registry import find, recomputation
from harken.maintenance.wave_learning import TookTooLong
from harken.maintenance.wave_plan import UNCHANGED
from harken.propagation.graph import Graph
from harken.propagation.wave import NodeChange, Wave

BROKEN_OFF = Decision(Strategy.SKIPPED, DecisionReason.BROKEN_OFF)
FAILED = Decision(Strategy.SKIPPED, DecisionReason.FAILED)
TOO_LONG = Decision(Strategy.SKIPPED, DecisionReason.STATEMENT_TOO_LONG)


class DerivedChanges:
    def __init__(self, graph: Graph, planning: Planning, chooser: Chooser) -> None:
        self._graph = graph
        self._planning = planning
        self._chooser = chooser
        self.observer: Callable[[NodeChange], None] | None = None
        """Called with the changes of nodes between the tables and the views."""

    def advance(self, node: DerivedNode, wave: Wave) -> None:
        """Fill the Δ-set of a node. If it is not empty, the wave continues to the nodes above."""
        changed = frozenset(wave.changed & node.part.influents.keys())
        decision = wave.plan.decide(node)
        wave.plan.take(node, decision)
        try:
            decision = self._carry_out(decision, node, wave, changed)
        except HarkenError as error:
            if not is_of_data(error):
                raise
            # It may have failed for rows that no view needs; the views above find out.
            decision = self._skip(node, wave, FAILED)
        if self.observer is not None:
            plus, minus = node.delta.rows()
            relation = node.delta.relation
            self.observer(NodeChange(relation, plus, minus, changed, decision))
        size = 0 if decision.is_skipped else node.delta.size()
        if size:
            wave.changed.add(node.id)
            wave.sizes[node.id] = size
            wave.reach(node.id, self._graph.above(node))

    def _carry_out(
        self, decision: Decision, node: DerivedNode, wave: Wave, changed: frozenset[str]
    ) -> Decision:
        """Carry out a decision. Returns the one that was carried out in the end: a strategy that
        takes too long is replaced."""
        if decision.reason is DecisionReason.NOT_BUILT and isinstance(node, TotalsNode):
            return decision
        if decision.is_skipped:
            self._invalidate(node, wave)
            return decision
        if isinstance(node, TotalsNode):
            return self._follow(node, wave, changed, decision)
        if isinstance(node, RecursiveNode) and node.refused is None:
            return self._update_recursion(node, wave, changed, decision)
        if isinstance(node, RoundsNode) and node.refused is None:
            return self._follow_rounds(node, wave, changed, decision)
        return self._fill(node, wave, decision)

    def _skip(self, node: DerivedNode, wave: Wave, decision: Decision) -> Decision:
        wave.plan.take(node, decision)
        self._invalidate(node, wave)
        return decision

    def _invalidate(self, node: DerivedNode, wave: Wave) -> None:
        """Skip a node: its kept state is out of date from now on. The nodes above are reached and
        recomputed, except that nobody needs totals that are not kept."""
        node.delta.clear()
        wave.plan.skip(node)
        if isinstance(node, TotalsNode):
            node.table.revoke()
            return
        if node.copy is not None:
            node.copy.revoke()
        if isinstance(node, RecursiveNode):
            node.kept_rows.drop()
        if isinstance(node, RoundsNode):
            node.table.revoke()
        wave.reach(node.id, self._graph.above(node))

    def _follow(
        self, node: TotalsNode, wave: Wave, changed: frozenset[str], decision: Decision
    ) -> Decision:
        plan = wave.plan
        method, job = find(Strategy.FOLLOWED, node), Job(node, changed, self._planning)
        try:
            if changed not in node.followers:
                wave.fresh.add(node.id)
            method.queries(job)
        except SafetyFault as fault:
            if fault.code != "too-complex":
                raise
            return self._skip(node, wave, TOO_LONG)
        try:
            with self._timed_counting(node, wave):
                plan.run(node, Strategy.FOLLOWED, partial(method.run, job, ()))
        except TookTooLong:
            plan.break_off_above(node)
            return self._skip(node, wave, BROKEN_OFF)
        if not method.is_ready(node, self._graph):
            decision = Decision(Strategy.SKIPPED, DecisionReason.NOT_BUILT, build=(node,))
            plan.take(node, decision)
            return decision
        plan.note(node, Strategy.FOLLOWED)
        if isinstance(node.totals, Derivations):
            return decision.instead(Strategy.COUNTING)
        return decision

    @contextmanager
    def _timed_counting(self, node: TotalsNode, wave: Wave) -> Iterator[None]:
        """Charge the time of updating counted derivations to the view above."""
        if not isinstance(node.totals, Derivations):
            yield
            return
        started = self._planning.clock()
        yield
        wave.counting[node.id] = self._planning.clock() - started

    def _follow_rounds(
        self, node: RoundsNode, wave: Wave, changed: frozenset[str], decision: Decision
    ) -> Decision:
        """Fill the Δ-set of a recursion that counts derivations."""
        if decision.strategy is not Strategy.ROUNDS:
            node.table.revoke()
            return self._fill(node, wave, decision)
        find(Strategy.ROUNDS, node).run(Job(node, changed, self._planning), ())
        return decision

    def _update_recursion(
        self, node: RecursiveNode, wave: Wave, changed: frozenset[str], decision: Decision
    ) -> Decision:
        """Fill the Δ-set of a recursive relation."""
        stored = frozenset(wave.stored & node.part.stored.keys())
        job = Job(node, changed, self._planning, stored)
        case, size = wave.plan.recursive_case(node), wave.plan.recursive_size(node)
        found = RecursionUpdate(node, job, case, size, self._chooser).run(decision)
        if found is not decision:
            self._chooser.log.replace(node.id, found)
        return found

    def queries(
        self, node: DerivedNode, wave: Wave, decision: Decision
    ) -> tuple[Decision, frozenset[str], tuple[Query, ...]]:
        """How the change of a node is computed, from which changed relations, and the queries: one
        for the weighted change of a bag, or two for the gains and losses of a set."""
        while True:
            if decision.strategy is Strategy.NAIVE:
                decision = decision.instead(recomputation(node, self._graph).name)
            strategy = decision.strategy
            method = find(strategy, node)
            below = frozenset(wave.changed & method.influents(node).keys())
            if not below:
                return decision, below, ()
            try:
                found = method.queries(Job(node, below, self._planning))
                return decision, below, tuple(map(wave.answers.of, found))
            except SafetyFault as fault:
                if not node.is_refused(fault, strategy, below, self._planning):
                    raise
                decision = wave.plan.decide_again(node)

    def _fill(self, node: DerivedNode, wave: Wave, decision: Decision) -> Decision:
        plan = wave.plan
        decision, below, queries = self.queries(node, wave, decision)
        if not below:
            return UNCHANGED
        while True:
            if decision.strategy is Strategy.APART:
                return self._skip(node, wave, TOO_LONG)
            try:
                method, job = find(decision.strategy, node), Job(node, below, self._planning)
                plan.run(node, decision.strategy, partial(method.run, job, queries))
                break
            except TookTooLong:
                node.delta.clear()
                if plan.break_off_above(node):
                    return self._skip(node, wave, BROKEN_OFF)
                plan.break_off(node, decision.strategy)
                decision, below, queries = self.queries(node, wave, plan.decide_again(node))
                plan.take(node, decision)
        plan.note(node, decision.strategy)
        if node.part.relation.is_set:
            self._keep_copy(node, decision.strategy)
        return decision

    def _keep_copy(self, node: DerivedNode, strategy: str) -> None:
        copy = node.copy if strategy in (Strategy.NAIVE, Strategy.COPIED) else None
        if strategy == Strategy.COPIED:
            assert copy is not None
            copy.follow(None, node.delta)
        elif copy is not None and self._chooser.budget.allows(copy):
            self._chooser.budget.note_built()
            copy.build(self._planning.compile(node.part.program))
