"""Whether the changes of an answer are followed, or the answer is recomputed at each execution.

A query with STRATEGY auto begins with following. After an execution the times of both are compared
(`maintenance.looks`) with the transactions since the execution before. The decision is kept in the
file with its numbers, so that EXPLAIN can tell them, and any process goes on with it.

Law: the strategy never changes what an execution finds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from harken.database.runtime import Runtime
from harken.engines.protocol import Field, RecordKind
from harken.ir.relations import Relation
from harken.maintenance import tuning
from harken.maintenance.decisions import Decision, DecisionReason
from harken.maintenance.looks import Look
from harken.maintenance.nodes import ViewNode
from harken.maintenance.strategies import Strategy
from harken.propagation.network import Network

CHOICES = RecordKind(
    "harken_answer_choices",
    (
        Field("query", "integer"),
        Field("strategy", "text"),
        Field("reason", "text"),
        Field("numbers", "text"),
    ),
    key=("query",),
)
LOOKS = "looks"
"""For how many executions a query has been recomputed whose tables nobody follows."""


@dataclass(frozen=True, slots=True)
class Followed:
    """How an answer is followed at present."""

    number: int
    node: ViewNode | None
    """None if it is recomputed."""
    sharers: int
    stored: Mapping[str, Relation]
    """The stored relations that it reads."""


class AnswerChoices:
    def __init__(self, runtime: Runtime, network: Network) -> None:
        self._runtime, self._network = runtime, network
        self._records = runtime.engine.connection.records
        self._recomputed: dict[int, float] = {}
        """The seconds that recomputing each answer last took in this session."""
        self._seen: dict[int, dict[str, int]] = {}
        """How many transactions had changed each relation at the last look of a query."""

    def note_recomputed(self, number: int, seconds: float) -> None:
        self._recomputed[number] = seconds

    def forget(self, number: int) -> None:
        """In a transaction: the query is gone, or another one."""
        self._recomputed.pop(number, None)
        self._seen.pop(number, None)
        if self._records.exist(CHOICES):
            self._records.remove(CHOICES, {"query": number})

    def known(self, number: int) -> Decision | None:
        """The last decision about a query."""
        if not self._records.exist(CHOICES):
            return None
        found = self._records.find(CHOICES, {"query": number})
        if not found:
            return None
        _, strategy, reason, numbers = found[0]
        return Decision(
            Strategy.INCREMENTAL if strategy == Strategy.INCREMENTAL else Strategy.COPIED,
            DecisionReason(reason),
            json.loads(numbers),
        )

    def decide(self, query: Followed) -> Decision | None:
        """In the transaction of an execution: how the next difference is found. None if this
        session has not seen what has changed since the last one."""
        counts = {name: self._count(name) for name in query.stored}
        before = self._seen.get(query.number)
        self._seen[query.number] = counts
        if before is None:
            return None
        known = self.known(query.number)
        if query.node is None and not self._is_seen(query.stored):
            return self._tried_again(query.number, known)
        since = {name: count - before.get(name, 0) for name, count in counts.items()}
        made = self._look(query, since, known).decision()
        self._keep(query.number, made, known)
        return made

    def _look(self, query: Followed, since: dict[str, int], known: Decision | None) -> Look:
        chooser, node = self._network.chooser, query.node
        recompute = self._recomputed.get(query.number)
        was = known.numbers if known is not None else {}
        if recompute is None:
            recompute = was.get("recompute_seconds")
        is_measured = recompute is not None
        if recompute is None:
            rows = chooser.statistics.sizes(query.stored)
            recompute = tuning.SECONDS_PER_ROW * sum(rows.values())
        if node is None:
            each = was.get("following_seconds", 0.0) / max(1.0, was.get("changing_transactions", 0))
            return Look(False, since, recompute, each, is_measured)
        following, is_timed = chooser.following_seconds(node, recompute * query.sharers)
        return Look(True, since, recompute, following, is_measured and is_timed, query.sharers)

    def _tried_again(self, number: int, known: Decision | None) -> Decision:
        """Nobody counts what changes while the answer is recomputed: follow it once more after some
        executions, to see."""
        numbers = dict(known.numbers) if known is not None else {}
        looks = numbers.pop(LOOKS, 0.0) + 1
        if looks < tuning.MANY_RUNS:
            numbers[LOOKS] = looks
        strategy = Strategy.COPIED if looks < tuning.MANY_RUNS else Strategy.INCREMENTAL
        reason = DecisionReason.MEASURED if known is None else known.reason
        made = Decision(strategy, reason, numbers)
        self._keep(number, made, None)
        return made

    def _count(self, name: str) -> int:
        updates = self._network.chooser.statistics.updates.get(name)
        return 0 if updates is None else updates.transactions

    def _is_seen(self, stored: Mapping[str, Relation]) -> bool:
        """Whether this session counts the transactions that change these relations."""
        captures = self._network.graph.captures
        return all(captures.relation(name) is not None for name in stored)

    def _keep(self, number: int, made: Decision, known: Decision | None) -> None:
        """Numbers of the same size are no news."""
        if known is not None and (known.strategy, known.reason) == (made.strategy, made.reason):
            pairs = ((made.numbers.get(name, 0.0), was) for name, was in known.numbers.items())
            if all(was / tuning.DOUBLED <= now <= was * tuning.DOUBLED for now, was in pairs):
                return
        self._records.make_room(CHOICES)
        row = (number, str(made.strategy), str(made.reason), json.dumps(dict(made.numbers)))
        self._records.add(CHOICES, row, replace=True)


def in_words(decision: Decision) -> str:
    """A decision for people, with its numbers."""
    numbers = decision.numbers
    if "recompute_seconds" not in numbers:
        return decision.sentence
    changes = round(numbers.get("changing_transactions", 0))
    return (
        f"{decision.sentence} ({changes:,} transaction{'' if changes == 1 else 's'}, "
        f"following them {_ms(numbers['following_seconds'])}, "
        f"recomputing {_ms(numbers['recompute_seconds'])})"
    )


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.3g} ms" if seconds < 1 else f"{seconds:,.3g} s"
