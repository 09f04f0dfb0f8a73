"""Carrying out recorded actions of detached and decoupled rules, each in a transaction of its own.

Law: one that fails stays recorded, with its error, and keeps no other from being carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

from harken.consumers.rules.acting import Acting
from harken.consumers.rules.conflict_set import Activation
from harken.consumers.rules.definition import CompiledRule
from harken.consumers.rules.detached import DetachedActions, Recorded, not_done
from harken.consumers.rules.failure_news import tell_recovery
from harken.database.runtime import Runtime
from harken.errors import HarkenError, ValueFault
from harken.propagation.check_phase import CheckPhase
from harken.propagation.consumer import InOwnTransaction

AFTER_COMMIT = "the transaction is committed, but "
"""How the error of a detached action starts when the commit that triggered it reports it."""


class DetachedRuns:
    def __init__(
        self,
        runtime: Runtime,
        detached: DetachedActions,
        acting: Acting,
        check_phase: CheckPhase,
        rule: Callable[[str], CompiledRule],
    ) -> None:
        self._runtime = runtime
        self._detached = detached
        self._acting = acting
        self._check_phase = check_phase
        self._rule = rule
        self.due: list[int] = []
        """The numbers of the actions to carry out next."""
        self._prefix = AFTER_COMMIT

    def queue(self, numbers: Iterable[int] | None) -> int:
        self.due = self._detached.numbers(numbers)
        self._prefix = ""
        return len(self.due)

    def act_later(self, run: InOwnTransaction) -> Iterator[HarkenError]:
        first = len(self.due)
        acted: list[str] = []
        try:
            while self.due:
                if len(acted) >= self._check_phase.limit + first:
                    yield self._check_phase.never_settles(acted)
                    return
                due, self.due = self.due, []
                for number in due:
                    failure = self._act(number, acted, run)
                    if failure is not None:
                        yield not_done(number, failure, self._prefix)
        finally:
            self.due = []
            self._prefix = AFTER_COMMIT

    def _act(self, number: int, acted: list[str], run: InOwnTransaction) -> HarkenError | None:
        def act() -> None:
            recorded = self._detached.cross_out(number)
            if recorded is not None:
                acted.append(recorded.rule)
                self._act_on(recorded)
                if recorded.attempts:
                    tell_recovery(self._runtime, number, recorded.rule)

        try:
            run(act)
        except HarkenError as error:
            with suppress(HarkenError):  # if that cannot be written, the action is still recorded
                run(partial(self._detached.note_failure, number, error))
            return error
        return None

    def _act_on(self, recorded: Recorded) -> None:
        """Carry out a recorded action, as the rule is defined now."""
        rule = self._rule(recorded.rule)
        columns = (*rule.rule.parameters, *rule.rule.variables)
        if tuple(column.type for column in columns) != recorded.rows.types:
            raise ValueFault(
                f"the variables of rule {recorded.rule} have changed since it was triggered",
                code="bad-value",
                hint="define it as it was, or discard the action",
            )
        activation = Activation(rule, recorded.arguments, 0, 0)
        self._acting.act(activation, recorded.rows.rows, later=True)
