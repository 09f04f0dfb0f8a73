"""Propagation: which changes of stored relations reach which conditions.

A mark says that a stored relation has changed, and its Δ-set how. The wave of changes goes up the
levels of the network (`topology`). A node is computed once, when all below it is known, and not at
all if nothing below it changed; a Δ-set is dropped when no node above still has to read it.

Law: after `propagate`, what it returned is the exact change of every condition since the last
time, and all Δ-sets are empty.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

from harken.calculus.counting import Derivations
from harken.database.catalog import Catalog
from harken.database.rules.choices import COPY_LIMIT
from harken.database.rules.conditions import Condition
from harken.database.rules.counting import LEAST, SHARE, Tally
from harken.database.rules.nodes import (
    COPIED,
    COUNTING,
    INCREMENTAL,
    KEPT,
    NAIVE,
    WITH_TOTALS,
    ConditionNode,
    DerivedNode,
    Node,
    Planning,
    Row,
    TotalsNode,
    build,
    counted,
    difference,
)
from harken.database.rules.occurrences import what_happened
from harken.database.rules.recursive import EXTERNAL, MATERIALIZED, RecursiveNode
from harken.database.rules.rounds import IN_ROUNDS, RoundsNode
from harken.database.rules.topology import Topology
from harken.database.rules.turns import Turn
from harken.database.rules.ways import FOLLOWED, TookTooLong, Ways
from harken.engines.lake.engine import LakeEngine
from harken.engines.sqlite import events
from harken.engines.sqlite.connection import BrokenOff
from harken.engines.sqlite.engine import Query
from harken.errors import HarkenError
from harken.ir.relations import Relation
from harken.planner.network import Part

MANY_CHANGED = 10_000
"""After so many changed rows SQLite takes another look at the tables."""


@dataclass(frozen=True, slots=True)
class ConditionChange:
    """What a condition gained and lost, and how that was found out."""

    condition: Condition
    plus: list[Row]
    minus: list[Row]
    changed: frozenset[str]
    strategy: str


@dataclass(frozen=True, slots=True)
class NodeChange:
    """What a node between the tables and the conditions gained and lost, for the trace."""

    relation: Relation
    plus: list[Row]
    minus: list[Row]
    changed: frozenset[str]
    strategy: str


@dataclass(slots=True)
class Wave:
    """One propagation: what has changed so far, and whom that reaches, by level."""

    stored: frozenset[str]
    changed: set[str]
    reached: dict[int, dict[str, Node]] = field(default_factory=dict)
    last_reader: dict[str, int] = field(default_factory=dict)
    """For each changed node the highest level that reads its Δ-set."""
    sizes: dict[str, int] = field(default_factory=dict)
    """The rows of the Δ-sets."""
    ways: Ways = field(kw_only=True)
    to_build: list[TotalsNode] = field(default_factory=list)
    """Totals that are wanted and not kept: they are computed when all has settled."""
    to_store: list[RoundsNode] = field(default_factory=list)
    """Recursions whose rounds are to be stored."""
    counting: dict[str, float] = field(default_factory=dict)
    """The seconds that it took to follow counted derivations."""
    fresh: set[str] = field(default_factory=set)
    """What is kept and was followed by plans that were made for it just now."""
    to_turn: list[ConditionNode] = field(default_factory=list)
    """Conditions whose derivations are to be counted from now on, or are not any more."""
    flooded: set[str] = field(default_factory=set)
    """Totals that it would take longer to follow than all from scratch: the next wave sees."""

    def reach(self, name: str, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self.reached.setdefault(node.level, {})[node.id] = node
            self.last_reader[name] = max(node.level, self.last_reader.get(name, 0))

    def levels(self) -> Iterator[tuple[int, list[Node]]]:
        while self.reached:
            level = min(self.reached)
            yield level, list(self.reached.pop(level).values())


class Network(Topology):
    def __init__(self, engine: LakeEngine, catalog: Catalog) -> None:
        super().__init__(engine, catalog)
        self._planning = Planning(engine, catalog)
        self.observer: Callable[[NodeChange], None] | None = None
        """Who is told of the changes of nodes between the tables and the conditions."""
        self.timing: dict[str, float] | None = None
        """Where the seconds that each node takes are added up, if anyone asks."""

    def incoming(self) -> list[tuple[str, list[Row], list[Row]]]:
        """The Δ-sets as they stand: what each changed relation gained and lost."""
        marked = sorted(events.marked(self._engine.connection)) if self._captures else []
        return [(name, *self._captures[name].rows()) for name in marked if name in self._captures]

    def propagate(self, wants_minus: Callable[[str], bool]) -> list[ConditionChange]:
        """The changes of all conditions since the last time.

        Rows that a condition lost are only computed where it needs them, or `wants_minus`.
        """
        marked = events.marked(self._engine.connection) if self._captures else {}
        if not marked:
            return []
        stored = frozenset(name for name in marked if name in self._captures)
        if not self._passed(marked):
            self._settle(stored)
            return []
        wave = self._wave(stored)
        found = []
        for level, nodes in wave.levels():
            with self._asked_together(nodes, wave, wants_minus):
                for node in nodes:
                    with self._timed(node), _told_of(self._condition_above(node)):
                        self._read_stored(node)
                        if isinstance(node, ConditionNode):
                            found.append(self._change_of(node, wave, wants_minus))
                        else:
                            self._advance(node, wave)
            self._drop_read(wave, level)
        wave.ways.finish()
        wave.ways.sample(partial(self._naively, wave))
        wave.ways.calm_down()
        self._settle(stored)
        build(wave.to_build, self._planning)
        for recursion in wave.to_store:
            recursion.build(self._planning)
        for node in wave.to_turn:
            self._turn(node)
        for name in stored:
            if self.choices.is_outdated(self._captures[name].screener):
                self._screen(name)
        return found

    def _read_stored(self, node: Node) -> None:
        """Let a node read recursive relations below it where their rows are stored: the wave has
        been there, so they are those of now."""
        below = (self._derived.get(name) for name in node.part.nodes)
        recursive = [each for each in below if isinstance(each, RecursiveNode)]
        if not recursive or isinstance(node, RecursiveNode) or self.choices.is_of_far(node):
            return
        found = {each.id: each.stored_rows() for each in recursive}
        node.read_stored({name: each for name, each in found.items() if each is not None})

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
        build(wanted, self._planning)
        for each in self._rounds_below(node):
            if each.refused is None and not each.table.validity.holds():
                each.build(self._planning)

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
        with ExitStack() as stack:
            wave.ways.share(nodes, partial(stack.enter_context, self._engine.together(queries)))
            yield

    def _asked_by(
        self, nodes: Sequence[Node], wave: Wave, wants_minus: Callable[[str], bool]
    ) -> Iterator[Query]:
        """What the nodes of a level are going to ask, if any of it may be far away."""
        for node in nodes if self._engine.far else ():
            with _told_of(self._condition_above(node)):
                if isinstance(node, ConditionNode):
                    if not node.condition.events:
                        yield from self._queries_of(node, wave, wants_minus)[2]
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

    def has_work(self) -> bool:
        """Has any change passed its screener?"""
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

    def _advance(self, node: DerivedNode, wave: Wave) -> None:
        """Fill the Δ-set of a node; if it holds anything, the wave goes on from there."""
        if self.choices.forced == NAIVE or self._passes(node, wave):
            self._miss(node, wave)
            return
        changed = frozenset(wave.changed & node.part.influents.keys())
        if isinstance(node, TotalsNode):
            strategy = self._follow(node, wave, changed)
        elif isinstance(node, RecursiveNode) and node.refused is None:
            strategy = self._recur(node, wave, changed)
        elif isinstance(node, RoundsNode) and node.refused is None:
            strategy = self._go_round(node, wave, changed)
        else:
            strategy = self._fill(node, wave)
        if self.observer is not None:
            plus, minus = node.delta.rows()
            relation = node.delta.relation
            self.observer(NodeChange(relation, plus, minus, changed, strategy))
        size = node.delta.size()
        if size:
            wave.changed.add(node.id)
            wave.sizes[node.id] = size
            wave.reach(node.id, self._affects[node.id].values())

    def _passes(self, node: DerivedNode, wave: Wave) -> bool:
        """Is the node to be evaluated as a whole, in both states, only for views that have their
        old rows? To evaluate the views takes one state."""
        if isinstance(node, TotalsNode):
            return False
        if self._is_flooded(node, wave):
            return True
        if isinstance(node, RoundsNode) and node.refused is None:
            return False
        return self._is_for_kept(node) and self._choose(node, wave) == NAIVE

    def _is_for_kept(self, node: Node, through_totals: bool = False) -> bool:
        """Is all that lies above views that have their old rows, with nothing kept between?"""
        if isinstance(node, ConditionNode):
            return node.old_state is not None
        if node.copy is not None or (isinstance(node, TotalsNode) and not through_totals):
            return False
        above = self._affects[node.id].values()
        return all(self._is_for_kept(each, through_totals) for each in above)

    def _miss(self, node: DerivedNode, wave: Wave) -> None:
        """A change passes the node by: what it keeps is not up to date any more. Totals that are
        not kept need not be read; of others the change must be known, or all above goes naive."""
        node.delta.clear()
        if isinstance(node, TotalsNode):
            node.table.validity.revoke()
            return
        if node.copy is not None:
            node.copy.validity.revoke()
        if isinstance(node, RecursiveNode):
            node.kept_rows.drop()
        if isinstance(node, RoundsNode):
            node.table.validity.revoke()
        wave.ways.missed.add(node.id)
        wave.reach(node.id, self._affects[node.id].values())

    def _follow(self, node: TotalsNode, wave: Wave, changed: frozenset[str]) -> str:
        ways = wave.ways
        if not self.choices.wants_totals(node):
            self._miss(node, wave)
            return "not kept"
        flood = ways.is_unknown(node) and self.choices.is_flood(node, wave.sizes)
        if flood or not ways.is_needed(node) or ways.depends_on_missed(node):
            self._miss(node, wave)
            wave.flooded.add(node.id)
            return "not kept: all from scratch takes less"
        if not node.table.validity.holds():
            wave.to_build.append(node)
            return "not kept yet"
        followers = self._followers(node, wave, changed)
        try:
            with self._tallied(node, wave):
                followed = ways.run(node, FOLLOWED, lambda: node.follow(followers))
        except TookTooLong:
            ways.give_up_above(node)
            self._miss(node, wave)
            wave.flooded.add(node.id)
            return "not kept: it took too long"
        if not followed:
            wave.to_build.append(node)
            return "not kept yet"
        ways.note(node, FOLLOWED)
        return COUNTING if isinstance(node.totals, Derivations) else "kept totals"

    def _followers(
        self, node: TotalsNode, wave: Wave, changed: frozenset[str]
    ) -> list[tuple[Query, str]]:
        if changed not in node.followers:
            wave.fresh.add(node.id)
        return node.followers_of(changed, self._planning)

    @contextmanager
    def _tallied(self, node: TotalsNode, wave: Wave) -> Iterator[None]:
        """Let the time that derivations take to be counted be that of what is above."""
        if not isinstance(node.totals, Derivations):
            yield
            return
        started = self._clock()
        yield
        wave.counting[node.id] = self._clock() - started

    def _clock(self) -> float:
        return self._engine.connection.working_time()

    def _go_round(self, node: RoundsNode, wave: Wave, changed: frozenset[str]) -> str:
        """Fill the Δ-set of a recursion that counts derivations: by its stored rounds, if they are
        there; otherwise by all of them, and they are stored when all has settled."""
        if not wave.ways.is_needed(node):
            self._miss(node, wave)
            return "passed by: what is above goes naive"
        is_naive = any(each.strategy == NAIVE for each in self._conditions_above(node))
        if is_naive or wave.ways.depends_on_missed(node) or not node.table.validity.holds():
            node.table.validity.revoke()
            if not is_naive:
                wave.to_store.append(node)
            return self._fill(node, wave)
        node.follow(changed, self._planning)
        if node.table.size() > COPY_LIMIT:
            node.table.drop()
            node.refused = f"there are more than {COPY_LIMIT} rows"
        return IN_ROUNDS

    def _recur(self, node: RecursiveNode, wave: Wave, changed: frozenset[str]) -> str:
        """Fill the Δ-set of a recursive relation."""
        wanted = NAIVE if wave.ways.depends_on_missed(node) else self._wanted_of(node)
        if wanted is None and not wave.ways.is_needed(node):
            self._miss(node, wave)
            return "passed by: what is above goes naive"
        stored = frozenset(wave.stored & node.part.stored.keys())
        size = sum(wave.sizes[name] for name in changed)
        return Turn(node, changed, stored, size, self.choices, self._planning).go(wanted)

    def _wanted_of(self, node: RecursiveNode) -> str | None:
        """The way that those above a recursive relation want it to go, if they do."""
        if self.choices.forced is not None:
            return EXTERNAL if self.choices.forced == INCREMENTAL else NAIVE
        wanted = {each.strategy for each in self._conditions_above(node)}
        return next((each for each in (NAIVE, MATERIALIZED, EXTERNAL) if each in wanted), None)

    def _conditions_above(self, node: Node) -> Iterator[Condition]:
        if isinstance(node, ConditionNode):
            yield node.condition
        else:
            for above in self._affects[node.id].values():
                yield from self._conditions_above(above)

    def _queries_below(
        self, node: DerivedNode, wave: Wave
    ) -> tuple[str, frozenset[str], tuple[Query, ...]]:
        """How the change of a node is computed, from what, and the queries: of a bag for its
        weighted change, of a set for what it gained and for what it lost."""
        strategy = self._choose(node, wave)
        if strategy == NAIVE and node.copy is not None and node.copy.validity.holds():
            strategy = COPIED
        below = frozenset(wave.changed & node.influents(strategy).keys())
        if not below:
            return strategy, below, ()
        if not node.part.relation.is_set:
            return strategy, below, (node.weighted_query(strategy, below, self._planning),)
        signs = (1, -1)
        queries = tuple(node.query(sign, strategy, below, self._planning) for sign in signs)
        return strategy, below, queries

    def _fill(self, node: DerivedNode, wave: Wave) -> str:
        ways = wave.ways
        if not ways.is_needed(node):
            self._miss(node, wave)
            return "passed by: what is above goes naive"
        strategy, below, queries = self._queries_below(node, wave)
        if not below:
            return "no change"
        while True:
            try:
                ways.run(node, strategy, partial(_take_in, node, queries))
                break
            except TookTooLong:
                node.delta.clear()
                if ways.give_up_above(node):
                    self._miss(node, wave)
                    return "passed by: it took too long"
                ways.give_up(node, strategy)
                strategy, below, queries = self._queries_below(node, wave)
        ways.note(node, strategy)
        if node.part.relation.is_set:
            self._keep_copy(node, strategy)
        return strategy

    def _keep_copy(self, node: DerivedNode, strategy: str) -> None:
        copy = node.copy if strategy in (NAIVE, COPIED) else None
        if strategy == COPIED:
            assert copy is not None
            copy.follow(node.delta)
        elif copy is not None:
            copy.take(self._planning.compile(node.part.program))
            if copy.size() > COPY_LIMIT:
                copy.drop()
                node.copy = None

    def _change_of(
        self, node: ConditionNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> ConditionChange:
        """The change of a condition; where it is left open whether derivations are counted, what
        it takes is remembered."""
        if node.tally is None or self.choices.forced is not None:
            return self._found_change(node, wave, wants_minus)
        plans, started = len(node.plans), self._clock()
        found = self._found_change(node, wave, wants_minus)
        seconds = self._clock() - started
        if node.tally.is_counting or seconds > LEAST:
            self._tally(node, node.tally, found.strategy, wave, seconds, plans)
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
        size = sum(wave.sizes[name] for name in changed)
        is_fresh = len(node.plans) > plans
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
            with self._engine.connection.limited(SHARE * tally.spent):
                build(counts, self._planning)
        except BrokenOff:
            for each in counts:
                each.table.drop()
            tally.end(took_too_long=True)
            self._attach(condition)

    def _found_change(
        self, node: ConditionNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> ConditionChange:
        about = None
        condition = node.condition
        if condition.events:
            about = what_happened(node, wave.stored, self._planning)
            if not about.happened:
                return ConditionChange(condition, [], [], wave.stored, "no event")
            if condition.only_events:
                query = self._planning.compile(node.part.program)
                rows = about.concerning(query.rows(()))
                return ConditionChange(condition, rows, [], wave.stored, "event")
        strategy, below, queries = self._queries_of(node, wave, wants_minus)
        if not below:
            return ConditionChange(condition, [], [], below, "no change")
        ways = wave.ways
        try:
            plus, minus = ways.run(node, strategy, partial(self._changes, node, strategy, queries))
        except TookTooLong:
            ways.give_up(node, strategy)
            strategy, below, queries = self._queries_of(node, wave, wants_minus)
            plus, minus = ways.run(node, strategy, partial(self._changes, node, strategy, queries))
        ways.note(node, strategy)
        if about is not None:
            plus = about.concerning(plus)
        return ConditionChange(condition, plus, minus, below, strategy)

    def _changes(
        self, node: ConditionNode, strategy: str, queries: Sequence[Query]
    ) -> tuple[list[Row], list[Row]]:
        """What a condition has gained and lost."""
        if strategy == KEPT:
            assert node.old_state is not None
            return difference(queries[0].rows(()), self._engine.matching(node.old_state, {}))
        if node.is_weighed(strategy):
            return counted(queries[0])
        return queries[0].rows(()), queries[1].rows(()) if len(queries) > 1 else []

    def _naively(self, wave: Wave, node: ConditionNode) -> Callable[[], object]:
        """The work of evaluating a condition naively."""
        strategy = self._naive_strategy(node)
        if strategy == KEPT:
            return partial(self._changes, node, strategy, [node.whole(self._planning)])
        below = frozenset(wave.changed & node.influents(strategy).keys())
        if node.is_weighed(strategy):
            queries = [node.weighted_query(strategy, below, self._planning)]
        else:
            queries = [node.query(sign, strategy, below, self._planning) for sign in (1, -1)]
        return partial(self._changes, node, strategy, queries)

    def _naive_strategy(self, node: ConditionNode) -> str:
        """How all rows of a condition are compared with those of before."""
        if node.old_state is None:
            return NAIVE
        return KEPT if self.choices.is_of_far(node) else COPIED

    def _queries_of(
        self, node: ConditionNode, wave: Wave, wants_minus: Callable[[str], bool]
    ) -> tuple[str, frozenset[str], tuple[Query, ...]]:
        """How the change of a condition is computed, from what, and the queries: of a bag for its
        weighted change, of a set for what it gained and, if wanted, for what it lost."""
        strategy = self._choose(node, wave)
        if strategy == NAIVE:
            strategy = self._naive_strategy(node)
        below = frozenset(wave.changed & node.influents(strategy).keys())
        if not below:
            return strategy, below, ()
        if strategy == KEPT:
            return strategy, below, (node.whole(self._planning),)
        if node.is_weighed(strategy):
            return strategy, below, (node.weighted_query(strategy, below, self._planning),)
        condition = node.condition
        losses = condition.needs_losses or wants_minus(condition.name)
        queries = tuple(
            node.query(sign, strategy, below, self._planning, condition.strict)
            for sign in ((1, -1) if losses else (1,))
        )
        return strategy, below, queries

    def _choose(self, node: Node, wave: Wave) -> str:
        ways = wave.ways
        if isinstance(node, ConditionNode):
            is_naive = node.condition.strategy == NAIVE and not node.part.below
            if node.condition.moves or is_naive:
                return NAIVE
        if self.choices.forced == NAIVE or ways.depends_on_missed(node) or ways.goes_naive(node):
            return NAIVE
        if self._is_flooded(node, wave):
            return NAIVE
        part, incremental = node.part, INCREMENTAL
        if node.counted is not None and self._are_kept(node.counted, wave):
            part, incremental = node.counted, COUNTING
        elif node.kept is not None and self._are_kept(node.kept, wave):
            part, incremental = node.kept, WITH_TOTALS
        sizes = {name: size for name, size in wave.sizes.items() if name in part.influents}
        known = partial(ways.prefers_naive, node, incremental)
        strategy = self.choices.strategy(node, sizes, wave.sizes, incremental, known)
        if strategy == INCREMENTAL and self._are_coming(node, wave):
            return NAIVE
        if strategy == NAIVE or not node.is_unwieldy(strategy, frozenset(sizes)):
            return strategy
        return NAIVE

    def _is_flooded(self, node: Node, wave: Wave) -> bool:
        """Is so much new that to evaluate the views above takes less than to follow it? They have
        their old rows; totals between are made anew when they are wanted again."""
        return (
            self.choices.is_flood(node, wave.sizes)
            and wave.ways.is_first(node)
            and self._is_for_kept(node, through_totals=True)
        )

    def _are_coming(self, node: Node, wave: Wave) -> bool:
        """Are totals of a query of SQL wanted and not there yet? Without them its groups are looked
        at again, one by one in both states; all of it from scratch takes no longer than they do
        to be built."""
        if node.kept is None or node.part.relation.is_set or self.choices.forced is not None:
            return False
        wanted = {each.relation.id for each in node.kept.totals}
        return any(each.id in wanted for each in wave.to_build)

    def _are_kept(self, part: Part, wave: Wave) -> bool:
        """Are the totals that a part reads those of now? Those whose members have not changed
        since they are wanted are there the next time."""
        found = [self._derived.get(each.relation.id) for each in part.totals]
        nodes = [node for node in found if isinstance(node, TotalsNode)]
        if len(nodes) < len(found):
            return False  # a node between has another way to its rows, and keeps none
        missing = [node for node in nodes if not node.table.validity.holds()]
        for node in missing:
            known = node in wave.to_build or node.id in wave.flooded
            if not known and self.choices.wants_totals(node):
                wave.to_build.append(node)
        return not missing and not any(node in wave.to_build for node in nodes)


def _take_in(node: DerivedNode, queries: Sequence[Query]) -> None:
    """Fill the Δ-set of a node."""
    if not node.part.relation.is_set:
        node.delta.fill_weighted(queries[0])
        return
    for query, sign in zip(queries, (1, -1), strict=True):
        node.delta.fill(query, sign)


@contextmanager
def _told_of(condition: Condition) -> Iterator[None]:
    """Let an error say which condition it is in."""
    try:
        yield
    except HarkenError as error:
        error.message = f"in {condition.title}: {error.message}"
        error.span = None
        raise
