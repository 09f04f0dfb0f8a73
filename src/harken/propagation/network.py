"""Propagation: how changes of stored relations become changes of views.

A wave of changes goes up the levels of the graph. A node is computed once, after all nodes below
it, and only if something below it changed; a Δ-set is dropped after its last reader.

Law: `propagate` delivers the exact change of every view since the last call, and leaves all Δ-sets
empty.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from harken.engines.protocol import NO_ANSWERS, Engine, Query
from harken.ir.past_relations import STATEMENT
from harken.ir.schema import Schema
from harken.maintenance.chooser import Chooser
from harken.maintenance.decisions import Decision
from harken.maintenance.looks import FollowingTimes
from harken.maintenance.measurement_store import MeasurementStore
from harken.maintenance.nodes import Node, Planning, TotalsNode, ViewNode
from harken.maintenance.recursive_nodes import RecursiveNode
from harken.maintenance.strategies import Strategy
from harken.maintenance.wave_plan import WavePlan
from harken.propagation.captures import Captures
from harken.propagation.clock_moment import Clock
from harken.propagation.clock_wakes import ClockWakes
from harken.propagation.compiled_waves import CompiledWaves
from harken.propagation.derived_changes import DerivedChanges
from harken.propagation.evaluation_times import Moments
from harken.propagation.graph import Graph, SpecialRelations
from harken.propagation.kept_state import KeptState
from harken.propagation.stored_views import StoredViews
from harken.propagation.view_changes import ViewChanges, naming
from harken.propagation.wave import NodeChange, ViewChange, Wave
from harken.values.rows import Row

MANY_CHANGED = 10_000
"""After this many changed rows SQLite analyses the tables again."""


class Network:
    def __init__(
        self,
        engine: Engine,
        schema: Schema,
        special: SpecialRelations | None = None,
        kept_bytes: Callable[[], int] = lambda: 0,
    ) -> None:
        self._engine = engine
        store = MeasurementStore(engine.connection)
        self.chooser = Chooser(
            engine.statistics, engine.is_in_lake, lambda: engine.has_spark, store, kept_bytes
        )
        self.captures = Captures(engine)
        self.graph = Graph(
            engine, schema, self.chooser, self.captures, special or SpecialRelations()
        )
        planning = Planning(engine, schema)
        self.moments = Moments(engine.connection)
        self._derived = DerivedChanges(self.graph, planning, self.chooser)
        self.view_changes = ViewChanges(self.graph, planning, self.chooser, self.moments)
        self._stored = StoredViews(engine, self.graph, self.chooser)
        self.kept = KeptState(self.graph, planning, self.chooser)
        self.compiled = CompiledWaves(engine, self.graph, planning, self.chooser)
        self.clock = Clock(engine, self.graph, self.captures)
        self.wakes = ClockWakes(engine, self.graph, planning, self.clock)
        self.timing: dict[str, float] | None = None
        """The seconds that each view took, with the nodes below it, if they are being recorded.
        A node that several views share counts for one of them."""
        self._wants_all = False

    def observe(self, observer: Callable[[NodeChange], None] | None) -> None:
        """Report the changes of nodes between the tables and the views."""
        self._derived.observer = observer

    def propagate(self, deliver: Callable[[ViewChange], None], *, wants_all: bool = False) -> None:
        """Deliver the changes of all views since the last call. The change of a materialised view
        is also applied to its relation, and propagated in the same wave to its readers.

        Rows that a view lost are only computed if the view or its consumer needs them, or the
        caller `wants_all`."""
        self._wants_all = wants_all
        for change in self._one_wave():
            deliver(change)

    def _wants_minus(self, name: str) -> bool:
        if self._wants_all:
            return True
        consumer = self.graph.consumer_of(name)
        return consumer is not None and consumer.wants_minus(name)

    def _one_wave(self) -> list[ViewChange]:
        """The changes of all views since the last wave."""
        pending = self.captures.pending()
        missed = list[ViewNode]()
        if self.clock.is_wanted or self.clock.concerns(pending.keys()):
            missed = self.clock.move()
            pending = self.captures.pending()
        redefined = self._take_redefined() if self.graph.redefined else []
        if not (pending or redefined or missed):
            return []
        stored = {name for name in pending if name in self.captures.by_name}
        if not (redefined or missed) and not self._passed(pending):
            self.captures.settle(stored)
            return []
        may_be_compiled = not (redefined or missed or self._is_observed)
        if may_be_compiled:
            compiled = self.compiled.run(frozenset(stored))
            if compiled is not None:
                return compiled
        incoming = frozenset(stored)
        self.graph.settle_levels()
        wave = self.make_wave(stored)
        for each in (*redefined, *missed):
            wave.visit(each)
        found = list[ViewChange]()
        for level, reached in wave.levels():
            with self._answered_in_advance(
                [n for n in reached if n not in redefined and n not in missed], wave
            ):
                for node in reached:
                    if node in missed:
                        found.append(self.view_changes.fresh(node))
                    else:
                        found += self._advance(node, wave, node in redefined)
            self._drop_read_deltas(wave, level)
        wave.plan.finish(partial(self.view_changes.recomputation_of, wave))
        self.captures.settle(wave.stored | stored)
        self.kept.finish(wave)
        self.graph.refresh_screeners(wave.stored)
        if may_be_compiled:
            self.compiled.note(wave, incoming)
        return found

    @property
    def _is_observed(self) -> bool:
        """Whether the changes or times of nodes are being observed."""
        return self._wants_all or self.timing is not None or self._derived.observer is not None

    def _advance(self, node: Node, wave: Wave, is_redefined: bool) -> Iterator[ViewChange]:
        """Compute the change of a node. That of a view is yielded, and written if the view is
        stored."""
        if isinstance(node, ViewNode) and is_redefined:
            change = self._compared(node)
            self._stored.store(change, wave)
            yield change
            return
        named = naming(self.graph.a_view_above(node))
        with self._timed(node), named, self.view_changes.reading_recursions(node):
            if isinstance(node, ViewNode):
                change = self.view_changes.change_of(node, wave, self._wants_minus)
                self._stored.store(change, wave)
                yield change
            else:
                self._derived.advance(node, wave)

    def _take_redefined(self) -> list[ViewNode]:
        names, self.graph.redefined = self.graph.redefined, set()
        return [self.graph.nodes[name] for name in sorted(names) if name in self.graph.nodes]

    def _compared(self, node: ViewNode) -> ViewChange:
        with self._timed(node):
            return self.view_changes.compared(node)

    def note_former_rows(self, name: str) -> None:
        """A view without stored rows is about to be redefined."""
        changed = frozenset(self.captures.pending()) & self.captures.by_name.keys()
        self.view_changes.note_former_rows(self.graph.nodes[name], changed)

    def begin_statement(self) -> None:
        """For rules that act after each statement, the action that follows is one."""
        self._engine.histories.forget(STATEMENT)

    def recheck(self, name: str) -> ViewChange | None:
        return self.view_changes.recheck(name)

    def rows_now(self, name: str) -> list[Row]:
        return self.view_changes.rows_now(name)

    def has_work(self) -> bool:
        """Whether any change has passed its screener."""
        return (
            bool(self.graph.redefined)
            or self.clock.is_wanted
            or self._passed(self.captures.pending())
        )

    @contextmanager
    def _timed(self, node: Node) -> Iterator[None]:
        if self.timing is None and not self.graph.has_looks:
            yield
            return
        connection = self._engine.connection
        started, worked = time.perf_counter(), connection.working_time()
        yield
        view = self.graph.a_view_above(node)
        if view.is_looked_at:
            known = self.chooser.following.setdefault(f"condition {view.name}", FollowingTimes())
            known.note(connection.working_time() - worked, isinstance(node, ViewNode))
        if self.timing is not None:
            spent = time.perf_counter() - started
            self.timing[view.name] = self.timing.get(view.name, 0.0) + spent

    def _passed(self, marked: Mapping[str, bool]) -> bool:
        return any(marked.values()) or (bool(marked) and self.chooser.forced == Strategy.NAIVE)

    def make_wave(self, stored: set[str]) -> Wave:
        sizes = self.captures.sizes(stored)
        graph = self.graph
        connection = self._engine.connection
        plan = WavePlan(connection, self.chooser, graph, dict(sizes), sizes)
        # What was done and undone is no change: no differential of it runs. A view that draws is
        # drawn anew by the transaction all the same.
        changed = {name for name in stored if sizes[name] or graph.is_drawn_above(name)}
        wave = Wave(set(changed), set(changed), sizes=sizes, plan=plan)
        for name, size in sizes.items():
            if name not in changed:
                continue
            self.chooser.note_change(name, size)
            wave.reach(name, graph.affects.get(name, {}).values())
        if sum(wave.sizes.values()) > MANY_CHANGED:
            self._engine.measure()
        return wave

    def next_decision(self, node: Node, changed: Mapping[str, int]) -> Decision:
        """The decision that the chooser would take about a node if this many rows of these
        relations changed. Nothing is changed."""
        connection = self._engine.connection
        plan = WavePlan(connection, self.chooser, self.graph, dict(changed), dict(changed))
        return plan.decide(node)

    def _drop_read_deltas(self, wave: Wave, level: int) -> None:
        """Drop the Δ-sets that no node above this level reads."""
        for name in [n for n, last in wave.last_reader.items() if last <= level]:
            del wave.last_reader[name]
            if name in self.graph.derived:
                self.graph.derived[name].delta.clear()

    @contextmanager
    def _answered_in_advance(self, nodes: Sequence[Node], wave: Wave) -> Iterator[None]:
        """Fetch the lake rows that the nodes of a level need, or have Spark answer their queries
        together."""
        queries = self._lake_queries(nodes, wave)

        def ask() -> None:
            wave.answers = self._engine.answer_together(queries)

        wave.plan.share(nodes, ask)
        try:
            yield
        finally:
            wave.answers = NO_ANSWERS

    def _lake_queries(self, nodes: Sequence[Node], wave: Wave) -> Iterator[Query]:
        """The queries of these nodes that may read the lake."""
        for node in nodes if self._engine.has_lake else ():
            with naming(self.graph.a_view_above(node)):
                if isinstance(node, ViewNode):
                    if not node.view.events:
                        decision, _, queries = self.view_changes.queries(
                            node, wave, self._wants_minus
                        )
                        # Its old rows are those of an earlier time, and are queried separately.
                        is_moved = decision.strategy is Strategy.MOVED
                        yield from queries[:1] if is_moved else queries
                elif not (
                    isinstance(node, TotalsNode)
                    or (isinstance(node, RecursiveNode) and node.refused is None)
                ):
                    decision = wave.plan.decide(node)
                    if not decision.is_skipped and decision.strategy is not Strategy.ROUNDS:
                        yield from self._derived.queries(node, wave, decision)[2]
