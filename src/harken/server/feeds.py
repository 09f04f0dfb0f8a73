"""Feeds: the newest changes of what clients follow, read from the file once for all of them.

A feed has the last changes of one log, made ready to be sent. A client has only its position, and
takes what is after it when it can. One that is so slow that the feed no longer has it, reads the
log; one that is too slow for the log begins anew. So nobody waits for a client, and what a client
costs does not grow with the others.
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
from harken.consumers.monitors.log import Logs, News
from harken.consumers.monitors.subscription import Subscription
from harken.consumers.monitors.view import Watched
from harken.database.changes import Change, StoredChange
from harken.errors import HarkenError
from harken.server.events import change_event
from harken.server.values import described_json

ROOM = 1_000
"""So many changes a feed has, of so many bytes at most."""
BYTES = 16 * 2**20
AT_ONCE = 20

logger = logging.getLogger("harken.server")


@dataclass(frozen=True, slots=True)
class Entry:
    position: int
    stored: StoredChange
    event: bytes


class Feed:
    """Used in the thread of the event loop."""

    def __init__(self, subscription: Subscription, view: str, room: int = ROOM) -> None:
        self.subscription = subscription
        self.view = view
        self.watched: Watched = subscription.watched
        self._room = room
        self._entries: deque[Entry] = deque()
        self._size = 0
        self.start = self.seen = subscription.position
        """It has all changes after `start`; `seen` is how far the reading thread has looked."""
        self.snapshot: tuple[Change, str] | None = None
        """The last that was taken, for those who come before anything changes."""
        self.failure: HarkenError | None = None
        self.clients = 0
        self._loop = asyncio.get_running_loop()
        self.waiting: dict[asyncio.Future[None], None] = {}
        """Those who wait for something new."""

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
        while len(self._entries) > self._room or self._size > BYTES:
            gone = self._entries.popleft()
            self._size -= len(gone.event)
            self.start = gone.position
        self.wake()

    def begin_anew(self, position: int) -> None:
        """What was before that is not to be had."""
        self._entries.clear()
        self._size = 0
        self.start = position
        self.wake()

    def fail(self, error: HarkenError) -> None:
        self.failure = error
        self.wake()

    def wake(self) -> None:
        """Let those who wait look again: a few at a time, so that what else is asked of the
        service need not wait for a thousand of them."""
        waiting, self.waiting = deque(self.waiting), {}
        self._wake(waiting)

    def _wake(self, waiting: deque[asyncio.Future[None]]) -> None:
        for _ in range(min(AT_ONCE, len(waiting))):
            future = waiting.popleft()
            if not future.done():
                future.set_result(None)
        if waiting:
            self._loop.call_soon(self._wake, waiting)

    def after(self, position: int) -> list[Entry] | None:
        """The changes after a position; None if some of them are gone, or never were there."""
        if position < self.start:
            return None
        # From the end: nearly all clients miss only the last.
        found = list(takewhile(lambda entry: entry.position > position, reversed(self._entries)))
        return found[::-1]

    def describe(self, db: Database) -> str:
        return described_json(self.description(db))

    def description(self, db: Database) -> ViewDescription:
        return db.describe(self.view, where=self.watched.where)

    def renew(self, _: Database) -> None:
        """While there are clients its log is wanted."""
        self.subscription.renew()


async def news(feeds: Sequence[Feed], seconds: float) -> bool:
    """Wait for something new in any of them, so long at most."""
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
    """Looks for new changes in the file: when it is told to, and every so often, because other
    processes do not tell."""

    def __init__(
        self,
        path: str,
        feeds: Callable[[], list[Feed]],
        loop: asyncio.AbstractEventLoop,
        every: float,
    ) -> None:
        super().__init__(name="harken-tail", daemon=True)
        self._connection = open_file(path, read_only=True)
        self._logs = Logs(self._connection)
        self._feeds = feeds
        self._loop = loop
        self._every = every
        self._poke = threading.Event()
        self._told = False
        self._ends = False

    def poke(self) -> None:
        """There may be something new, or a new feed that has not got what there is."""
        self._told = True
        self._poke.set()

    def end(self) -> None:
        self._ends = True
        self._poke.set()
        self.join()
        self._connection.close()

    def run(self) -> None:
        version, fails = -1, False
        while not self._ends:
            try:
                found, told, self._told = self._connection.data_version(), self._told, False
                if told or found != version:
                    self._look()
                    version = found
                fails = False
            except Exception:
                if self._ends or self._loop.is_closed():
                    return
                if not fails:  # once, and not 20 times a second until it works again
                    logger.exception("cannot look for changes; will try again")
                fails, self._told = True, True
            self._poke.wait(self._every)
            self._poke.clear()

    def _look(self) -> None:
        """What is new in one state of the file is told at once: no client of several feeds sees
        half of a transaction. However many feeds there are, it is read once for all."""
        feeds = self._feeds()
        found = self._logs.news(min((feed.seen for feed in feeds), default=0)) if feeds else None
        news = []
        for feed in feeds:
            if found is not None and feed.seen < found.position:
                tell = self._new(feed, found)
                if tell is not None:
                    news.append(tell)
                feed.seen = found.position
        if news:
            self._loop.call_soon_threadsafe(lambda: [tell() for tell in news])

    def _new(self, feed: Feed, news: News) -> Callable[[], None] | None:
        try:
            found = news.after(feed.watched, feed.seen)
            if found is None:
                return partial(feed.begin_anew, news.position)
            return partial(feed.publish, feed.entries(found)) if found else None
        except HarkenError as error:  # a date that no calendar has, perhaps: the others go on
            return partial(feed.fail, error)
