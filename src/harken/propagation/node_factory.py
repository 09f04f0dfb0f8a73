"""Makes the nodes of the graph: what each reads, and what may be stored for it.

    view_node(part, view)           a watched view
    factory.derived_node(part, ..)  a derived relation: plain, recursive, or in rounds
    factory.totals_node(...)        totals, first rows or counts that a node above reads

Law: making a node changes nothing. Its tables are created when it is put into the graph.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from harken.calculus.counting import Derivations
from harken.calculus.rederivation import is_rederivable
from harken.calculus.rounds import Rounds, rounds_of
from harken.calculus.totals import Summary
from harken.engines.protocol import CopiedRows, Engine, RecursiveRows
from harken.ir.clauses import Definition, Program
from harken.ir.relations import Relation
from harken.ir.schema import Schema
from harken.ir.strata import reachable
from harken.maintenance.counting_history import CountingHistory
from harken.maintenance.nodes import DerivedNode, Node, PlannedFrom, TotalsNode, ViewNode
from harken.maintenance.recursive_nodes import RecursiveNode, kept_relations
from harken.maintenance.round_nodes import RoundsNode
from harken.maintenance.strategies import Strategy
from harken.maintenance.watched import WatchedView
from harken.planner.change_methods import rounds_again
from harken.planner.network_nodes import (
    Part,
    Reason,
    is_worth_counting,
    members_part,
    plan_part,
    with_counted_derivations,
    with_kept_totals,
)


@dataclass(frozen=True, slots=True)
class NodeFactory:
    engine: Engine
    schema: Schema

    def view_part(self, program: Program, shared: Collection[str]) -> Part:
        """The part of a view; `shared` are relations that have nodes because several views read
        them."""
        return plan_part(program, program.goal, Reason.CONDITION, shared, self.schema.hierarchy)

    def part(self, relation: Relation, planned_from: PlannedFrom) -> Part:
        """The part of a derived relation that is not recursive."""
        source, shared = planned_from
        reason = _reason(source[relation.id])
        return plan_part(Program(relation, source), relation, reason, shared, self.schema.hierarchy)

    def derived_node(
        self, part: Part, planned_from: PlannedFrom, *, keeps: bool, counts: bool
    ) -> DerivedNode:
        """`keeps` says whether the views above allow storing state, `counts` whether one of them
        requests counting derivations."""
        if part.reason is not Reason.RECURSIVE:
            totals = with_kept_totals(part) if keeps else None
            counted = with_counted_derivations(part) if counts else None
            delta = self.engine.capture.delta(part.relation)
            return DerivedNode(part, totals, counted, delta=delta, planned_from=planned_from)
        rounds = rounds_of(part.program)
        if rounds is not None:
            return self._rounds_node(part, planned_from, rounds, keeps)
        return self._recursive_node(part, planned_from)

    def _rounds_node(
        self, part: Part, planned_from: PlannedFrom, rounds: Rounds, keeps: bool
    ) -> RoundsNode:
        refused = rounds_again(part.program, self._in_lake(part))
        return RoundsNode(
            part,
            delta=self.engine.capture.delta(part.relation),
            planned_from=planned_from,
            rounds=rounds,
            table=self.engine.keep.open(rounds),
            refused=refused or (None if keeps else "nothing is to be stored"),
        )

    def _recursive_node(self, part: Part, planned_from: PlannedFrom) -> RecursiveNode:
        keep, refused = self.engine.keep, is_rederivable(part.program)
        return RecursiveNode(
            part,
            delta=self.engine.capture.delta(part.relation),
            planned_from=planned_from,
            copy=keep.open(CopiedRows(part.relation)) if refused is not None else None,
            kept_rows=keep.open(RecursiveRows(kept_relations(part), part.relation.id)),
            refused=refused,
            reads_lake=bool(self._in_lake(part)),
            delta_of=self.engine.capture.delta,
        )

    def _in_lake(self, part: Part) -> list[str]:
        return [name for name, each in part.stored.items() if self.engine.is_in_lake(each)]

    def totals_node(self, totals: Summary, above: Node, planned_from: PlannedFrom) -> TotalsNode:
        return TotalsNode(
            members_part(totals, above.part),
            delta=self.engine.capture.delta(totals.relation),
            planned_from=planned_from,
            totals=totals,
            table=self.engine.keep.open(totals, in_file=_is_stored(above)),
        )


def view_node(
    part: Part, view: WatchedView, counting_history: CountingHistory | None = None
) -> ViewNode:
    """The node of a view. Nothing is kept for a time-dependent one: it would be that of another
    time."""
    keeping = not view.depends_on_time and view.strategy != Strategy.EXTERNAL
    kept = with_kept_totals(part) if keeping else None
    counting = keeping and view.strategy == Strategy.COUNTING
    if keeping and kept is None and _may_count(part, view):
        counting_history = counting_history or CountingHistory()
        counting = counting_history.is_counting
    else:
        counting_history = None
    counted = with_counted_derivations(part) if counting else None
    return ViewNode(part, kept, counted, view=view, counting_history=counting_history)


def _may_count(part: Part, view: WatchedView) -> bool:
    """Whether the chooser may decide to count derivations: for views whose gains and losses are
    always needed and may require a search."""
    return (
        view.strategy == "auto"
        and view.may_be_counted
        and view.needs_losses
        and view.strict
        and not view.events
        and is_worth_counting(part)
    )


def members_of(totals: Summary, above: Node) -> Relation:
    """The relation whose definition kept state was planned from. For derivations it is the set that
    they derive."""
    return above.part.relation if isinstance(totals, Derivations) else totals.members.goal


def planned_from_of(relation: Relation, above: Node, program: Program) -> PlannedFrom:
    source = reachable(relation, {**above.part.program.definitions, **program.definitions})
    return source, above.part.nodes & source.keys()


def _is_stored(node: Node) -> bool:
    """Whether the node is a materialised view. Its kept state is shared by all sessions."""
    return isinstance(node, ViewNode) and node.view.stored is not None


def _reason(definition: Definition) -> Reason:
    late = definition.exclusive and len(definition.clauses) > 1
    return Reason.LATE_BOUND if late else Reason.SHARED
