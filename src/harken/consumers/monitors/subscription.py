"""A subscription: the client's end of a monitor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from harken.consumers.monitors.audience import Listener, Receiver
from harken.consumers.monitors.following import Following
from harken.consumers.monitors.log import Keep
from harken.consumers.monitors.monitors import Monitors
from harken.consumers.monitors.outbox import Durable
from harken.consumers.monitors.view import Watched
from harken.database.arguments import LONGEST_TIME, check_callable, check_flag, check_number
from harken.database.changes import Change, StoredChange, netted
from harken.database.exclusive import SessionLock, exclusive
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import (
    HarkenError,
    IntegrityError,
    LanguageError,
    NameFault,
    StorageError,
    TypeFault,
    ValueFault,
)
from harken.ir.schema import Function
from harken.maintenance.recursive_nodes import check_strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorOptions:
    """The options of `db.monitor`."""

    listener: Listener | None = None
    durable: str | None = None
    strategy: str = "auto"
    where: str | Mapping[str, Any] | None = None
    keep: Keep | bool | None = None
    since: int | None = None

    def __post_init__(self) -> None:
        check_strategy(self.strategy)
        if self.listener is not None:
            check_callable(self.listener, "the listener")
        if self.keep is not None and not isinstance(self.keep, Keep):
            check_flag(self.keep, "keep, where it is no harken.Keep,")
        if self.durable is not None and (self.where is not None or self.kept):
            raise LanguageError(
                ("a durable monitor keeps all changes of a whole view until they are acknowledged"),
                code="unsupported",
                hint="leave out where, keep and since, or leave out durable",
            )
        if self.since is not None and (type(self.since) is not int or self.since < 0):
            raise ValueFault(
                f"{self.since!r} is not a position",
                code="bad-value",
                hint="a position is the `position` of a change or of a subscription",
            )

    @property
    def kept(self) -> bool:
        return self.since is not None or bool(self.keep)


class Subscription:
    """The changes of a view, one for each transaction of this session that changed it; a durable
    monitor has the changes of all sessions. Created by `db.monitor`."""

    def __init__(
        self,
        runtime: Runtime,
        transactions: Transactions,
        monitors: Monitors,
        receiver: Receiver,
        session_lock: SessionLock,
    ) -> None:
        self.session_lock = session_lock
        self._runtime = runtime
        self._transactions = transactions
        self._monitors = monitors
        self._receiver = receiver

    @property
    def view(self) -> str:
        return self._receiver.view

    @property
    def durable(self) -> str | None:
        return self._receiver.durable

    @property
    def watched(self) -> Watched:
        return self._receiver.watched

    @property
    def where(self) -> str | None:
        return self._receiver.watched.where

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about changes that are not reported; empty for a view that depends on data
        alone."""
        return self._receiver.warnings

    @property
    def position(self) -> int:
        """The position of the last change delivered; `since` it a client can resume."""
        return self._receiver.position

    @property
    def home(self) -> str:
        """The database of the objects in its changes."""
        return self._runtime.catalog.home

    @property
    def has_log(self) -> bool:
        """Whether its changes are kept in the file. Nobody can resume from a log that was
        deleted."""
        return self._monitors.logs.find(self._receiver.watched) is not None

    @exclusive
    def changes(self, *, net: bool = False) -> list[Change]:
        """The changes committed since the last call, one for each transaction; with `net`, merged
        into at most one.

        A subscription that is too far behind gets one `fresh` change with all rows.
        """
        check_flag(net, "net")
        self._check_open()
        self.renew()
        found = self._monitors.delivery.deliver(self._receiver)
        if found is None:
            return [self.snapshot()]
        if not found:
            self._monitors.check_receiver(self._receiver)
        one = netted(found) if net and found else None
        return ([one] if one is not None else []) if net else found

    def follow(self, timeout: float | None = None) -> Following:
        """Each change as it is committed, by any process, with `for` or `async for`. The loop waits
        for the next change. What others commit counts from the first time that nothing was waiting,
        or with `keep=True` from the beginning. It ends when the subscription is closed and when
        nothing came for `timeout` seconds. In a database in memory no other process commits, so
        there `for` ends when nothing is left; `async for` waits for what other tasks commit."""
        self._check_open()
        if timeout is not None:
            check_number(timeout, "the timeout", most=LONGEST_TIME)
        return Following(self, timeout)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.follow())

    def __aiter__(self) -> AsyncIterator[Change]:
        return aiter(self.follow())

    @exclusive
    def waiting(self) -> list[tuple[int, Change]]:
        """The changes that were not delivered yet, each with its number; `deliver` takes one."""
        self._check_open()
        self.renew()
        found = self._monitors.delivery.waiting(self._receiver)
        if found is None:
            return [(0, self.snapshot())]
        if not found:
            self._monitors.check_receiver(self._receiver)
        return found

    @exclusive
    def deliver(self, number: int, change: Change) -> None:
        """Note that a change was delivered, so that it is not given again."""
        self._monitors.delivery.handed_out(self._receiver, number, change)

    @exclusive
    def hear_others(self) -> None:
        """From now on, also give the changes that other processes commit: keep them in the file, if
        that is not done yet. Everything that this session committed must be delivered."""
        self._check_open()
        receiver = self._receiver
        if not self.has_others or not receiver.reads_queue:
            return
        refuse_in_transaction(self._transactions, "following a view cannot start")
        logs = self._monitors.logs
        before = logs.position()
        _ensure_log(self._runtime, self._transactions, self._monitors, receiver)
        log = logs.find(receiver.watched)
        receiver.kept = True
        # Not the position now: another process may have committed since the log began.
        receiver.position = before if log is None else max(before, log.floor)

    @property
    def has_others(self) -> bool:
        """Whether other processes can commit: not to a database in memory."""
        return not self._runtime.engine.connection.in_memory

    @property
    def is_closed(self) -> bool:
        return self._receiver.closed

    @exclusive
    def snapshot(self) -> Change:
        """All present rows as a `fresh` change; `changes()` continues from it."""
        (change,) = snapshots([self])
        return change

    def _prepare_to_start_over(self) -> None:
        """Prepare to start over."""
        self._check_open()
        refuse_in_transaction(self._transactions, "a client does not start over")
        self._transactions.refresh()
        self._monitors.check_receiver(self._receiver)
        if self._receiver.kept:
            _ensure_log(self._runtime, self._transactions, self._monitors, self._receiver)

    @exclusive
    def rows(self) -> list[tuple[Any, ...]]:
        """The present rows of the view, in order."""
        self._check_open()
        self._transactions.look()
        self._monitors.check_receiver(self._receiver)
        return self._monitors.rows(self._receiver.watched)

    @exclusive
    def renew(self) -> None:
        """Keep the log alive, if it is time to; if another process is writing, next time.
        `changes()` calls this too."""
        logs = self._monitors.logs
        if not self._receiver.kept or self._transactions.active:
            return
        log = logs.find(self._receiver.watched)
        if log is not None and log.wants_renewal(logs.now):
            logs.renew_if_free([log])

    @exclusive
    def acknowledge(self) -> None:
        """Let a durable monitor delete the changes it has delivered."""
        self._check_open()
        name = self._durable_name()
        if self._transactions.active:
            self._transactions.begin()
            self._monitors.outbox.acknowledge(name, self._receiver.place)
            return
        with self._transactions.block():
            self._monitors.outbox.acknowledge(name, self._receiver.place)

    def allow_drop(self) -> None:
        """Allow the view to be dropped; its changes end then."""
        self._receiver.may_be_dropped = True

    @exclusive
    def close(self) -> None:
        """Stop listening. A durable monitor continues to record, in every session."""
        self._monitors.detach(self._receiver)

    @exclusive
    def delete(self) -> None:
        """Delete a durable monitor and all it has recorded; or delete the log that this
        subscription shares with others."""
        self._check_open()
        name = None if self._receiver.kept else self._durable_name()
        refuse_in_transaction(self._transactions, "what a monitor keeps cannot be deleted")
        with self._transactions.block():
            if name is not None:
                self._monitors.outbox.remove(name)
            else:
                self._monitors.logs.forget(self._receiver.watched)
            self._monitors.touch()
            self._monitors.synchronise()  # something that cannot be watched here blocks nothing
        self.close()

    def _durable_name(self) -> str:
        if self._receiver.durable is None:
            raise TypeFault(
                f"{self._receiver.title} is not durable",
                code="bad-value",
                hint=f'create one that is: db.monitor("{self.view}", durable="...")',
            )
        return self._receiver.durable

    def _check_open(self) -> None:
        if self._receiver.closed:
            raise StorageError(
                f"{self._receiver.title} is closed",
                code="closed",
                hint=f'open it again: db.monitor("{self.view}")',
            )

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        kept = f", durable {self.durable}" if self.durable is not None else ""
        return f"<monitor of {self._receiver.watched}{kept}>"


def snapshots(subscriptions: Sequence[Subscription]) -> list[Change]:
    """All rows of several views of one session, at one position."""
    for each in subscriptions:
        each._prepare_to_start_over()
    with subscriptions[0]._runtime.engine.connection.snapshot():
        return [each._monitors.delivery.start_over(each._receiver) for each in subscriptions]


def kept_after(
    subscriptions: Sequence[Subscription], position: int
) -> tuple[list[list[tuple[int, StoredChange]] | None], int]:
    """The changes in the logs of several views of one session after a position, and the position
    they lead to. None for a view that cannot be resumed from there."""
    logs = subscriptions[0]._monitors.logs
    with subscriptions[0]._runtime.engine.connection.snapshot():
        found = [logs.after(each.watched, position) for each in subscriptions]
        return found, logs.position()


def subscribe(
    runtime: Runtime,
    transactions: Transactions,
    monitors: Monitors,
    function: Function,
    view: str,
    options: MonitorOptions,
    session_lock: SessionLock,
) -> Subscription:
    refuse_in_transaction(transactions, "a monitor cannot begin")
    known = None if options.durable is None else monitors.durable(options.durable)
    if known is not None and known.watched == Watched(function.id):
        # What it has recorded can be read and deleted, even if it cannot be watched here.
        watched = known.watched
    else:
        watched = watched_view(monitors, function, options.where)
    if options.durable is not None:
        durable = Durable(options.durable, view, function.id)
        _ensure_durable(runtime, transactions, monitors, durable)
    receiver = Receiver(
        view,
        watched,
        listener=options.listener,
        durable=options.durable,
        kept=options.kept,
        keep=options.keep if isinstance(options.keep, Keep) else None,
        strategy=options.strategy,
        warnings=monitors.warnings(watched),
    )
    if options.kept:
        _ensure_log(runtime, transactions, monitors, receiver)
    receiver.position = _start(monitors, options.since)
    monitors.attach(receiver)
    return Subscription(runtime, transactions, monitors, receiver, session_lock)


def watched_view(
    monitors: Monitors, function: Function, where: str | Mapping[str, Any] | None
) -> Watched:
    """The view to watch, if it can be watched."""
    watched = Watched(function.id, None if where is None else monitors.conditions.text(where))
    try:
        monitors.select(watched)
    except HarkenError:
        if isinstance(where, str):  # its error points into the text that its author wrote
            monitors.select(Watched(function.id, where))
        raise
    return watched


def read_view(
    transactions: Transactions, monitors: Monitors, watched: Watched, view: str
) -> Change:
    """All present rows with their position, for a client that does not subscribe."""
    refuse_in_transaction(transactions, "no snapshot is taken")
    receiver = Receiver(view, watched, kept=True)  # it has no place in this session's queue
    return monitors.delivery.start_over(receiver)


def _start(monitors: Monitors, since: int | None) -> int:
    now = monitors.logs.position()
    if since is None:
        return now
    check_position(since, now)
    return since


def check_position(since: int, now: int) -> None:
    if since > now:
        raise ValueFault(
            f"position {since} does not exist yet: the last is {now}",
            code="no-such-position",
            hint="take a snapshot, and resume from its position",
        )


def _ensure_log(
    runtime: Runtime,
    transactions: Transactions,
    monitors: Monitors,
    receiver: Receiver,
) -> None:
    """Make sure that changes are recorded, and for how long."""
    logs, watched, keep = monitors.logs, receiver.watched, receiver.keep
    log = logs.find(watched)
    if log is not None and keep in (None, log.keep) and not log.wants_renewal(logs.now):
        return
    with transactions.block():  # another process may have created it while we waited
        log = logs.find(watched)
        if log is None:
            monitors.share_moment(watched)
            logs.add(watched, receiver.view, keep or Keep())
        else:
            logs.keep(log, keep or log.keep)
            logs.renew([log])
        monitors.touch()
    monitors.note_log(watched)


def _ensure_durable(
    runtime: Runtime, transactions: Transactions, monitors: Monitors, wanted: Durable
) -> None:
    monitors.synchronise()
    if monitors.durable(wanted.name) is None:
        with transactions.block():  # another process may have created it while we waited
            monitors.synchronise()
            if monitors.durable(wanted.name) is None:
                monitors.share_moment(wanted.watched)
                monitors.outbox.add(wanted)
                monitors.touch()
        monitors.synchronise()
    known = monitors.durable(wanted.name)
    if known is not None and known.function != wanted.function:
        raise NameFault(
            f"there is already a durable monitor {wanted.name}, of {known.function}",
            code="exists",
            hint="choose another name for this one",
        )


def refuse_in_transaction(transactions: Transactions, what: str) -> None:
    """The client's copy would hold rows that a rollback may take back."""
    if transactions.active or transactions.in_block:
        raise IntegrityError(
            f"{what} while a transaction is open",
            code="transaction",
            hint="commit or roll back first",
        )
