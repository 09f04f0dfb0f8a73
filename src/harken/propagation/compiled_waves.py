"""Compiled waves: a propagation that repeats becomes one program.

Waves are distinguished by the stored relations that changed. After a few interpreted waves of the
same relations, when none is timed any more, all nodes that these relations can reach are planned at
once, as steps (`engines.protocol.waves`). The engine compiles them into a program between two
transactions. From then on the program runs instead of the interpreter, as long as its guards hold:

    the graph has not changed, and no strategy is forced   otherwise the program is dropped
    few rows have changed, and kept state is valid         checked by the program itself
    the wave is not traced, no lost rows are requested, and no view was redefined

Views with events, time-dependent views, recursions, relations in the lake and Python functions are
always interpreted, and so is every wave that reaches one.

Law: a wave delivers the same changes, whether it is compiled or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from harken.engines.protocol import (
    Apply,
    Clear,
    CompiledWave,
    Engine,
    Fill,
    Follow,
    MemberChanges,
    Read,
    WaveStep,
)
from harken.errors import HarkenError
from harken.ir.clauses import Atom, atoms
from harken.ir.relations import Kind, Relation
from harken.maintenance import capacities, tuning
from harken.maintenance.chooser import Chooser
from harken.maintenance.decisions import Decision, DecisionReason
from harken.maintenance.nodes import DerivedNode, Node, Planning, TotalsNode, ViewNode
from harken.maintenance.recursive_nodes import RecursiveNode
from harken.maintenance.round_nodes import RoundsNode
from harken.maintenance.strategies import Strategy
from harken.maintenance.strategies.base import PlannedStrategy
from harken.maintenance.strategies.registry import find
from harken.maintenance.wave_plan import WavePlan
from harken.propagation.graph import Graph
from harken.propagation.wave import ViewChange, Wave

SMALL = frozenset({Strategy.INCREMENTAL, Strategy.TOTALS})
COMPILED_AFTER = tuning.FEW
"""The wave of a set of changed relations is compiled after this many interpreted ones."""


class NotCompiled(Exception):
    """A node that only the interpreter can update."""


@dataclass(slots=True)
class Program:
    """A compiled wave with the views whose changes it returns."""

    wave: CompiledWave
    read: dict[str, tuple[ViewNode, frozenset[str], Decision]]
    without_losses: list[str]
    """Views of which only the gains are read."""
    strategies: dict[str, Strategy]
    """The strategy of each node."""
    unkept: list[TotalsNode]
    """Totals that it does not follow, because they were not kept when it was planned."""
    runs: int = 0


@dataclass(slots=True)
class WaveHistory:
    """The history of the waves of one set of changed relations."""

    interpreted: int = 0
    due: int = field(default_factory=lambda: COMPILED_AFTER)
    """The wave is compiled after this many interpreted ones."""
    program: Program | None = None
    left: int = 0
    """Runs of the program before the next wave is interpreted, to review its decisions."""
    version: int = -1
    """The chooser's version when the wave was compiled. If it has increased, decisions may
    differ."""
    missed: int = 0
    """The number of times that its guards failed since it was compiled."""


@dataclass(slots=True)
class CompiledWaves:
    engine: Engine
    graph: Graph
    planning: Planning
    chooser: Chooser
    is_on: Callable[[], bool] = lambda: True
    runs: int = 0
    """The number of times that a program ran instead of the interpreter."""
    _version: tuple[int, str | None] = (-1, None)
    """The version of the graph and the forced strategy that the programs were made for."""
    _known: dict[frozenset[str], WaveHistory] = field(default_factory=dict)
    _due: list[frozenset[str]] = field(default_factory=list)
    _dropped: list[CompiledWave] = field(default_factory=list)

    # --- running -----------------------------------------------------------------------------

    def run(self, stored: frozenset[str]) -> list[ViewChange] | None:
        """The changes of all consumers' views, if a program found them; None if the wave is to be
        interpreted."""
        known = self._known.get(stored)
        if known is None or known.program is None:
            return None
        if self._current_version() != self._version or known.left <= 0 or not self.is_on():
            return None
        if known.version != self.chooser.version and stored not in self._due:
            self._due.append(stored)  # review its decisions after this wave
        program, consumer_of = known.program, self.graph.consumer_of
        for name in program.without_losses:
            consumer = consumer_of(name)
            if consumer is not None and consumer.wants_minus(name):
                return None
        if any(node.table.holds() for node in program.unkept):
            known.missed += 1  # another session, or another wave, has built them in the meantime
            return None
        found = program.wave.run()
        if found is None:
            known.missed += 1
            return None
        program.runs += 1
        self.runs += 1
        known.left -= 1
        for name in stored:
            self.chooser.note_change(name, 1)
        return [
            ViewChange(node.view, *found[name], below, decision)
            for name, (node, below, decision) in program.read.items()
            if any(found[name])
        ]

    def _current_version(self) -> tuple[int, str | None]:
        return self.graph.version, self.chooser.forced

    # --- learning ----------------------------------------------------------------------------

    def note(self, wave: Wave, stored: frozenset[str]) -> None:
        """A wave was interpreted. If it has repeated often enough, compile it after the
        transaction."""
        if not self.is_on() or self.chooser.forced == Strategy.NAIVE or self.engine.has_lake:
            return
        if wave.plan.measured.is_timed or wave.plan.measured.is_large or wave.plan.to_build:
            return
        if self._current_version() != self._version:
            self._forget()
        known = self._known.get(stored)
        if known is None:
            if len(self._known) >= capacities.MOST_COMPILED:
                return
            known = self._known[stored] = WaveHistory()
        known.interpreted += 1
        if known.interpreted >= known.due and stored not in self._due:
            known.interpreted = 0
            self._due.append(stored)

    def _forget(self) -> None:
        """The graph has changed: drop all programs."""
        self._dropped += [k.program.wave for k in self._known.values() if k.program is not None]
        self._known.clear()
        self._due.clear()
        self._version = self._current_version()

    # --- compiling ---------------------------------------------------------------------------

    def settle_new(self) -> None:
        """In the middle of a long transaction, whose failure ends with the graph changed: compile
        what is due, unless its program may still run. Other decisions are reviewed afterwards."""
        if not self._due or self._current_version() != self._version:
            return
        for stored in list(self._due):
            known = self._known[stored]
            if known.program is None or known.left <= 0:
                self._due.remove(stored)
                self._renew(stored, known)

    def settle(self) -> None:
        """Between two transactions: drop programs that are outdated, and compile those that are
        due."""
        if self._current_version() != self._version and self._known:
            self._forget()
        while self._dropped:
            self._dropped.pop().drop()
        while self._due:
            stored = self._due.pop()
            self._renew(stored, self._known[stored])

    def _renew(self, stored: frozenset[str], known: WaveHistory) -> None:
        """Compile a program, or recompile it if its decisions changed or its guards failed."""
        before = known.program
        known.version = self.chooser.version
        planned = self._planned(stored)
        same = before and planned and planned.strategies() == before.strategies
        if same and not known.missed:
            known.left = tuning.UNTIMED_WAVES
            return
        if before is not None:
            known.program = None
            before.wave.drop()
        if planned is not None:
            known.program = self._compiled(planned)
        if known.program is None or known.missed:
            known.due *= int(tuning.DOUBLED)
        known.left, known.missed = tuning.UNTIMED_WAVES, 0

    def _planned(self, stored: frozenset[str]) -> PlannedWave | None:
        """The steps for these relations; None if they reach a node that has to be interpreted."""
        if not stored <= self.graph.captures.by_name.keys():
            return None
        planned = PlannedWave(self.engine, self.graph, self.planning, self.chooser, stored)
        try:
            planned.plan()
        except (NotCompiled, HarkenError):
            return None
        return planned if self._current_version() == self._version else None

    def _compiled(self, planned: PlannedWave) -> Program | None:
        captured = [self.graph.captures.by_name[name] for name in sorted(planned.stored)]
        wave = self.engine.waves.compile(planned.steps, captured, tuning.SMALL_CHANGE)
        if wave is None:
            return None
        strategies = planned.strategies()
        return Program(wave, planned.read, planned.without_losses, strategies, planned.unkept)

    # --- explaining --------------------------------------------------------------------------

    def programs_of(self, node_id: str) -> Iterator[tuple[frozenset[str], int, int]]:
        """The programs that a node is part of: the changed relations, the number of statements, and
        the number of runs."""
        if self._current_version() != self._version:
            return
        for stored, known in self._known.items():
            if known.program is not None and node_id in known.program.strategies:
                yield stored, known.program.wave.size, known.program.runs


@dataclass(slots=True)
class PlannedWave:
    """The steps of a wave, planned as if every relation that can change did."""

    engine: Engine
    graph: Graph
    planning: Planning
    chooser: Chooser
    stored: frozenset[str]
    read: dict[str, tuple[ViewNode, frozenset[str], Decision]] = field(default_factory=dict)
    without_losses: list[str] = field(default_factory=list)
    steps: list[WaveStep] = field(default_factory=list)
    unkept: list[TotalsNode] = field(default_factory=list)
    _decisions: dict[str, Decision] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)
    _reached: dict[int, dict[str, Node]] = field(default_factory=dict)

    def strategies(self) -> dict[str, Strategy]:
        return {name: each.strategy for name, each in self._decisions.items()}

    def plan(self) -> None:
        graph = self.graph
        graph.settle_levels()
        sizes = dict.fromkeys(self.stored, 1)
        self._sizes = dict(sizes)
        plan = WavePlan(self.engine.connection, self.chooser, graph, sizes, self._sizes)
        for name in sorted(self.stored):
            self._reach(name)
        while self._reached:
            level = min(self._reached)
            for node in self._reached.pop(level).values():
                self.steps += self._step(node, plan)
                if len(self._decisions) > capacities.MOST_COMPILED_NODES:
                    raise NotCompiled
        deltas = [graph.derived[n].delta for n in self._sizes if n in graph.derived]
        captures = graph.captures.by_name
        captured = [captures[name] for name in self._sizes if name in captures]
        self.steps.append(Clear([*deltas, *captured]))

    def _reach(self, name: str) -> None:
        for node in self.graph.affects.get(name, {}).values():
            self._reached.setdefault(node.level, {})[node.id] = node

    def _step(self, node: Node, plan: WavePlan) -> Iterator[WaveStep]:
        self._check(node)
        decision = plan.decide(node)
        if decision.build or decision.awaited_plan is not None:
            raise NotCompiled
        self._decisions[node.id] = decision
        if isinstance(node, TotalsNode):
            yield from self._follow(node, decision, plan)
        elif decision.strategy not in SMALL:
            raise NotCompiled
        elif isinstance(node, DerivedNode):
            change = self._change(node, decision.strategy)
            if change:
                yield Fill(node.delta, change)
                self._changed(node)
        else:
            yield from self._view(node, decision, plan)

    def _check(self, node: Node) -> None:
        """Raise unless the node can be compiled."""
        if isinstance(node, RecursiveNode | RoundsNode) or node.compares_states_apart:
            raise NotCompiled
        if isinstance(node, DerivedNode) and node.copy is not None:
            raise NotCompiled
        below = (self.graph.derived.get(name) for name in node.part.nodes)
        if any(isinstance(each, RecursiveNode | RoundsNode) for each in below):
            raise NotCompiled
        if any(map(self.engine.is_in_lake, node.part.stored.values())):
            raise NotCompiled
        if any(atom.relation.kind is Kind.FOREIGN for atom in _atoms(node)):
            raise NotCompiled
        if isinstance(node, ViewNode):
            view, counting_history = node.view, node.counting_history
            is_learning = counting_history is not None and not counting_history.is_paused
            if view.events or view.depends_on_time or view.strategy != "auto" or is_learning:
                raise NotCompiled

    def _follow(self, node: TotalsNode, decision: Decision, plan: WavePlan) -> Iterator[WaveStep]:
        if decision.is_skipped:
            if decision.reason is not DecisionReason.NOT_WORTH_KEEPING or node.table.holds():
                raise NotCompiled
            plan.skip(node)
            self.unkept.append(node)
            return
        below = frozenset(self._sizes.keys() & node.part.influents.keys())
        yield Follow(node.table, node.followers_of(below, self.planning), node.delta)
        self._changed(node)

    def _changed(self, node: DerivedNode) -> None:
        self._sizes[node.id] = 1
        self._reach(node.id)

    def _change(self, node: Node, strategy: Strategy, losses: bool = True) -> MemberChanges:
        """The queries for the change of a node, the same that the interpreter would run."""
        method = _planned_strategy(node, strategy)
        below = self._below(node, strategy)
        if not below:
            return []
        if method.is_weighed(node):
            return [(node.weighted_query(method, below, self.planning), None)]
        checked = node.view.strict if isinstance(node, ViewNode) else True
        return [
            (node.query(sign, method, below, self.planning, checked), sign)
            for sign in ((1, -1) if losses else (1,))
        ]

    def _below(self, node: Node, strategy: Strategy) -> frozenset[str]:
        return frozenset(
            self._sizes.keys() & _planned_strategy(node, strategy).influents(node).keys()
        )

    def _view(self, node: ViewNode, decision: Decision, plan: WavePlan) -> Iterator[WaveStep]:
        view, consumer = node.view, self.graph.consumer_of(node.view.name)
        losses = view.needs_losses or _planned_strategy(node, decision.strategy).is_weighed(node)
        change = self._change(node, decision.strategy, losses)
        if not change:
            return
        if consumer is not None:
            below = self._below(node, decision.strategy)
            self.read[view.name] = node, below, decision
            if not losses:
                self.without_losses.append(view.name)
            yield Read(view.name, view.program.goal, change)
        if view.stored is not None:
            yield self._apply(view.stored, change, plan)

    def _apply(self, relation: Relation, change: MemberChanges, plan: WavePlan) -> Apply:
        if relation.id not in self.graph.affects:
            return Apply(relation, change, None)
        capture = self.graph.captures.by_name[relation.id]
        self._sizes[relation.id] = 1
        plan.note_changed(relation.id, 1)
        self._reach(relation.id)
        return Apply(relation, change, capture if capture.is_reported else None)


def _planned_strategy(node: Node, strategy: Strategy) -> PlannedStrategy:
    found = find(strategy, node)
    if not isinstance(found, PlannedStrategy):
        raise NotCompiled
    return found


def _atoms(node: Node) -> Iterator[Atom]:
    for definition in node.part.program.definitions.values():
        for clause in definition.clauses:
            yield from atoms(clause.body)
