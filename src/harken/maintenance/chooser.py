"""The chooser decides how each node finds its change, and logs its decisions.

Differentials visit the changed rows and what they join; recomputing visits everything once. The
chooser compares the measured times of both; without measurements the cost model estimates them from
the sizes and fan-outs of the data. `WavePlan` has the decisions of one wave.

    chooser.decisions(node_id)      the last few decisions about a node, with their times
    chooser.version                 is increased whenever a decision may differ from the last one
    chooser.note_change(...)        is called for each changed relation of every wave

A wave that was not timed (`WaveMeasurements.is_timed`) may be repeated without new decisions while
`version` stays the same. A repeated wave calls `note_change`, and `note_untimed_wave` if
`is_settled`, so that a decision that is due for review increases the version.

Law: a decision never changes an answer, only its cost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from harken.calculus.bags import differentiate_bag, recompute_bag
from harken.calculus.counting import Derivations
from harken.calculus.differentials import differentiate, recompute
from harken.calculus.first_rows import FirstRows
from harken.calculus.totals import Totals
from harken.engines.protocol import Statistics
from harken.ir.clauses import Program, atoms
from harken.ir.relations import Relation
from harken.maintenance import capacities, tuning
from harken.maintenance.decisions import Decision, DecisionLog, DecisionReason, TakenDecision
from harken.maintenance.kept_budget import KeptBudget
from harken.maintenance.looks import FollowingTimes
from harken.maintenance.materialisation import Materialisation
from harken.maintenance.measurement_store import MeasurementStore
from harken.maintenance.measurements import Case, Experience
from harken.maintenance.nodes import Costs, Monitored, Node, TotalsNode, ViewNode
from harken.maintenance.strategies.base import MaintenanceStrategy
from harken.maintenance.strategies.names import Strategy
from harken.maintenance.strategies.recompute import RECOMPUTE
from harken.planner.cost import CostModel
from harken.planner.network_nodes import Part
from harken.planner.screen import ALTERNATIVES, Screener, choose_screener

COUNTED: Case = (Strategy.COUNTING, frozenset())
"""Counting all derivations of a view."""
SMALL = {
    each: Decision(each, DecisionReason.SMALL_CHANGE)
    for each in (Strategy.INCREMENTAL, Strategy.TOTALS, Strategy.COUNTING)
}


@dataclass(slots=True)
class _Settled:
    """A class of changes that is no longer timed: the next `left` changes of these relations, up to
    a size, as long as none takes longer than recomputing."""

    left: int
    size: int
    recompute_seconds: float


class Chooser:
    def __init__(
        self,
        statistics: Statistics,
        is_in_lake: Callable[[Relation], bool],
        has_spark: Callable[[], bool],
        store: MeasurementStore,
        kept_bytes: Callable[[], int] = lambda: 0,
    ) -> None:
        """`has_spark` says whether Spark is available to compute totals over lake relations."""
        self.statistics = statistics
        self._is_in_lake = is_in_lake
        self._has_spark = has_spark
        self._forced: str | None = None
        self.version = 0
        self.store = store
        self.budget = KeptBudget(kept_bytes)
        self.materialisation = Materialisation()
        """What is stored for programs of production rules."""
        self._is_experienced = False
        self.log = DecisionLog()
        self.settled: dict[frozenset[str], _Settled] = {}
        self.following: dict[str, FollowingTimes] = {}
        """How long following took, for the views that are looked at from time to time."""

    @property
    def is_experienced(self) -> bool:
        """Whether the cost of recomputing has been measured for any view."""
        return self._is_experienced or self.store.has_any

    @property
    def forced(self) -> str | None:
        """The strategy that every node must use, whatever it costs: `incremental`, `naive` or
        None."""
        return self._forced

    @forced.setter
    def forced(self, strategy: str | None) -> None:
        self._forced = strategy
        self.raise_version()

    def raise_version(self) -> None:
        """From now on a decision may differ from the last one about the same change."""
        self.version += 1

    def note_change(self, name: str, size: int) -> None:
        """A transaction changed rows of a stored relation. Decisions that depend on how often and
        how much it changes are reviewed each time one of these numbers has doubled."""
        self.statistics.note(name, size)
        updates = self.statistics.updates[name]
        # Without a branch: a transaction takes the same steps, however many came before.
        self.version += _doubled(updates.rows - size, updates.rows)
        self.version += _doubled(updates.transactions - 1, updates.transactions)

    def note_experienced(self) -> None:
        if not self._is_experienced:
            self._is_experienced = True
            self.raise_version()

    def note_measured(self, node: Node, known: Experience) -> None:
        """A node has a new measurement, which is stored if it differs enough from the stored
        one."""
        if known.is_news:
            self.store.note(node.id, node.part.program, known)

    def decisions(self, node_id: str) -> tuple[TakenDecision, ...]:
        """The last decisions about a node, oldest first."""
        return self.log.of(node_id)

    def compare_costs(
        self,
        node: Node,
        sizes: Mapping[str, int],
        changed: Mapping[str, int],
        method: MaintenanceStrategy,
    ) -> Decision:
        """Choose between a strategy that follows changes and recomputing, by the cost model.
        `sizes` are those of the Δ-sets that the node reads, `changed` those of all changed
        relations."""
        if sum(sizes.values()) < tuning.SMALL_CHANGE or self._is_small_part(node, changed):
            return SMALL.get(method.name) or Decision(method.name, DecisionReason.SMALL_CHANGE)
        expected, whole = (each.cost(node, sizes, self) for each in (method, RECOMPUTE))
        return Decision(
            Strategy.NAIVE if whole < expected else method.name,
            DecisionReason.ESTIMATED,
            {
                "changed_rows": sum(sizes.values()),
                "expected_cost": expected,
                "recompute_cost": whole,
            },
        )

    def _is_small_part(self, node: Monitored, changed: Mapping[str, int]) -> bool:
        """Whether only a small share of every relation below has changed. Estimates for joins of
        many relations can be wrong by any factor, so the cost model is not used for such a
        change."""
        stored = node.part.stored
        return all(
            size <= tuning.SMALL_SHARE * self.statistics.rows(stored[name])
            for name, size in changed.items()
            if name in stored
        )

    def lake_changes(self, node: Monitored, sizes: Mapping[str, int]) -> dict[str, int]:
        """The sizes of the changes in lake relations."""
        influents = node.part.influents
        return {n: s for n, s in sizes.items() if n in influents and self._is_in_lake(influents[n])}

    # --- experience ------------------------------------------------------------------------

    def experience(self, node: Node) -> Experience | None:
        """The measurements of a node; None if there are none, or if the sizes of its relations have
        changed too much since."""
        known = node.experience
        if known is None:
            if not self.store.has_any:
                return None
            known = node.experience = self.store.find(node.id, lambda: node.part.program)
            if known is None:
                return None
        rows = self.statistics.sizes(node.part.stored)
        if any(_has_changed_size(now, known.rows.get(name, -1.0)) for name, now in rows.items()):
            node.experience = None
            self.raise_version()
            return None
        known.now = sum(rows.values())
        return known

    def naive_seconds(self, node: Node) -> float:
        """The expected seconds of recomputing a node: measured, or else assumed from the rows below
        it."""
        known = self.experience(node)
        if known is not None and known.naive_seconds is not None:
            return known.naive_seconds
        rows = self.statistics.sizes(node.part.stored)
        return tuning.SECONDS_PER_ROW * sum(rows.values())

    def first_limit(self, nodes: Iterable[Node]) -> float:
        """The time limit in seconds for the first run of a strategy on these nodes: a multiple of
        the measured or assumed cost of recomputing them."""
        longest = 0.0
        for node in nodes:
            seconds = self.naive_seconds(node)
            longest = max(longest, seconds, tuning.first_run_limit(self.reads_lake(node)))
        return tuning.MANY_TIMES * max(longest, tuning.FIRST_RUN)

    def ran_away(self, node: Node, case: Case, size: int) -> bool:
        """Whether a strategy was interrupted for such a change, and the sizes have not doubled
        since."""
        known = self.experience(node)
        return known is not None and known.ran_away(case, size)

    def note_runaway(self, node: Node, case: Case, size: int, seconds: float) -> None:
        """A strategy was interrupted in its first run."""
        known = self.experience(node) or self.begin_experience(node)
        known.note_runaway(case, size, seconds)
        self.note_experienced()
        self.note_measured(node, known)
        self.raise_version()

    def is_settled(self, changed: Collection[str], size: int) -> bool:
        """Whether changes of these relations, of this size, are known to be followed faster than
        recomputed."""
        settled = self.settled.get(frozenset(changed))
        return settled is not None and settled.left > 0 and size <= settled.size

    def note_untimed_wave(self, changed: Collection[str], seconds: float) -> None:
        """A wave of these relations was timed as a whole only, not node by node."""
        settled = self.settled[frozenset(changed)]
        settled.left -= 1
        if seconds > settled.recompute_seconds:
            del self.settled[frozenset(changed)]
            self.raise_version()
        elif settled.left == 0:  # the next change is measured again
            self.raise_version()

    def stop_measuring(self, changed: Collection[str], size: int, recompute_seconds: float) -> None:
        """A change of these relations was followed faster than recomputing takes. The next ones,
        unless they are larger, are assumed to be too, and are not timed."""
        before = self.settled.get(frozenset(changed))
        largest = max(size, tuning.SMALL_CHANGE - 1, before.size if before is not None else 0)
        self.settled[frozenset(changed)] = _Settled(
            tuning.UNTIMED_WAVES, largest, recompute_seconds
        )

    def begin_experience(self, node: Monitored) -> Experience:
        rows = self.statistics.sizes(node.part.stored)
        node.experience = Experience(rows, sum(rows.values()), reads_lake=self.reads_lake(node))
        return node.experience

    def note_first(self, node: Node, seconds: float, by_spark: bool) -> None:
        """The first evaluation of a view took this long: its first measurement."""
        known = self.begin_experience(node)
        known.note_naive(seconds, is_first=True)
        known.by_spark = by_spark
        self.note_experienced()
        self.note_measured(node, known)
        self.settled.clear()
        self.raise_version()

    # --- looks ---------------------------------------------------------------------------------

    def following_seconds(self, node: Node, recompute_seconds: float) -> tuple[float, bool]:
        """The seconds that a transaction of the usual size takes to be followed, and whether they
        were measured; else the cost model says what part of recomputing it takes."""
        known = self.following.get(node.id)
        if known is not None and known.waves:
            return known.mean, True
        updates = self.statistics.updates
        sizes = {
            name: max(1, round(updates[name].lately)) if name in updates else 1
            for name in node.part.influents
        }
        costs = self.costs(node)
        part = costs.by_differentials(sizes) / max(1.0, costs.whole)
        return part * recompute_seconds, False

    # --- estimates -------------------------------------------------------------------------

    def costs(self, node: Monitored) -> Costs:
        known = node.costs
        if known is None or self._is_outdated(known.sizes, node.part):
            known = node.costs = self._estimated(node)
        return known

    def _is_outdated(self, sizes: Mapping[str, float], part: Part) -> bool:
        return any(
            _has_changed_size(self.statistics.rows(relation), sizes[name])
            for name, relation in part.stored.items()
        )

    def _estimated(self, node: Monitored) -> Costs:
        once, each_row = dict[str, float](), dict[str, float]()
        for part in (node.kept, node.part):
            for name in part.influents if part is not None else ():
                assert part is not None
                if name not in each_row:
                    program = _change_of(part, name)
                    few, many = (
                        CostModel(self.statistics, delta_size=size).program(program).cost
                        for size in (1.0, tuning.ESTIMATED_CHANGE)
                    )
                    each_row[name] = (many - few) / (tuning.ESTIMATED_CHANGE - 1)
                    once[name] = few - each_row[name]
        whole = CostModel(self.statistics).program(_from_scratch(node)).cost
        return Costs(once, each_row, whole, self.statistics.sizes(node.part.stored))

    def members(self, node: TotalsNode) -> float:
        """The estimated number of members per group; for first rows, of candidates."""
        program = node.part.program
        groups = node.totals.groups if isinstance(node.totals, Totals) else ()
        if isinstance(node.totals, Derivations):
            groups = tuple(range(program.goal.arity))
        return CostModel(self.statistics).program(program, groups).rows

    def wants_totals(self, node: TotalsNode) -> bool:
        """Whether the totals are worth keeping. This is decided again when the number of
        transactions that changed the members has doubled."""
        if self.reads_lake(node) and not self._has_spark():
            return False  # building them would fetch all members from the lake
        if not self.budget.allows(node.table):
            return False
        changes = self._transactions(node)
        if node.failed_at and changes < tuning.DOUBLED * node.failed_at:
            return False
        if isinstance(node.totals, Derivations):
            return not self.ran_away(node, COUNTED, 1)
        if isinstance(node.totals, FirstRows):
            return True
        if not node.decided_at or changes >= tuning.DOUBLED * node.decided_at:
            node.decided_at = max(1, changes)
            members = self.members(node)
            was_worth_keeping = node.is_worth_keeping
            node.is_worth_keeping = members >= tuning.LEAST_GROUP_MEMBERS or _is_joined(node)
            if node.is_worth_keeping and self.reads_lake(node):
                rows = CostModel(self.statistics).program(node.part.program).rows
                node.is_worth_keeping = rows <= capacities.MOST_LAKE_GROUPS * max(1.0, members)
            if node.is_worth_keeping is not was_worth_keeping:
                self.raise_version()
        return node.is_worth_keeping

    def note_failure(self, node: TotalsNode) -> None:
        """The totals cannot be computed: that is tried again when the members have changed as often
        again."""
        node.failed_at = max(1, self._transactions(node))
        self.raise_version()

    def worth(self, node: Node, above: Iterable[Node]) -> float:
        """An estimate of the seconds saved by what is kept for a node: the cost of recomputing the
        nodes above, for each transaction that changed its relations."""
        seconds = max((self.naive_seconds(each) for each in (node, *above)), default=0.0)
        return seconds * (1 + self._transactions(node))

    def _transactions(self, node: Node) -> int:
        """The number of transactions that changed the relations of the members."""
        updates = self.statistics.updates
        return sum(updates[name].transactions for name in node.part.stored if name in updates)

    def reads_lake(self, node: Monitored) -> bool:
        return any(self._is_in_lake(relation) for relation in node.part.stored.values())

    def is_bulk_change(self, node: Monitored, sizes: Mapping[str, int]) -> bool:
        """Whether such a large share of a relation below has changed that recomputing costs less
        than following the change."""
        if self.forced is not None:
            return False
        return any(
            sizes.get(name, 0) > tuning.SMALL_CHANGE
            and sizes[name] > tuning.BULK_SHARE * self.statistics.rows(relation)
            for name, relation in node.part.stored.items()
        )

    def screener(self, relation: Relation, nodes: Collection[Monitored]) -> Screener:
        """The tests that a change of a relation must pass to start a check. Nodes with kept state
        must follow every change, and so must views with events."""
        updates = self.statistics.updates.get(relation.id)
        changes = max(1.0, updates.lately) if updates is not None else 1.0
        simple = 0 < len(nodes) <= ALTERNATIVES and all(
            isinstance(node, ViewNode)
            and node.kept is None
            and not (node.view.events or node.view.depends_on_time)
            for node in nodes
        )
        if not simple:
            return Screener(relation, None, None, changes)
        parts = [node.part for node in nodes]
        return choose_screener(
            relation, parts, CostModel(self.statistics), changes, self._is_in_lake
        )

    def is_outdated(self, screener: Screener) -> bool:
        """Whether transactions now change far more or far fewer rows of the relation than when the
        screener was chosen."""
        updates = self.statistics.updates.get(screener.relation.id)
        if updates is None:
            return False
        now = max(1.0, updates.lately)
        factor = now / screener.changes
        return not 1 / tuning.SEVERAL_TIMES < factor < tuning.SEVERAL_TIMES


def _has_changed_size(now: float, then: float) -> bool:
    """Whether a relation has doubled or halved."""
    growth = tuning.DOUBLED
    return 1 + now > growth * (1 + then) or 1 + then > growth * (1 + now)


def _doubled(before: int, now: int) -> bool:
    """Whether a number has passed a power of two."""
    return before.bit_length() < now.bit_length()


def _is_joined(node: TotalsNode) -> bool:
    program = node.part.program
    clauses = program.definitions[program.goal.id].clauses
    return any(sum(1 for _ in atoms(clause.body)) > 1 for clause in clauses)


def _change_of(part: Part, name: str) -> Program:
    """The program for the change of a part when one relation has changed."""
    if part.relation.is_set:
        return differentiate(part.program, {name}, nodes=part.nodes).plus
    return differentiate_bag(part.program, frozenset({name}), part.nodes)


def _from_scratch(node: Monitored) -> Program:
    part = node.part
    if node.old_state is not None:
        return part.program  # the old rows are stored
    if part.relation.is_set:
        return recompute(part.program, set(part.stored)).plus
    return recompute_bag(part.program, set(part.stored))
