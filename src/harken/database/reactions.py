"""Everything that reacts to changes in a session: the network, the check phase, and the consumers.

Consumers register here, and the transaction notifies all of them in the order of registration.
Nothing here knows what a consumer is for.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any

from harken.calculus.clock import is_clock
from harken.database.evaluation import decode_rows
from harken.database.runtime import Runtime
from harken.database.system import ACTIVATED, is_activations, is_parameters
from harken.errors import HarkenError
from harken.ir.past_relations import STATEMENT
from harken.ir.relations import Relation, Role
from harken.ir.schema import Function
from harken.maintenance.watched import WatchedView
from harken.propagation.check_phase import CheckPhase, CheckState
from harken.propagation.consumer import DEFERRED, IMMEDIATE, Consumer, InOwnTransaction
from harken.propagation.graph import SpecialRelations
from harken.propagation.network import Network
from harken.propagation.trace import Trace


def _is_fixed(relation: Relation) -> bool:
    """Whether a relation stays as it is while a transaction runs."""
    return is_parameters(relation) or relation.role is Role.BEFORE


class Reactions:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        special = SpecialRelations(self._needs_no_triggers, _is_fixed, frozenset({ACTIVATED.id}))
        self.network = Network(
            runtime.engine, runtime.catalog, special, lambda: int(runtime.settings["kept_bytes"])
        )
        self.network.compiled.is_on = lambda: bool(runtime.settings["compiled_waves"])
        self.trace = Trace(lambda rows, types: runtime.show_rows(decode_rows(rows, types)))
        self.check_phase = CheckPhase(self.network, self.trace)
        self._overriding = self.check_phase.consumers.overriding
        self._read_dropped: set[str] = set()
        """The views that read what was dropped while definitions change together."""

    def _needs_no_triggers(self, relation: Relation) -> bool:
        """Rules without parameters need no triggers: there may be ten thousand of them. Nor do
        tables that only the network writes, except where rows refer to objects, because SQLite
        deletes those."""
        if is_clock(relation):
            return True
        if is_activations(relation):
            return not relation.inputs
        if relation.role is Role.MEMORY:
            return True
        catalog = self._runtime.catalog
        return (
            catalog.has_function(relation.id)
            and catalog.function(relation.id).materialized
            and not any(column.type.surrogate for column in relation.columns)
        )

    def register(self, consumer: Consumer) -> None:
        self.check_phase.consumers.register(consumer)

    # --- the schema --------------------------------------------------------------------------

    def synchronise(self) -> None:
        """Bring the network in line with the catalog and the consumers; Δ-sets stay. While
        definitions change together some do not compile: the network follows at the end."""
        if self._runtime.redefined is not None:
            return
        self.network.graph.release_missing()
        self._runtime.engine.histories.follow()
        for consumer in self._overriding["synchronise"]:
            consumer.synchronise()
        self.network.graph.release_remade(self._is_current)
        self.network.clock.follow()

    def _is_current(self, relation: Relation) -> bool:
        catalog = self._runtime.catalog
        if not catalog.has_function(relation.id):
            return True  # not a function: `release_missing` is about those
        return catalog.function(relation.id).relation == relation

    def refresh(self) -> None:
        """Another session committed, without changing the schema."""
        for consumer in self._overriding["refresh"]:
            consumer.refresh()
        self.network.clock.follow()

    def before_schema_change(self, names: Collection[str] | None) -> None:
        for consumer in self._overriding["before_schema_change"]:
            consumer.before_schema_change(names)

    def reads(self, function: Function) -> bool:
        """Whether anything watched depends on a foreign function."""
        return function.relation is not None and bool(self.network.graph.reading(function.relation))

    def foreign_changed(self, function: Function) -> None:
        """A foreign function has a new implementation, so nothing computed with the old one is
        valid. For rules this is not an event."""
        if function.relation is not None:
            self._compare_again(self.network.graph.reading(function.relation))

    def note_dropped(self, function: Function) -> None:
        """A table goes, while definitions change together, and no Δ-set tells of its rows. Another
        of its name may come: whatever reads that one is compared with the rows it has then."""
        if function.relation is not None:
            self._read_dropped |= {e.name for e in self.network.graph.reading(function.relation)}

    def after_redefinition(self) -> None:
        """Definitions have changed together, and compile."""
        self.synchronise()
        names, self._read_dropped = self._read_dropped, set()
        nodes = [self.network.graph.node(name) for name in sorted(names)]
        self._compare_again([each.view for each in nodes if each is not None])

    def _compare_again(self, views: Sequence[WatchedView]) -> None:
        self.network.graph.rebuild(views)
        for view in views:
            consumer = self.network.graph.consumer_of(view.name)
            if consumer is None:
                self.network.graph.redefined.add(view.name)
            else:
                consumer.note_redefined(view)

    # --- the transaction ---------------------------------------------------------------------

    def after_statement(self) -> None:
        if self._runtime.immediate_rules and self._runtime.redefined is None:
            self.check_phase.run(IMMEDIATE)
        self._runtime.engine.histories.forget(STATEMENT)

    def check(self) -> None:
        """The check phase before a commit. Consumers may write rows in it, which may be watched in
        turn."""
        self._check()
        while self.check_phase.has_received and self._record():
            self._check()

    def check_now(self) -> None:
        """The same in the middle of a transaction: rules act on what has become true so far, since
        it began or since the last check. What is done after a commit is still done after it."""
        self._check()

    def _record(self) -> bool:
        recorded = [consumer.record() for consumer in self._overriding["record"]]
        return any(recorded)

    def _check(self) -> None:
        for consumer in self._overriding["before_check"]:
            consumer.before_check()
        if self.network.graph.nodes:
            self.check_phase.run(DEFERRED)

    def before_commit(self) -> None:
        for consumer in self._overriding["before_commit"]:
            consumer.before_commit()
        self.network.clock.before_commit()
        self.network.chooser.store.write()
        self._runtime.engine.histories.forget()

    def after_commit(self) -> None:
        for consumer in self._overriding["after_commit"]:
            consumer.after_commit()
        self.network.clock.after_commit()
        self.after_transaction()

    def act_later(self, run: InOwnTransaction) -> Iterator[HarkenError]:
        for consumer in self._overriding["act_later"]:
            yield from consumer.act_later(run)

    def tell(self) -> list[HarkenError]:
        consumers = self._overriding["tell"]
        return [error for consumer in consumers for error in consumer.tell()]

    def before_rollback(self) -> list[Any]:
        """What is to be done although the open transaction will be rolled back. After an interrupt
        nobody looks, and what fails is not triggered."""
        error = sys.exception()
        is_open = self._runtime.engine.connection.in_transaction
        if not is_open or not (error is None or isinstance(error, Exception)):
            return []
        with suppress(HarkenError):
            consumers = self._overriding["before_rollback"]
            return [each for consumer in consumers for each in consumer.before_rollback()]
        return []

    def snapshot(self) -> CheckState:
        return self.check_phase.snapshot()

    def restore(self, state: CheckState) -> None:
        self.check_phase.restore(state)

    def forget(self) -> None:
        self.check_phase.forget()

    def clear_network(self) -> None:
        """Discard the whole network: `synchronise` rebuilds it once the catalog was read."""
        self.network.graph.clear()
        for consumer in self._overriding["after_clearing"]:
            consumer.after_clearing()

    def restore_tables(self) -> None:
        """After a rollback, consumers restore their tables before anyone looks at the network."""
        self.network.clock.restore()
        for consumer in self._overriding["after_undo"]:
            consumer.after_undo()

    def after_undo(self) -> None:
        """Triggers and Δ-sets were rolled back too: make them fit what remains."""
        self._runtime.engine.histories.follow()
        if not self.network.graph.is_empty or self._runtime.catalog.rules:
            self.synchronise()
            self.network.graph.capture_again()

    def after_transaction(self) -> None:
        for consumer in self._overriding["after_transaction"]:
            consumer.after_transaction()
        self.network.graph.release_idle()
        self.network.compiled.settle()
