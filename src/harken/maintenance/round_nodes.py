"""Nodes of recursions that count derivations: their rounds are stored and maintained."""

from __future__ import annotations

from dataclasses import dataclass, field

from harken.calculus.bags import differentiate_bag
from harken.calculus.rounds import Rounds
from harken.engines.protocol import KeptRounds, Query, RoundsChange, RoundsSource
from harken.ir.clauses import Program, stored_relations
from harken.maintenance.nodes import DerivedNode, Planning
from harken.planner.prepare import Plan, prepare


@dataclass(slots=True, eq=False)
class RoundsNode(DerivedNode):
    rounds: Rounds = field(kw_only=True)
    table: KeptRounds = field(kw_only=True)
    refused: str | None = None
    """The reason why all rounds are always recomputed; None if they are not."""
    step: Query | None = None
    changes: dict[frozenset[str], tuple[Query | None, Query | None]] = field(default_factory=dict)

    def drop(self) -> None:
        DerivedNode.drop(self)
        self.table.drop()

    def build(self, planning: Planning) -> None:
        """Store the rounds of the present state."""
        self.table.create()
        self.changes.clear()  # their indexes were dropped with the tables
        self.step = planning.engine.keep.compile(self._plan(self.rounds.step, planning), [])
        self.table.build(RoundsSource(planning.compile(self.rounds.base), self.step))

    def follow(self, changed: frozenset[str], planning: Planning) -> None:
        """Fill the Δ-set and update the rounds."""
        found = self.changes.get(changed)
        if found is None:
            self.is_fresh = True
            base = self._change(self.rounds.base, changed)
            step = self._change(self.rounds.kept_step, changed)
            found = self.changes[changed] = (
                None if base is None else planning.compile(base),
                None if step is None else self._compile_kept(step, planning),
            )
        assert self.step is not None
        self.table.follow(RoundsChange(*found, self.step), self.delta)

    def _change(self, program: Program, changed: frozenset[str]) -> Program | None:
        nodes = self.part.nodes & program.definitions.keys()
        below = stored_relations(program).keys() | nodes
        if changed.isdisjoint(below):
            return None
        return differentiate_bag(program, changed & below, nodes)

    def _compile_kept(self, program: Program, planning: Planning) -> Query:
        return planning.engine.keep.compile(self._plan(program, planning), [self.table])

    def _plan(self, program: Program, planning: Planning) -> Plan:
        return prepare(program, planning.schema.hierarchy)
