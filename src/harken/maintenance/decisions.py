"""A decision of the chooser: the strategy that finds the change of a node, the reason, and the
numbers.

    Decision(strategy, reason, numbers)     what was decided; `sentence` puts it into words
    TakenDecision                           a decision with its cost and how often it was taken
    DecisionLog                             the last few decisions about each node

`explain` prints decisions from the log; it never derives them again. A `DecisionReason` is a code
for programs; its sentence is for people.

Law: a decision says how a change is found, never what the change is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from harken.maintenance import capacities
from harken.maintenance.strategies import Strategy

if TYPE_CHECKING:
    from harken.maintenance.nodes import TotalsNode
    from harken.maintenance.recursion_history import Pick
    from harken.maintenance.round_nodes import RoundsNode


class DecisionReason(StrEnum):
    """Why a strategy was chosen."""

    FORCED = "forced"
    ONLY_WAY = "only-way"
    CLOCK = "clock"
    SMALL_CHANGE = "small-change"
    SETTLED = "settled"
    MEASURED = "measured"
    ESTIMATED = "estimated"
    MOST_CHANGED = "most-changed"
    TOTALS_MISSING = "totals-missing"
    NOT_BUILT = "not-built"
    NOT_WORTH_KEEPING = "not-worth-keeping"
    PLAN_TOO_LONG = "plan-too-long"
    STATEMENT_TOO_LONG = "statement-too-long"
    BROKEN_OFF = "broken-off"
    BELOW_SKIPPED = "below-skipped"
    NOT_NEEDED = "not-needed"
    RECOMPUTED_ABOVE = "recomputed-above"
    TOO_MANY_ROWS = "too-many-rows"
    RAN_AWAY = "ran-away"
    OVER_BUDGET = "over-budget"
    FAILED = "failed"
    NO_CHANGE = "no-change"
    NO_EVENT = "no-event"
    EVENT = "event"
    REDEFINED = "redefined"
    KEPT = "kept"

    @property
    def sentence(self) -> str:
        """The reason in words, as the continuation of "..., because"."""
        return _SENTENCES[self]


_SENTENCES = {
    DecisionReason.FORCED: "this strategy was requested",
    DecisionReason.ONLY_WAY: "no other strategy applies",
    DecisionReason.CLOCK: "the view depends on the time",
    DecisionReason.SMALL_CHANGE: "the change is small",
    DecisionReason.SETTLED: "earlier changes like this one were followed faster than recomputed",
    DecisionReason.MEASURED: "it is the fastest, by the measured times of earlier changes",
    DecisionReason.ESTIMATED: "it is the cheapest, according to the cost model",
    DecisionReason.MOST_CHANGED: "such a large share of a table changed that recomputing is faster",
    DecisionReason.TOTALS_MISSING: "the totals that it would read have not been built yet",
    DecisionReason.NOT_BUILT: "it will be built after this change has been propagated",
    DecisionReason.NOT_WORTH_KEEPING: "its groups are too small for totals to be worth keeping",
    DecisionReason.PLAN_TOO_LONG: "planning the statement would take longer than recomputing",
    DecisionReason.STATEMENT_TOO_LONG: "the statement would be too long for SQLite",
    DecisionReason.BROKEN_OFF: "another strategy took too long and was interrupted",
    DecisionReason.BELOW_SKIPPED: "the change of a node below it was not computed",
    DecisionReason.NOT_NEEDED: "every view above is recomputed",
    DecisionReason.RECOMPUTED_ABOVE: "recomputing the views above is faster",
    DecisionReason.TOO_MANY_ROWS: "it would fetch too many rows from the lake",
    DecisionReason.RAN_AWAY: "a strategy ran away; it is not retried until the sizes have doubled",
    DecisionReason.OVER_BUDGET: "the state that it would keep exceeds kept_bytes",
    DecisionReason.FAILED: "an expression failed for some rows",
    DecisionReason.NO_CHANGE: "none of its inputs has changed",
    DecisionReason.NO_EVENT: "none of its events occurred",
    DecisionReason.EVENT: "one of its events occurred",
    DecisionReason.REDEFINED: "the view was redefined",
    DecisionReason.KEPT: "its kept state is up to date",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """`numbers` are the compared values, each named with its unit: `changed_rows`,
    `expected_seconds`, `recompute_seconds`, `limit_seconds`, `expected_cost`, `recompute_cost`."""

    strategy: Strategy
    reason: DecisionReason
    numbers: Mapping[str, float] = field(default_factory=dict)
    build: tuple[TotalsNode | RoundsNode, ...] = ()
    """The totals and rounds to build after the change has been propagated."""
    pick: Pick | None = None
    """The strategies that were compared for a recursive relation."""
    awaited_plan: frozenset[str] | None = None
    """The changed relations whose plan would take too long to make, if that is the reason to
    recompute."""

    def instead(self, strategy: Strategy) -> Decision:
        """The same decision, carried out by another strategy."""
        return self if strategy is self.strategy else replace(self, strategy=strategy)

    def building(self, build: tuple[TotalsNode | RoundsNode, ...]) -> Decision:
        return replace(self, build=build) if build else self

    @property
    def is_skipped(self) -> bool:
        """Whether the change of the node is not computed at all."""
        return self.strategy is Strategy.SKIPPED

    @property
    def label(self) -> str:
        """The name of the strategy, with the reason if the node is skipped: for the trace."""
        if self.is_skipped:
            return f"skipped: {self.reason.sentence}"
        return str(self.strategy)

    @property
    def sentence(self) -> str:
        return f"{self.strategy.words}, because {self.reason.sentence}"


@dataclass(slots=True)
class TakenDecision:
    """A decision that was carried out, perhaps for several changes in a row."""

    decision: Decision
    times: int = 1
    seconds: float | None = None
    """The seconds that the last of these changes took, by the clock of the connection; None if it
    was not timed."""


@dataclass(slots=True)
class DecisionLog:
    """The last decisions about each node, oldest first."""

    _by_node: dict[str, deque[TakenDecision]] = field(default_factory=dict)

    def add(self, node_id: str, decision: Decision) -> None:
        taken = self._by_node.get(node_id)
        if taken is None:
            taken = self._by_node[node_id] = deque(maxlen=capacities.REMEMBERED_DECISIONS)
        if taken:
            last, before = taken[-1], taken[-1].decision
            if before is decision or (
                before.strategy is decision.strategy and before.reason is decision.reason
            ):
                last.decision = decision
                last.times += 1
                return
        taken.append(TakenDecision(decision))

    def replace(self, node_id: str, decision: Decision) -> None:
        """The last decision about a node was carried out by another strategy."""
        taken = self._by_node[node_id]
        last = taken.pop()
        self.add(node_id, decision)
        taken[-1].seconds = last.seconds

    def note_seconds(self, node_id: str, seconds: float) -> None:
        """Record how long carrying out the last decision about a node took."""
        taken = self._by_node.get(node_id)
        if taken:
            taken[-1].seconds = seconds

    def of(self, node_id: str) -> tuple[TakenDecision, ...]:
        return tuple(self._by_node.get(node_id, ()))

    def forget(self, node_id: str) -> None:
        """The node was removed."""
        self._by_node.pop(node_id, None)
