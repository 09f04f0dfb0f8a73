"""The service: one database, two sessions on it, and the feeds of what is followed.

Whoever changes the data, here or in another process, writes the changes into the logs of the file.
The service only reads them there, so it sees all of them, in their order, and none twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import harken
from harken.database.database import Database
from harken.database.datalog.text import FACTS
from harken.database.monitors.changes import Change
from harken.database.monitors.log import Keep
from harken.database.monitors.subscription import check_position
from harken.database.monitors.view import Watched
from harken.database.results import to_json
from harken.database.sql.restricted import condition_text, row_columns
from harken.errors import HarkenError, StorageError, ValueFault
from harken.ir.relations import Kind
from harken.ir.schema import Function
from harken.server.desk import Desk
from harken.server.events import HEARTBEAT, Quality, event, failure_event
from harken.server.feeds import ROOM, Entry, Feed, Tail
from harken.server.values import column_json, rows_json

MOST_FEEDS = 1_000
"""So many different views and conditions are followed at once."""
HEARTBEAT_SECONDS = 15.0
LOOK_SECONDS = 0.05
RETRY_MS = 1_000
RENEW_SECONDS = 10.0


class Service:
    def __init__(
        self,
        path: str,
        *,
        keep: Keep | None = None,
        spark: Any = None,
        room: int = ROOM,
        heartbeat: float = HEARTBEAT_SECONDS,
        look: float = LOOK_SECONDS,
    ) -> None:
        self._path = path
        self._keep = keep or Keep()
        self._spark = spark
        self._room = room
        self._heartbeat = heartbeat
        self._look = look
        self._feeds: dict[tuple[str, str | None], Feed] = {}
        self._stopped = asyncio.Event()

    async def start(self) -> None:
        def connect() -> Database:
            return harken.connect(self._path, spark=self._spark)

        self._writer, self._reader = Desk(connect, "writer"), Desk(connect, "reader")
        self._opening = asyncio.Lock()
        loop = asyncio.get_running_loop()
        self._tail = Tail(self._path, lambda: list(self._feeds.values()), loop, self._look)
        self._tail.start()
        self._renewing = asyncio.create_task(self._renew())

    def stop(self) -> None:
        """End all streams. Their clients come back when the service does."""
        self._stopped.set()
        for feed in self._feeds.values():
            feed.wake()

    async def close(self) -> None:
        self.stop()
        self._renewing.cancel()
        await asyncio.to_thread(self._tail.end)
        await asyncio.to_thread(self._reader.close)
        await asyncio.to_thread(self._writer.close)

    @property
    def clients(self) -> int:
        return sum(feed.clients for feed in self._feeds.values())

    # --- questions -------------------------------------------------------------------------

    async def views(self) -> str:
        return await self._reader.do(_views)

    async def snapshot(self, view: str, where: str | None, keep: bool) -> str:
        def take(db: Database) -> str:
            kept = self._keep if keep else None
            with db.monitor(view, where=where, keep=kept) as subscription:
                return _snapshot_json(db, subscription.watched, subscription.snapshot())

        return await self._reader.do(take)

    async def changes(
        self, view: str, where: str | None, since: int, net: bool
    ) -> tuple[list[Change], int]:
        def take(db: Database) -> tuple[list[Change], int]:
            with db.monitor(view, where=where, keep=self._keep, since=since) as subscription:
                return subscription.changes(net=net), subscription.position

        return await self._reader.do(take)

    async def check_position(self, since: int) -> None:
        """Refuse one that was never given."""
        now = await self._reader.do(lambda db: db._rules.monitors.logs.position())
        check_position(since, now)

    async def write(self, work: Callable[[Database], Any]) -> tuple[Any, int]:
        """Have something changed; what that gave, and the position after it. The writer is answered
        before the others are told."""

        def done(db: Database) -> tuple[Any, int]:
            return work(db), db._rules.monitors.logs.position()

        return await self._writer.do(done)

    def look(self) -> None:
        """Something was written: let it be told."""
        self._tail.poke()

    # --- streams ---------------------------------------------------------------------------

    async def enter(self, view: str, where: str | None) -> tuple[Feed, Callable[[], None]]:
        """What clients of the same view with the same condition share, and how to leave it."""
        key = (view, None if where is None else condition_text(where))
        async with self._opening:
            feed = self._feeds.get(key)
            if feed is None:
                feed = self._feeds[key] = await self._open(*key)
                self._tail.poke()
            feed.clients += 1
        entered = [feed]

        def leave() -> None:
            if entered:
                self._leave(key, entered.pop())

        return feed, leave

    def _leave(self, key: tuple[str, str | None], feed: Feed) -> None:
        feed.clients -= 1
        if not feed.clients:
            del self._feeds[key]
            self._reader.tell(lambda _: feed.subscription.close())

    async def _open(self, view: str, where: str | None) -> Feed:
        if len(self._feeds) >= MOST_FEEDS:
            raise StorageError(
                f"{MOST_FEEDS} different views and conditions are followed already",
                code="too-many",
                hint="try again later, or follow one that others follow",
            )

        def follow(db: Database) -> tuple[Any, str]:
            subscription = db.monitor(view, where=where, keep=self._keep)
            return subscription, db._runtime.catalog.home

        subscription, home = await self._reader.do(follow)
        return Feed(subscription, view, home, self._room)

    async def follow(self, feed: Feed, since: int | None, quality: Quality) -> AsyncIterator[bytes]:
        """The events of one client: first, unless it goes on, all rows."""
        yield f"retry: {RETRY_MS}\n\n".encode()
        try:
            yield event("view", await self._reader.do(lambda db: _described(db, feed.watched)))
            async for each in self._events(feed, since, quality):
                yield each
        except HarkenError as error:
            yield failure_event(error)

    async def _events(
        self, feed: Feed, since: int | None, quality: Quality
    ) -> AsyncIterator[bytes]:
        position, sent = since, since or 0
        behind = True  # only the log knows whether it can be gone on from there
        while not self._stopped.is_set():
            entries = None if position is None or behind else feed.after(position)
            if entries is None and position is not None:
                entries, position = await self._stored(feed, position)
            behind = False
            if entries is None or position is None:
                change, text = await self._anew(feed)
                position = sent = change.position
                yield quality.snapshot(feed, change, text)
            elif entries:
                if data := b"".join(quality.events(feed, entries, sent)):
                    yield data
                position = max(position, entries[-1].position)
                sent = entries[-1].position
                async for beat in self._rest(quality.every):
                    yield beat
            elif not await feed.news(self._heartbeat):
                yield HEARTBEAT

    async def _stored(self, feed: Feed, position: int) -> tuple[list[Entry] | None, int | None]:
        """What the log has after a position, and how far that reaches; None if the client must
        begin anew."""

        def read(db: Database) -> tuple[list[Entry] | None, int | None]:
            logs = db._rules.monitors.logs
            with db._connection.snapshot():
                found, now = logs.after(feed.watched, position), logs.position()
            return (None, None) if found is None else (feed.entries(found), now)

        return await self._reader.do(read)

    async def _anew(self, feed: Feed) -> tuple[Change, str]:
        """All rows as they are now; computed once for all who ask at the same position."""

        def take(db: Database) -> tuple[Change, str]:
            logs = db._rules.monitors.logs
            known = feed.snapshot
            if known is None or known[0].position < logs.position() or not logs.find(feed.watched):
                change = feed.subscription.snapshot()
                known = feed.snapshot = (change, _snapshot_json(db, feed.watched, change))
            return known

        return await self._reader.do(take)

    async def _rest(self, seconds: float) -> AsyncIterator[bytes]:
        """Let so much time pass, and show now and then that we are there."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._stopped.is_set():
            try:
                await asyncio.wait_for(self._stopped.wait(), min(left, self._heartbeat))
            except TimeoutError:
                if until - time.monotonic() > 0:
                    yield HEARTBEAT

    async def _renew(self) -> None:
        """While there are clients their logs are wanted."""
        while True:
            await asyncio.sleep(min(RENEW_SECONDS, self._keep.seconds / 8))
            for feed in list(self._feeds.values()):
                await self._reader.do(lambda _, feed=feed: feed.subscription.renew())  # type: ignore[misc]


def position_of(text: str | None) -> int | None:
    """A position as a browser gives it back; None if it has none."""
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ValueFault(
            f"{text!r} is not a position",
            code="bad-value",
            hint="a position is the id of an event, or that of a snapshot",
        )
    return int(text)


def _views(db: Database) -> str:
    db._transactions.refresh()
    catalog = db._runtime.catalog
    names: dict[str, Function] = {}
    for function in catalog.functions():
        if _has_rows(function):
            plain = len(catalog.named(function.name)) == 1
            prefix = "" if plain or not function.parameters else f"{function.parameters[0].type}."
            names[f"{prefix}{function.name}"] = function
    views = [
        {
            "name": name,
            "kind": function.kind.value,
            "columns": [column_json(column) for column in row_columns(function)],
        }
        for name, function in sorted(names.items())
    ]
    return to_json({"views": views, "position": db._rules.monitors.logs.position()})


def _has_rows(function: Function) -> bool:
    relation = function.relation
    is_facts = function.name.endswith(FACTS)
    return not (relation is None or function.system or is_facts or relation.kind is Kind.FOREIGN)


def _columns(db: Database, watched: Watched) -> list[dict[str, Any]]:
    return [
        column_json(each) for each in row_columns(db._runtime.catalog.function(watched.function))
    ]


def _described(db: Database, watched: Watched) -> str:
    db._transactions.refresh()
    return to_json({"columns": _columns(db, watched), "where": watched.where})


def _snapshot_json(db: Database, watched: Watched, change: Change) -> str:
    return to_json(
        {
            "kind": "snapshot",
            "view": change.view,
            "where": watched.where,
            "columns": _columns(db, watched),
            "rows": rows_json(change.plus),
            "position": change.position,
        }
    )
