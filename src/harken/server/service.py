"""The service: one database, a few sessions on it, and a feed for each view that is followed.

Every writer, here or in another process, writes its changes into the logs in the file. The service
only reads those logs, so it sees every change, in order, once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import harken
from harken.api.database import Database
from harken.consumers.monitors.log import Keep
from harken.consumers.monitors.subscription import check_position
from harken.database.changes import Change
from harken.database.results import to_json
from harken.errors import StorageError, ValueFault
from harken.server.feeds import MAX_CHANGES, Feed, Tail
from harken.server.identities import current
from harken.server.request_ids import note_request
from harken.server.scheduler_thread import SchedulerThread
from harken.server.server_sent_events import StreamOptions
from harken.server.session_queue import SessionPool, SessionQueue
from harken.server.streams import Stream
from harken.server.values import columns_json, snapshot_json
from harken.settings import Settings
from harken.statements.sql.restricted import condition_text

T = TypeVar("T")
MOST_FEEDS = 1_000
"""The most combinations of view and condition that can be followed at once."""
HEARTBEAT_SECONDS = 15.0
LOOK_SECONDS = 0.05
RENEW_SECONDS = 10.0
CLOSE_SECONDS = 1.0
"""How long shutting down waits for the sessions to close the file."""
READERS = 4
"""How many queries run at once. More threads would only compete for Python's interpreter lock."""


class StreamSlots:
    """Limits the number of open streams."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0

    def acquire(self) -> Callable[[], None]:
        """Take a slot and return a function that releases it, and may be called twice."""
        if self._taken >= self._most:
            raise StorageError(
                f"{self._most:,} streams are open already",
                code="too-many",
                hint="try again later; the setting max_streams is the limit",
            )
        self._taken += 1
        held = [True]

        def give_back() -> None:
            while held:
                held.pop()
                self._taken -= 1

        return give_back


class Service:
    def __init__(
        self,
        path: str,
        *,
        keep: Keep | None = None,
        spark: Any = None,
        engine: str = "resident",
        settings: Settings | None = None,
        capacity: int = MAX_CHANGES,
        heartbeat: float = HEARTBEAT_SECONDS,
        poll_interval: float = LOOK_SECONDS,
        schedules: bool = True,
    ) -> None:
        self.path = path
        self._keep = keep or Keep()
        self._spark = spark
        self._engine = engine
        self.settings = settings or Settings(serving=True)
        self._capacity = capacity
        self._heartbeat = heartbeat
        self._poll_interval = poll_interval
        self._schedules = schedules
        """Whether this process also does what is due; another one may."""
        self.streams = StreamSlots(self.settings["max_streams"])
        self.open_feeds: dict[tuple[str, str | None], Feed] = {}
        self._stopped = asyncio.Event()

    async def start(self) -> None:
        def connect(read_only: bool = False) -> Database:
            return harken.connect(
                self.path,
                read_only=read_only,
                spark=self._spark,
                engine=self._engine,
                settings=self.settings,
            )

        seconds = self.settings["statement_timeout"]
        self._writer = SessionQueue(connect, "writer", seconds)
        self._readers = SessionPool(connect, "reader", seconds, READERS)
        self._queries = SessionPool(partial(connect, read_only=True), "query", seconds, READERS)
        """Sessions that cannot write, for texts that people type."""
        self._reader = SessionQueue(connect, "follower", seconds, self._subscriptions_lost)
        """Holds the subscriptions of all streams. They record in the file that their logs are in
        use, so this session may have to wait for another writer; the other readers never do."""
        self._opening = asyncio.Lock()
        loop = asyncio.get_running_loop()
        self._tail = Tail(
            self.path, lambda: list(self.open_feeds.values()), loop, self._poll_interval
        )
        self._tail.start()
        self._scheduler = SchedulerThread(connect)
        if self._schedules:
            self._scheduler.start()
        self._renewing = asyncio.create_task(self._renew())

    def stop(self) -> None:
        """End all streams. Clients reconnect when the service is back."""
        self._stopped.set()
        self._scheduler.stop()
        for feed in self.open_feeds.values():
            feed.wake()
        for session in (self._writer, self._reader, self._readers, self._queries):
            session.end()

    def _subscriptions_lost(self) -> None:
        """The session with the subscriptions was abandoned. Its clients reconnect to a new one."""
        feeds, self.open_feeds = self.open_feeds, {}
        for feed in feeds.values():
            feed.fail(
                StorageError(
                    "the stream ended because a request took too long",
                    code="too-many",
                    hint="follow the view again",
                )
            )

    async def close(self) -> None:
        self.stop()
        self._renewing.cancel()
        await asyncio.to_thread(self._tail.end)
        until = time.monotonic() + CLOSE_SECONDS
        if self._schedules:
            await asyncio.to_thread(self._scheduler.join, CLOSE_SECONDS)
        for session in (self._queries, self._readers, self._reader, self._writer):
            await asyncio.to_thread(session.wait, until)

    @property
    def clients(self) -> int:
        return sum(feed.clients for feed in list(self.open_feeds.values()))

    @property
    def waiting_writes(self) -> int:
        """Changes that are queued or running."""
        return self._writer.waiting

    # --- requests --------------------------------------------------------------------------

    async def views(self) -> str:
        return await self._readers.run(for_sender(_views))

    async def outboxes(self) -> str:
        def query(db: Database) -> str:
            return to_json({"outboxes": [each.as_json() for each in db.outboxes()]})

        return await self._reader.run(for_sender(query))

    async def snapshot(self, view: str, where: str | None, keep: bool = False) -> str:
        def query(db: Database) -> str:
            described = db.describe(view, where=where)
            if not keep:
                return snapshot_json(described, db.snapshot(view, where=where))
            with db.monitor(view, where=where, keep=self._keep, warn=_nobody) as found:
                return snapshot_json(described, found.snapshot())

        return await (self._reader if keep else self._readers).run(for_sender(query))

    async def keep(self, view: str) -> None:
        """Keep the changes of a view, also while nobody follows it."""

        def work(db: Database) -> None:
            with db.monitor(view, keep=self._keep, warn=_nobody):
                pass

        await self._reader.run(for_sender(work))

    async def changes(
        self, view: str, where: str | None, since: int, net: bool
    ) -> tuple[list[Change], list[dict[str, Any]], int]:
        """The changes after a position, their columns, and the present position."""

        def query(db: Database) -> tuple[list[Change], list[dict[str, Any]], int]:
            columns = columns_json(db.describe(view, where=where))
            changes, position = db.changes_after(view, since, where=where, net=net)
            return changes, columns, position

        return await self._reader.run(for_sender(query))

    async def read(self, work: Callable[[Database], T]) -> T:
        """Run something that only reads, beside others."""
        return await self._readers.run(for_sender(work))

    async def read_unchecked(self, work: Callable[[Database], T]) -> T:
        """The same for the service itself, which must know who somebody is before anything else."""
        return await self._readers.run(work)

    async def inspect(self, work: Callable[[Database], T]) -> T:
        """Run something that only reads in the session that follows the views of streams."""
        return await self._reader.run(for_sender(work))

    async def query(self, work: Callable[[Database], T]) -> T:
        """Run something in a session that cannot write: a change is the error `read-only`."""
        return await self._queries.run(for_sender(work))

    async def write_unchecked(self, work: Callable[[Database], T]) -> T:
        """Run a change of the service itself, such as a sign-in."""
        return await self._writer.run(work)

    async def check_position(self, since: int) -> None:
        """Reject a position that does not exist yet."""
        now = await self._readers.run(lambda db: db.position)
        check_position(since, now)

    async def write(self, work: Callable[[Database], Any]) -> tuple[Any, int]:
        """Run a change and return its result and the position after it. The writer gets its answer
        before subscribers hear of the change."""

        return await self.write_raw(for_sender(work))

    async def write_raw(self, work: Callable[[Database], T]) -> tuple[T, int]:
        """The same for work that says itself for whom each part of it is done."""

        def done(db: Database) -> tuple[T, int]:
            return work(db), db.position

        found, position = await self._writer.run(done)
        note_request(transaction=position)
        return found, position

    async def publish(self) -> None:
        """Something was written: publish it to those who follow."""
        if self.open_feeds:
            self._tail.poke()

    # --- streams ---------------------------------------------------------------------------

    async def enter(
        self, views: Sequence[str], where: str | None = None
    ) -> tuple[list[Feed], Callable[[], None]]:
        """The feeds shared by all clients of these views with this condition, and a function that
        leaves them."""
        condition = None if where is None else condition_text(where)
        await self.check_readable(views)
        entered: dict[tuple[str, str | None], Feed] = {}

        def leave() -> None:
            while entered:
                self._leave(*entered.popitem())

        async with self._opening:
            try:
                for view in dict.fromkeys(views):
                    entered[view, condition] = await self._enter(view, condition)
            except BaseException:
                leave()
                raise
        return list(entered.values()), leave

    async def check_readable(self, views: Sequence[str]) -> None:
        """Feeds are shared, so whoever joins one is checked: refuse what may not be read."""
        if not current.get().is_operator:
            await self.read(lambda db: [db.describe(view) for view in views])

    async def _enter(self, view: str, where: str | None) -> Feed:
        feed = self.open_feeds.get((view, where))
        if feed is None:
            feed = self.open_feeds[view, where] = await self._open(view, where)
            self._tail.poke()
        feed.clients += 1
        return feed

    def _leave(self, key: tuple[str, str | None], feed: Feed) -> None:
        feed.clients -= 1
        if not feed.clients and self.open_feeds.get(key) is feed:
            del self.open_feeds[key]
            self._reader.submit(lambda _: feed.subscription.close())

    async def _open(self, view: str, where: str | None) -> Feed:
        if len(self.open_feeds) >= MOST_FEEDS:
            raise StorageError(
                f"{MOST_FEEDS} different views and conditions are being followed already",
                code="too-many",
                hint="try again later, or follow one that others follow",
            )

        subscription = await self._reader.run(
            lambda db: db.monitor(view, where=where, keep=self._keep, warn=_nobody)
        )
        return Feed(subscription, view, self._capacity)

    def stream(self, feeds: Sequence[Feed], options: StreamOptions) -> Stream:
        return Stream(feeds, options, self._reader, self._stopped, self._heartbeat)

    async def _renew(self) -> None:
        """Keep logs alive while they have clients."""
        while True:
            await asyncio.sleep(min(RENEW_SECONDS, self._keep.seconds / 8))
            for feed in list(self.open_feeds.values()):
                self._reader.submit(feed.renew)


def for_sender(work: Callable[[Database], T]) -> Callable[[Database], T]:
    """The same work, done for whoever sent the request, whom it finds in `current` as well."""
    identity = current.get()

    def done(db: Database) -> T:
        token = current.set(identity)
        try:
            if identity.user is None:
                return work(db)
            with db.acting_as(identity.user):
                return work(db)
        finally:
            current.reset(token)

    return done


def position_of(text: str | None) -> int | None:
    """The position that a browser sends back; None if it sends none."""
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ValueFault(
            f"{text!r} is not a position",
            code="bad-value",
            hint="a position is the id of an event or of a snapshot",
        )
    return int(text)


def _nobody(_: str) -> None:
    """Warnings go to the client with the description of the view, not to the server's log."""


def _views(db: Database) -> str:
    views = [
        {"name": each.name, "kind": each.kind, "columns": columns_json(each)}
        for each in sorted(db.views(), key=lambda each: each.name)
    ]
    return to_json({"views": views, "position": db.position})
