"""What is kept for views, so that their changes cost less: totals, rounds, counted derivations.

Law: what is kept and valid is what its members give now.
"""

from __future__ import annotations

from collections.abc import Iterable

from harken.engines.protocol import BrokenOff
from harken.errors import HarkenError, is_of_data
from harken.maintenance.chooser import Chooser
from harken.maintenance.nodes import Planning, TotalsNode, ViewNode, build
from harken.maintenance.round_nodes import RoundsNode
from harken.propagation.graph import Graph
from harken.propagation.wave import Wave


class KeptState:
    def __init__(self, graph: Graph, planning: Planning, chooser: Chooser) -> None:
        self._graph = graph
        self._planning = planning
        self._chooser = chooser

    def after(self, wave: Wave) -> None:
        """All has settled: build what the wave found to be worth keeping."""
        wanted = wave.plan.to_build.values()
        self.keep(each for each in wanted if isinstance(each, TotalsNode))
        for each in wanted:
            if isinstance(each, RoundsNode):
                self.store_rounds(each)
        for node in wave.to_turn:
            self.turn(node)
        if wanted or wave.to_turn:
            self._chooser.raise_version()

    def build_kept(self, node: ViewNode) -> None:
        """Build what a new view wants to keep, so that it is there for the first change."""
        if self._graph.captures.has_pending(node.part.stored):
            return  # what is built now would follow these changes once more
        wanted = (
            each
            for each in self._graph.totals_below(node)
            if self._chooser.wants_totals(each) and not each.table.holds()
        )
        self.keep(wanted)
        for each in self._graph.rounds_below(node):
            if each.refused is None and not each.table.holds():
                self.store_rounds(each)

    def keep(self, nodes: Iterable[TotalsNode]) -> None:
        """Compute totals of members as they are now. Where that fails, of a group perhaps that no
        view asks for, none are kept."""
        nodes = list(nodes)
        try:
            build(nodes, self._planning)
        except HarkenError as error:
            if not is_of_data(error):
                raise
            for each in nodes:
                self._keep_if_possible(each)

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

    def turn(self, node: ViewNode) -> None:
        """Begin or end to count the derivations of a condition, when all has settled."""
        tally, condition = node.tally, node.view
        assert tally is not None
        if tally.is_counting:
            tally.end()
            self._graph.attach(condition)
            return
        tally.begin()
        self._graph.attach(condition)
        now = self._graph.nodes[condition.name]
        counts = [each for each in self._graph.totals_below(now) if each.id in now.keeps()]
        try:
            with self._planning.engine.connection.limited(tally.most):
                build(counts, self._planning)
        except (BrokenOff, HarkenError) as error:
            if isinstance(error, HarkenError) and not is_of_data(error):
                raise
            for each in counts:
                each.table.drop()
            tally.end(too_long=True)
            self._graph.attach(condition)
