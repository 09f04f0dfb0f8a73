"""The rules of a database: creating, activating and checking them.

A rule is an object with a name and a text; its activations are rows of a stored relation. The
network in memory is only a reading of both: whatever undoes a transaction, or changes the schema
under it, makes it be read again.
"""

from __future__ import annotations

from typing import Any

from harken.consumers.constraints.constraints import Constraints
from harken.consumers.monitors.monitors import Monitors
from harken.consumers.monitors.view import MonitoredView
from harken.consumers.rules.definition import (
    CompiledRule,
    Rule,
    compile_action,
    compile_rule,
    read_rule,
    rule_of,
)
from harken.consumers.rules.detached import DetachedActions, Recorded
from harken.database.runtime import Runtime
from harken.database.system import FIRED
from harken.errors import HarkenError, IntegrityError, NameFault, Span, ValueFault
from harken.ir.schema import Function
from harken.lang.amosql import syntax
from harken.maintenance.materialized_views import KeptViews
from harken.propagation.check_phase import Activation, CheckPhase
from harken.propagation.network import Network
from harken.statements.complaints import unknown_rule
from harken.statements.dependents import dependents_in_order


class Rules:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.network = Network(runtime.engine, runtime.catalog)
        self.check_phase = CheckPhase(runtime, self.network)
        self.detached = DetachedActions(runtime)
        self.monitors = Monitors(runtime, self.network, self.check_phase)
        self._kept_views = KeptViews(runtime, self.network)
        self._constraints = Constraints(runtime, self.network)
        self._read: dict[str, Rule] = {}
        self._broken: dict[str, HarkenError] = {}
        self._epoch = -1

    # --- statements ------------------------------------------------------------------------

    def create(self, node: syntax.CreateRule, text: str) -> None:
        catalog = self._runtime.catalog
        if node.name in catalog.rules:
            raise NameFault(
                f"there is already a rule {node.name}",
                code="exists",
                span=node.span,
                hint=f"delete it first: delete rule {node.name}",
            )
        rule = rule_of(node, text, 0, catalog)
        compiled = compile_rule(rule, self._runtime.engine, catalog, node)
        if rule.coupling == "detached":
            self.detached.declare()
        self._runtime.engine.create(rule.activations)
        oid = catalog.add_rule(rule.name, text, rule.parameters, compiled.dependencies)
        # Only now, because an action may name its own rule: to deactivate it, for instance.
        _, needed = compile_action(rule, node.action, self._runtime.engine, catalog)
        catalog.add_rule_dependencies(rule.name, oid, needed)
        self._follow(catalog.epoch)

    def delete(self, node: syntax.DeleteRule) -> None:
        rule = self.find(node.name, node.span)
        catalog = self._runtime.catalog
        names = (f"rule {rule.name}", f"{rule.name}_activations")
        users = {function.id for name in names for function in catalog.dependents(name)}
        users |= {f"rule {each}" for name in names for each in catalog.rules_that_call(name)}
        users.discard(f"rule {rule.name}")
        if users:
            raise IntegrityError(
                f"the rule {rule.name} cannot be deleted: it is used by {', '.join(sorted(users))}",
                code="in-use",
                span=node.span,
                hint="delete those first",
            )
        if self.network.watching_rules:
            self.monitors.before_change(None)
        if rule.name in self.network:
            self.network.remove(rule.name)
        self._runtime.engine.drop(rule.activations)
        self.network.release_missing()
        catalog.remove_rule(rule.name)
        self._runtime.objects.forget()
        self._follow(catalog.epoch)

    def _follow(self, epoch: int) -> None:
        """A rule more or less changes no condition, unless one is about rules themselves."""
        if self.network.watching_rules:
            self.synchronise()
        else:
            self._epoch = epoch

    def firings(self) -> dict[str, int]:
        """For how many tuples each rule has acted so far."""
        times: dict[int, int] = dict(self._runtime.engine.matching(FIRED, {}))
        rules = self._runtime.catalog.rules
        return {name: times[oid] for name, (oid, _) in rules.items() if oid in times}

    def activate(self, name: str, arguments: tuple[Any, ...], priority: int) -> None:
        """Activate for these arguments (stored values); again changes only the priority."""
        rule = self.find(name, None)
        if rule.name not in self.network:
            self._insert(self._compile(rule))
        known = self._runtime.engine.results(rule.activations, arguments)
        sequence = known[0][1] if known else self._runtime.catalog.allocate(1)
        self._runtime.engine.set_row(rule.activations, (*arguments, priority, sequence))
        self.network.note_activation(name, known, [(priority, sequence)])

    def deactivate(self, name: str, arguments: tuple[Any, ...]) -> None:
        rule = self.find(name, None)
        if rule.name in self.network:
            known = self._runtime.engine.results(rule.activations, arguments)
            self.network.note_activation(name, known, [])
        self._runtime.engine.clear(rule.activations, arguments)
        if rule.name in self.network and self._runtime.engine.is_empty(rule.activations):
            self.network.remove(rule.name)
            self._runtime.catalog.touch_rules()

    def before_remaking(self, function: Function) -> None:
        """A table is about to be made again with other columns, which is no event to rules. Refuse
        it if the open transaction has changed rows that rules above it have not been told of."""
        catalog, relation = self._runtime.catalog, function.relation
        node = self.network.node(f"materialized {function.id}")
        below = set(node.part.stored) if node is not None else set()
        if relation is None or not self.network.has_pending(below | {relation.id}):
            return
        names = {function.name, *(e.name for e in dependents_in_order(catalog, function.name))}
        rules = {rule for each in names for rule in catalog.rules_that_call(each)}
        watching = sorted(rule for rule in rules if rule in self.network)
        if watching:
            raise IntegrityError(
                f"{function.name} gets other columns, and this transaction has changed rows that "
                f"the rule {watching[0]} is still to be told of",
                code="transaction",
                hint="commit the changes first",
            )

    def reads(self, function: Function) -> bool:
        """Does anything that is watched depend on a foreign function?"""
        return function.relation is not None and bool(self.network.reading(function.relation))

    def foreign_changed(self, function: Function) -> None:
        """Other Python is behind a foreign function: nothing computed by the old one is right. To
        rules that is no event."""
        if function.relation is None:
            return
        conditions = self.network.reading(function.relation)
        self.network.rebuild(conditions)
        for each in conditions:
            if isinstance(each, MonitoredView):
                self.monitors.note_redefined(each)
            elif not isinstance(each, CompiledRule):
                self.network.redefined.add(each.name)

    def find(self, name: str, span: Span | None) -> Rule:
        known = self._runtime.catalog.rules
        if name not in known:
            raise unknown_rule(name, known, span)
        oid, text = known[name]
        rule = self._read.get(name)
        if rule is None or (rule.oid, rule.text) != (oid, text):
            rule = self._read[name] = read_rule(text, oid, self._runtime.catalog)
        return rule

    # --- the network -----------------------------------------------------------------------

    def _insert(self, compiled: CompiledRule) -> None:
        self.network.insert(compiled)
        self._runtime.catalog.touch_rules()
        self._runtime.immediate_rules |= compiled.rule.coupling == "immediate"

    def _compile(self, rule: Rule) -> CompiledRule:
        return compile_rule(rule, self._runtime.engine, self._runtime.catalog)

    def synchronise(self) -> None:
        """Let the network be what the catalog, the activations and the monitors say; Δ-sets
        stay."""
        catalog = self._runtime.catalog
        self.network.release_missing()
        self.monitors.synchronise()
        self._kept_views.synchronise()
        self._constraints.synchronise()
        if catalog.epoch == self._epoch and self._fits():
            return
        self._epoch = catalog.epoch
        active = self._active()
        for name in [rule.name for rule in self.network.rules()]:
            if name not in active:
                self.network.remove(name)
        self._broken.clear()
        for name in active:
            self._refresh(name)
        self._notice_coupling()

    def fill(self, view: Function) -> None:
        """Give a materialized view that is new the rows that its query has now."""
        self._kept_views.fill(view)

    def refresh(self, view: Function) -> None:
        """Have a materialized view computed again when the transaction ends."""
        self._kept_views.refresh(view)

    def _refresh(self, name: str) -> None:
        """Bring the node of an active rule up to date. A rule that cannot be compiled here, for
        want of a Python function perhaps, must not keep the database from being opened."""
        try:
            compiled = self._compile(self.find(name, None))
        except HarkenError as error:
            self._broken[name] = error
            return
        node = self.network.node(name)
        if node is None or not node.is_for(compiled):
            self.network.insert(compiled)

    def synchronise_broken(self) -> None:
        """Before a check, every active rule must be there; say which one is not, and why."""
        for name in list(self._broken):
            del self._broken[name]
            self._refresh(name)
        for name, error in self._broken.items():
            raise IntegrityError(
                f"the rule {name} is active but cannot be checked: {error.message}",
                code="in-use",
                hint="register what it needs with db.foreign, or delete the rule",
            ) from error

    def _active(self) -> list[str]:
        engine = self._runtime.engine
        return [
            name
            for name in self._runtime.catalog.rules
            if not engine.is_empty(self.find(name, None).activations)
        ]

    def _fits(self) -> bool:
        known = {rule.name for rule in self.network.rules()} | set(self._broken)
        return known == set(self._active())

    def _notice_coupling(self) -> None:
        couplings = {compiled.rule.coupling for compiled in self.network.rules()}
        self._runtime.immediate_rules = "immediate" in couplings

    # --- moments ---------------------------------------------------------------------------

    def after_statement(self) -> None:
        if self._runtime.immediate_rules:
            self.check_phase.run("immediate")

    def check(self, coupling: str) -> None:
        """The check phase for the rules of a coupling."""
        if self._broken:
            self.synchronise_broken()
        self.monitors.check_durables()
        if not self.network.is_empty:
            self.check_phase.run(coupling)

    def after_undo(self) -> None:
        """Triggers and Δ-sets were undone with the rest: see that they fit what is left."""
        if not self.network.is_empty or self._runtime.catalog.rules:
            self.monitors.restore()
            self.synchronise()
            self.network.capture_again()

    def after_transaction(self) -> None:
        self.monitors.after_transaction()
        self.network.release_idle()

    def act_on(self, recorded: Recorded) -> None:
        """Carry out a recorded action of a detached rule, as the rule is defined now."""
        rule = self.network.rule(recorded.rule) or self.compiled(recorded.rule)
        columns = (*rule.rule.parameters, *rule.rule.variables)
        if tuple(column.type for column in columns) != recorded.rows.types:
            raise ValueFault(
                f"the rule {recorded.rule} has other variables now than when it was triggered",
                code="bad-value",
                hint="define it as it was, or discard the action",
            )
        activation = Activation(rule, recorded.arguments, 0, 0)
        self.check_phase.act(activation, recorded.rows.rows)

    def compiled(self, name: str) -> CompiledRule:
        return self._compile(self.find(name, None))
