"""Who watches a view in a session: each as a receiver, those who watch the same as an audience.

Law: each receiver of an audience is told the same changes, in order, from its own place on.
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
"""After so many changes, and one for each reader, a queue lets go of what all have read."""


@dataclass(slots=True, eq=False)
class Receiver:
    """Who gets the changes of a view: what a subscription is to the monitors."""

    view: str
    watched: Watched
    listener: Listener | None = None
    durable: str | None = None
    kept: bool = False
    """Are its changes read from the log in the file?"""
    keep: Keep | None = None
    """How long that log is to keep them, if it must be made."""
    strategy: str = "auto"
    """How the change of the view is to be found."""
    warnings: tuple[str, ...] = ()
    """What its changes leave out."""
    position: int = 0
    """That of the last change that was handed out."""
    place: int = 0
    """The number of that change, among those of its session or its durable monitor."""
    gives_way: bool = False
    """Does it keep nobody from dropping the view?"""
    number: int = 0
    """Listeners are told in the order of these."""
    closed: bool = False

    @property
    def title(self) -> str:
        return f"the monitor of {self.watched}"

    @property
    def ending(self) -> str:
        return f"close() the monitors of {self.view} in this session"

    @property
    def reads_queue(self) -> bool:
        return self.durable is None and not self.kept


@dataclass(slots=True)
class Audience:
    """Those who watch the same in this session, and what they have not been told."""

    receivers: dict[Receiver, None] = field(default_factory=dict)
    listeners: dict[Receiver, None] = field(default_factory=dict)
    """Those of them that are told right after a commit."""
    strategy: str = "auto"
    """The last one that any of them wants."""
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
