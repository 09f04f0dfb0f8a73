"""Propagation: which changes of stored relations reach which conditions.

A mark says that a stored relation has changed, and its Δ-set how. The wave of changes goes up the
levels of the network (`topology`). A node is computed once, when all below it is known, and not at
all if nothing below it changed; a Δ-set is dropped when no node above still has to read it.

Law: after `propagate`, what it returned is the exact change of every condition since the last
time, and all Δ-sets are empty.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from harken.consumers.rules.events import changes, holding, what_happened
from harken.database.catalog import Catalog
from harken.engines.protocol import NO_ANSWERS, BrokenOff, Engine, Query
from harken.engines.sqlite import events
from harken.errors import HarkenError, SafetyFault, is_of_data
from harken.maintenance.chooser import TookTooLong, Ways
from harken.maintenance.counting import Tally
from harken.propagation.derived_nodes import Between
from harken.propagation.each_state import States
from harken.propagation.evaluation_times import Moments
from harken.propagation.nodes import (
    APART,
    COPIED,
    COUNTING,
    EACH_STATE,
    INCREMENTAL,
    KEPT,
    MOVED,
    NAIVE,
    REDEFINED,
    ConditionNode,
    DerivedNode,
    Node,
    Row,
    TotalsNode,
    build,
    counted,
    difference,
)
from harken.propagation.recursive_nodes import RecursiveNode
from harken.propagation.round_nodes import RoundsNode
from harken.propagation.watched import Condition
from harken.propagation.wave import ConditionChange, Wave

MANY_CHANGED = 10_000
"""After so many changed rows SQLite takes another look at the tables."""


class Network(Between):
    def __init__(self, engine: Engine, catalog: Catalog) -> None:
        super().__init__(engine, catalog)
        self.moments = Moments(engine.connection)
        self._states = States(self._planning, self._captures, self.moments)
        self.timing: dict[str, float] | None = None
        """Where the seconds that each node takes are added up, if anyone asks."""

    def incoming(self) -> list[tuple[str, list[Row], list[Row]]]:
        """The Δ-sets as they stand: what each changed relation gained and lost."""
        marked = sorted(events.marked(self._engine.connection)) if self._captures else []
        return [(name, *self._captures[name].rows()) for name in marked if name in self._captures]

    def propagate(
        self,
        wants_minus: Callable[[str], bool],
        gathers: Callable[[Condition], bool] = lambda _: False,
    ) -> list[ConditionChange]:
        """The changes of all conditions since the last time.

        Rows that a condition lost are only computed where it needs them, or `wants_minus`. Where
        the caller `gathers` events, it decides what they are about.
        """
        marked = events.marked(self._engine.connection) if self._captures else {}
        redefined = self._take_redefined()
        if not marked:
            return [self._compared(node) for node in redefined]
        stored = frozenset(name for name in marked if name in self._captures)
        if not self._passed(marked):
            self._settle(stored)
            return [self._compared(node) for node in redefined]
        wave = self._wave(stored)
        wave.gathers = gathers
        found = [self._compared(node) for node in redefined]
        for level, reached in wave.levels():
            nodes = [node for node in reached if node not in redefined]
            with self._asked_together(nodes, wave, wants_minus):
                for node in nodes:
                    told_of = _told_of(self._condition_above(node))
                    with self._timed(node), told_of, self._reading_recursions(node):
                        if isinstance(node, ConditionNode):
                            found.append(self._change_of(node, wave, wants_minus))
                        else:
                            self._advance(node, wave)
            self._drop_read(wave, level)
        wave.ways.finish()
        wave.ways.sample(partial(self._naively, wave))
        wave.ways.calm_down()
        self._settle(stored)
        self._keep(wave.to_build)
        for recursion in wave.to_store:
            self._store(recursion)
        for node in wave.to_turn:
            self._turn(node)
        for name in stored:
            if self.choices.is_outdated(self._captures[name].screener):
                self._screen(name)
        return found

    def _take_redefined(self) -> list[ConditionNode]:
        if not self.redefined:
            return []
        names, self.redefined = self.redefined, set()
        return [self._conditions[name] for name in sorted(names) if name in self._conditions]

    def _compared(self, node: ConditionNode) -> ConditionChange:
        """The change of a condition that was defined again, whatever its Δ-sets say: its rows now
        against those that are stored, or against none, where none are allowed."""
        with _told_of(node.condition), self._timed(node):
            before = self._engine.matching(node.old_state, {}) if node.old_state else []
            plus, minus = difference(node.whole(self._planning).rows(()), before)
        return ConditionChange(node.condition, plus, minus, frozenset(), REDEFINED)

    @contextmanager
    def _reading_recursions(self, node: Node) -> Iterator[None]:
        """Let a node read recursive relations below it where their rows are stored: the wave has
        been there, so they are those of now. Those that may choose learn what that takes."""
        below = (self._derived.get(name) for name in node.part.nodes)
        recursive = [each for each in below if isinstance(each, RecursiveNode)]
        if not recursive or isinstance(node, RecursiveNode) or self.choices.is_of_far(node):
            yield
            return
        found = {each.id: each.stored_rows() for each in recursive}
        node.read_stored({name: each for name, each in found.items() if each is not None})
        learning = [each for each in recursive if each.course.known is not None]
        if not learning:
            yield
            return
        started, plans = self._clock(), node.plan_count
        yield
        seconds = self._clock() - started
        for each in learning if node.plan_count == plans else ():
            each.course.note_above(seconds, found[each.id] is not None)

    def build_kept(self, node: ConditionNode) -> None:
        """Build what a new condition wants to keep, so that it is there for the first change."""
        marked = events.marked(self._engine.connection) if self._captures else {}
        if not node.part.stored.keys().isdisjoint(marked):
            return  # what is built now would follow these changes once more
        wanted = (
            each
            for each in self._totals_below(node)
            if self.choices.wants_totals(each) and not each.table.validity.holds()
        )
        self._keep(wanted)
        for each in self._rounds_below(node):
            if each.refused is None and not each.table.validity.holds():
                self._store(each)

    def _keep(self, nodes: Iterable[TotalsNode]) -> None:
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
            self.choices.note_failure(node)

    def _store(self, recursion: RoundsNode) -> None:
        try:
            recursion.build(self._planning)
        except HarkenError as error:
            if not is_of_data(error):
                raise
            recursion.table.drop()

    def _rounds_below(self, node: Node) -> Iterator[RoundsNode]:
        for name in node.depends_on():
            below = self._derived.get(name)
            if below is not None:
                yield from self._rounds_below(below)
            if isinstance(below, RoundsNode):
                yield below

    def _totals_below(self, node: Node) -> Iterator[TotalsNode]:
        for name in node.depends_on():
            below = self._derived.get(name)
            if below is not None:
                yield from self._totals_below(below)
            if isinstance(below, TotalsNode):
                yield below

    @contextmanager
    def _timed(self, node: Node) -> Iterator[None]:
        if self.timing is None:
            yield
            return
        started = time.perf_counter()
        yield
        name = node.condition.name if isinstance(node, ConditionNode) else node.id
        self.timing[name] = self.timing.get(name, 0.0) + time.perf_counter() - started

    @contextmanager
    def _asked_together(
        self, nodes: Sequence[Node], wave: Wave, wants_minus: Callable[[str], bool]
    ) -> Iterator[None]:
        """Have what the nodes of a level are going to ask of the lake at hand, or answered."""
        queries = self._asked_by(nodes, wave, wants_minus)

        def ask() -> None:
            wave.answers = self._engine.answer_together(queries)

        wave.ways.share(nodes, ask)
        try:
            yield
        finally:
            wave.answers = NO_ANSWERS

    def _asked_by(
        self, nodes: Sequence[Node], wave: Wave, wants_minus: Callable[[str], bool]
    ) -> Iterator[Query]:
        """What the nodes of a level are going to ask, if any of it may be far away."""
        for node in nodes if self._engine.has_lake else ():
            with _told_of(self._condition_above(node)):
                if isinstance(node, ConditionNode):
                    if not node.condition.events:
                        strategy, _, queries = self._queries_of(node, wave, wants_minus)
                        # Its old rows are those of another moment, and are asked for by themselves.
                        yield from queries[:1] if strategy == MOVED else queries
                elif not (
                    isinstance(node, TotalsNode)
                    or (isinstance(node, RecursiveNode) and node.refused is None)
                    or self.choices.forced == NAIVE
                    or self._passes(node, wave)
                    or not wave.ways.is_needed(node)
                ):
                    yield from self._queries_below(node, wave)[2]

    def _settle(self, stored: frozenset[str]) -> None:
        for name in stored:
            self._captures[name].clear()
            self._engine.forget_large(name)
        events.unmark(self._engine.connection)

    def has_pending(self, names: Collection[str]) -> bool:
        """Has any of these stored relations changed since the last propagation?"""
        marked = events.marked(self._engine.connection) if self._captures else {}
        return not marked.keys().isdisjoint(names)

    def has_work(self) -> bool:
        """Has any change passed its screener?"""
        if self.redefined:
            return True
        return bool(self._captures) and self._passed(events.marked(self._engine.connection))

    def _passed(self, marked: Mapping[str, bool]) -> bool:
        return any(marked.values()) or (bool(marked) and self.choices.forced == NAIVE)

    def _wave(self, stored: frozenset[str]) -> Wave:
        sizes = {name: self._captures[name].size() for name in sorted(stored)}
        connection = self._engine.connection
        ways = Ways(connection, self.choices, self._derived, self._affects, dict(sizes))
        wave = Wave(stored, set(stored), sizes=sizes, ways=ways)
        for name, size in sizes.items():
            self.choices.statistics.note(name, size)
            wave.reach(name, self._affects.get(name, {}).values())
        if sum(wave.sizes.values()) > MANY_CHANGED:
            self._engine.measure()
        return wave

    def _drop_read(self, wave: Wave, level: int) -> None:
        """Drop the Δ-sets that no node above this level reads."""
        for name in [n for n, last in wave.last_reader.items() if last <= level]:
            del wave.last_reader[name]
            if name in self._derived:
                self._derived[name].delta.clear()

    def _condition_above(self, node: Node) -> Condition:
        while isinstance(node, DerivedNode):
            node = next(iter(self._affects[node.id].values()))
        return node.condition

    def _change_of(
        self, node: ConditionNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> ConditionChange:
        """The change of a condition; where it is left open whether derivations are counted, what
        it takes is remembered."""
        tally = None if self.choices.forced is not None else node.tally
        if tally is None or not tally.is_watched():
            return self._found_change(node, wave, wants_minus)
        plans, started = node.plan_count, self._clock()
        found = self._found_change(node, wave, wants_minus)
        self._tally(node, tally, found.strategy, wave, self._clock() - started, plans)
        return found

    def _tally(
        self,
        node: ConditionNode,
        tally: Tally,
        strategy: str,
        wave: Wave,
        seconds: float,
        plans: int,
    ) -> None:
        choices, changed = self.choices, frozenset(wave.stored & node.part.stored.keys())
        tally.experience(lambda: choices.experience(node) or choices.begin_experience(node))
        tally.notice(self._stored_below(node))
        size = sum(wave.sizes[name] for name in changed)
        is_fresh = node.plan_count > plans
        differentials = (INCREMENTAL, changed)
        followed = next((n for n in node.keeps() if n in wave.counting), None)
        if followed is not None:
            seconds += wave.counting[followed]
            is_fresh |= followed in wave.fresh
            tally.note_counting((COUNTING, changed), differentials, size, seconds, is_fresh)
        elif strategy == INCREMENTAL:
            tally.note_differentials(differentials, size, seconds, is_fresh)
        if tally.wants_counting or tally.wants_no_counting:
            wave.to_turn.append(node)

    def _stored_below(self, node: Node) -> frozenset[str]:
        """The recursive relations below a node whose rows are stored."""
        found = set[str]()
        for below in filter(None, map(self._derived.get, node.depends_on())):
            found |= self._stored_below(below)
            if isinstance(below, RecursiveNode) and below.kept_rows.is_built:
                found.add(below.id)
        return frozenset(found)

    def _turn(self, node: ConditionNode) -> None:
        """Begin or end to count the derivations of a condition, when all has settled."""
        tally, condition = node.tally, node.condition
        assert tally is not None
        if tally.is_counting:
            tally.end()
            self._attach(condition)
            return
        tally.begin()
        self._attach(condition)
        now = self._conditions[condition.name]
        counts = [each for each in self._totals_below(now) if each.id in now.keeps()]
        try:
            with self._engine.connection.limited(tally.most):
                build(counts, self._planning)
        except (BrokenOff, HarkenError) as error:
            if isinstance(error, HarkenError) and not is_of_data(error):
                raise
            for each in counts:
                each.table.drop()
            tally.end(too_long=True)
            self._attach(condition)

    def _found_change(
        self, node: ConditionNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> ConditionChange:
        condition = node.condition
        if condition.events:
            return self._change_by_events(node, wave, wants_minus)
        return self._own_change(node, wave, wants_minus)

    def _change_by_events(
        self, node: ConditionNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> ConditionChange:
        """What a condition gained as far as its events are about it; what it lost, it lost with or
        without an event."""
        condition = node.condition
        on_gains = condition.acts_on_gains
        if wave.gathers(condition):
            change = self._own_change(node, wave, wants_minus)
            gathered = changes(node, wave.stored, self._states)
            return replace(change, plus=change.plus if on_gains else [], gathered=gathered)
        about = what_happened(node, wave.stored, self._states)
        change = ConditionChange(condition, [], [], wave.stored, "event")
        if (about.happened and on_gains) or wants_minus(condition.name):
            change = self._own_change(node, wave, wants_minus)
        if not about.happened:
            return replace(change, plus=[], strategy="no event")
        if on_gains:
            return replace(change, plus=about.concerning(change.plus))
        plus = holding(node, wave.stored, self._states)
        return replace(change, plus=plus, strategy="event")

    def rows_now(self, name: str) -> list[Row]:
        """All that a condition holds for."""
        return self._conditions[name].whole(self._planning).rows(())

    def _own_change(
        self, node: ConditionNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> ConditionChange:
        """What a condition gained and lost, whatever happened."""
        try:
            return self._change_by_strategy(node, wave, wants_minus)
        except HarkenError as error:
            if not is_of_data(error):
                raise
            return self._change_by_states(node, wave)

    def _change_by_strategy(
        self, node: ConditionNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> ConditionChange:
        strategy, below, queries = self._queries_of(node, wave, wants_minus)
        if not below:
            return ConditionChange(node.condition, [], [], below, "no change")
        ways = wave.ways
        found = partial(self._changes, node)
        try:
            plus, minus = ways.run(node, strategy, partial(found, strategy, queries, below))
        except TookTooLong:
            ways.give_up(node, strategy)
            strategy, below, queries = self._queries_of(node, wave, wants_minus)
            plus, minus = ways.run(node, strategy, partial(found, strategy, queries, below))
        ways.note(node, strategy)
        return ConditionChange(node.condition, plus, minus, below, strategy)

    def _change_by_states(self, node: ConditionNode, wave: Wave) -> ConditionChange:
        """The change of a condition after an expression failed somewhere between its states. If it
        fails in the state of now as well, that is the error of the transaction: at once, or at its
        end, where only that matters."""
        condition, states = node.condition, self._states
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
        if condition.moves and failure is None:
            self.moments.note(condition.name)
        is_fresh = before is None
        return ConditionChange(condition, plus, minus, changed, EACH_STATE, is_fresh, failure)

    def look_again(self, name: str) -> ConditionChange | None:
        """All rows of a condition that had none because they could not be computed; None if it is
        not watched any more."""
        node = self.node(name)
        if node is None:
            return None
        with _told_of(node.condition):
            rows = self._states.now(node)
        if node.condition.moves:
            self.moments.note(name)
        return ConditionChange(node.condition, rows, [], frozenset(), EACH_STATE)

    def _changes(
        self,
        node: ConditionNode,
        strategy: str,
        queries: Sequence[Query],
        below: frozenset[str],
    ) -> tuple[list[Row], list[Row]]:
        """What a condition has gained and lost."""
        if not queries:
            return [], []
        if strategy == KEPT:
            assert node.old_state is not None
            return difference(queries[0].rows(()), self._engine.matching(node.old_state, {}))
        if strategy == MOVED:
            return self._moved(node, *queries)
        if strategy == APART:
            before = self._states.taken_back(queries[0], below)
            return difference(queries[0].rows(()), before)
        if node.is_weighed(strategy):
            return counted(queries[0])
        return queries[0].rows(()), queries[1].rows(()) if len(queries) > 1 else []

    def _moved(self, node: ConditionNode, now: Query, before: Query) -> tuple[list[Row], list[Row]]:
        """What a condition that asks for the time has gained and lost since it was looked at."""
        name = node.condition.name
        with self._engine.connection.at(self.moments.last(name)):
            rows = before.rows(())
        found = difference(now.rows(()), rows)
        self.moments.note(name)
        return found

    def _naively(self, wave: Wave, node: ConditionNode) -> Callable[[], object]:
        """The work of evaluating a condition naively."""
        wanted = partial(self._naive_strategy, node)
        strategy, below, queries = self._planned(node, wave, wanted, lambda _: True)
        return partial(self._changes, node, strategy, queries, below)

    def _naive_strategy(self, node: ConditionNode) -> str:
        """How all rows of a condition are compared with those of before."""
        if node.old_state is None:
            if node.condition.moves:
                return MOVED
            return APART if node.is_apart else NAIVE
        return KEPT if self.choices.is_of_far(node) else COPIED

    def _queries_of(
        self, node: ConditionNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> tuple[str, frozenset[str], tuple[Query, ...]]:
        """How the change of a condition is computed, from what, and the queries: of a bag for its
        weighted change, of a set for what it gained and, if wanted, for what it lost."""

        def wanted() -> str:
            strategy = self._choose(node, wave)
            return self._naive_strategy(node) if strategy == NAIVE else strategy

        return self._planned(node, wave, wanted, wants_minus)

    def _planned(
        self,
        node: ConditionNode,
        wave: Wave,
        wanted: Callable[[], str],
        wants_minus: Callable[[str], bool],
    ) -> tuple[str, frozenset[str], tuple[Query, ...]]:
        """The same for the strategy that is `wanted`: another, when one was refused."""
        while True:
            strategy = wanted()
            below = frozenset(wave.changed & node.influents(strategy).keys())
            if not below:
                return strategy, below, ()
            try:
                found = self._queries_for(node, strategy, below, wants_minus)
                return strategy, below, tuple(map(wave.answers.of, found))
            except SafetyFault as fault:
                if not node.is_refused(fault, strategy, below, self._planning):
                    raise

    def _queries_for(
        self,
        node: ConditionNode,
        strategy: str,
        below: frozenset[str],
        wants_minus: Callable[[str], bool],
    ) -> tuple[Query, ...]:
        if strategy in (KEPT, APART):
            return (node.whole(self._planning),)
        if strategy == MOVED:
            return self._both_states(node, below)
        if node.is_weighed(strategy):
            return (node.weighted_query(strategy, below, self._planning),)
        condition = node.condition
        losses = condition.needs_losses or wants_minus(condition.name)
        return tuple(
            node.query(sign, strategy, below, self._planning, condition.strict)
            for sign in ((1, -1) if losses else (1,))
        )

    def _both_states(self, node: ConditionNode, below: frozenset[str]) -> tuple[Query, Query]:
        return node.whole(self._planning), node.rows_before(below, self._planning)


@contextmanager
def _told_of(condition: Condition) -> Iterator[None]:
    """Let an error say which condition it is in."""
    try:
        yield
    except HarkenError as error:
        error.message = f"in {condition.title}: {error.message}"
        error.span = None
        raise
