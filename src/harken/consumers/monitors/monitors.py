"""The monitors of a session: what they watch, and how each transaction changed it.

A commit propagates several times, once for each rule that acts. The changes of a view are summed
over all of them, and only the net result is a change. It is recorded before the commit, with a
number from a counter in the file, and delivered after it, so a transaction that is rolled back is
never seen.

Views restricted by conditions of one shape share one condition of the network (`places`), so the
cost of a change does not depend on how many subscriptions it does not concern.

A transaction that redefines a function may change its views in a way that no Δ-set shows. Those
views are compared with their rows at the start of the transaction.

Law: for each commit, the rows of a view before it plus its change are the rows after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from harken.consumers.monitors.audience import Receiver
from harken.consumers.monitors.delivery import Delivery
from harken.consumers.monitors.log import Log, Logs
from harken.consumers.monitors.outbox import Durable, Outbox
from harken.consumers.monitors.places import Places
from harken.consumers.monitors.restriction import Conditions
from harken.consumers.monitors.row_shapes import RowShapes
from harken.consumers.monitors.view import MonitoredView, Selection, Views, Watched
from harken.consumers.monitors.view_rows import ViewRows
from harken.database.changes import StoredChange, Types, net_change, stored_rows
from harken.database.runtime import Runtime, Watcher
from harken.errors import HarkenError, IntegrityError
from harken.ir.schema import Function
from harken.maintenance.watched import WatchedView
from harken.propagation.check_phase import CheckPhase
from harken.propagation.consumer import Consumer
from harken.propagation.network import Network
from harken.propagation.wave import ViewChange
from harken.values.rows import Row


class Monitors(Consumer):
    def __init__(
        self,
        runtime: Runtime,
        network: Network,
        check_phase: CheckPhase,
        conditions: Conditions,
    ) -> None:
        self._runtime = runtime
        self._network = network
        self._check_phase = check_phase
        self._received: list[ViewChange] = []
        """The changes of views in the open transaction, one wave after another."""
        self._moments = network.moments
        self.conditions = conditions
        self._selections = Views(runtime.catalog, conditions)
        self._places = Places(runtime.engine)
        self._attached = 0
        self._durables: dict[str, Durable] = {}
        self._durables_of: dict[Watched, list[Durable]] = {}
        self._logs: dict[Watched, Log] = {}
        self._broken: dict[Watched, HarkenError] = {}
        self._epoch = -1
        self._version = 0
        """The file counts changes of what is watched; the count that this session knows."""
        self._at_start: dict[Watched, tuple[Types, Counter[Row] | None]] = {}
        """The rows that views had when the transaction began, if it changes the schema; None if
        they could not be computed."""
        self._redefined: set[Watched] = set()
        self._committing: tuple[int, dict[Watched, StoredChange]] | None = None
        self._log_ended = False
        self.outbox = Outbox(runtime.engine.connection, runtime.settings)
        self.logs = Logs(runtime.engine.connection)
        self._rows = ViewRows(runtime, network)
        self.delivery = Delivery(
            runtime, self.outbox, self.logs, RowShapes(runtime.catalog, conditions), self.rows
        )
        self._audiences = self.delivery.audiences

    # --- registration ----------------------------------------------------------------------

    def durable(self, name: str) -> Durable | None:
        return self._durables.get(name)

    def outboxes_of(self, function: Function) -> Iterator[str]:
        """Reports on the outboxes of a function's durable monitors."""
        for status in self.outbox.status() if self._durables else ():
            durable = self._durables.get(status.name)
            if durable is not None and durable.function == function.id:
                yield str(status)

    def attach(self, receiver: Receiver) -> None:
        self._attached += 1
        receiver.number = self._attached
        self.delivery.join(receiver)
        try:
            self._follow(receiver.watched)
        except BaseException:
            self.detach(receiver)
            raise

    def detach(self, receiver: Receiver) -> None:
        receiver.closed = True
        if self.delivery.leave(receiver):
            self._follow(receiver.watched)

    def close(self) -> None:
        self.delivery.close()

    def rows(self, watched: Watched) -> list[Row]:
        """All present rows of a view, as its next change starts from them."""
        return self._rows.shown(self.select(watched))

    def select(self, watched: Watched) -> Selection:
        """Compile a watched view; an error explains why it cannot be watched."""
        return self._selections.select(watched, self._strategy_of(watched))

    def warnings(self, watched: Watched) -> tuple[str, ...]:
        """The changes that its clients will not see; empty if it cannot be compiled here."""
        try:
            return self.select(watched).view.warnings
        except HarkenError:
            return ()

    def is_shared(self, view: WatchedView) -> bool:
        assert isinstance(view, MonitoredView)
        return any(
            each in self._durables_of or each in self._logs for each in self._places.at(view)
        )

    def _strategy_of(self, watched: Watched) -> str:
        audience = self._audiences.get(watched)
        return audience.strategy if audience is not None else "auto"

    def _follow(self, watched: Watched) -> None:
        """A receiver was added or removed."""
        if self._epoch != self._runtime.catalog.epoch:
            self.synchronise()
        elif not self._is_wanted(watched):
            self._broken.pop(watched, None)
            self._leave(watched)
        elif not self._is_as_wanted(watched):
            self._broken.pop(watched, None)
            self._refresh(watched)
        if not self._runtime.engine.connection.in_transaction:
            self._network.graph.release_idle()

    def _is_wanted(self, watched: Watched) -> bool:
        audience = self._audiences.get(watched)
        return (
            watched in self._logs
            or watched in self._durables_of
            or (audience is not None and any(r.durable is None for r in audience.receivers))
        )

    def _is_as_wanted(self, watched: Watched) -> bool:
        view = self._places.view(watched)
        return view is not None and view.strategy == self._strategy_of(watched)

    def _watched(self) -> dict[Watched, list[Watcher]]:
        """For each watched view, those who would miss it; logs do not count."""
        found: dict[Watched, list[Watcher]] = {}
        for durable in self._durables.values():
            found.setdefault(durable.watched, []).append(durable)
        for watched, audience in self._audiences.items():
            readers = [each for each in audience.receivers if each.durable is None]
            if readers:
                staying = [each for each in readers if not each.may_be_dropped]
                found.setdefault(watched, []).extend(staying[:1])
        for watched in self._logs:
            found.setdefault(watched, [])
        return found

    def _views(self) -> Iterator[MonitoredView]:
        for view in self._network.graph.views_of(self):
            if isinstance(view, MonitoredView):
                yield view

    def _views_named(self, names: Iterable[str]) -> list[MonitoredView]:
        """The watched views with these names; no others are examined."""
        nodes = map(self._network.graph.node, dict.fromkeys(names))
        views = [node.view for node in nodes if node is not None]
        return [view for view in views if isinstance(view, MonitoredView)]

    def refresh(self) -> None:
        if self.logs.version() != self._version:
            self.synchronise()

    # --- the open transaction --------------------------------------------------------------

    def receive(self, change: ViewChange) -> None:
        if change.plus or change.minus or change.fresh:
            self._received.append(change)

    def snapshot(self) -> object:
        return len(self._received)

    def restore(self, state: object) -> None:
        assert isinstance(state, int)
        del self._received[state:]

    def forget(self) -> None:
        self._received.clear()

    # --- what the file says is watched -----------------------------------------------------

    def touch(self) -> None:
        """In a transaction: make other sessions re-read what is watched."""
        self._version = self.logs.next_version()

    def note_log(self, watched: Watched) -> None:
        """A log was created here, or reconfigured."""
        log = self.logs.find(watched)
        if log is not None:
            self._logs[watched] = log
            self._moments.shared.add(watched.node)
            self._follow(watched)

    def synchronise(self) -> None:
        """Make the network watch what the receivers and the file ask for, compiled with the present
        catalog."""
        self._version = self.logs.version()
        self._durables = self.outbox.durables()
        self._durables_of = {}
        for durable in self._durables.values():
            self._durables_of.setdefault(durable.watched, []).append(durable)
        self._logs = self.logs.all()
        lasting = {*(each.watched for each in self._durables.values()), *self._logs}
        self._moments.shared = {each.node for each in lasting}
        watched = self._watched()
        same = self._places.watched() | self._broken.keys() == watched.keys() and all(
            map(self._is_as_wanted, self._places.watched())
        )
        if same and self._epoch == self._runtime.catalog.epoch:
            return
        self._epoch = self._runtime.catalog.epoch
        for each in self._places.watched() - watched.keys():
            self._leave(each)
        self._broken.clear()
        for each in watched:
            self._refresh(each)

    def _refresh(self, watched: Watched) -> None:
        """Bring the condition of a view up to date. A view that cannot be compiled here, perhaps
        because a Python function is missing, must not prevent the database from being opened."""
        try:
            selection = self.select(watched)
        except HarkenError as error:
            self._broken[watched] = error
            self._leave(watched)
            return
        view, before = selection.view, self._places.view(watched)
        node = self._network.graph.node(view.name)
        is_new = node is None or node.has_other_strategy(view)
        if before is not None and before.name != view.name:
            self._leave(watched)  # the same text now has another meaning
            before = None
        if watched in self._at_start and (is_new or before is None):
            self._redefined.add(watched)  # perhaps dropped and recreated by this transaction
        if is_new:
            self._insert(view)
        elif node is not None and not node.keeps_plans_for(view):
            self._redefined.update(self._places.at(view))
            self._places.open(view)
            self._network.graph.insert(view, self)
            if view.depends_on_time and self._runtime.engine.connection.in_transaction:
                self._moments.note(view.name)  # all its present rows are compared
        self._places.join(watched, selection)

    def _insert(self, view: MonitoredView) -> None:
        with self._runtime.engine.connection.watch.shielded():
            self._places.open(view)
            self._network.graph.insert(view, self)
        made = self._network.graph.node(view.name)
        try:
            if made is not None and made.counted is not None:
                self._network.kept.build_kept(made)
            if view.depends_on_time:
                self._moments.begin(view.name)
        except BaseException:
            if not self._places.at(view):
                self._drop(view)
            raise

    def _leave(self, watched: Watched) -> None:
        """Stop watching; a view that nobody watches leaves the network."""
        with self._runtime.engine.connection.watch.shielded():
            view = self._places.leave(watched) if watched in self._places else None
            if view is not None:
                self._drop(view)

    def _drop(self, view: MonitoredView) -> None:
        self._network.graph.remove(view.name)
        self._places.close(view)
        if view.depends_on_time:
            self._moments.end(view.name)

    def after_clearing(self) -> None:
        self._places.clear()
        self._broken.clear()
        self._epoch = -1

    def after_undo(self) -> None:
        self._places.restore()

    def check_receiver(self, receiver: Receiver) -> None:
        """Another process may have deleted the function."""
        error = self._broken.get(receiver.watched)
        if error is not None:
            raise IntegrityError(
                f"{receiver.title} cannot continue: {error.message}",
                code="in-use",
                hint="close it, and monitor something else",
            ) from error

    def before_check(self) -> None:
        """A durable monitor must not miss a change. A log that would miss one is deleted, and its
        clients start over."""
        if not self._broken:
            return
        for watched in list(self._broken):
            del self._broken[watched]
            self._refresh(watched)
        for durable in self._durables.values():
            error = self._broken.get(durable.watched)
            if error is not None:
                raise IntegrityError(
                    f"{durable.title} cannot record the change: {error.message}",
                    code="in-use",
                    hint=(
                        f"register what it needs with db.foreign, or delete it: {durable.ending}"
                    ),
                ) from error
        for watched in self._broken:
            if watched in self._logs:
                self._end(self._logs[watched])

    def _end(self, log: Log) -> None:
        self.logs.remove(log)
        self.touch()
        self._log_ended = True

    # --- changes of the schema -------------------------------------------------------------

    def before_schema_change(self, names: Collection[str] | None) -> None:
        for view in list(self._views()):
            here = self._places.at(view)
            concerned = names is None or not self._mentioned(here[0]).isdisjoint(names)
            if concerned and any(each not in self._at_start for each in here):
                rows = self._rows.at_start(view, self._received, self._check_phase.failing)
                split = {} if rows is None else dict(self._places.split(view, rows))
                for each in here:
                    before = None if rows is None else split.get(each, Counter())
                    self._at_start.setdefault(each, (view.types, before))

    def note_redefined(self, view: WatchedView) -> None:
        assert isinstance(view, MonitoredView)
        self._redefined.update(self._places.at(view))

    def _mentioned(self, watched: Watched) -> set[str]:
        """The names of all functions that its rows depend on, including its own."""
        catalog, view = self._runtime.catalog, self._places.view(watched)
        waiting = [catalog.function(watched.function).name]
        if view is not None:
            waiting += view.mentions
        found = set(waiting)
        while waiting:
            for each in catalog.overloads(waiting.pop()):
                called = catalog.dependencies(each.id).functions - found
                found |= called
                waiting += called
        return found

    def share_moment(self, watched: Watched) -> None:
        """Other sessions are going to evaluate the view as well."""
        if self.select(watched).view.depends_on_time:
            self._moments.share(watched.node)

    def check(self) -> None:
        """After a change of the schema: check that every view can still be watched."""
        for watched, watchers in self._watched().items():
            if not watchers:
                continue
            try:
                self.select(watched)
            except HarkenError as error:
                raise IntegrityError(
                    f"this would break {watchers[0].title}: {error.message}",
                    code="in-use",
                    hint=f"first {watchers[0].ending}",
                ) from error

    def users_of(self, function: Function) -> list[Watcher]:
        """The watchers of anything that depends on the function."""
        return [
            watcher
            for watched, watchers in self._watched().items()
            if watchers
            and (watched.function == function.id or function.name in self._mentioned(watched))
            for watcher in watchers
        ]

    # --- commit ----------------------------------------------------------------------------

    def before_commit(self) -> None:
        """Sum up how the transaction changed each view, and record it."""
        changes = self._net_changes()
        self._received.clear()
        self._committing = None
        if not changes:
            return
        number = self.logs.next_position()
        for watched in changes.keys() & self._durables_of.keys():
            for durable in self._durables_of[watched]:
                self.outbox.write(durable, number, changes[watched])
        for watched in changes.keys() & self._logs.keys():
            self._record(self._logs[watched], number, changes[watched])
        self._committing = (number, changes)

    def _record(self, log: Log, number: int, change: StoredChange) -> None:
        if log.watched not in self._audiences and self._is_expired(log):
            self._end(log)
        elif log.watched in self._redefined or change.fresh:
            self.logs.restart(log, number)
        else:
            self.logs.write(log, number, change)

    def _is_expired(self, log: Log) -> bool:
        """Others may have read it since this session looked."""
        if not log.is_expired(self.logs.now):
            return False
        log = self._logs[log.watched] = self.logs.find(log.watched) or log
        return log.is_expired(self.logs.now)

    def _net_changes(self) -> dict[Watched, StoredChange]:
        whole = self._redefined & self._at_start.keys()
        log = self._received
        if not whole and not log:
            return {}
        weights: dict[str, Counter[Row]] = {}
        fresh = set[str]()
        for change in log:
            weight = weights.get(change.view.name)
            if weight is None:
                weight = weights[change.view.name] = Counter()
            if change.fresh:
                weight.clear()
                fresh.add(change.view.name)
            for row in change.plus:  # one row mostly: quicker than `update` and `subtract`
                weight[row] = weight.get(row, 0) + 1
            for row in change.minus:
                weight[row] = weight.get(row, 0) - 1
        now = self.logs.now
        found: dict[Watched, StoredChange] = {}
        for view in self._views_named(weights):
            is_fresh = view.name in fresh
            for watched, weight in self._places.concerned(view, weights[view.name], is_fresh):
                if watched not in whole:
                    found[watched] = net_change(view.types, weight, is_fresh, now)
        for watched in whole & self._places.watched():
            found[watched] = self._compared(watched)
        return {watched: change for watched, change in found.items() if change}

    def _compared(self, watched: Watched) -> StoredChange:
        """The difference between the present rows and those at the start, which may have had other
        types."""
        types, before = self._at_start[watched]
        selection = self.select(watched)
        rows = self._rows.read(selection)
        after = Counter(rows)
        now = selection.view.types
        if before is None:
            return net_change(now, after, fresh=True, at=self.logs.now)
        if types != now:
            lost = stored_rows(types, list(before.elements()))
            return StoredChange(stored_rows(now, rows), lost, at=self.logs.now)
        after.subtract(before)
        return net_change(types, after, at=self.logs.now)

    def after_commit(self) -> None:
        if self._committing is not None:
            self.delivery.announce(*self._committing)
            self._committing = None

    def tell(self) -> list[HarkenError]:
        return self.delivery.tell()

    def after_transaction(self) -> None:
        self._at_start.clear()
        self._redefined.clear()
        self._places.after_transaction()
        if self.outbox.has_deleted or self.logs.has_deleted:
            self.outbox.has_deleted = self.logs.has_deleted = False
            self._runtime.engine.connection.give_back_room()
        if self._log_ended:
            self._log_ended = False
            self.synchronise()
