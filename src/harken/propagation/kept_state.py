"""State that is kept for views, so that their changes cost less: totals, rounds, counted
derivations.

Law: kept state that is valid equals what its present members give.
"""

from __future__ import annotations

from collections.abc import Iterable

from harken.calculus.counting import Derivations
from harken.calculus.totals import Totals
from harken.engines.protocol import BrokenOff
from harken.errors import HarkenError, is_of_data
from harken.ir.relations import Relation
from harken.maintenance.chooser import COUNTED, Chooser
from harken.maintenance.kept_budget import KeptReport
from harken.maintenance.nodes import DerivedNode, Planning, TotalsNode, ViewNode, build
from harken.maintenance.round_nodes import RoundsNode
from harken.propagation.graph import Graph
from harken.propagation.wave import Wave
from harken.values.rows import Row


class KeptState:
    def __init__(self, graph: Graph, planning: Planning, chooser: Chooser) -> None:
        self._graph = graph
        self._planning = planning
        self._chooser = chooser

    def finish(self, wave: Wave) -> None:
        """The wave has ended: build the state that it found worth keeping."""
        wanted = wave.plan.to_build.values()
        self.keep(each for each in wanted if isinstance(each, TotalsNode))
        for each in wanted:
            if isinstance(each, RoundsNode):
                self.store_rounds(each)
        for node in wave.to_switch:
            self.switch_counting(node)
        if wanted or wave.to_switch:
            self._chooser.raise_version()
            self._chooser.budget.note_built()
        if self._chooser.budget.is_due():
            self.enforce_budget()

    def enforce_budget(self) -> None:
        """Drop the state that saves the least per byte, if all kept state exceeds the budget."""
        nodes = self._graph.derived.values()

        def worth(node: DerivedNode) -> float:
            return self._chooser.worth(node, self._graph.above(node))

        if self._chooser.budget.enforce(nodes, worth):
            self._chooser.raise_version()

    def report(self) -> KeptReport:
        """All kept state with its sizes."""
        return self._chooser.budget.report(self._graph.derived.values())

    def build_kept(self, node: ViewNode) -> None:
        """Build the state that a new view uses, so that it is there for the first change."""
        if self._graph.captures.has_pending(node.part.stored):
            return  # these changes are in the tables already, and would be applied twice
        wanted = (
            each
            for each in self._graph.totals_below(node)
            if self._chooser.wants_totals(each) and not each.table.holds()
        )
        self.keep(wanted)
        for each in self._graph.rounds_below(node):
            allowed = each.refused is None and self._chooser.budget.allows(each.table)
            if allowed and not each.table.holds():
                self.store_rounds(each)
        self._chooser.budget.note_built()
        if self._chooser.budget.is_due():
            self.enforce_budget()

    def revoke_reading(self, node: ViewNode, relation: Relation) -> None:
        """A relation below a view has changed without an event: what was kept of it does not hold
        any more. It is built again by a wave that wants it."""
        for each in self._graph.totals_below(node):
            if relation.id in each.part.stored:
                each.table.revoke()

    def rows_by_totals(self, node: ViewNode) -> list[Row] | None:
        """The rows of a new view, computed from the totals that are kept for it, so that its tables
        are read only once. None if it uses other state, or no totals are to be kept."""
        part = node.kept
        if part is None or self._graph.captures.has_pending(node.part.stored):
            return None
        below = list(self._graph.totals_below(node))
        if not all(isinstance(each.totals, Totals) and each.totals.is_added for each in below):
            return None
        self._planning.engine.measure()
        self.build_kept(node)
        if not below or not all(each.table.holds() for each in below):
            return None
        return self._planning.compile(part.program).rows(())

    def keep(self, nodes: Iterable[TotalsNode]) -> None:
        """Build totals from the present members. If that fails, perhaps for a group that no view
        needs, none are kept."""
        nodes = list(nodes)
        for each in [node for node in nodes if isinstance(node.totals, Derivations)]:
            nodes.remove(each)
            self._count(each)
        try:
            build(nodes, self._planning)
        except HarkenError as error:
            if not is_of_data(error):
                raise
            for each in nodes:
                self._keep_if_possible(each)

    def _count(self, node: TotalsNode) -> None:
        """Count derivations, unless that takes far longer than evaluating the view once."""
        above = self._graph.above(node)
        started = self._planning.clock()
        try:
            with self._planning.engine.connection.limited(self._chooser.first_limit(above)):
                self._keep_if_possible(node)
        except BrokenOff:
            node.table.drop()
            self._chooser.note_runaway(node, COUNTED, 1, self._planning.clock() - started)

    def _keep_if_possible(self, node: TotalsNode) -> None:
        try:
            build([node], self._planning)
        except HarkenError as error:
            if not is_of_data(error):
                raise
            node.table.drop()
            self._chooser.note_failure(node)

    def store_rounds(self, recursion: RoundsNode) -> None:
        try:
            recursion.build(self._planning)
        except HarkenError as error:
            if not is_of_data(error):
                raise
            recursion.table.drop()

    def switch_counting(self, node: ViewNode) -> None:
        """Start or stop counting the derivations of a view, at the end of a wave."""
        counting_history, condition = node.counting_history, node.view
        assert counting_history is not None
        if counting_history.is_counting:
            counting_history.end()
            self._graph.attach(condition)
            return
        counting_history.begin()
        self._graph.attach(condition)
        now = self._graph.nodes[condition.name]
        counts = [each for each in self._graph.totals_below(now) if each.id in now.keeps()]
        try:
            with self._planning.engine.connection.limited(counting_history.attempt_limit):
                build(counts, self._planning)
        except (BrokenOff, HarkenError) as error:
            if isinstance(error, HarkenError) and not is_of_data(error):
                raise
            for each in counts:
                each.table.drop()
            counting_history.end(too_long=True)
            self._graph.attach(condition)
