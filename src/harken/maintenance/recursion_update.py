"""One change of a recursive relation: by the chosen strategy, or by another if that one runs away.

Rederivation that exceeds its time limit is interrupted, and the relation is recomputed, which
stores its rows. A requested strategy is interrupted as well, when it has taken many times as long
as any other would. A strategy that would fetch too many rows from the lake is replaced by
recomputing.

Law: whichever strategy runs, the Δ-set is the change, and stored rows are those of the new
state.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from harken.engines.protocol import BrokenOff, TooManyRows
from harken.maintenance import tuning
from harken.maintenance.chooser import Chooser
from harken.maintenance.decisions import Decision, DecisionReason
from harken.maintenance.measurements import Experience
from harken.maintenance.nodes import Planning
from harken.maintenance.recursion_history import REDERIVED_INTO_ROWS, RecursionHistory
from harken.maintenance.recursive_nodes import RecursiveNode
from harken.maintenance.strategies.base import Job
from harken.maintenance.strategies.names import Strategy
from harken.maintenance.strategies.recompute import RECOMPUTE
from harken.maintenance.strategies.registry import find


@dataclass(slots=True)
class RecursionUpdate:
    """`job` has the influents that have Δ-sets; `case` also says which of them lost rows."""

    node: RecursiveNode
    job: Job
    case: frozenset[str]
    size: int
    chooser: Chooser

    @property
    def _planning(self) -> Planning:
        return self.job.planning

    def run(self, decision: Decision) -> Decision:
        """Fill the Δ-set. Returns the decision as it was carried out in the end."""
        was_stored = self.node.kept_rows.is_built
        if decision.reason is DecisionReason.SETTLED:
            found = self._repeat_last(decision)
        elif decision.reason is DecisionReason.MEASURED:
            found = decision.instead(self._run_measured(decision))
        else:
            found = self._run_requested(decision)
        if not was_stored and self.node.kept_rows.is_built:
            self.chooser.budget.note_built()
        return found

    # --- without limits ----------------------------------------------------------------------

    def _run(self, strategy: Strategy) -> Strategy:
        """Fill the Δ-set by this strategy, or by recomputing if it would fetch too many rows.
        Returns the strategy that ran. If even recomputing would fetch too many rows, both states
        are compared in the lake."""
        node = self.node
        try:
            self.attempt(strategy)
        except TooManyRows:
            node.delta.clear()
            if strategy is not Strategy.NAIVE:
                return self._run(Strategy.NAIVE)
            node.kept_rows.drop()
            for sign in (1, -1):
                query = node.query(sign, RECOMPUTE, self.job.stored, self._planning)
                node.delta.fill(query, sign)
        return strategy

    def attempt(self, strategy: Strategy) -> None:
        find(strategy, self.node).run(self.job, ())

    def _repeat_last(self, decision: Decision) -> Decision:
        history = self.node.history
        history.untimed_left -= 1
        ran = self._run(decision.strategy)
        if ran is not history.last:
            history.note_strategy(ran, self.size, stored=False)
        return decision.instead(ran)

    # --- a requested strategy ----------------------------------------------------------------

    def _run_requested(self, decision: Decision) -> Decision:
        """Run the requested strategy, unless it runs away, or did so before."""
        wanted = decision.strategy
        known = self._experience()
        ran_away = known.ran_away((wanted, self.case), self.size)
        if ran_away or not self._try_requested(wanted, known):
            numbers = {"limit_seconds": known.expected((wanted, self.case), self.size) / 2}
            decision = Decision(Strategy.NAIVE, DecisionReason.RAN_AWAY, numbers)
            self._recompute(known)
        elif wanted is Strategy.EXTERNAL:
            self.node.kept_rows.drop()
        return decision

    def _try_requested(self, wanted: Strategy, known: Experience) -> bool:
        if wanted is Strategy.NAIVE:
            self._run(wanted)
            return True
        started = self._clock()
        is_measured = known.is_measured((wanted, self.case), self.size)
        limit = self.node.history.runaway_limit(known, self.case, self.size, wanted)
        if is_measured or known.reads_lake:  # Spark cannot be interrupted
            limit = math.inf
        if not self._try_limited(wanted, known, limit):
            return False
        if not is_measured:
            self._record(wanted, started, known)
        return True

    def _try_limited(self, strategy: Strategy, known: Experience, limit: float) -> bool:
        """Run a strategy within a time limit; false if it ran away. Then the rows that were stored
        before are restored."""
        was_stored = self.node.kept_rows.holds()
        is_undone = strategy is Strategy.MATERIALIZED and was_stored and limit < math.inf
        connection = self._planning.engine.connection
        started = self._clock()
        try:
            with (
                connection.savepoint("follow") if is_undone else nullcontext(),
                self._limited(limit),
            ):
                self._run(strategy)
        except BrokenOff:
            self._clean_up(was_stored)
            known.note_runaway((strategy, self.case), self.size, self._clock() - started)
            self.chooser.note_measured(self.node, known)
            return False
        return True

    def _clean_up(self, was_stored: bool) -> None:
        """Clean up after an interrupted run. The rollback of the stored rows also removed the
        indexes of their rules."""
        node = self.node
        node.delta.clear()
        if was_stored:
            node.maintained.clear()
            self._planning.engine.indexes.reload()
        else:
            node.kept_rows.drop()

    def _record(self, strategy: Strategy, started: float, known: Experience) -> None:
        is_fresh, self.node.is_fresh = self.node.is_fresh, False
        if not is_fresh:
            known.note((strategy, self.case), self.size, self._clock() - started)
            self.chooser.note_measured(self.node, known)

    def _limited(self, seconds: float) -> AbstractContextManager[object]:
        connection = self._planning.engine.connection
        return connection.limited(seconds) if seconds < math.inf else nullcontext()

    def _recompute(self, known: Experience) -> None:
        started = self._clock()
        ran = self._run(Strategy.NAIVE)
        is_fresh, self.node.is_fresh = self.node.is_fresh, False
        known.note_naive(self._clock() - started, is_first=is_fresh)
        if not is_fresh:
            known.note((ran, self.case), self.size, self._clock() - started)
        self.chooser.note_measured(self.node, known)

    # --- by measurements ---------------------------------------------------------------------

    def _experience(self) -> Experience:
        node = self.node
        return node.history.experience(
            lambda: self.chooser.experience(node) or self.chooser.begin_experience(node),
            tuning.MANY_RUNS,
        )

    def _run_measured(self, decision: Decision) -> Strategy:
        node, history = self.node, self.node.history
        known = self._experience()
        was_stored = node.kept_rows.holds()
        strategy = decision.strategy
        if decision.pick is not None:
            history.take(decision.pick, known, self.size)
        if strategy is Strategy.EXTERNAL and not self._rederive(known, was_stored):
            strategy = Strategy.MATERIALIZED if was_stored else Strategy.NAIVE
        if strategy is not Strategy.EXTERNAL:
            strategy = self._run_with_rows(strategy, known, was_stored)
        history.note_strategy(strategy, self.size, stored=was_stored)
        self._store_or_drop(strategy, known, was_stored)
        self.chooser.note_measured(node, known)
        return strategy

    def _run_with_rows(self, strategy: Strategy, known: Experience, was_stored: bool) -> Strategy:
        """Update the stored rows, or recompute them. An update that was never measured is
        interrupted when it takes a few times as long as recomputing."""
        naive, started = known.naive_seconds, self._clock()
        is_new = not known.is_measured((strategy, self.case), self.size)
        if strategy is Strategy.MATERIALIZED and is_new and naive is not None:
            limit = tuning.SEVERAL_TIMES * max(naive, tuning.FIRST_RUN)
            if self._try_limited(strategy, known, limit):
                self._note(strategy, started, known, was_stored)
                return strategy
            strategy, started = Strategy.NAIVE, self._clock()
        strategy = self._run(strategy)
        self._note(strategy, started, known, was_stored)
        return strategy

    def _rederive(self, known: Experience, was_stored: bool) -> bool:
        """Rederive the change; false if it was interrupted, or would fetch too many rows. Stored
        rows are updated with the change."""
        limit = self.node.history.rederivation_limit(known, self.case, self.size, was_stored)
        started = self._clock()
        try:
            with self._limited(limit):
                self.attempt(Strategy.EXTERNAL)
        except (BrokenOff, TooManyRows):
            took = self._clock() - started
            for strategy in (
                (Strategy.EXTERNAL, REDERIVED_INTO_ROWS) if was_stored else (Strategy.EXTERNAL,)
            ):
                known.note((strategy, self.case), self.size, took, broken_off=True)
            return False
        self._note(Strategy.EXTERNAL, started, known, was_stored)
        if was_stored:
            self.node.kept_rows.apply(self.node.delta)
            self._note(REDERIVED_INTO_ROWS, started, known, was_stored)
        return True

    def _note(self, strategy: str, started: float, known: Experience, was_stored: bool) -> None:
        """Runs that include planning are recorded only if they took longer than planning does."""
        took, history = self._clock() - started, self.node.history
        is_fresh, self.node.is_fresh = self.node.is_fresh, False
        if strategy == Strategy.NAIVE:
            known.note_naive(took, is_first=is_fresh)
        is_planning = is_fresh and took < tuning.FIRST_RUN
        if is_planning or self._is_cold(strategy, took, known):
            return
        known.note((strategy, self.case), self.size, took)
        if strategy in (Strategy.MATERIALIZED, REDERIVED_INTO_ROWS):
            history.note_with_rows(took, known, (Strategy.EXTERNAL, self.case), self.size)
        elif strategy == Strategy.EXTERNAL and not was_stored:
            history.note_without_rows(took)

    def _is_cold(self, strategy: str, took: float, known: Experience) -> bool:
        """Whether the run was slow only because its statements had dropped out of the cache. A
        trial that is far too slow is ended."""
        case, history = (strategy, self.case), self.node.history
        used = Strategy.EXTERNAL if strategy == REDERIVED_INTO_ROWS else strategy
        if not known.is_measured(case, self.size) or not history.is_cold(used):
            return False
        if took <= tuning.SEVERAL_TIMES * known.expected(case, self.size):
            return True
        history.trial_changes_left = 0
        return False

    def _store_or_drop(self, strategy: Strategy, known: Experience, was_stored: bool) -> None:
        rows, history = self.node.kept_rows, self.node.history
        is_allowed = self.chooser.budget.allows(rows)
        if strategy is Strategy.EXTERNAL and not was_stored:
            if history.is_worth_trying and is_allowed:
                self._try_to_store(known, history)
        elif was_stored and history.should_drop_rows(known):
            rows.drop()
            history.give_up_rows(known)
        elif strategy is Strategy.NAIVE and not is_allowed:
            rows.drop()

    def _try_to_store(self, known: Experience, history: RecursionHistory) -> None:
        started = self._clock()
        try:
            with self._limited(history.attempt_limit):
                self.node.build(self._planning)
        except (BrokenOff, TooManyRows):
            self.node.kept_rows.drop()
            history.note_failed_attempt()
        else:
            known.note_naive(self._clock() - started, is_first=True)
            history.spent = 0.0

    def _clock(self) -> float:
        return self._planning.clock()
