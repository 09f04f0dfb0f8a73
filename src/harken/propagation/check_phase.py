"""The check phase: propagate, choose a rule, act, and again until nothing is triggered.

A triggered activation waits in the conflict set with its action set, the tuples that its condition
has gained; one that it loses again is taken out. The most urgent activation acts (priority 5
before 0, then the order of activation), once for each tuple of its action set, and what it changes
is propagated before the next is chosen (thesis, section 8.5).

Law: when the check phase ends, every action set is empty; if it does not end within the limit, the
transaction is undone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harken.consumers.constraints.constraints import WatchedConstraint, enforce
from harken.consumers.rules.definition import CompiledRule
from harken.consumers.rules.events import Gathered
from harken.database.evaluation import Frame, decode_rows
from harken.database.objects import Object
from harken.database.runtime import Runtime
from harken.errors import EvaluationError, HarkenError, IntegrityError
from harken.ir.relations import Relation
from harken.maintenance.materialized_views import KeptView, follow
from harken.propagation.network import Network
from harken.propagation.watched import Condition
from harken.propagation.wave import ConditionChange, NodeChange
from harken.statements.amosql import steps
from harken.statements.amosql.prefetch import foreseen

Row = tuple[Any, ...]

ROUND_LIMIT = 1000
ACTION_LIMIT = 100_000
"""An action runs for one tuple after the other, here: not for millions that Spark found."""


@dataclass(frozen=True, slots=True)
class Activation:
    """A rule with the arguments it is activated for, as stored values."""

    rule: CompiledRule
    arguments: Row
    priority: int
    sequence: int

    @property
    def name(self) -> str:
        return self.rule.rule.name


Weights = dict[tuple[str, Row], dict[Row, int]]
Events = dict[str, Gathered]
Snapshot = tuple[Weights, Events, int, int, set[str], set[str]]


@dataclass(slots=True)
class CheckPhase:
    """`action_sets` is the conflict set: for each activation its tuples, with their net change
    since the transaction began or since the activation last acted."""

    runtime: Runtime
    network: Network
    limit: int = ROUND_LIMIT
    largest: int = ACTION_LIMIT
    trace: Callable[[str], None] | None = None
    action_sets: Weights = field(default_factory=dict)
    events: Events = field(default_factory=dict)
    """By the name of a rule the events of the transaction so far, where that takes summing up."""
    monitored: list[ConditionChange] = field(default_factory=list)
    """What monitored views gained and lost in this transaction, one propagation after another."""
    constrained: list[ConditionChange] = field(default_factory=list)
    """What breaks constraints, gained and lost likewise."""
    failing: set[str] = field(default_factory=set)
    """The conditions whose rows cannot be computed for now: so far they have lost them all."""

    def run(self, coupling: str = "deferred") -> None:
        """Act until no rule of this coupling is triggered."""
        fired: list[str] = []
        self._propagate(gathering=self.runtime.immediate_rules or bool(self.events))
        if coupling == "deferred":
            self._begin_check()
        while (chosen := self._choose(coupling)) is not None:
            if len(fired) >= self.limit:
                raise self.never_settles(fired)
            fired.append(chosen.name)
            self.act(chosen)
            self._propagate(gathering=coupling == "immediate")
        if coupling == "deferred":
            self._look_again()
            if self.constrained:
                enforce(self.runtime, self.constrained)

    def _look_again(self) -> None:
        """What could not be computed on the way must be computed at the end."""
        for name in sorted(self.failing):
            change = self.network.look_again(name)
            self.failing.discard(name)
            if change is not None:
                self._accumulate(change)

    def forget(self) -> None:
        """The transaction ended: nothing of it is left to act on."""
        self.action_sets.clear()
        self.events.clear()
        self.monitored.clear()
        self.constrained.clear()
        self.failing.clear()
        self.network.redefined.clear()

    def snapshot(self) -> Snapshot:
        acting = {key: dict(rows) for key, rows in self.action_sets.items()}
        lengths = len(self.monitored), len(self.constrained)
        failing, redefined = set(self.failing), set(self.network.redefined)
        return acting, dict(self.events), *lengths, failing, redefined

    def restore(self, snapshot: Snapshot) -> None:
        self.action_sets, self.events, monitored, constrained, failing, redefined = snapshot
        self.failing, self.network.redefined = failing, redefined
        del self.monitored[monitored:]
        del self.constrained[constrained:]

    def _begin_check(self) -> None:
        """From here on each propagation is a check of its own: what was only lost is settled."""
        for key in list(self.action_sets):
            gained = {row: weight for row, weight in self.action_sets[key].items() if weight > 0}
            self._put(key, gained)
        for name, gathered in self.events.items():
            self._settle_events(name, gathered)
        self.events.clear()

    def _settle_events(self, name: str, gathered: Gathered) -> None:
        """Of what waits for a rule with events, keep what its events are about."""
        rule = self.network.rule(name)
        if rule is None:
            return
        about = gathered.occurrence(rule)
        for key in [key for key in self.action_sets if key[0] == name]:
            rows = about.concerning(list(self.action_sets[key])) if rule.acts_on_gains else []
            self._put(key, dict.fromkeys(rows, 1))
        if about.happened and not rule.acts_on_gains:
            inputs = len(rule.rule.parameters)
            for row in about.concerning(self.network.rows_now(name)):
                self._weigh((name, row[:inputs]), row, 1, False)

    def _put(self, key: tuple[str, Row], rows: dict[Row, int]) -> None:
        if rows:
            self.action_sets[key] = rows
        else:
            self.action_sets.pop(key, None)

    def _propagate(self, gathering: bool = False) -> None:
        self.network.observer = None
        if self.trace is not None:
            self._tell_incoming()
            self.network.observer = self._tell_node
        while self._has_kept(self._propagate_all(gathering)):
            pass

    def _has_kept(self, changes: list[ConditionChange]) -> bool:
        """Take in what conditions gained and lost; true if a materialized view followed, which is
        a change in turn."""
        followed = False
        for change in changes:
            if isinstance(change.condition, KeptView) and (change.plus or change.minus):
                if self.trace is not None:
                    self._tell(change)
                follow(self.runtime, change)
                followed = True
            else:
                self._accumulate(change)
        return followed

    def _propagate_all(self, gathering: bool) -> list[ConditionChange]:
        """What a condition lost matters if it waits, and if it may gain it back before commit."""
        gathers = _is_checked_later if gathering else _never
        if self.runtime.immediate_rules or self.trace is not None:
            return self.network.propagate(lambda rule: True, gathers)
        waiting = {name for name, _ in self.action_sets}
        return self.network.propagate(waiting.__contains__, gathers)

    def _accumulate(self, change: ConditionChange) -> None:
        if self.trace is not None:
            self._tell(change)
        if change.condition.name in self.failing:
            return
        if change.failure is not None:
            self.failing.add(change.condition.name)
        if isinstance(change.condition, WatchedConstraint):
            self.constrained.append(change)
            return
        if not isinstance(change.condition, CompiledRule):
            if change.plus or change.minus or change.fresh:
                self.monitored.append(change)
            return
        rule = change.condition.rule
        name, inputs = rule.name, len(rule.parameters)
        if change.gathered is not None:
            self.events[name] = self.events.get(name, Gathered()).add(change.gathered)
        # For an immediate rule each statement is a check of its own; for the others the
        # transaction is, and what they lost may come back before it ends.
        keep_losses = self.runtime.immediate_rules and rule.coupling != "immediate"
        for row in change.minus:
            self._weigh((name, row[:inputs]), row, -1, keep_losses)
        for row in change.plus:
            self._weigh((name, row[:inputs]), row, 1, keep_losses)

    def _weigh(self, key: tuple[str, Row], row: Row, weight: int, keep_losses: bool) -> None:
        rows = self.action_sets.get(key, {})
        total = min(rows.get(row, 0) + weight, 1)
        if total > 0 or (total < 0 and keep_losses):
            rows[row] = total
        else:
            rows.pop(row, None)
        self._put(key, rows)

    def _choose(self, coupling: str) -> Activation | None:
        """The most urgent activation in the conflict set; one that was deactivated drops out."""
        triggered = []
        for key in list(self.action_sets):
            activation = self._activation(*key)
            if activation is None:
                del self.action_sets[key]
            elif activation.rule.rule.coupling == coupling and self._gained(key):
                triggered.append(activation)
        return min(triggered, key=lambda a: (-a.priority, a.sequence), default=None)

    def _gained(self, key: tuple[str, Row]) -> list[Row]:
        return [row for row, weight in self.action_sets[key].items() if weight > 0]

    def take(self, coupling: str) -> list[tuple[Activation, list[Row]]]:
        """All triggered activations of a coupling with their action sets, most urgent first."""
        taken = []
        while (chosen := self._choose(coupling)) is not None:
            key = (chosen.name, chosen.arguments)
            taken.append((chosen, self._gained(key)))
            del self.action_sets[key]
        return taken

    def _activation(self, name: str, arguments: Row) -> Activation | None:
        rule = self.network.rule(name)
        if rule is None:
            return None
        rows = self.runtime.engine.results(rule.rule.activations, arguments)
        return Activation(rule, arguments, *rows[0]) if rows else None

    def act(self, activation: Activation, action_set: list[Row] | None = None) -> None:
        """Run the action for each tuple of the action set, which is then empty."""
        rule = activation.rule.rule
        # Since a detached rule was triggered, others may have deleted objects.
        is_later = action_set is not None
        if action_set is None:
            key = (rule.name, activation.arguments)
            action_set = self._gained(key)
            del self.action_sets[key]
        if len(action_set) > self.largest:
            raise self._too_many(rule.name, len(action_set))
        columns = (*rule.parameters, *rule.variables)
        names = [column.name for column in columns]
        rows = decode_rows(action_set, [column.type for column in columns])
        if self.trace is not None:
            self.trace(f"{rule.name} acts (priority {activation.priority}) on {self._shown(rows)}")
        self.runtime.count_firing(rule.oid, len(rows))
        try:
            action = self.network.action(rule.name) or activation.rule.build_action()
            deletions = self.runtime.objects.deletions

            def frame_of(row: Row) -> Frame:
                return Frame(self.runtime.interface, locals=dict(zip(names, row, strict=True)))

            for row in foreseen(self.runtime, action, rows, frame_of):
                deleted = is_later or self.runtime.objects.deletions != deletions
                if deleted and self._is_gone(row):
                    continue
                action.run(self.runtime, frame_of(row))
        except steps.RollbackRequest:
            raise RuleRollback(rule.name, self._shown(rows)) from None
        except HarkenError as error:
            error.message = f"in the action of rule {rule.name}: {error.message}"
            if error.span is not None:
                error.locate(rule.text, f"rule {rule.name}")
            raise

    def _too_many(self, rule: str, tuples: int) -> EvaluationError:
        return EvaluationError(
            f"rule {rule} would act on {tuples:,} tuples, one after the other, and the limit is "
            f"{self.largest:,}",
            code="large-action-set",
            hint="let it act once on the whole set: a condition without variables, such as "
            "`when count(f()) > 0`, and an action that is one update, `for each ... where ... set "
            "...`; or raise db.action_limit",
        )

    def _is_gone(self, row: Row) -> bool:
        """Did the action for an earlier tuple delete an object of this one?"""
        objects = (value for value in row if isinstance(value, Object))
        return any(not self.runtime.objects.types_of(each.oid) for each in objects)

    def never_settles(self, fired: list[str]) -> EvaluationError:
        recent = Counter(fired[len(fired) // 2 :])
        cycle = sorted(name for name, times in recent.items() if times > 1) or sorted(recent)
        who = f"the rules {', '.join(cycle)} trigger each other"
        if len(cycle) == 1:
            who = f"the rule {cycle[0]} triggers itself"
        return EvaluationError(
            f"{who} without end: stopped after {self.limit} rounds",
            code="no-fixpoint",
            hint="let an action make its own condition false, or raise db.round_limit",
        )

    def _tell_incoming(self) -> None:
        assert self.trace is not None
        incoming = self.network.incoming()
        for name, gained, lost in incoming:
            relation = self.network.influent(name)
            types = [column.type for column in relation.columns]
            plus = self._shown(decode_rows(gained, types))
            minus = self._shown(decode_rows(lost, types))
            self.trace(f"Δ{name} = <{{{plus}}}, {{{minus}}}>")
        if incoming and not self.network.has_work():
            self.trace("no change passes its screener")

    def _tell(self, change: ConditionChange) -> None:
        goal = change.condition.program.goal
        self._tell_change(goal, goal.name, change)

    def _tell_node(self, change: NodeChange) -> None:
        self._tell_change(change.relation, change.relation.id, change)

    def _tell_change(
        self, relation: Relation, name: str, change: ConditionChange | NodeChange
    ) -> None:
        assert self.trace is not None
        influents = ", ".join(sorted(change.changed))
        types = [column.type for column in relation.columns]
        plus = self._shown(decode_rows(change.plus, types))
        minus = self._shown(decode_rows(change.minus, types))
        self.trace(f"Δ{name} from {influents} ({change.strategy}): <{{{plus}}}, {{{minus}}}>")

    def _shown(self, rows: list[Row]) -> str:
        shown = [self.runtime.show_row(row) for row in rows[:10]]
        more = [f"and {len(rows) - 10} more"] if len(rows) > 10 else []
        return ", ".join([*shown, *more])


def _is_checked_later(condition: Condition) -> bool:
    """Does a rule with events look at the transaction as a whole?"""
    return isinstance(condition, CompiledRule) and condition.rule.coupling != "immediate"


def _never(condition: Condition) -> bool:
    return False


class RuleRollback(IntegrityError):
    """A rule undid the transaction; says which one, and for which tuples."""

    def __init__(self, rule: str, tuples: str) -> None:
        super().__init__(
            f"rule {rule} rolled the transaction back for {tuples}",
            code="rolled-back",
            hint=f"change what makes the condition of {rule} true, or deactivate it",
        )
        self.rule = rule
