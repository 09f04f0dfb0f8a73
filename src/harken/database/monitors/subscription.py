"""A subscription: the client's end of a monitor."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from harken.database.evaluation import decode_rows
from harken.database.monitors.changes import Change
from harken.database.monitors.monitors import Listener, Monitors, Receiver
from harken.database.monitors.outbox import Durable
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import IntegrityError, NameFault, StorageError, TypeFault
from harken.ir.schema import Function
from harken.planner.prepare import prepare


class Subscription:
    """The changes of a view, one for each transaction of this session that changed it; those of a
    durable monitor whoever changed it. Made by `db.monitor`."""

    def __init__(
        self,
        runtime: Runtime,
        transactions: Transactions,
        monitors: Monitors,
        receiver: Receiver,
    ) -> None:
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

    def changes(self) -> list[Change]:
        """What was committed since the last call, a change for each transaction."""
        self._check_open()
        found = self._monitors.hand_out(self._receiver)
        if not found:
            self._monitors.check_receiver(self._receiver)
        return found

    def rows(self) -> list[tuple[Any, ...]]:
        """The view as it is now, in order."""
        self._check_open()
        if not self._transactions.active:
            self._transactions.refresh()
        self._monitors.check_receiver(self._receiver)
        view = self._monitors.compile(self._receiver.function)
        plan = prepare(view.program, self._runtime.catalog.hierarchy)
        rows = sorted(self._runtime.engine.compile(plan).rows(()))
        return decode_rows(rows, view.types, self._runtime.catalog.home)

    def acknowledge(self) -> None:
        """Let a durable monitor forget what it has handed out."""
        self._check_open()
        name = self._durable_name()
        if self._transactions.active:
            self._monitors.outbox.acknowledge(name, self._receiver.handed_out)
            return
        with self._transactions.block():
            self._monitors.outbox.acknowledge(name, self._receiver.handed_out)

    def close(self) -> None:
        """Stop listening. A durable monitor goes on recording, in every session."""
        self._monitors.detach(self._receiver)

    def delete(self) -> None:
        """End a durable monitor for good, and forget what it has recorded."""
        self._check_open()
        name = self._durable_name()
        refuse_in_transaction(self._transactions, "a durable monitor cannot be deleted")
        with self._transactions.block():
            self._monitors.outbox.remove(name)
            self._runtime.catalog.touch_rules()
        self.close()

    def _durable_name(self) -> str:
        if self._receiver.durable is None:
            raise TypeFault(
                f"{self._receiver.title} is not durable",
                code="bad-value",
                hint=f'make one that is: db.monitor("{self.view}", durable="...")',
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
        return f"<monitor of {self._receiver.function}{kept}>"


def subscribe(
    runtime: Runtime,
    transactions: Transactions,
    monitors: Monitors,
    function: Function,
    view: str,
    listener: Listener | None,
    durable: str | None,
    strategy: str = "auto",
) -> Subscription:
    refuse_in_transaction(transactions, "a monitor cannot begin")
    monitors.compile(function.id)
    if durable is not None:
        _ensure_durable(runtime, transactions, monitors, Durable(durable, view, function.id))
    receiver = Receiver(view, function.id, listener, durable, strategy=strategy)
    monitors.attach(receiver)
    return Subscription(runtime, transactions, monitors, receiver)


def _ensure_durable(
    runtime: Runtime, transactions: Transactions, monitors: Monitors, wanted: Durable
) -> None:
    monitors.synchronise()
    if monitors.durable(wanted.name) is None:
        with transactions.block():  # another process may have made it while we waited
            monitors.synchronise()
            if monitors.durable(wanted.name) is None:
                monitors.outbox.add(wanted)
                runtime.catalog.touch_rules()
        monitors.synchronise()
    known = monitors.durable(wanted.name)
    if known is not None and known.function != wanted.function:
        raise NameFault(
            f"the durable monitor {wanted.name} is one of {known.function}",
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
