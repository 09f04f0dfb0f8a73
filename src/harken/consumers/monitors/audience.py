"""The receivers of a view in a session; those with the same view and condition form an audience.

Law: every receiver of an audience gets the same changes, in order, starting from its own place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from harken.consumers.monitors.log import Keep
from harken.consumers.monitors.queue import Queue
from harken.consumers.monitors.view import Watched
from harken.database.changes import Change

Listener = Callable[[Change], object]


TIDY_AFTER = 64
"""After this many changes per reader, a queue discards what all readers have read."""


@dataclass(slots=True, eq=False)
class Receiver:
    """Receives the changes of a view: the monitors' side of a subscription."""

    view: str
    watched: Watched
    listener: Listener | None = None
    durable: str | None = None
    kept: bool = False
    """Whether its changes are read from the log in the file."""
    keep: Keep | None = None
    """How long a log created for it keeps changes."""
    strategy: str = "auto"
    """The strategy requested for computing the changes."""
    warnings: tuple[str, ...] = ()
    """Warnings about changes that are not reported."""
    position: int = 0
    """The position of the last change delivered."""
    place: int = 0
    """The number of that change in the queue of the session or of the durable monitor."""
    may_be_dropped: bool = False
    """Whether the view may be dropped while it is watched."""
    number: int = 0
    """Listeners are notified in this order."""
    closed: bool = False

    @property
    def title(self) -> str:
        return f"the monitor of {self.watched}"

    @property
    def ending(self) -> str:
        return f"call close() on the monitors of {self.view} in this session"

    @property
    def reads_queue(self) -> bool:
        return self.durable is None and not self.kept


@dataclass(slots=True)
class Audience:
    """The receivers in this session that watch the same, and the changes they have not received
    yet."""

    receivers: dict[Receiver, None] = field(default_factory=dict)
    listeners: dict[Receiver, None] = field(default_factory=dict)
    """Those to notify right after a commit."""
    strategy: str = "auto"
    """The strategy requested last."""
    queue: Queue = field(default_factory=Queue)
    untidy: int = 0

    def join(self, receiver: Receiver) -> None:
        if receiver.reads_queue:
            receiver.place = self.queue.end
        self.receivers[receiver] = None
        if receiver.listener is not None:
            self.listeners[receiver] = None
        if receiver.strategy != "auto":
            self.strategy = receiver.strategy

    def leave(self, receiver: Receiver) -> None:
        del self.receivers[receiver]
        self.listeners.pop(receiver, None)
        if receiver.strategy != "auto":
            wanted = (each.strategy for each in reversed(self.receivers))
            self.strategy = next((each for each in wanted if each != "auto"), "auto")

    def tell(self, change: Change) -> None:
        self.queue.put(change)
        self.untidy += 1
        if self.untidy > len(self.receivers) + TIDY_AFTER:
            self.tidy()

    def tidy(self) -> None:
        self.queue.forget(each.place for each in self.receivers if each.reads_queue)
        self.untidy = 0
