"""The interface of a strategy: whether it applies, what it would cost, and how it runs.

    applies(node)           whether it can find the change of this node at all
    is_ready(node, graph)   whether the state that it reads is kept and up to date
    estimate(node, wave)    the expected seconds, by earlier runs; None if not measured
    cost(node, sizes, ...)  the cost by the cost model, when nothing was measured
    queries(job)            its queries, so that those of several nodes can be answered together
    run(job, queries)       find the change: the rows of a view, or the Δ-set of a node below

Law: whichever runs, the change is the difference between the rows now and the rows before.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

from harken.calculus.differentials import Change
from harken.engines.protocol import Query
from harken.ir.clauses import Program, written_out
from harken.ir.relations import Relation
from harken.maintenance import capacities, tuning
from harken.maintenance.nodes import (
    DerivedNode,
    Monitored,
    Node,
    Planning,
    TotalsNode,
    ViewNode,
    counted,
)
from harken.maintenance.strategies.names import Strategy
from harken.values.rows import Row

if TYPE_CHECKING:
    from harken.maintenance.chooser import Chooser
    from harken.maintenance.wave_measurements import Nodes, WaveMeasurements

Found: TypeAlias = tuple[list[Row], list[Row]]
"""The rows that a view gained, and those that it lost."""


class Past(Protocol):
    """The state before the change."""

    def taken_back(self, query: Query, changed: frozenset[str]) -> list[Row]:
        """The rows of a query, with the changes of these relations undone."""

    def last_evaluation(self, view: str) -> datetime.datetime: ...

    def note_evaluation(self, view: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Job:
    """A change to be found."""

    node: Node
    changed: frozenset[str]
    """The changed relations that the strategy reads."""
    planning: Planning
    stored: frozenset[str] = frozenset()
    """The stored relations below that have changed."""
    losses: bool = True
    """Whether the rows that a view lost are needed as well."""
    past: Past | None = None


class MaintenanceStrategy(ABC):
    name: ClassVar[Strategy]

    @abstractmethod
    def applies(self, node: Node) -> bool:
        """Whether it can find the change of this node at all."""

    @abstractmethod
    def influents(self, node: Monitored) -> Mapping[str, Relation]:
        """The relations whose Δ-sets it reads."""

    @abstractmethod
    def estimate(self, node: Node, wave: WaveMeasurements) -> float | None:
        """The expected seconds, by earlier runs; None if that was not measured."""

    @abstractmethod
    def cost(self, node: Node, sizes: Mapping[str, int], chooser: Chooser) -> float:
        """The cost for Δ-sets of these sizes, by the cost model."""

    @abstractmethod
    def queries(self, job: Job) -> tuple[Query, ...]:
        """The queries that it will run."""

    @abstractmethod
    def run(self, job: Job, queries: tuple[Query, ...]) -> Found:
        """Find the change. That of a node below the views is written into its Δ-set."""

    def is_ready(self, node: Node, graph: Nodes) -> bool:
        """Whether the state that it reads is kept and up to date."""
        return True

    def is_wanted(self, node: Node, graph: Nodes, chooser: Chooser) -> bool:
        """Whether all kept state that it reads is worth keeping."""
        return True

    def reads(self, node: Node, graph: Nodes) -> list[TotalsNode]:
        """The nodes of the totals that it reads, kept or not."""
        return []

    def is_too_long(
        self, node: Node, changed: frozenset[str], recomputing: PlannedStrategy
    ) -> bool:
        """Whether the statement is so long that preparing it costs more than it saves."""
        return False

    def planning_seconds(self, node: Node, changed: frozenset[str]) -> float:
        """The seconds that planning the statement takes, 0 if it is planned."""
        return 0.0


class PlannedStrategy(MaintenanceStrategy):
    """A strategy that finds the change by one query, or by one for each sign."""

    @abstractmethod
    def change(self, node: Monitored, changed: frozenset[str], checked: bool = True) -> Change:
        """The programs for the gains and the losses of a set."""

    @abstractmethod
    def weighted_change(self, node: Monitored, changed: frozenset[str]) -> Program:
        """The program for the change of a bag: its rows with weights."""

    def is_weighed(self, node: Monitored) -> bool:
        """Whether the change is one query for weighted rows, rather than one for each sign."""
        return not node.part.relation.is_set

    def queries(self, job: Job) -> tuple[Query, ...]:
        node = job.node
        if self.is_weighed(node):
            return (node.weighted_query(self, job.changed, job.planning),)
        signs: tuple[int, ...] = (1, -1)
        strict = True
        if isinstance(node, ViewNode):
            signs, strict = (1, -1) if job.losses else (1,), node.view.strict
        return tuple(node.query(each, self, job.changed, job.planning, strict) for each in signs)

    def run(self, job: Job, queries: tuple[Query, ...]) -> Found:
        node = job.node
        if isinstance(node, DerivedNode):
            fill(node, queries)
            return [], []
        if self.is_weighed(node):
            return counted(queries[0])
        return queries[0].rows(()), queries[1].rows(()) if len(queries) > 1 else []

    # --- how long the statement is -----------------------------------------------------------

    def term_count(self, node: Monitored, changed: frozenset[str]) -> int:
        """A lower bound on the number of terms of the statement for the change."""
        return 0

    def length(self, node: Monitored, changed: frozenset[str]) -> int:
        """The number of literals of the statement for the change, or a lower bound if the statement
        is too long to be made."""
        key = (self.name, changed)
        known = node.lengths.get(key)
        if known is None:
            known = self.term_count(node, changed)
            if known <= capacities.LONGEST_STATEMENT:
                is_set = node.part.relation.is_set
                known = written_out(
                    self.change(node, changed).plus
                    if is_set
                    else self.weighted_change(node, changed)
                )
            node.lengths[key] = known
        return known

    def is_too_long(
        self, node: Node, changed: frozenset[str], recomputing: PlannedStrategy
    ) -> bool:
        """If a view mentions the changed relation many times, each mention adds a term that reads
        the others in both states."""
        length = self.length(node, changed)
        if length <= capacities.LONGEST_STATEMENT:
            return False
        whole = recomputing.length(node, frozenset(node.part.stored))
        return length > tuning.DOUBLED * whole

    def planning_seconds(self, node: Node, changed: frozenset[str]) -> float:
        if self.is_planned(node, changed):
            return 0.0
        return tuning.PLANNING_SECONDS_PER_SQUARED_LITERAL * self.length(node, changed) ** 2

    def is_planned(self, node: Monitored, changed: frozenset[str]) -> bool:
        key = (self.name, changed)
        return key in node.plans or key in node.weighted


def fill(node: DerivedNode, queries: tuple[Query, ...]) -> None:
    if not node.part.relation.is_set:
        node.delta.fill_weighted(queries[0])
        return
    for query, sign in zip(queries, (1, -1), strict=True):
        node.delta.fill(query, sign)
