"""Feeds: the newest changes of each followed view, read from the file once for all clients.

A feed holds the last changes of one log, already encoded. A client has only a position, and takes
the changes after it when it is ready. A client too slow for the feed reads the log; one too slow
for the log starts over with a snapshot. So nobody waits for a slow client, and the cost of a client
does not grow with the number of clients.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from harken.api.database import Database
from harken.api.opening import open_file
from harken.api.views import ViewDescription
from harken.consumers.monitors.log import LogChanges, Logs
from harken.consumers.monitors.subscription import Subscription
from harken.consumers.monitors.view import Watched
from harken.database.changes import Change, StoredChange
from harken.errors import HarkenError
from harken.server.server_sent_events import change_event
from harken.server.values import described_json

MAX_CHANGES = 1_000
"""A feed holds at most this many changes, and at most MAX_BYTES of them."""
MAX_BYTES = 16 * 2**20
WAKE_BATCH = 20

logger = logging.getLogger("harken.server")


@dataclass(frozen=True, slots=True)
class Entry:
    position: int
    stored: StoredChange
    event: bytes


class Feed:
    """Use only in the event loop's thread."""

    def __init__(self, subscription: Subscription, view: str, capacity: int = MAX_CHANGES) -> None:
        self.subscription = subscription
        self.view = view
        self.watched: Watched = subscription.watched
        self._capacity = capacity
        self._entries: deque[Entry] = deque()
        self._size = 0
        self.start = self.seen = subscription.position
        """The feed has all changes after `start`; the reading thread has seen the log up to
        `seen`."""
        self.snapshot: tuple[Change, str] | None = None
        """The last snapshot, for clients that arrive before anything changes."""
        self.failure: HarkenError | None = None
        self.clients = 0
        self._loop = asyncio.get_running_loop()
        self.waiting: dict[asyncio.Future[None], None] = {}
        """Streams waiting for changes."""

    def entries(self, found: Iterable[tuple[int, StoredChange]]) -> list[Entry]:
        return [
            Entry(
                position,
                stored,
                change_event(stored.change(self.view, position, self.subscription.home)),
            )
            for position, stored in found
        ]

    def publish(self, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        for entry in entries:
            self._entries.append(entry)
            self._size += len(entry.event)
        while len(self._entries) > self._capacity or self._size > MAX_BYTES:
            gone = self._entries.popleft()
            self._size -= len(gone.event)
            self.start = gone.position
        self.wake()

    def start_over(self, position: int) -> None:
        """Changes up to this position are no longer available."""
        self._entries.clear()
        self._size = 0
        self.start = position
        self.wake()

    def fail(self, error: HarkenError) -> None:
        self.failure = error
        self.wake()

    def wake(self) -> None:
        """Wake the waiting streams a few at a time, so that other requests need not wait for a
        thousand of them."""
        waiting, self.waiting = deque(self.waiting), {}
        self._wake(waiting)

    def _wake(self, waiting: deque[asyncio.Future[None]]) -> None:
        for _ in range(min(WAKE_BATCH, len(waiting))):
            future = waiting.popleft()
            if not future.done():
                future.set_result(None)
        if waiting:
            self._loop.call_soon(self._wake, waiting)

    def after(self, position: int) -> list[Entry] | None:
        """The changes after a position; None if some of them are no longer in the feed."""
        if position < self.start:
            return None
        # From the end: nearly all clients miss only the last change.
        found = list(takewhile(lambda entry: entry.position > position, reversed(self._entries)))
        return found[::-1]

    def describe(self, db: Database) -> str:
        return described_json(self.description(db))

    def description(self, db: Database) -> ViewDescription:
        return db.describe(self.view, where=self.watched.where)

    def renew(self, _: Database) -> None:
        """Keep the log alive while there are clients."""
        self.subscription.renew()


async def wait_for_changes(feeds: Sequence[Feed], seconds: float) -> bool:
    """Wait for a change in any of the feeds; False after a timeout."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    for feed in feeds:
        feed.waiting[future] = None
    try:
        async with asyncio.timeout(seconds):
            await future
    except TimeoutError:
        return False
    finally:
        for feed in feeds:
            feed.waiting.pop(future, None)
    return True


class Tail(threading.Thread):
    """Reads new changes from the file: when poked, and at intervals, because other processes do not
    poke it."""

    def __init__(
        self,
        path: str,
        feeds: Callable[[], list[Feed]],
        loop: asyncio.AbstractEventLoop,
        every: float,
    ) -> None:
        super().__init__(name="harken-tail", daemon=True)
        self.connection = open_file(path, read_only=True)
        self._logs = Logs(self.connection)
        self._feeds = feeds
        self._loop = loop
        self._every = every
        self._poke = threading.Event()
        self._poked = False
        self._ends = False

    def poke(self) -> None:
        """Call when there may be a change, or a new feed that has not been filled."""
        self._poked = True
        self._poke.set()

    def end(self) -> None:
        self._ends = True
        self._poke.set()
        self.join()
        self.connection.close()

    def run(self) -> None:
        version, fails = -1, False
        while not self._ends:
            try:
                found, poked, self._poked = self.connection.data_version(), self._poked, False
                if poked or found != version:
                    self.publish_new()
                    version = found
                fails = False
            except Exception:
                if self._ends or self._loop.is_closed():
                    return
                if not fails:  # log it once, not 20 times a second until it works again
                    logger.exception("cannot read new changes; will try again")
                fails, self._poked = True, True
            self._poke.wait(self._every)
            self._poke.clear()

    def publish_new(self) -> None:
        """Publish all that is new in one state of the file at once, so that a client of several
        feeds never sees half of a transaction. The file is read once for all feeds."""
        feeds = self._feeds()
        found = self._logs.news(min((feed.seen for feed in feeds), default=0)) if feeds else None
        updates = []
        for feed in feeds:
            if found is not None and feed.seen < found.position:
                update = self._new(feed, found)
                if update is not None:
                    updates.append(update)
                feed.seen = found.position
        if updates:
            self._loop.call_soon_threadsafe(lambda: [update() for update in updates])

    def _new(self, feed: Feed, news: LogChanges) -> Callable[[], None] | None:
        try:
            found = news.after(feed.watched, feed.seen)
            if found is None:
                return partial(feed.start_over, news.position)
            return partial(feed.publish, feed.entries(found)) if found else None
        except HarkenError as error:  # for example a date outside the calendar; other feeds go on
            return partial(feed.fail, error)
