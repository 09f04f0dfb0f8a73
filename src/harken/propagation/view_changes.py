"""The change of a watched view: by the chosen strategy, by its events, or from both states.

Law: the gains and losses of a view are exactly the difference of its rows between two waves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from harken.engines.protocol import Query
from harken.errors import HarkenError, SafetyFault, is_of_data
from harken.maintenance.chooser import Chooser
from harken.maintenance.counting_history import CountingHistory
from harken.maintenance.decisions import Decision, DecisionReason
from harken.maintenance.nodes import Node, Planning, ViewNode, difference
from harken.maintenance.recursive_nodes import RecursiveNode
from harken.maintenance.strategies import Strategy
from harken.maintenance.strategies.base import Job
from harken.maintenance.strategies.registry import find, recomputation
from harken.maintenance.watched import WatchedView
from harken.maintenance.wave_learning import TookTooLong
from harken.maintenance.wave_plan import UNCHANGED
from harken.propagation.evaluation_times import Moments
from harken.propagation.graph import Graph
from harken.propagation.separate_states import States
from harken.propagation.watched_events import changes, holding, what_happened
from harken.propagation.wave import ViewChange, Wave
from harken.values.rows import Row

EVENT = Decision(Strategy.EVENT, DecisionReason.EVENT)
NO_EVENT = Decision(Strategy.UNCHANGED, DecisionReason.NO_EVENT)
FAILED = Decision(Strategy.EACH_STATE, DecisionReason.FAILED)
REDEFINED = Decision(Strategy.REDEFINED, DecisionReason.REDEFINED)


class ViewChanges:
    def __init__(
        self,
        graph: Graph,
        planning: Planning,
        chooser: Chooser,
        moments: Moments,
    ) -> None:
        self._graph = graph
        self._planning = planning
        self._chooser = chooser
        self._moments = moments
        self._states = States(planning, graph.captures.by_name, moments)

    def _sums_events(self, view: WatchedView) -> bool:
        consumer = self._graph.consumer_of(view.name)
        return consumer is not None and consumer.sums_events(view)

    def change_of(
        self, node: ViewNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> ViewChange:
        """The change of a view. If it is left open whether its derivations are counted, the time is
        recorded."""
        counting_history = None if self._chooser.forced is not None else node.counting_history
        if counting_history is None or not counting_history.is_timed_now():
            return self.found_change(node, wave, wants_minus)
        plans, started = node.plan_count, self._planning.clock()
        found = self.found_change(node, wave, wants_minus)
        self._note_counting(
            node, counting_history, found.strategy, wave, self._planning.clock() - started, plans
        )
        return found

    def _note_counting(
        self,
        node: ViewNode,
        counting_history: CountingHistory,
        strategy: str,
        wave: Wave,
        seconds: float,
        plans: int,
    ) -> None:
        chooser, changed = self._chooser, frozenset(wave.stored & node.part.stored.keys())
        counting_history.experience(
            lambda: chooser.experience(node) or chooser.begin_experience(node)
        )
        counting_history.notice(self._graph.stored_below(node))
        size = sum(wave.sizes[name] for name in changed)
        is_fresh = node.plan_count > plans
        differentials = (Strategy.INCREMENTAL, changed)
        followed = next((n for n in node.keeps() if n in wave.counting), None)
        if followed is not None:
            seconds += wave.counting[followed]
            is_fresh |= followed in wave.fresh
            counting_history.note_counting(
                (Strategy.COUNTING, changed), differentials, size, seconds, is_fresh
            )
        elif strategy == Strategy.INCREMENTAL:
            counting_history.note_differentials(differentials, size, seconds, is_fresh)
        if counting_history.should_start_counting or counting_history.should_stop_counting:
            wave.to_switch.append(node)

    def found_change(
        self, node: ViewNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> ViewChange:
        condition = node.view
        if condition.events:
            return self._change_by_events(node, wave, wants_minus)
        return self._own_change(node, wave, wants_minus)

    def _change_by_events(
        self, node: ViewNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> ViewChange:
        """The gains of a view that its events concern, and all of its losses, whether an event
        occurred or not."""
        condition = node.view
        on_gains = condition.acts_on_gains
        if self._sums_events(condition):
            change = self._own_change(node, wave, wants_minus)
            summed = changes(node, frozenset(wave.stored), self._states)
            return replace(change, plus=change.plus if on_gains else [], summed=summed)
        about = what_happened(node, frozenset(wave.stored), self._states)
        change = ViewChange(condition, [], [], frozenset(wave.stored), EVENT)
        if (about.happened and on_gains) or wants_minus(condition.name):
            change = self._own_change(node, wave, wants_minus)
        if not about.happened:
            return replace(change, plus=[], decision=NO_EVENT)
        if on_gains:
            return replace(change, plus=about.concerning(change.plus))
        plus = holding(node, frozenset(wave.stored), self._states)
        return replace(change, plus=plus, decision=EVENT)

    def note_former_rows(self, node: ViewNode, changed: frozenset[str]) -> None:
        """A view is about to be redefined: its rows before these stored relations changed are those
        that its consumer knows."""
        if node.view.name not in self._graph.replaced:
            below = frozenset(changed & node.part.stored.keys())
            rows = self._states.before(node, below) if below else self._states.now(node)
            self._graph.replaced[node.view.name] = rows or []

    def rows_now(self, name: str) -> list[Row]:
        """All rows of a view."""
        return self._graph.nodes[name].whole(self._planning).rows(())

    def _own_change(
        self, node: ViewNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> ViewChange:
        """The gains and losses of a view, regardless of events."""
        try:
            return self._change_by_strategy(node, wave, wants_minus)
        except HarkenError as error:
            if not is_of_data(error):
                raise
            return self._change_by_states(node, wave)

    def _change_by_strategy(
        self, node: ViewNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> ViewChange:
        decision, below, queries = self.queries(node, wave, wants_minus)
        if not below:
            return ViewChange(node.view, [], [], below, UNCHANGED)
        plan, found = wave.plan, partial(self._changes, node)
        plan.take(node, decision)
        work = partial(found, decision.strategy, queries, below)
        try:
            plus, minus = plan.run(node, decision.strategy, work)
        except TookTooLong:
            plan.break_off(node, decision.strategy)
            decision, below, queries = self.queries(node, wave, wants_minus)
            plan.take(node, decision)
            work = partial(found, decision.strategy, queries, below)
            plus, minus = plan.run(node, decision.strategy, work)
        plan.note(node, decision.strategy)
        return ViewChange(node.view, plus, minus, below, decision)

    def _change_by_states(self, node: ViewNode, wave: Wave) -> ViewChange:
        """The change of a view after an expression failed while its states were compared. If it
        fails in the new state too, the error is raised: now, or at the end of the transaction if
        only that state matters."""
        condition, states = node.view, self._states
        changed = frozenset(wave.stored & node.part.stored.keys())
        failure = None
        try:
            now = states.now(node)
        except HarkenError as error:
            if not (condition.is_asked_at_end and is_of_data(error)):
                raise
            now, failure = [], error
        before = states.before(node, changed)
        plus, minus = difference(now, before or [])
        if condition.depends_on_time and failure is None:
            self._moments.note(condition.name)
        is_fresh = before is None
        return ViewChange(condition, plus, minus, changed, FAILED, is_fresh, failure)

    def recheck(self, name: str) -> ViewChange | None:
        """All rows of a view that counted as empty because they could not be computed; None if it
        is not watched any more."""
        node = self._graph.node(name)
        if node is None:
            return None
        with naming(node.view):
            rows = self._states.now(node)
        if node.view.depends_on_time:
            self._moments.note(name)
        return ViewChange(node.view, rows, [], frozenset(), FAILED)

    def compared(self, node: ViewNode) -> ViewChange:
        """The change of a view that was redefined: its new rows compared with its stored rows, or
        with those that it had by its former definition."""
        with naming(node.view):
            before = self._graph.replaced.pop(node.view.name, [])
            if node.old_state:
                before = self._planning.engine.matching(node.old_state, {})
            plus, minus = difference(node.whole(self._planning).rows(()), before)
        return ViewChange(node.view, plus, minus, frozenset(), REDEFINED)

    def fresh(self, node: ViewNode) -> ViewChange:
        """All rows of a view, in place of those that its consumer knows."""
        with naming(node.view):
            return ViewChange(
                node.view, self.rows_now(node.view.name), [], frozenset(), REDEFINED, fresh=True
            )

    def _changes(
        self,
        node: ViewNode,
        strategy: str,
        queries: tuple[Query, ...],
        below: frozenset[str],
    ) -> tuple[list[Row], list[Row]]:
        """The gains and losses of a view by a strategy."""
        if not below:
            return [], []
        return find(strategy, node).run(self._job(node, below), queries)

    def _job(self, node: ViewNode, below: frozenset[str], losses: bool = True) -> Job:
        return Job(node, below, self._planning, losses=losses, past=self._states)

    def recomputation_of(self, wave: Wave, node: ViewNode) -> Callable[[], object]:
        """The work of recomputing a view."""
        decide = partial(Decision, self._recomputation(node), DecisionReason.MEASURED)
        decision, below, queries = self._planned(node, wave, decide, lambda _: True)
        return partial(self._changes, node, decision.strategy, queries, below)

    def _recomputation(self, node: ViewNode) -> Strategy:
        return recomputation(node, self._graph, self._chooser.reads_lake(node)).name

    def queries(
        self, node: ViewNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> tuple[Decision, frozenset[str], tuple[Query, ...]]:
        """How the change of a view is computed, from which changed relations, and the queries: one
        for the weighted change of a bag; for a set one for the gains and, if needed, one for the
        losses."""
        return self._planned(node, wave, partial(wave.plan.decide, node), wants_minus)

    def _planned(
        self,
        node: ViewNode,
        wave: Wave,
        decide: Callable[[], Decision],
        wants_minus: Callable[[str], bool],
    ) -> tuple[Decision, frozenset[str], tuple[Query, ...]]:
        """The same for decisions of `decide`, which is called again after a statement was
        refused."""
        while True:
            decision = decide()
            if decision.strategy is Strategy.NAIVE:
                decision = decision.instead(self._recomputation(node))
            strategy = decision.strategy
            method = find(strategy, node)
            below = frozenset(wave.changed & method.influents(node).keys())
            if not below:
                return decision, below, ()
            try:
                losses = node.view.needs_losses or wants_minus(node.view.name)
                found = method.queries(self._job(node, below, losses))
                return decision, below, tuple(map(wave.answers.of, found))
            except SafetyFault as fault:
                if not node.is_refused(fault, strategy, below, self._planning):
                    raise

    @contextmanager
    def reading_recursions(self, node: Node) -> Iterator[None]:
        """Let a node read the stored rows of recursive relations below it: the wave has updated
        them already. The time is recorded for recursions that may choose their strategy."""
        below = (self._graph.derived.get(name) for name in node.part.nodes)
        recursive = [each for each in below if isinstance(each, RecursiveNode)]
        if not recursive or isinstance(node, RecursiveNode) or self._chooser.reads_lake(node):
            yield
            return
        found = {each.id: each.stored_rows() for each in recursive}
        node.read_stored({name: each for name, each in found.items() if each is not None})
        learning = [each for each in recursive if each.history.known is not None]
        if not learning:
            yield
            return
        started, plans = self._planning.clock(), node.plan_count
        yield
        seconds = self._planning.clock() - started
        for each in learning if node.plan_count == plans else ():
            each.history.note_reader_seconds(seconds, found[each.id] is not None)


@contextmanager
def naming(view: WatchedView) -> Iterator[None]:
    """Add the title of the view to errors."""
    try:
        yield
    except HarkenError as error:
        error.message = f"in {view.title}: {error.message}"
        error.span = None
        raise
