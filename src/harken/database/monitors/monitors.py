"""The monitors of a session: what they watch, and what each transaction did to it.

A commit propagates several times, once for each rule that acts; what a view gained and lost is
summed over all of them, and only what is left is a change. It is written down before the commit,
with a number that the file keeps, and handed out after it: what is rolled back was never there.

A transaction that defines a function again may change its views in a way that no Δ-set knows. Those
are compared as a whole, with their rows at the start of the transaction.

Law: for each commit, the rows of a view before it, with its change, are the rows after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace

from harken.calculus.states import in_old_state
from harken.database.monitors.changes import (
    Change,
    Row,
    StoredChange,
    Types,
    net_change,
    stored_rows,
)
from harken.database.monitors.outbox import Durable, Outbox
from harken.database.monitors.view import MonitoredView, compile_view
from harken.database.rules.check_phase import CheckPhase
from harken.database.rules.network import Network
from harken.database.rules.nodes import Planning
from harken.database.runtime import Runtime
from harken.database.system import META
from harken.engines.sqlite import events
from harken.errors import ForeignFault, HarkenError, IntegrityError, NameFault
from harken.ir.clauses import Program
from harken.ir.schema import Function

Listener = Callable[[Change], object]


@dataclass(slots=True, eq=False)
class Receiver:
    """Who gets the changes of a view: what a subscription is to the monitors."""

    view: str
    function: str
    listener: Listener | None = None
    durable: str | None = None
    waiting: list[tuple[int, Change]] = field(default_factory=list)
    """The changes not handed out yet; those of a durable monitor wait in the file."""
    handed_out: int = 0
    """The number of the last change that was."""
    closed: bool = False
    strategy: str = "auto"
    """How the change of the view is to be found."""

    @property
    def title(self) -> str:
        return f"the monitor of {self.function}"


class Monitors:
    def __init__(self, runtime: Runtime, network: Network, check_phase: CheckPhase) -> None:
        self._runtime = runtime
        self._network = network
        self._check_phase = check_phase
        self._planning = Planning(runtime.engine, runtime.catalog)
        self._receivers: list[Receiver] = []
        self._durables: dict[str, Durable] = {}
        self._broken: dict[str, HarkenError] = {}
        self._epoch = -1
        self._at_start: dict[str, tuple[Types, Counter[Row]]] = {}
        """The rows that views had when the transaction began, if it changes the schema."""
        self._redefined: set[str] = set()
        self._committing: tuple[int, dict[str, StoredChange]] | None = None
        self._has_news = False
        self._telling = False
        self.outbox = Outbox(runtime.engine.connection)

    # --- who watches what ------------------------------------------------------------------

    def durable(self, name: str) -> Durable | None:
        return self._durables.get(name)

    def attach(self, receiver: Receiver) -> None:
        self._receivers.append(receiver)
        self._follow()

    def detach(self, receiver: Receiver) -> None:
        receiver.closed = True
        if receiver in self._receivers:
            self._receivers.remove(receiver)
            self._follow()

    def close(self) -> None:
        """The database is closed, and all that watch it."""
        for receiver in self._receivers:
            receiver.closed = True
        self._receivers.clear()

    def compile(self, function_id: str) -> MonitoredView:
        catalog = self._runtime.catalog
        if not catalog.has_function(function_id):
            raise NameFault(f"the function {function_id} was deleted", code="unknown-function")
        view = compile_view(catalog.function(function_id), catalog)
        return replace(view, strategy=self._strategy_of(function_id))

    def _strategy_of(self, function_id: str) -> str:
        """The last one that a receiver wants."""
        wanted = [each.strategy for each in self._receivers if each.function == function_id]
        return next((each for each in reversed(wanted) if each != "auto"), "auto")

    def _follow(self) -> None:
        self.synchronise()
        if not self._runtime.engine.connection.in_transaction:
            self._network.release_idle()

    def _watched(self) -> dict[str, list[str]]:
        """For each watched function the titles of those who watch it."""
        found: dict[str, list[str]] = {}
        for durable in self._durables.values():
            found.setdefault(durable.function, []).append(durable.title)
        for receiver in self._receivers:
            if receiver.durable is None:
                found.setdefault(receiver.function, []).append(receiver.title)
        return found

    def _views(self) -> Iterator[MonitoredView]:
        for condition in self._network.conditions():
            if isinstance(condition, MonitoredView):
                yield condition

    def synchronise(self) -> None:
        """Let the network watch what the receivers and the file say, as the catalog means it."""
        self._durables = self.outbox.durables()
        watched = self._watched()
        known = {view.function for view in self._views()}
        same = known | self._broken.keys() == watched.keys() and all(
            view.strategy == self._strategy_of(view.function) for view in self._views()
        )
        if same and self._epoch == self._runtime.catalog.epoch:
            return
        self._epoch = self._runtime.catalog.epoch
        for function in known - watched.keys():
            self._network.remove(f"monitor {function}")
        self._broken.clear()
        for function in watched:
            self._refresh(function)

    def _refresh(self, function: str) -> None:
        """Bring a node up to date. A view that cannot be compiled here, for want of a Python
        function perhaps, must not keep the database from being opened."""
        node = self._network.node(f"monitor {function}")
        try:
            view = self.compile(function)
        except HarkenError as error:
            self._broken[function] = error
            if node is not None:
                self._network.remove(node.condition.name)
            return
        if node is None or node.is_other_way(view):
            self._network.insert(view)
        elif not node.is_for(view):
            self._redefined.add(function)
            self._network.insert(view)

    def check_receiver(self, receiver: Receiver) -> None:
        """Another process may have deleted the function."""
        error = self._broken.get(receiver.function)
        if error is not None:
            raise IntegrityError(
                f"{receiver.title} cannot go on: {error.message}",
                code="in-use",
                hint="close it, and monitor another function",
            ) from error

    def check_durables(self) -> None:
        """Before a commit: what is durable must not miss a change."""
        if not self._broken:
            return
        for function in list(self._broken):
            del self._broken[function]
            self._refresh(function)
        for durable in self._durables.values():
            error = self._broken.get(durable.function)
            if error is not None:
                raise IntegrityError(
                    f"{durable.title} cannot record the change: {error.message}",
                    code="in-use",
                    hint="register what it needs with db.foreign, or delete the monitor",
                ) from error

    # --- changes of the schema -------------------------------------------------------------

    def before_change(self, names: Collection[str] | None) -> None:
        """The schema is about to change: functions of these names, or anything."""
        for view in list(self._views()):
            concerned = names is None or not self._mentioned(view.function).isdisjoint(names)
            if concerned and view.function not in self._at_start:
                self._at_start[view.function] = (view.types, self._rows_at_start(view))

    def _mentioned(self, function_id: str) -> set[str]:
        """The names of all functions that its rows depend on, and its own."""
        catalog = self._runtime.catalog
        waiting = [function_id.partition("(")[0]]
        found = set(waiting)
        while waiting:
            for each in catalog.overloads(waiting.pop()):
                called = catalog.dependencies(each.id).functions - found
                found |= called
                waiting += called
        return found

    def _rows_at_start(self, view: MonitoredView) -> Counter[Row]:
        """Those before the last propagation, without what earlier ones found out."""
        node = self._network.node(view.name)
        assert node is not None
        part = node.part
        marked = events.marked(self._runtime.engine.connection) if part.stored else {}
        changed = marked.keys() & part.stored.keys()
        rows = self._count(in_old_state(part.program, changed) if changed else part.program)
        for change in self._check_phase.monitored:
            if change.condition.name == view.name:
                rows.subtract(change.plus)
                rows.update(change.minus)
        return +rows

    def _count(self, program: Program) -> Counter[Row]:
        return Counter(self._planning.compile(program).rows(()))

    def check(self) -> None:
        """After a change of the schema: every view can still be watched."""
        for function, titles in self._watched().items():
            try:
                self.compile(function)
            except HarkenError as error:
                raise IntegrityError(
                    f"this would break {titles[0]}: {error.message}",
                    code="in-use",
                    hint="close the monitor first",
                ) from error

    def users_of(self, function: Function) -> list[str]:
        """Who watches something that depends on the function."""
        return [
            title
            for watched, titles in self._watched().items()
            if watched == function.id or function.name in self._mentioned(watched)
            for title in titles
        ]

    # --- moments ---------------------------------------------------------------------------

    def before_commit(self) -> None:
        """Sum up what the transaction did to each view, and write it down."""
        changes = self._net_changes()
        self._check_phase.monitored.clear()
        self._committing = None
        if not changes:
            return
        number = self._next_transaction()
        for durable in self._durables.values():
            if durable.function in changes:
                self.outbox.write(durable, number, changes[durable.function])
        self._committing = (number, changes)

    def _net_changes(self) -> dict[str, StoredChange]:
        whole = self._redefined & self._at_start.keys()
        log = self._check_phase.monitored
        if not whole and not log:
            return {}
        weights: dict[str, Counter[Row]] = {}
        for change in log:
            weight = weights.setdefault(change.condition.name, Counter())
            weight.update(change.plus)
            weight.subtract(change.minus)
        found = {
            view.function: self._compared(view)
            if view.function in whole
            else net_change(view.types, weights.get(view.name, {}))
            for view in self._views()
            if view.function in whole or view.name in weights
        }
        return {function: change for function, change in found.items() if change}

    def _compared(self, view: MonitoredView) -> StoredChange:
        """The rows now against those at the start, which may have been of other types."""
        types, before = self._at_start[view.function]
        after = self._count(view.program)
        if types != view.types:
            return StoredChange(stored_rows(view.types, after), stored_rows(types, before))
        after.subtract(before)
        return net_change(types, after)

    def _next_transaction(self) -> int:
        return int(
            self._runtime.engine.connection.value(
                f"INSERT INTO {META} VALUES ('transaction', 1) "
                "ON CONFLICT (key) DO UPDATE SET value = value + 1 RETURNING value"
            )
        )

    def after_commit(self) -> None:
        """Let the receivers have what was committed."""
        if self._committing is None:
            return
        number, changes = self._committing
        self._committing = None
        self._has_news = True
        home = self._runtime.catalog.home
        for receiver in self._receivers:
            change = changes.get(receiver.function)
            if change is not None and receiver.durable is None:
                receiver.waiting.append((number, change.change(receiver.view, number, home)))

    def after_transaction(self) -> None:
        self._at_start.clear()
        self._redefined.clear()

    def waiting(self, receiver: Receiver) -> list[tuple[int, Change]]:
        """The changes that were not handed out yet, each with its number."""
        if receiver.durable is None:
            return receiver.waiting
        home = self._runtime.catalog.home
        return self.outbox.after(receiver.durable, receiver.handed_out, home)

    def hand_out(self, receiver: Receiver) -> list[Change]:
        waiting = self.waiting(receiver)
        if waiting:
            receiver.handed_out = waiting[-1][0]
        receiver.waiting = []
        return [change for _, change in waiting]

    def tell(self) -> list[HarkenError]:
        """Call the listeners. One that fails is told again of the same change after the next."""
        failures: list[HarkenError] = []
        if self._telling:
            return failures  # a listener that commits: the outer call goes on with that
        self._telling = True
        try:
            while self._has_news:
                self._has_news = False
                for receiver in list(self._receivers):
                    failures += self._tell(receiver)
        finally:
            self._telling = False
        return failures

    def _tell(self, receiver: Receiver) -> Iterator[HarkenError]:
        while receiver.listener is not None and not receiver.closed:
            waiting = self.waiting(receiver)
            if not waiting:
                return
            number, change = waiting[0]
            try:
                receiver.listener(change)
            except Exception as error:
                yield _failed(receiver, error)
                return
            receiver.handed_out = max(number, receiver.handed_out)
            if receiver.waiting[:1] == waiting[:1]:  # or the listener has asked for it as well
                del receiver.waiting[:1]


def _failed(receiver: Receiver, error: Exception) -> HarkenError:
    fault = ForeignFault(
        f"the transaction is committed, but the listener of {receiver.title} failed: "
        f"{type(error).__name__}: {error}",
        code="foreign",
        hint="the change is kept: `changes()` gives it, and the next commit tells of it again",
    )
    fault.__cause__ = error
    return fault
