"""The graph of the propagation network: its nodes, and which of them depend on which.

Level 0 holds the stored relations that a watched view depends on; `captures` keeps their changes.
Above them are the derived relations that have nodes (`planner.network_nodes` says which) and, above
those, the watched views. Two views that share a part share its node. The relation of a stored view
is on the level of the view, so its readers are above.

Law: when a wave starts, a node is on a higher level than everything it depends on. A node exists as
long as another node depends on it: `affects` is its reference count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harken.calculus.clock import reads_clock
from harken.calculus.past_states import with_histories
from harken.calculus.totals import Summary
from harken.engines.protocol import Engine
from harken.ir.clauses import Program
from harken.ir.past_relations import reads_past
from harken.ir.relations import Kind, Relation
from harken.ir.schema import Schema
from harken.ir.strata import depends_on
from harken.maintenance.chooser import Chooser
from harken.maintenance.nodes import DerivedNode, Node, PlannedFrom, TotalsNode, ViewNode
from harken.maintenance.recursive_nodes import RecursiveNode
from harken.maintenance.round_nodes import RoundsNode
from harken.maintenance.strategies import Strategy
from harken.maintenance.watched import WatchedView
from harken.planner.network_nodes import Part, Sharing, with_counted_derivations
from harken.planner.screen import Screener
from harken.propagation.captures import Captures
from harken.propagation.node_factory import NodeFactory, members_of, planned_from_of, view_node
from harken.values.rows import Row

if TYPE_CHECKING:
    from harken.propagation.consumer import Consumer


@dataclass(frozen=True, slots=True)
class SpecialRelations:
    """Stored relations that the network treats specially."""

    reported: Callable[[Relation], bool] = lambda _: False
    """Whether the code that changes the relation reports the change by `note_rows`, without
    triggers. There may be ten thousand rules without parameters, each with such a relation."""
    fixed: Callable[[Relation], bool] = lambda _: False
    """Whether the relation changes between transactions only, and its changes are not
    propagated."""
    noticed: frozenset[str] = frozenset()
    """The network records which views read one of these."""


class Graph:
    def __init__(
        self,
        engine: Engine,
        schema: Schema,
        chooser: Chooser,
        captures: Captures,
        special: SpecialRelations,
    ) -> None:
        self._engine = engine
        self._factory = NodeFactory(engine, schema)
        self._chooser = chooser
        self._special = special
        self._sharing = Sharing()
        self.captures = captures
        self.nodes: dict[str, ViewNode] = {}
        """The watched views, by name."""
        self.consumers: dict[str, Consumer | None] = {}
        """The consumer of each view."""
        self.derived: dict[str, DerivedNode] = {}
        """The nodes between the stored relations and the views."""
        self.affects: dict[str, dict[str, Node]] = {}
        """For each relation that has a Δ-set, the nodes that read it."""
        self.noticed: set[str] = set()
        """The views that read one of the `noticed` relations."""
        self._storing: dict[str, str] = {}
        """The name of the view that is stored in a relation, by the relation's id."""
        self._unsettled: set[str] = set()
        """Relations of stored views whose level may have to be raised above that of a reader. While
        views are replaced one after another, they may read each other in a circle."""
        self.prepare_clock: Callable[[], None] = lambda: None
        """Called before a view over the clock is connected."""
        self.version = 0
        """It is increased by every change of the graph."""
        self._looks = 0
        self.redefined: set[str] = set()
        """The views that the open transaction redefined. The next propagation compares all their
        rows with the stored ones."""
        self.replaced: dict[str, list[Row]] = {}
        """The rows that views without stored rows had by their former definitions."""

    @property
    def is_empty(self) -> bool:
        return not self.nodes

    @property
    def has_looks(self) -> bool:
        """Whether any view is looked at from time to time."""
        return self._looks > 0

    def __contains__(self, name: str) -> bool:
        return name in self.nodes

    def node(self, name: str) -> ViewNode | None:
        return self.nodes.get(name)

    def views(self) -> Iterator[WatchedView]:
        return (node.view for node in self.nodes.values())

    def views_of(self, consumer: Consumer | None) -> list[WatchedView]:
        """The views of a consumer; without one, those that the network stores itself."""
        return [n.view for name, n in self.nodes.items() if self.consumers[name] is consumer]

    def is_shared(self, view: WatchedView) -> bool:
        """Whether every session of the file brings the view up to date."""
        consumer = self.consumers[view.name]
        return consumer is None or consumer.is_shared(view)

    def consumer_of(self, name: str) -> Consumer | None:
        return self.consumers.get(name)

    # --- growing and shrinking -------------------------------------------------------------

    def insert(self, view: WatchedView, consumer: Consumer | None) -> None:
        """Add a view, or replace one; Δ-sets that both need are kept. A view without a consumer is
        stored by the network, in the relation that it names."""
        assert consumer is not None or view.stored is not None
        name = view.name
        if reads_past(view.program):
            if not view.may_read_past:
                raise view.has_no_past()
            self._engine.histories.ensure(with_histories(view.program))
        if reads_clock(view.program):
            self.prepare_clock()
        with self._engine.connection.watch.shielded():
            others = self._sharing.remove(name) if name in self.nodes else set()
            self._looks += view.is_looked_at and name not in self.nodes
            others |= self._sharing.add(name, view.program)
            if not self._special.noticed.isdisjoint(view.program.definitions):
                self.noticed.add(name)
            self.consumers[name] = consumer
            before = self.nodes.get(name)
            if before is not None and before.view.stored is not None:
                self._storing.pop(before.view.stored.id, None)
            if view.stored is not None:
                self._storing[view.stored.id] = name
            self.attach(view)
            for other in others - {name}:
                self.attach(self.nodes[other].view)

    def remove(self, name: str) -> None:
        self.version += 1
        with self._engine.connection.watch.shielded():
            node = self.nodes.pop(name)
            self._looks -= node.view.is_looked_at
            del self.consumers[name]
            if node.view.stored is not None:
                self._storing.pop(node.view.stored.id, None)
            self.noticed.discard(name)
            others = self._sharing.remove(name)
            self._disconnect(node)
            for other in others:
                self.attach(self.nodes[other].view)

    def hold(self, consumer: Consumer | None, wanted: Iterable[WatchedView]) -> list[str]:
        """Make a consumer own exactly the views in `wanted`. Returns the names of new and changed
        ones."""
        named = {each.name: each for each in wanted}
        for view in self.views_of(consumer):
            if view.name not in named:
                self.remove(view.name)
        changed = []
        for name, each in named.items():
            node = self.node(name)
            if node is None or not node.keeps_plans_for(each):
                self.insert(each, consumer)
                changed.append(name)
        return changed

    def reading(self, relation: Relation) -> list[WatchedView]:
        """The views that depend on a relation."""
        return [
            each
            for each in self.views()
            if any(relation.id in depends_on(d) for d in each.program.definitions.values())
        ]

    def rebuild(self, views: Collection[WatchedView]) -> None:
        """Rebuild the nodes of these views, with no state kept from before."""
        consumers = {each.name: self.consumers[each.name] for each in views}
        for each in views:
            self.remove(each.name)
        for each in views:
            self.insert(each, consumers[each.name])

    def clear(self) -> None:
        """Remove all views and nodes, which may be half connected. The changes of an open
        transaction are kept for views that are inserted again."""
        self.version += 1
        self._sharing = Sharing()
        self._looks = 0
        self.nodes.clear()
        self.consumers.clear()
        self._storing.clear()
        self._unsettled.clear()
        self.noticed.clear()
        self.affects.clear()
        while self.derived:
            _, node = self.derived.popitem()
            node.drop()
        if not self._engine.connection.in_transaction:
            self.release_idle()

    def attach(self, condition: WatchedView) -> None:
        self.version += 1
        before = self.nodes.get(condition.name)
        part = self.plan(condition)
        same = before is not None and before.view.has_same_definition(condition)
        node = view_node(part, condition, before.counting_history if before and same else None)
        if before is not None and same:
            node.experience = before.experience
        self.nodes[condition.name] = node
        self._connect(node, condition.program)
        self._unsettle(node)
        if before is not None:
            self._disconnect(before)

    def plan(self, condition: WatchedView) -> Part:
        name = condition.name
        shared = self._sharing.nodes(name) if name in self._sharing.programs else ()
        return self._factory.view_part(condition.program, shared)

    def _connect(self, node: Node, program: Program) -> None:
        """Connect a node to those it depends on, which are made if they are missing."""
        below = {part.relation.id: part for part in node.part.below}
        totals = node.keeps()
        for name, relation in node.depends_on().items():
            if self._special.fixed(relation):
                continue
            if name in totals:
                self._ensure_totals(totals[name], node, program)
            elif relation.kind is Kind.DERIVED:
                self._ensure_derived(relation, node, program, below)
            elif name not in self.affects or self.captures.is_of_another(relation):
                self.captures.capture(relation, reported=self._special.reported(relation))
            self.affects.setdefault(name, {})[node.id] = node
            node.level = max(node.level, 1 + self._level(name))
            self._screen(name)

    def _screen(self, name: str) -> None:
        """Choose the screener of a stored relation for the nodes that read it now."""
        relation = self.captures.relation(name)
        # The constraints of a table that was dropped are released one after another.
        if relation is not None and self._engine.exists(relation):
            nodes = self.affects.get(name, {}).values()
            self.captures.screen(name, self._chooser.screener(relation, nodes))

    def refresh_screeners(self, names: Iterable[str]) -> None:
        """Choose screeners again where the data has changed since they were chosen."""
        for name in names:
            if self._chooser.is_outdated(self.captures.screener(name)):
                self._screen(name)

    def _level(self, name: str) -> int:
        if name in self.derived:
            return self.derived[name].level
        view = self.nodes.get(self._storing.get(name, ""))
        return 0 if view is None else view.level

    def _ensure_derived(
        self, relation: Relation, above: Node, program: Program, recursive: dict[str, Part]
    ) -> None:
        planned_from = planned_from_of(relation, above, program)
        if not self._has_node(relation.id, planned_from) or self._lacks_counts(relation.id, above):
            node = self._made(relation, above, recursive, planned_from)
            self._put(node, Program(relation, planned_from[0]))

    def _made(
        self, relation: Relation, above: Node, recursive: dict[str, Part], source: PlannedFrom
    ) -> DerivedNode:
        part = recursive.get(relation.id) or self._factory.part(relation, source)
        return self._factory.derived_node(
            part, source, keeps=self._may_keep(above), counts=self._must_count(above)
        )

    def _may_keep(self, node: Node) -> bool:
        """Whether the views above allow storing state."""
        if isinstance(node, ViewNode):
            return node.view.strategy != Strategy.EXTERNAL
        return node.kept is not None or any(
            map(self._may_keep, self.affects.get(node.id, {}).values())
        )

    def _lacks_counts(self, name: str, above: Node) -> bool:
        """Whether a node was made before a view above requested counting its derivations."""
        node = self.derived[name]
        lacks = node.counted is None and not isinstance(node, RecursiveNode)
        return lacks and self._must_count(above) and with_counted_derivations(node.part) is not None

    def _must_count(self, node: Node) -> bool:
        """Whether a view above requests counting derivations."""
        if isinstance(node, ViewNode):
            return node.view.strategy == Strategy.COUNTING
        return any(map(self._must_count, self.affects.get(node.id, {}).values()))

    def _ensure_totals(self, totals: Summary, above: Node, program: Program) -> None:
        planned_from = planned_from_of(members_of(totals, above), above, program)
        if not self._has_node(totals.relation.id, planned_from):
            node = self._factory.totals_node(totals, above, planned_from)
            self._put(node, Program(totals.members.goal, planned_from[0]))

    def _has_node(self, name: str, planned_from: PlannedFrom) -> bool:
        return name in self.derived and self.derived[name].planned_from == planned_from

    def _put(self, node: DerivedNode, program: Program) -> None:
        """Add a node, which may replace one that was planned from other definitions."""
        before = self.derived.get(node.id)
        if before is not None:
            before.drop()
        node.delta.create()
        self.derived[node.id] = node
        self._connect(node, program)
        if before is not None:
            self._disconnect(before)
            self._raise_above(node.id)

    def _raise_above(self, name: str) -> None:
        level = self._level(name)
        for above in self.affects.get(name, {}).values():
            if above.level <= level:
                above.level = level + 1
                if isinstance(above, DerivedNode):
                    self._raise_above(above.id)
                else:
                    self._unsettle(above)

    def is_drawn_above(self, name: str) -> bool:
        """Whether a view that depends on chance depends on this relation or node."""
        views = [n.view for n in self.affects.get(name, {}).values() if isinstance(n, ViewNode)]
        above = [n.id for n in self.affects.get(name, {}).values() if isinstance(n, DerivedNode)]
        above += [view.stored.id for view in views if view.stored is not None]
        return any(v.depends_on_time for v in views) or any(map(self.is_drawn_above, above))

    def _unsettle(self, node: ViewNode) -> None:
        if node.view.stored is not None:
            self._unsettled.add(node.view.stored.id)

    def settle_levels(self) -> None:
        """Raise the readers of stored views above these views."""
        while self._unsettled:
            self._raise_above(self._unsettled.pop())

    def _disconnect(self, node: Node) -> None:
        """Disconnect a node from what it depends on, and remove what nothing depends on any
        more."""
        for name in node.depends_on():
            affected = self.affects.get(name, {})
            if affected.get(node.id) is not node:
                continue  # it was replaced by another
            del affected[node.id]
            if affected:
                self._screen(name)
            else:
                del self.affects[name]
                self._forget(name)

    def _forget(self, name: str) -> None:
        """Nothing depends on a relation any more. The changes of a stored relation are kept until
        the transaction ends, because a view that is switched off may be switched on again."""
        if name in self.derived:
            node = self.derived.pop(name)
            node.drop()
            self._disconnect(node)
        elif self.captures.exists(name):
            self._screen(name)
        else:
            self.captures.release(name)

    def _idle(self) -> list[str]:
        if len(self.captures) + len(self.derived) == len(self.affects):
            return []
        return [name for name in self.captures.names() if name not in self.affects]

    def release_idle(self) -> None:
        """The transaction has ended: stop capturing relations that nothing depends on."""
        for name in self._idle():
            self.captures.release(name)

    def release_missing(self) -> None:
        """Release stored relations that were deleted."""
        for name in self._idle():
            if not self.captures.exists(name):
                self.captures.release(name)

    def release_remade(self, is_current: Callable[[Relation], bool]) -> None:
        """Release tables that have other columns now, if no view reads the old ones."""
        for name in self._idle():
            relation = self.captures.relation(name)
            if relation is not None and not is_current(relation):
                self.captures.release(name)

    def capture_again(self) -> None:
        """A rollback may have removed triggers and Δ-sets: create them again."""
        self.captures.capture_again(name for name in self.captures.names() if name in self.affects)
        for node in self.derived.values():
            node.delta.create()

    # --- nodes above and below -------------------------------------------------------------

    def above(self, node: DerivedNode) -> Collection[Node]:
        return self.affects[node.id].values()

    def views_above(self, node: Node) -> Iterator[WatchedView]:
        if isinstance(node, ViewNode):
            yield node.view
        else:
            for above in self.affects[node.id].values():
                yield from self.views_above(above)

    def is_for_stored_views(self, node: Node, through_totals: bool = False) -> bool:
        """Whether all views above store their rows, with no kept state in between."""
        if isinstance(node, ViewNode):
            return node.old_state is not None
        if node.copy is not None or (isinstance(node, TotalsNode) and not through_totals):
            return False
        above = self.affects[node.id].values()
        return all(self.is_for_stored_views(each, through_totals) for each in above)

    def a_view_above(self, node: Node) -> WatchedView:
        while isinstance(node, DerivedNode):
            node = next(iter(self.affects[node.id].values()))
        return node.view

    def totals_below(self, node: Node) -> Iterator[TotalsNode]:
        for name in node.depends_on():
            below = self.derived.get(name)
            if below is not None:
                yield from self.totals_below(below)
            if isinstance(below, TotalsNode):
                yield below

    def rounds_below(self, node: Node) -> Iterator[RoundsNode]:
        for name in node.depends_on():
            below = self.derived.get(name)
            if below is not None:
                yield from self.rounds_below(below)
            if isinstance(below, RoundsNode):
                yield below

    def stored_below(self, node: Node) -> frozenset[str]:
        """The recursive relations below a node whose rows are stored."""
        found = set[str]()
        for below in filter(None, map(self.derived.get, node.depends_on())):
            found |= self.stored_below(below)
            if isinstance(below, RecursiveNode) and below.kept_rows.is_built:
                found.add(below.id)
        return frozenset(found)

    # --- explaining ------------------------------------------------------------------------

    def preview(self, condition: WatchedView) -> tuple[ViewNode, dict[str, DerivedNode]]:
        """A view and the nodes below it, as they are, or as they would be if the view were
        watched."""
        known = self.nodes.get(condition.name)
        part = self.plan(condition)
        node = known or view_node(part, condition)
        found: dict[str, DerivedNode] = {}
        self._preview_below(node, condition.program, found)
        return node, found

    def _preview_below(self, node: Node, program: Program, found: dict[str, DerivedNode]) -> None:
        recursive = {part.relation.id: part for part in node.part.below}
        totals = node.keeps()
        for name, relation in node.depends_on().items():
            if relation.kind is not Kind.DERIVED and name not in totals:
                node.level = max(node.level, 1 + self._level(name))
                continue
            below = found.get(name) or self.derived.get(name)
            goal = members_of(totals[name], node) if name in totals else relation
            planned_from = planned_from_of(goal, node, program)
            if below is None and name in totals:
                below = self._factory.totals_node(totals[name], node, planned_from)
            elif below is None:
                below = self._made(relation, node, recursive, planned_from)
            found[name] = below
            self._preview_below(below, Program(goal, planned_from[0]), found)
            node.level = max(node.level, below.level + 1)

    def screener(self, relation: Relation, above: Collection[Node]) -> Screener:
        """The screener of a stored relation, or the one that would be chosen for these nodes."""
        if relation.id in self.affects:
            return self.captures.screener(relation.id)
        return self._chooser.screener(relation, above)
