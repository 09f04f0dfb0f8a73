"""A stream: what one client of one or more views is sent.

Law: the id of an event is a position only if everything up to that position has been sent. So of
the events of one transaction only the last has an id, and a client that is cut off in between gets
all of them again. All views of a stream share one position.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import groupby

from harken.api.database import Database
from harken.consumers.monitors.subscription import kept_after, snapshots
from harken.database.changes import Change
from harken.errors import HarkenError
from harken.server.feeds import Entry, Feed, wait_for_changes
from harken.server.server_sent_events import (
    HEARTBEAT,
    StreamOptions,
    event,
    failure_event,
    without_id,
)
from harken.server.session_queue import SessionQueue
from harken.server.values import snapshot_json

RETRY_MS = 1_000
NewEntries = list[list[Entry]]
"""For each view, the changes that the client has not seen."""


class Stream:
    def __init__(
        self,
        feeds: Sequence[Feed],
        options: StreamOptions,
        reader: SessionQueue,
        stopped: asyncio.Event,
        heartbeat: float,
    ) -> None:
        self._feeds = feeds
        self._options = options
        self._reader = reader
        self._stopped = stopped
        self._heartbeat = heartbeat

    async def events(self, since: int | None) -> AsyncIterator[bytes]:
        """Starts with all rows, unless the client resumes from a position."""
        yield f"retry: {RETRY_MS}\n\n".encode()
        try:
            for feed in self._feeds:
                yield event("view", await self._reader.run(feed.describe))
            async for each in self._from(since):
                yield each
        except HarkenError as error:
            yield failure_event(error)

    async def _from(self, position: int | None) -> AsyncIterator[bytes]:
        sent = position or 0
        behind = True  # only the log knows whether the stream can resume there
        while not self._stopped.is_set():
            found = None if position is None or behind else self._from_feeds(position)
            if found is None and position is not None:
                found, position = await self._from_logs(position)
            behind = False
            if found is None or position is None:
                position, data = await self._fresh_snapshot()
                sent = position
                yield data
            elif any(found):
                if data := b"".join(self._encoded(found, sent)):
                    yield data
                sent = max(entries[-1].position for entries in found if entries)
                position = max(position, sent)
                async for beat in self._pause():
                    yield beat
            elif not await wait_for_changes(self._feeds, self._heartbeat):
                yield HEARTBEAT

    def _from_feeds(self, position: int) -> NewEntries | None:
        found = []
        for feed in self._feeds:
            if feed.failure is not None:
                raise feed.failure
            entries = feed.after(position)
            if entries is None:
                return None
            found.append(entries)
        return found

    async def _from_logs(self, position: int) -> tuple[NewEntries | None, int | None]:
        """The changes in the logs after a position, and the position they lead to; None if the
        client must start over."""

        def read(_: Database) -> tuple[NewEntries | None, int | None]:
            stored, now = kept_after([feed.subscription for feed in self._feeds], position)
            found = [
                feed.entries(each)
                for feed, each in zip(self._feeds, stored, strict=True)
                if each is not None
            ]
            return (found, now) if len(found) == len(stored) else (None, None)

        return await self._reader.run(read)

    async def _fresh_snapshot(self) -> tuple[int, bytes]:
        """All rows of all views at one position, computed once for all clients that ask before
        anything changes."""

        def take(db: Database) -> list[tuple[Change, str]]:
            position = db.position
            known = [
                feed.snapshot
                for feed in self._feeds
                if feed.snapshot is not None
                and feed.snapshot[0].position == position
                and feed.subscription.has_log
            ]
            if len(known) == len(self._feeds):
                return known
            taken = snapshots([feed.subscription for feed in self._feeds])
            for feed, change in zip(self._feeds, taken, strict=True):
                feed.snapshot = (change, snapshot_json(feed.description(db), change))
            return [feed.snapshot for feed in self._feeds if feed.snapshot is not None]

        taken = await self._reader.run(take)
        position = taken[0][0].position
        events = [
            self._options.snapshot(feed, change, text)
            for feed, (change, text) in zip(self._feeds, taken, strict=True)
        ]
        return position, b"".join(_id_on_last(events, position))

    def _encoded(self, found: NewEntries, since: int) -> Iterator[bytes]:
        """The events in the form that the client wants; those of several views in the order of
        commits."""
        if len(found) == 1:
            yield from (data for _, data in self._options.events(self._feeds[0], found[0], since))
            return
        if self._options.every:
            events = [
                data
                for feed, entries in zip(self._feeds, found, strict=True)
                for _, data in self._options.events(feed, entries, since)
            ]
            last = max(entries[-1].position for entries in found if entries)
            yield from _id_on_last(events, last)
            return
        each = (
            (position, data)
            for feed, entries in zip(self._feeds, found, strict=True)
            for position, data in self._options.events(feed, entries, since)
        )
        ordered = sorted(each, key=lambda pair: pair[0])
        for position, group in groupby(ordered, key=lambda pair: pair[0]):
            yield from _id_on_last([data for _, data in group], position)

    async def _pause(self) -> AsyncIterator[bytes]:
        """Wait for an interval to pass, with heartbeats."""
        until = time.monotonic() + self._options.every
        while (left := until - time.monotonic()) > 0 and not self._stopped.is_set():
            try:
                await asyncio.wait_for(self._stopped.wait(), min(left, self._heartbeat))
            except TimeoutError:
                if until - time.monotonic() > 0:
                    yield HEARTBEAT


def _id_on_last(events: Sequence[bytes], position: int) -> Iterator[bytes]:
    plain = [without_id(each) for each in events]
    yield from plain[:-1]
    if plain:
        yield plain[-1].replace(b"\ndata: ", f"\nid: {position}\ndata: ".encode(), 1)
