"""The check phase: propagate and let a consumer act, until no consumer wants to.

The changes of an action are propagated before the next action is chosen (thesis, section 8.5).
Immediate actions come first, even when another action caused them.

Law: when the check phase ends, no consumer has an action left and every watched view has reported
its exact change. If it does not end within the limit, the transaction is rolled back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from harken.errors import EvaluationError, HarkenError, is_of_data
from harken.propagation.consumer import DEFERRED, IMMEDIATE, Consumer, Consumers, PendingAction
from harken.propagation.network import Network
from harken.propagation.trace import Trace
from harken.propagation.wave import ViewChange
from harken.values.rows import Row

ROUND_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class CheckState:
    """The state that a savepoint restores."""

    consumers: tuple[object, ...]
    failing: frozenset[str]
    redefined: frozenset[str]
    replaced: Mapping[str, list[Row]]


NOTHING_RECEIVED = CheckState((), frozenset(), frozenset(), {})
"""The state of a transaction that no consumer has received anything from. Nothing needs to be
copied. Most savepoints are set in this state."""


class CheckPhase:
    def __init__(self, network: Network, trace: Trace) -> None:
        self._network = network
        self.trace = trace
        self.consumers = Consumers()
        self.limit = ROUND_LIMIT
        self.failing: set[str] = set()
        """The views whose rows cannot be computed at present; until then they count as empty."""
        self.has_received = False
        """Whether a consumer has received anything in this transaction."""

    def run(self, coupling: str = DEFERRED) -> None:
        """Run actions until no consumer has one of this coupling, or an immediate one. Where nobody
        has received anything, nobody has anything to do."""
        self.propagate()
        if not (self.has_received or self.failing):
            return
        if coupling == IMMEDIATE:
            self._act(IMMEDIATE)
            return
        for consumer in self.consumers.overriding["begin_check"]:
            consumer.begin_check()
        try:
            self._act(coupling)
            self._recheck_failing()
            for consumer in self.consumers.overriding["settle"]:
                consumer.settle()
        finally:
            for consumer in self.consumers.overriding["end_check"]:
                consumer.end_check()

    def _act(self, coupling: str) -> None:
        acted: list[str] = []
        while (action := self._next(coupling)) is not None:
            if len(acted) >= self.limit:
                raise self.never_settles(acted)
            acted.append(action.name)
            if not action.is_immediate:
                self._network.begin_statement()
            action.run()
            self.propagate()

    def _next(self, coupling: str) -> PendingAction | None:
        for wanted in dict.fromkeys((IMMEDIATE, coupling)):
            for consumer in self.consumers.overriding["next_action"]:
                action = consumer.next_action(wanted)
                if action is not None:
                    return replace(action, is_immediate=wanted == IMMEDIATE)
        return None

    def propagate(self) -> None:
        """Deliver what has changed, and let nobody act on it yet."""
        if self.trace.listener is None:
            self._network.propagate(self._deliver)
            return
        self._trace_incoming()
        self._network.observe(self.trace.node)
        try:
            self._network.propagate(self._deliver, wants_all=True)
        finally:
            self._network.observe(None)

    def _deliver(self, change: ViewChange) -> None:
        name = change.view.name
        if self.trace.is_on:
            self.trace.view(change)
        if name in self.failing:
            return
        if change.failure is not None:
            self.failing.add(name)
        consumer = self._network.graph.consumer_of(name)
        if consumer is not None:
            self.has_received = True
            consumer.receive(change)

    def _recheck_failing(self) -> None:
        """Views that could not be computed earlier in the transaction must be computable at its
        end, unless they may fail: then their consumer is told."""
        for name in sorted(self.failing):
            try:
                change = self._network.recheck(name)
            except HarkenError as error:
                node, consumer = self._network.graph.node(name), self._consumer_of(name)
                if node is None or not (node.view.may_fail and is_of_data(error)):
                    raise
                assert consumer is not None
                consumer.note_failure(node.view, error)
                change = None
            self.failing.discard(name)
            if change is not None:
                self._deliver(change)

    def _trace_incoming(self) -> None:
        incoming = list(self._network.captures.incoming())
        for relation, plus, minus in incoming:
            self.trace.incoming(relation, plus, minus)
        if incoming and not self._network.has_work():
            self.trace.say("no change passes its screener")

    def _consumer_of(self, name: str) -> Consumer | None:
        return self._network.graph.consumer_of(name)

    def snapshot(self) -> CheckState:
        if not (self.has_received or self.failing or self._network.graph.redefined):
            return NOTHING_RECEIVED
        return CheckState(
            tuple(consumer.snapshot() for consumer in self.consumers.all),
            frozenset(self.failing),
            frozenset(self._network.graph.redefined),
            dict(self._network.graph.replaced),
        )

    def restore(self, state: CheckState) -> None:
        if state is NOTHING_RECEIVED:
            self.forget()
            return
        for consumer, each in zip(self.consumers.all, state.consumers, strict=True):
            consumer.restore(each)
        self.failing, self._network.graph.redefined = set(state.failing), set(state.redefined)
        self._network.graph.replaced = dict(state.replaced)

    def forget(self) -> None:
        """The transaction ended: no action of it is left."""
        for consumer in self.consumers.overriding["forget"]:
            consumer.forget()
        self.failing.clear()
        self._network.graph.redefined.clear()
        self._network.graph.replaced.clear()
        self.has_received = False

    def never_settles(self, acted: list[str]) -> EvaluationError:
        recent = Counter(acted[len(acted) // 2 :])
        cycle = sorted(name for name, times in recent.items() if times > 1) or sorted(recent)
        who = f"the rules {', '.join(cycle)} trigger each other"
        if len(cycle) == 1:
            who = f"the rule {cycle[0]} triggers itself"
        return EvaluationError(
            f"{who} without end: stopped after {self.limit} rounds",
            code="no-fixpoint",
            hint="make the action turn its own condition false, or raise db.round_limit",
        )
