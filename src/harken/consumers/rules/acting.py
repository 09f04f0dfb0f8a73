"""Runs the action of a rule for each tuple of an action set."""

from __future__ import annotations

from typing import Any

from harken.consumers.rules.conflict_set import Activation
from harken.database.actions import Action, RollbackRequest, TransactionUndone
from harken.database.evaluation import Frame, decode_rows
from harken.database.objects import Object
from harken.database.prefetch import prefetched
from harken.database.runtime import Runtime
from harken.errors import EvaluationError, HarkenError
from harken.propagation.trace import Trace
from harken.values.rows import Row

ACTION_LIMIT = 100_000
"""The most tuples that one activation acts on. An action runs for one tuple after another, and is
not meant for millions of them from Spark."""


class RuleRollback(TransactionUndone):
    """A rule rolled the transaction back; the error names it and the tuples."""

    def __init__(self, rule: str, tuples: str) -> None:
        super().__init__(
            f"rule {rule} rolled the transaction back for {tuples}",
            code="rolled-back",
            hint=f"change what makes the condition of {rule} true, or deactivate it",
        )
        self.rule = rule


class Acting:
    def __init__(self, runtime: Runtime, trace: Trace) -> None:
        self._runtime = runtime
        self._trace = trace
        self.limit = ACTION_LIMIT
        self._compiled: dict[str, tuple[Activation, int, Action]] = {}
        """For each rule its compiled action, and the epoch of the catalog it was compiled in."""

    def act(self, activation: Activation, action_set: list[Row], *, later: bool = False) -> None:
        """Run the action for each tuple. If it runs `later`, in another transaction than the rule
        was triggered in, objects may have been deleted since."""
        rule = activation.rule.rule
        if len(action_set) > self.limit:
            raise self._too_many(rule.name, len(action_set))
        columns = (*rule.parameters, *rule.variables)
        names = [column.name for column in columns]
        rows = decode_rows(action_set, [column.type for column in columns])
        if self._trace.is_on:
            shown = self._runtime.show_rows(rows)
            self._trace.say(f"{rule.name} acts (priority {activation.priority}) on {shown}")
        self._runtime.count_firing(rule.oid, len(rows))

        def frame_of(row: Row) -> Frame:
            return Frame(self._runtime.interface, locals=dict(zip(names, row, strict=True)))

        try:
            action = self._action(activation)
            deletions = self._runtime.objects.deletions
            for row in prefetched(self._runtime, action, rows, frame_of):
                deleted = later or self._runtime.objects.deletions != deletions
                if deleted and self._is_gone(row):
                    continue
                with self._runtime.holding_back():
                    action.run(self._runtime, frame_of(row))
        except RollbackRequest:
            raise RuleRollback(rule.name, self._runtime.show_rows(rows)) from None
        except HarkenError as error:
            error.message = f"in the action of rule {rule.name}: {error.message}"
            if error.span is not None:
                error.locate(rule.text, f"rule {rule.name}")
            raise

    def _action(self, activation: Activation) -> Action:
        """The compiled action, recompiled when the rule or the schema has changed."""
        epoch = self._runtime.catalog.epoch
        known = self._compiled.get(activation.name)
        if known is not None and known[0].rule is activation.rule and known[1] == epoch:
            return known[2]
        action = activation.rule.build_action()
        self._compiled[activation.name] = (activation, epoch, action)
        return action

    def forget(self, rule: str) -> None:
        self._compiled.pop(rule, None)

    def _is_gone(self, row: tuple[Any, ...]) -> bool:
        """Whether an object of the tuple was deleted, perhaps by the action for an earlier
        tuple."""
        objects = (value for value in row if isinstance(value, Object))
        return any(not self._runtime.objects.types_of(each.oid) for each in objects)

    def _too_many(self, rule: str, tuples: int) -> EvaluationError:
        return EvaluationError(
            f"rule {rule} would act on {tuples:,} tuples, one after another, and the limit "
            f"is {self.limit:,}",
            code="large-action-set",
            hint="make it act once on the whole set: a condition without variables, such "
            "as `when count(f()) > 0`, and an action that is one update, `for each "
            "... where ... set ...`; or raise db.action_limit",
        )
