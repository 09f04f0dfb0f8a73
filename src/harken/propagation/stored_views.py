"""Materialised views as nodes of the graph: their change is written, and the wave continues.

The change of a stored view is applied to its table and becomes the Δ-set of that relation, for the
nodes above that read it. A table that only the network writes has no triggers: its change is
reported here.

Law: after a wave the table of a stored view has the rows of its query, and every reader of the
table has been reached with exactly that change.
"""

from __future__ import annotations

from harken.engines.protocol import Engine
from harken.ir.relations import Relation
from harken.maintenance.chooser import Chooser
from harken.propagation.graph import Graph
from harken.propagation.wave import ViewChange, Wave


class StoredViews:
    def __init__(self, engine: Engine, graph: Graph, chooser: Chooser) -> None:
        self._engine = engine
        self._graph = graph
        self._chooser = chooser

    def store(self, change: ViewChange, wave: Wave) -> None:
        """Write the change of a view into its table, if it has one, and continue to its readers."""
        relation = change.view.stored
        if relation is None or not (change.plus or change.minus):
            return
        self._engine.remove_many(relation, change.minus)
        self._engine.insert_many(relation, change.plus)
        readers = self._graph.affects.get(relation.id)
        if readers:
            size = self._note(relation, change, relation.id in wave.stored)
            self._chooser.note_change(relation.id, size)
            wave.note_changed(relation.id, size)
            wave.reach(relation.id, readers.values())

    def _note(self, relation: Relation, change: ViewChange, has_changed: bool) -> int:
        """Put the change into the Δ-set of the table, unless its triggers did. Returns the size."""
        captures = self._graph.captures
        if captures.is_reported(relation.id):
            weighted = [(*row, 1) for row in change.plus] + [(*row, -1) for row in change.minus]
            captures.note_rows_of_wave(relation.id, weighted)
            if not has_changed:
                return len(weighted)
        return captures.sizes([relation.id])[relation.id]
