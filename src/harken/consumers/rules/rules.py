"""The rules of a database: activating, checking and running them.

A rule is an object with a name and a text; its activations are rows of a stored relation. The
network in memory is derived from both: after a rollback or a change of the schema they are read
again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from harken.consumers.rules.acting import Acting
from harken.consumers.rules.composed_rules import ComposedRules
from harken.consumers.rules.conflict_set import Activation, ConflictSet, ConflictState, Key
from harken.consumers.rules.definition import (
    AFTER_TRANSACTION,
    BEFORE,
    DECOUPLED,
    CompiledRule,
    Rule,
    RuleCompiler,
)
from harken.consumers.rules.detached import DetachedActions
from harken.consumers.rules.detached_runs import DetachedRuns
from harken.consumers.rules.reactivated import Reactivated
from harken.database.dependency_order import dependents_in_order, names_below
from harken.database.runtime import Runtime
from harken.database.shared_errors import unknown_rule
from harken.database.system import FIRED
from harken.errors import HarkenError, IntegrityError, Span
from harken.ir.schema import Function
from harken.maintenance.strategies import Strategy
from harken.maintenance.watched import WatchedView
from harken.propagation.check_phase import CheckPhase
from harken.propagation.consumer import IMMEDIATE, Consumer, InOwnTransaction, PendingAction
from harken.propagation.network import Network
from harken.propagation.wave import ViewChange
from harken.values.rows import Row


class Rules(Consumer):
    def __init__(
        self, runtime: Runtime, network: Network, check_phase: CheckPhase, compiler: RuleCompiler
    ) -> None:
        self._runtime = runtime
        self._network = network
        self._check_phase = check_phase
        self._compiler = compiler
        self._conflicts = ConflictSet()
        self.acting = Acting(runtime, check_phase.trace)
        self.detached = DetachedActions(runtime)
        self.composed = ComposedRules(runtime, self._network.rows_now)
        self.acted_before: dict[Key, list[Row]] = {}
        """What before-rules have acted on for the statement that follows."""
        self._reactivated = Reactivated()
        self._has_work = False
        """Whether the open transaction has left anything here."""
        self._read: dict[str, Rule] = {}
        self._broken: dict[str, HarkenError] = {}
        self._epoch = -1
        self._is_checking = False
        """Whether the check of the transaction has begun; then each wave is a check of its own."""
        self._recorded: list[tuple[int, str]] = []
        """The detached actions recorded by the open transaction: number and rule."""
        self.detached_runs = DetachedRuns(
            runtime, self.detached, self.acting, check_phase, self._as_defined_now
        )

    # --- activations ---------------------------------------------------------------------------

    def activate(self, name: str, arguments: tuple[Any, ...], priority: int) -> None:
        """Activate for these stored arguments; if it is active already, only the priority
        changes."""
        rule = self.find(name, None)
        if rule.name not in self._network.graph:
            self._insert(self._compiler.compile(rule))
        known = self._runtime.engine.results(rule.activations, arguments)
        sequence = known[0][1] if known else self._runtime.catalog.allocate(1)
        self._runtime.engine.set_row(rule.activations, (*arguments, priority, sequence))
        self._network.captures.note_rows(rule.activations, known, [(priority, sequence)])
        self._reactivated.activate(rule.name, arguments)
        active = self.active_rule(rule.name)
        if active is not None and active.times:
            self.composed.activated(active)

    def deactivate(self, name: str, arguments: tuple[Any, ...]) -> None:
        rule = self.find(name, None)
        if rule.name in self._network.graph:
            known = self._runtime.engine.results(rule.activations, arguments)
            self._network.captures.note_rows(rule.activations, known, [])
            if known:
                self._has_work = True
                self._reactivated.deactivate(rule.name, arguments)
        self._runtime.engine.clear(rule.activations, arguments)
        if rule.name in self._network.graph and self._runtime.engine.is_empty(rule.activations):
            self._forget_events(rule.name)
            self._network.graph.remove(rule.name)
            self._runtime.catalog.touch_rules()

    def remove(self, rule: Rule) -> None:
        """Delete a rule with its activations."""
        catalog = self._runtime.catalog
        if self._network.graph.noticed:
            self._runtime.reactions.before_schema_change(None)
        if rule.name in self._network.graph:
            self._forget_events(rule.name)
            self._network.graph.remove(rule.name)
        self.acting.forget(rule.name)
        self._runtime.engine.drop(rule.activations)
        self._network.graph.release_missing()
        catalog.remove_rule(rule.name)
        self._runtime.objects.forget()
        self.follow(catalog.epoch)

    def _forget_events(self, name: str) -> None:
        rule = self.active_rule(name)
        if rule is not None and (rule.is_composed or rule.times):
            self.composed.deactivated(name, len(rule.events))

    def follow(self, epoch: int) -> None:
        """Adding or removing a rule changes no view, except views about rules."""
        if self._network.graph.noticed:
            self._runtime.reactions.synchronise()
        else:
            self._epoch = epoch

    def firings(self) -> dict[str, int]:
        """The number of tuples each rule has acted on so far."""
        times: dict[int, int] = dict(self._runtime.engine.matching(FIRED, {}))
        rules = self._runtime.catalog.rules
        return {name: times[oid] for name, (oid, _) in rules.items() if oid in times}

    def before_remaking(self, function: Function) -> None:
        """A table is about to be rebuilt with other columns, which is no event for rules. Refuse if
        the open transaction changed rows that rules have not seen yet."""
        catalog, relation = self._runtime.catalog, function.relation
        node = self._network.graph.node(f"materialized {function.id}")
        below = set(node.part.stored) if node is not None else set()
        if relation is None or not self._network.captures.has_pending(below | {relation.id}):
            return
        names = {function.name, *(e.name for e in dependents_in_order(catalog, function.name))}
        rules = {rule for each in names for rule in catalog.rules_that_call(each)}
        watching = sorted(rule for rule in rules if rule in self._network.graph)
        if watching:
            raise IntegrityError(
                f"{function.name} gets other columns, but this transaction changed rows "
                f"that the rule {watching[0]} has not seen yet",
                code="transaction",
                hint="commit the changes first",
            )

    def find(self, name: str, span: Span | None) -> Rule:
        known = self._runtime.catalog.rules
        if name not in known:
            raise unknown_rule(name, known, span)
        oid, text = known[name]
        rule = self._read.get(name)
        if rule is None or (rule.oid, rule.text) != (oid, text):
            rule = self._read[name] = self._compiler.read(text, oid)
        return rule

    def compiled(self, name: str) -> CompiledRule:
        return self._compiler.compile(self.find(name, None))

    def check(self, name: str) -> None:
        """Raise if a rule, or its action, no longer compiles."""
        oid, text = self._runtime.catalog.rules[name]
        self._compiler.compile(self._compiler.read(text, oid)).build_action()

    # --- the network ---------------------------------------------------------------------------

    def _insert(self, compiled: CompiledRule) -> None:
        self._network.graph.insert(compiled, self)
        self._runtime.catalog.touch_rules()
        with suppress(HarkenError):  # what the action lacks, it tells when it acts
            compiled.keep_histories()
        self._note_couplings({compiled.rule.coupling})

    def watched(self) -> list[CompiledRule]:
        """The active rules."""
        views = self._network.graph.views_of(self)
        return [view for view in views if isinstance(view, CompiledRule)]

    def active_rule(self, name: str) -> CompiledRule | None:
        node = self._network.graph.node(name)
        view = node.view if node is not None else None
        return view if isinstance(view, CompiledRule) else None

    def synchronise(self) -> None:
        catalog = self._runtime.catalog
        if catalog.epoch == self._epoch and self._fits():
            return
        self._epoch = catalog.epoch
        active = self._active()
        for rule in self.watched():
            if rule.name not in active:
                self._network.graph.remove(rule.name)
        self._broken.clear()
        for name in active:
            self._refresh(name)
        couplings = {compiled.rule.coupling for compiled in self.watched()}
        self._runtime.immediate_rules = self._runtime.before_rules = False
        self._runtime.decoupled_rules = False
        self._note_couplings(couplings)

    def _note_couplings(self, couplings: set[str]) -> None:
        self._runtime.immediate_rules |= not couplings.isdisjoint((IMMEDIATE, BEFORE))
        self._runtime.before_rules |= BEFORE in couplings
        self._runtime.decoupled_rules |= DECOUPLED in couplings

    def _refresh(self, name: str) -> None:
        """Bring the node of an active rule up to date. A rule that cannot be compiled here, perhaps
        because a Python function is missing, must not prevent the database from being opened."""
        try:
            compiled = self.compiled(name)
        except HarkenError as error:
            self._broken[name] = error
            return
        node, graph = self._network.graph.node(name), self._network.graph
        if node is None or not node.keeps_plans_for(compiled):
            graph.insert(compiled, self)
            graph.redefined |= {name} & graph.replaced.keys()
        elif name not in graph.redefined:
            graph.replaced.pop(name, None)
        with suppress(HarkenError):
            compiled.keep_histories()

    def _active(self) -> list[str]:
        engine = self._runtime.engine
        return [
            name
            for name in self._runtime.catalog.rules
            if not engine.is_empty(self.find(name, None).activations)
        ]

    def _fits(self) -> bool:
        known = {rule.name for rule in self.watched()} | set(self._broken)
        return known == set(self._active())

    def before_schema_change(self, names: Collection[str] | None) -> None:
        """What conditions become true, or false, by a redefinition is a change as any other."""
        if names is None or not self._runtime.settings["redefinition_triggers"]:
            return
        for rule in self.watched():
            if not self._mentioned(rule).isdisjoint(names):
                with suppress(HarkenError):  # it had no rows
                    self._network.note_former_rows(rule.name)

    def note_redefined(self, view: WatchedView) -> None:
        self._network.graph.redefined |= {view.name} & self._network.graph.replaced.keys()

    def _mentioned(self, rule: CompiledRule) -> set[str]:
        """The names of all functions that a condition depends on."""
        return names_below(self._runtime.catalog, rule.dependencies.functions)

    def before_check(self) -> None:
        """Every active rule must be in the network; if not, raise an error that says why."""
        for name in list(self._broken):
            del self._broken[name]
            self._refresh(name)
        for name, error in self._broken.items():
            raise IntegrityError(
                f"the rule {name} is active but cannot be checked: {error.message}",
                code="in-use",
                hint="register what it needs with db.foreign, or delete the rule",
            ) from error

    # --- the check phase -----------------------------------------------------------------------

    def receive(self, change: ViewChange) -> None:
        assert isinstance(change.view, CompiledRule)
        self._has_work = True
        if change.view.is_composed:
            self.composed.receive(change, change.view)
            return
        rule = change.view.rule
        if change.view.events and change.strategy is Strategy.REDEFINED:
            change = replace(change, plus=[])
        keep_losses = self._runtime.immediate_rules and not rule.is_immediate
        self._conflicts.add(change, len(rule.parameters), keep_losses)

    def wants_minus(self, view: str) -> bool:
        """Losses of a condition matter if tuples of it wait, or if it may gain them back before the
        commit."""
        if self._runtime.immediate_rules or self._conflicts.waits(view):
            return True
        rule = self.active_rule(view)
        return rule is not None and rule.rule.patient

    def sums_events(self, view: WatchedView) -> bool:
        if isinstance(view, CompiledRule) and view.is_composed:
            return True
        if self._is_checking or not (self._runtime.immediate_rules or self._conflicts.events):
            return False
        return isinstance(view, CompiledRule) and not view.rule.is_immediate

    def begin_check(self) -> None:
        self._is_checking = True
        self._conflicts.settle_losses()
        for name, summed in self._conflicts.events.items():
            rule = self.active_rule(name)
            if rule is not None:
                holds = [] if rule.acts_on_gains else self._network.rows_now(name)
                self._conflicts.settle_events(rule, summed, holds)
        self._conflicts.events.clear()

    def end_check(self) -> None:
        self._is_checking = False

    def _reevaluate(self) -> None:
        """A rule that was deactivated and activated again acts on all that its condition holds for,
        as one that is activated for the first time (thesis, 7.4 and 8.4)."""
        for name, arguments in self._reactivated.take(self._is_due):
            rule = self.active_rule(name)
            assert rule is not None
            rows = self._network.rows_now(name)
            rows = [row for row in rows if row[: len(arguments)] == arguments]
            if rule.rule.patient:
                self.composed.memory.wait(name, rows)
            elif not rule.events:
                self._conflicts.put(name, len(arguments), rows)

    def _is_due(self, name: str) -> bool:
        """Whether a rule is checked now."""
        rule = self.active_rule(name)
        return rule is not None and (self._is_checking or rule.rule.is_immediate)

    def _settle_composed(self) -> None:
        """See which tuples the events of rules are about that are checked now."""
        for name in list(self.composed.held.events):
            rule = self.active_rule(name)
            if rule is None:
                self.composed.held.events.pop(name)
            elif self._is_due(name):
                inputs = len(rule.rule.parameters)
                self._conflicts.put(name, inputs, self.composed.settle(rule))

    def next_action(self, coupling: str) -> PendingAction | None:
        if self._reactivated.waiting:
            self._reevaluate()
        if self.composed.held.events:
            self._settle_composed()
        if self.acted_before:
            self._conflicts.remove(self.acted_before)
        chosen = self._choose(BEFORE) if coupling == IMMEDIATE else None
        chosen = chosen or self._choose(coupling)
        if chosen is None:
            return None
        return PendingAction(chosen.name, partial(self._act, chosen))

    def _act(self, activation: Activation) -> None:
        self.acting.act(activation, self._conflicts.take(activation.key))

    def _choose(self, *couplings: str) -> Activation | None:
        """The most urgent activation in the conflict set; deactivated ones are removed."""
        waiting = self._conflicts.waiting()
        if not waiting:
            return None
        triggered = []
        for key in waiting:
            activation = self._activation(key)
            if activation is None:
                self._conflicts.drop(key)
            elif activation.rule.rule.coupling in couplings and self._conflicts.gained(key):
                triggered.append(activation)
        return min(triggered, key=lambda a: (-a.priority, a.sequence), default=None)

    def _activation(self, key: Key) -> Activation | None:
        name, arguments = key
        rule = self.active_rule(name)
        if rule is None:
            return None
        rows = self._runtime.engine.results(rule.rule.activations, arguments)
        return Activation(rule, arguments, *rows[0]) if rows else None

    def snapshot(self) -> object:
        return (
            self._conflicts.snapshot(),
            self.composed.held.snapshot(),
            self._reactivated.snapshot(),
            len(self._recorded),
        )

    def restore(self, state: object) -> None:
        match state:
            case (ConflictState() as conflicts, ConflictState() as held, again, int(recorded)):
                self._conflicts.restore(conflicts)
                self._reactivated.restore(again)
                self.composed.held.restore(held)
                del self._recorded[recorded:]

    def forget(self) -> None:
        if not self._has_work:
            return
        self._has_work = False
        self._conflicts.clear()
        self.composed.held.clear()
        self._reactivated.clear()
        self._recorded.clear()

    # --- detached rules ------------------------------------------------------------------------

    def record(self) -> bool:
        """Detached rules act after the commit that triggers them. Their actions are recorded in the
        transaction."""
        found = False
        while (chosen := self._choose(*AFTER_TRANSACTION)) is not None:
            if len(self._recorded) >= self._check_phase.limit:
                raise self._check_phase.never_settles([name for _, name in self._recorded])
            if not self.detached.is_declared:
                self.detached.declare()
                self._runtime.reactions.synchronise()
            rows = self._conflicts.take(chosen.key)
            self._recorded.append((self.detached.record(chosen, rows), chosen.name))
            found = True
        return found

    def about_to_act(self) -> list[tuple[Activation, list[Row]]]:
        """What before-rules would act on, if the statement that was tried were executed."""
        self._check_phase.propagate()
        if self.composed.held.events:
            self._settle_composed()
        found = []
        while (chosen := self._choose(BEFORE)) is not None:
            found.append((chosen, self._conflicts.take(chosen.key)))
        return found

    def act_before(self, found: list[tuple[Activation, list[Row]]]) -> None:
        """They act before the statement, on objects that are there; they need not act after it."""
        for activation, rows in found:
            self.acting.act(activation, rows, later=True)
            self.acted_before.setdefault(activation.key, []).extend(rows)

    def before_rollback(self) -> list[tuple[Activation, list[Row]]]:
        """What decoupled rules are to act on, although the transaction is rolled back."""
        self._check_phase.propagate()
        self._is_checking = True
        try:
            self.begin_check()
            self.next_action(DECOUPLED)  # looks at events, and lets nobody act
            found = []
            while (chosen := self._choose(DECOUPLED)) is not None:
                found.append((chosen, self._conflicts.take(chosen.key)))
            return found
        finally:
            self._is_checking = False

    def record_decoupled(self, found: Sequence[tuple[Activation, list[Row]]]) -> None:
        """In a transaction of its own, after the rollback: their actions wait to be carried out."""
        for activation, rows in found:
            if activation.name in self._runtime.catalog.rules:
                number = self.detached.record(activation, rows)
                self._recorded.append((number, activation.name))

    def after_commit(self) -> None:
        if self._recorded:
            self.detached_runs.due += [number for number, _ in self._recorded]
            self._recorded.clear()

    def queue(self, numbers: Iterable[int] | None) -> int:
        """Schedule recorded actions again, all by default; returns how many."""
        return self.detached_runs.queue(numbers)

    def act_later(self, run: InOwnTransaction) -> Iterator[HarkenError]:
        """Each activation acts in a transaction of its own; if one fails, the others still act."""
        return self.detached_runs.act_later(run)

    def _as_defined_now(self, name: str) -> CompiledRule:
        return self.active_rule(name) or self.compiled(name)
