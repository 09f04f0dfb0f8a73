"""How committed changes reach the receivers: those that ask, and those that listen.

A change waits where its receiver reads: in the queue of its audience, in a log or in an outbox of
the file. Law: a receiver gets each change once, in the order of the commits, or all rows anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from harken.consumers.monitors.audience import Audience, Receiver
from harken.consumers.monitors.log import Logs
from harken.consumers.monitors.outbox import Outbox
from harken.consumers.monitors.row_shapes import RowShapes
from harken.consumers.monitors.view import Watched
from harken.database.changes import Change, StoredChange
from harken.database.runtime import Runtime
from harken.errors import ForeignFault, HarkenError
from harken.values.rows import Row


class Delivery:
    def __init__(
        self,
        runtime: Runtime,
        outbox: Outbox,
        logs: Logs,
        shapes: RowShapes,
        rows: Callable[[Watched], list[Row]],
    ) -> None:
        self._runtime = runtime
        self._outbox = outbox
        self._logs = logs
        self._shapes = shapes
        self._rows = rows
        """All present rows of a view."""
        self.audiences: dict[Watched, Audience] = {}
        self._reading_file: dict[Receiver, None] = {}
        """The listeners of logs and durable monitors, where other sessions may have written."""
        self._to_notify: dict[Receiver, None] = {}
        """The listeners that may have something to receive after a commit."""
        self._failed: dict[Receiver, None] = {}
        """The listeners that raised an error; they are called again after the next change."""
        self._notifying = False

    def join(self, receiver: Receiver) -> None:
        self.audiences.setdefault(receiver.watched, Audience()).join(receiver)
        if receiver.listener is not None and not receiver.reads_queue:
            self._reading_file[receiver] = None

    def leave(self, receiver: Receiver) -> bool:
        """Was it there?"""
        audience = self.audiences.get(receiver.watched)
        if audience is None or receiver not in audience.receivers:
            return False
        audience.leave(receiver)
        self._reading_file.pop(receiver, None)
        self._failed.pop(receiver, None)
        if not audience.receivers:
            del self.audiences[receiver.watched]
        return True

    def close(self) -> None:
        """The database was closed, and every subscription with it."""
        for audience in self.audiences.values():
            for receiver in audience.receivers:
                receiver.closed = True
        self.audiences.clear()
        self._reading_file.clear()
        self._failed.clear()

    def announce(self, number: int, changes: Mapping[Watched, StoredChange]) -> None:
        """Make committed changes available to receivers."""
        self._to_notify |= self._reading_file
        if self._failed:
            self._to_notify |= self._failed
            self._failed = {}
        home = self._runtime.catalog.home
        for watched, change in changes.items():
            audience = self.audiences.get(watched)
            if audience is not None:
                shape = self._shapes.of(watched)
                audience.tell(change.change(watched.function, number, home, shape))
                self._to_notify |= audience.listeners

    def waiting(self, receiver: Receiver) -> list[tuple[int, Change]] | None:
        """The changes not delivered yet, each with its number; None if some of them are gone."""
        home = self._runtime.catalog.home
        if receiver.durable is not None:
            shape = self._shapes.of(receiver.watched)
            return self._outbox.after(receiver.durable, receiver.place, home, shape)
        if receiver.kept:
            found = self._logs.after(receiver.watched, receiver.position)
            if found is None:
                return None
            shape = self._shapes.of(receiver.watched)
            return [(n, change.change(receiver.view, n, home, shape)) for n, change in found]
        found_here = self.audiences[receiver.watched].queue.after(receiver.place)
        if found_here is None:
            return None
        return [(number, _own(change, receiver.view)) for number, change in found_here]

    def deliver(self, receiver: Receiver) -> list[Change] | None:
        """None if the receiver is too far behind and must start over."""
        waiting = self.waiting(receiver)
        if waiting:
            self.handed_out(receiver, *waiting[-1])
        return None if waiting is None else [change for _, change in waiting]

    def handed_out(self, receiver: Receiver, number: int, change: Change) -> None:
        receiver.place = max(number, receiver.place)
        receiver.position = max(change.transaction, receiver.position)

    def start_over(self, receiver: Receiver) -> Change:
        """All rows, in place of the changes not delivered yet."""
        with self._runtime.engine.connection.snapshot():
            rows, position = self._rows(receiver.watched), self._logs.position()
            if receiver.durable is not None:
                receiver.place = self._outbox.last(receiver.durable)
        receiver.position = position
        if receiver.reads_queue:
            receiver.place = self.audiences[receiver.watched].queue.end
        now, shape = self._runtime.engine.connection.now(), self._shapes.of(receiver.watched)
        return Change(receiver.view, rows, [], position, fresh=True, at=now, shape=shape)

    def tell(self) -> list[HarkenError]:
        """Call the listeners. One that fails gets the same change again after the next."""
        if self._notifying or not self._to_notify:
            return []  # while a listener commits, the outer call continues with that
        failures: list[HarkenError] = []
        self._notifying = True
        try:
            while self._to_notify:
                told, self._to_notify = self._to_notify, {}
                for receiver in sorted(told, key=lambda each: each.number):
                    failures += self._tell(receiver)
        finally:
            self._notifying = False
        return failures

    def _tell(self, receiver: Receiver) -> Iterator[HarkenError]:
        while receiver.listener is not None and not receiver.closed:
            waiting = self.waiting(receiver)
            if waiting == []:
                return
            before = receiver.place, receiver.position
            number, change = waiting[0] if waiting else (0, self.start_over(receiver))
            try:
                receiver.listener(change)
            except Exception as error:
                self._failed[receiver] = None
                if change.fresh:
                    receiver.place, receiver.position = before
                yield _failed(receiver, error)
                return
            self.handed_out(receiver, number, change)  # the listener may have fetched more


def _own(change: Change, view: str) -> Change:
    """A copy for each reader, which may modify its rows."""
    return Change(
        view,
        list(change.plus),
        list(change.minus),
        change.transaction,
        change.fresh,
        at=change.at,
        shape=change.shape,
    )


def _failed(receiver: Receiver, error: Exception) -> HarkenError:
    fault = ForeignFault(
        f"the transaction is committed, but the listener of {receiver.title} failed: "
        f"{type(error).__name__}: {error}",
        code="foreign",
        hint=(
            "the change is kept: `changes()` returns it, and the next commit calls the "
            "listener again"
        ),
    )
    fault.__cause__ = error
    return fault
