"""The nodes of the propagation network: watched views and what they share, with the plans that
compute their changes.

A plan is made when a combination of changed influents first occurs, and kept. A derived node writes
its change into a Δ-set, for the nodes above it; the change of a view goes to the check phase.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from harken.calculus.bags import differentiate_bag
from harken.calculus.counting import Derivations
from harken.calculus.differentials import Change, differentiate
from harken.calculus.first_rows import FirstRows
from harken.calculus.states import from_copies, in_old_state
from harken.calculus.totals import Summary
from harken.engines.protocol import (
    Delta,
    Engine,
    KeptCopy,
    KeptRecursion,
    KeptSummary,
    MemberChanges,
    Query,
)
from harken.errors import SafetyFault
from harken.ir.clauses import Definition, Program, stored_relations
from harken.ir.relations import Relation
from harken.ir.schema import Schema
from harken.maintenance.counting_history import CountingHistory
from harken.maintenance.measurements import Experience
from harken.maintenance.strategies import FROM_SCRATCH, Strategy
from harken.maintenance.watched import WatchedView
from harken.planner.network_nodes import Part
from harken.planner.prepare import prepare, prepare_change
from harken.values.rows import Row

if TYPE_CHECKING:
    from harken.maintenance.strategies.base import MaintenanceStrategy, PlannedStrategy

ENDLESS = sys.maxsize
"""The length of a statement that SQLite has refused."""

PlannedFrom: TypeAlias = tuple[Mapping[str, Definition], frozenset[str]]
"""The definitions that a node was planned from, and which of them have nodes."""


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Where the rows of a recursive relation are stored. `version` is new whenever they are built
    again."""

    kept: KeptRecursion
    version: int


@dataclass(frozen=True, slots=True)
class Costs:
    """The estimates of the cost model: for differentials, a fixed cost per changed influent and a
    cost per changed row; and the cost of recomputing."""

    once: Mapping[str, float]
    each_row: Mapping[str, float]
    whole: float
    sizes: Mapping[str, float]
    """The sizes of the stored relations that were used for the estimates."""

    def by_differentials(self, sizes: Mapping[str, int]) -> float:
        return sum(
            self.once.get(name, 0.0) + self.each_row.get(name, 0.0) * size
            for name, size in sizes.items()
        )


@dataclass(slots=True)
class Plans:
    """The plans for one change; each sign is compiled when it is first needed."""

    change: Change
    plus: Query | None = None
    minus: Query | None = None


@dataclass(slots=True, eq=False)
class Monitored:
    """A part of the network with its plans, by strategy and changed relations."""

    part: Part
    kept: Part | None = None
    """The part that reads kept totals, if it has aggregates whose totals can be kept."""
    counted: Part | None = None
    """The part that reads counted derivations, if they are counted."""
    level: int = 1
    plans: dict[tuple[str, frozenset[str]], Plans] = field(default_factory=dict)
    costs: Costs | None = None
    weighted: dict[tuple[str, frozenset[str]], Query] = field(default_factory=dict)
    lengths: dict[tuple[str, frozenset[str]], int] = field(default_factory=dict)
    seconds_without_plan: dict[frozenset[str], float] = field(default_factory=dict)
    """For each combination of changed relations, the seconds spent recomputing because no plan was
    made."""
    experience: Experience | None = None
    from_scratch: Query | None = None
    compares_states_apart: bool = False
    """Whether one statement for both states is too long."""
    following: Sequence[MaintenanceStrategy] | None = None
    """The strategies that may follow its changes, most preferred first; computed on first use."""
    finished: set[tuple[str, int]] = field(default_factory=set)
    """The strategies that found a change of this magnitude (a power of two) in this session."""
    is_fresh: bool = False
    """Whether it has a plan that has not run yet."""
    stored_below: Mapping[str, StoredRows] = field(default_factory=dict)
    """The recursive relations below whose stored rows its plans read."""

    def read_stored(self, found: Mapping[str, StoredRows]) -> None:
        """Let its differentials read the stored rows of these relations."""
        if found != self.stored_below:
            self.stored_below = found
            for query in self.forget_plans():
                query.release()

    @property
    def plan_count(self) -> int:
        """The number of plans. When it grows during a run, the time of the run includes
        planning."""
        return len(self.plans) + len(self.weighted)

    def forget_plans(self) -> Iterator[Query]:
        """Remove the plans of differentials; yields their queries."""
        for key in [key for key in self.plans if key[0] not in FROM_SCRATCH]:
            plans = self.plans.pop(key)
            yield from filter(None, (plans.plus, plans.minus))
        for key in [key for key in self.weighted if key[0] not in FROM_SCRATCH]:
            yield self.weighted.pop(key)

    def query(
        self,
        sign: int,
        method: PlannedStrategy,
        changed: frozenset[str],
        planning: Planning,
        checked: bool = True,
    ) -> Query:
        key = (method.name, changed)
        plans = self.plans.get(key)
        if plans is None:
            plans = self.plans[key] = Plans(method.change(self, changed, checked))
        if sign > 0:
            if plans.plus is None:
                plans.plus = self._compile(plans.change.plus, planning, method.name)
            return plans.plus
        if plans.minus is None:
            plans.minus = self._compile(plans.change.minus, planning, method.name)
        return plans.minus

    def _compile(self, program: Program, planning: Planning, strategy: str = "") -> Query:
        self.is_fresh = True
        if self.stored_below and strategy not in FROM_SCRATCH:
            return planning.compile_reading(program, self.stored_below)
        may_compare_apart = strategy == Strategy.NAIVE and planning.can_take_back(
            self.part.stored.values()
        )
        return planning.compile(program, as_whole=strategy in FROM_SCRATCH, short=may_compare_apart)

    def is_refused(
        self, fault: SafetyFault, strategy: str, changed: frozenset[str], planning: Planning
    ) -> bool:
        """Whether SQLite refused the statement because it is too long. From then on the change is
        found by recomputing, and if that statement is refused too, by recomputing in each state
        separately."""
        if fault.code != "too-complex":
            return False
        if strategy == Strategy.NAIVE and not self.compares_states_apart:
            self.compares_states_apart = planning.can_take_back(self.part.stored.values())
            return self.compares_states_apart
        if strategy in FROM_SCRATCH:
            return False
        is_new = self.lengths.get((strategy, changed)) != ENDLESS
        self.lengths[strategy, changed] = ENDLESS
        return is_new

    def weighted_query(
        self, method: PlannedStrategy, changed: frozenset[str], planning: Planning
    ) -> Query:
        """The query for the change of a bag."""
        query = self.weighted.get((method.name, changed))
        if query is None:
            change = method.weighted_change(self, changed)
            query = self._compile(change, planning, method.name)
            self.weighted[method.name, changed] = query
        return query

    @property
    def old_state(self) -> Relation | None:
        """The relation that stores the rows of the old state, if there is one."""
        return None

    def whole(self, planning: Planning) -> Query:
        """The query for all rows in the new state."""
        if self.from_scratch is None:
            self.from_scratch = planning.compile(self.part.program)
        return self.from_scratch

    def depends_on(self) -> dict[str, Relation]:
        kept = self.kept.influents if self.kept is not None else {}
        counted = self.counted.influents if self.counted is not None else {}
        return {**self.part.influents, **kept, **counted}

    def keeps(self) -> dict[str, Summary]:
        """The kept totals and counts that it reads, by the id of their relation."""
        parts = (self.kept, self.counted)
        return {each.relation.id: each for part in parts if part for each in part.totals}


@dataclass(slots=True, eq=False)
class DerivedNode(Monitored):
    """A node between the tables and the views, with the Δ-set that the nodes above it read."""

    delta: Delta = field(kw_only=True)
    planned_from: PlannedFrom = field(kw_only=True)
    copy: KeptCopy | None = None
    """A copy of its rows, if its change is always found by recomputing."""

    @property
    def id(self) -> str:
        return self.delta.relation.id

    def drop(self) -> None:
        self.delta.drop()
        if self.copy is not None:
            self.copy.drop()


@dataclass(slots=True, eq=False)
class TotalsNode(DerivedNode):
    """Kept totals of an aggregate, kept first rows, or counted derivations. The part defines the
    members; the Δ-set is the change of the totals."""

    totals: Summary = field(kw_only=True)
    table: KeptSummary = field(kw_only=True)
    followers: dict[frozenset[str], MemberChanges] = field(default_factory=dict)
    is_worth_keeping: bool = False
    decided_at: int = 0
    """The number of transactions that had changed the members when this was last decided."""
    failed_at: int = 0
    """That number when building the totals last failed."""

    @property
    def kind(self) -> str:
        """The kind of kept state, in words."""
        if isinstance(self.totals, Derivations):
            return "counts"
        return "first rows" if isinstance(self.totals, FirstRows) else "totals"

    def follow(self, followers: MemberChanges) -> bool:
        """Update the totals; false if they cannot be kept exactly."""
        return self.table.follow(followers, self.delta)

    def followers_of(self, changed: frozenset[str], planning: Planning) -> MemberChanges:
        """The queries for changed members, each with the weight of its rows."""
        known = self.followers.get(changed)
        if known is None:
            program, nodes = self.part.program, self.part.nodes
            if program.goal.is_set:
                change = differentiate(program, changed, nodes=nodes)
                known = [
                    (self._compile(change.plus, planning), 1),
                    (self._compile(change.minus, planning), -1),
                ]
            else:
                weighted = differentiate_bag(program, changed, nodes)
                known = [(self._compile(weighted, planning), None)]
            self.followers[changed] = known
        return known

    def forget_plans(self) -> Iterator[Query]:
        yield from DerivedNode.forget_plans(self)
        for followers in self.followers.values():
            yield from (query for query, _ in followers)
        self.followers.clear()

    def drop(self) -> None:
        self.delta.drop()
        self.table.drop()


@dataclass(slots=True, eq=False)
class ViewNode(Monitored):
    view: WatchedView = field(kw_only=True)
    counting_history: CountingHistory | None = None
    """The measurements that decide whether its derivations are counted, if that is left open."""
    events: dict[tuple[int, frozenset[str], str], Query] = field(default_factory=dict)
    """The queries for the rows of an event and for the tuples that it concerns, by the number of
    the event, the changed stored relations, and which of the two is needed."""
    before: dict[frozenset[str], Query] = field(default_factory=dict)
    """The queries for all rows of the old state, by the changed stored relations."""

    @property
    def id(self) -> str:
        return f"condition {self.view.name}"

    @property
    def old_state(self) -> Relation | None:
        return self.view.stored

    def depends_on(self) -> dict[str, Relation]:
        names = Monitored.depends_on(self)
        for event in self.view.events:
            names |= stored_relations(event.program)
        if self.view.depends_on_time:  # a node below may have no change although time passed
            names |= self.part.stored
        return names

    def rows_before(self, changed: frozenset[str], planning: Planning) -> Query:
        """The query for all rows before these stored relations changed."""
        query = self.before.get(changed)
        if query is None:
            query = planning.compile(in_old_state(self.part.program, changed), as_whole=True)
            self.before[changed] = query
        return query

    def has_other_strategy(self, condition: WatchedView) -> bool:
        """Whether it watches the same view with another requested strategy."""
        same = self.view.has_same_definition(condition)
        return same and self.view.strategy != condition.strategy

    def keeps_plans_for(self, condition: WatchedView) -> bool:
        """Take over another version of the view if its definition is the same, and keep the plans;
        false if the definition differs."""
        same = self.view.has_same_definition(condition)
        if same:
            self.view = condition
        return same


Node: TypeAlias = DerivedNode | ViewNode


def build(nodes: Iterable[TotalsNode], planning: Planning) -> None:
    """Build kept state from the present members."""
    wanted = [(node.table, node.part.program) for node in nodes]
    planning.engine.keep.build(wanted, planning.compile)


def counted(weighted: Query) -> tuple[list[Row], list[Row]]:
    """The gains and losses of a bag, by the query for its weighted change: each row as often as its
    weight says."""
    plus: list[Row] = []
    minus: list[Row] = []
    for *row, weight in weighted.summed():
        (plus if weight > 0 else minus).extend([tuple(row)] * abs(weight))
    return plus, minus


def difference(now: Iterable[Row], before: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """The gains and losses of a bag, by its rows in both states."""
    new, old = Counter(now), Counter(before)
    return list((new - old).elements()), list((old - new).elements())


@dataclass(frozen=True, slots=True)
class Planning:
    """Makes plans and compiles them."""

    engine: Engine
    schema: Schema

    def clock(self) -> float:
        """The working time of the connection in seconds, to compare strategies by."""
        return self.engine.connection.working_time()

    def compile(self, program: Program, as_whole: bool = False, short: bool = False) -> Query:
        plan = prepare(program, self.schema.hierarchy, as_whole=as_whole)
        return self.engine.compile(plan, short)

    def can_take_back(self, stored: Iterable[Relation]) -> bool:
        """Whether the changes of these relations can be undone for the time of a query."""
        return all(map(self.engine.capture.can_take_back, stored))

    def compile_reading(self, program: Program, stored: Mapping[str, StoredRows]) -> Query:
        """Compile a program that reads the stored rows of some recursive relations."""
        copied = from_copies(program, stored)
        plan = prepare(copied, self.schema.hierarchy)
        return self.engine.keep.compile(plan, [each.kept for each in stored.values()])

    def compile_change(self, program: Program, driven: Collection[str]) -> Query:
        """Compile the change of a recursive relation. `driven` are the relations derived as a whole
        from it."""
        return self.engine.compile(prepare_change(program, self.schema.hierarchy, driven))
