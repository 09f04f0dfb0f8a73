"""A stream: what one client of one or more views is sent, from where it stands.

Its place is one position for all its views. The id of an event is a position only if all that
happened up to it has been sent: of the events of one transaction, the last has it. A client that is
cut off in between gets all of them again.
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
from harken.server.desk import Desk
from harken.server.events import HEARTBEAT, Quality, event, failure_event, without_id
from harken.server.feeds import Entry, Feed, news
from harken.server.values import snapshot_json

RETRY_MS = 1_000
Found = list[list[Entry]]
"""For each view the changes that a client has not had."""


class Stream:
    def __init__(
        self,
        feeds: Sequence[Feed],
        quality: Quality,
        reader: Desk,
        stopped: asyncio.Event,
        heartbeat: float,
    ) -> None:
        self._feeds = feeds
        self._quality = quality
        self._reader = reader
        self._stopped = stopped
        self._heartbeat = heartbeat

    async def events(self, since: int | None) -> AsyncIterator[bytes]:
        """First, unless the client goes on from a position, all rows."""
        yield f"retry: {RETRY_MS}\n\n".encode()
        try:
            for feed in self._feeds:
                yield event("view", await self._reader.do(feed.describe))
            async for each in self._from(since):
                yield each
        except HarkenError as error:
            yield failure_event(error)

    async def _from(self, position: int | None) -> AsyncIterator[bytes]:
        sent = position or 0
        behind = True  # only the log knows whether it can be gone on from there
        while not self._stopped.is_set():
            found = None if position is None or behind else self._newest(position)
            if found is None and position is not None:
                found, position = await self._stored(position)
            behind = False
            if found is None or position is None:
                position, data = await self._anew()
                sent = position
                yield data
            elif any(found):
                if data := b"".join(self._chosen(found, sent)):
                    yield data
                sent = max(entries[-1].position for entries in found if entries)
                position = max(position, sent)
                async for beat in self._rest():
                    yield beat
            elif not await news(self._feeds, self._heartbeat):
                yield HEARTBEAT

    def _newest(self, position: int) -> Found | None:
        found = []
        for feed in self._feeds:
            if feed.failure is not None:
                raise feed.failure
            entries = feed.after(position)
            if entries is None:
                return None
            found.append(entries)
        return found

    async def _stored(self, position: int) -> tuple[Found | None, int | None]:
        """What the logs have after a position, and how far that reaches; None if the client must
        begin anew."""

        def read(_: Database) -> tuple[Found | None, int | None]:
            stored, now = kept_after([feed.subscription for feed in self._feeds], position)
            found = [
                feed.entries(each)
                for feed, each in zip(self._feeds, stored, strict=True)
                if each is not None
            ]
            return (found, now) if len(found) == len(stored) else (None, None)

        return await self._reader.do(read)

    async def _anew(self) -> tuple[int, bytes]:
        """All rows of all views, at one position; computed once for all who ask before anything
        changes."""

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

        taken = await self._reader.do(take)
        position = taken[0][0].position
        told = [
            self._quality.snapshot(feed, change, text)
            for feed, (change, text) in zip(self._feeds, taken, strict=True)
        ]
        return position, b"".join(_last_has_the_id(told, position))

    def _chosen(self, found: Found, since: int) -> Iterator[bytes]:
        """The events, as the client wants them; those of many views in the order of commits."""
        if len(found) == 1:
            yield from (data for _, data in self._quality.events(self._feeds[0], found[0], since))
            return
        if self._quality.every:
            told = [
                data
                for feed, entries in zip(self._feeds, found, strict=True)
                for _, data in self._quality.events(feed, entries, since)
            ]
            last = max(entries[-1].position for entries in found if entries)
            yield from _last_has_the_id(told, last)
            return
        each = (
            (position, data)
            for feed, entries in zip(self._feeds, found, strict=True)
            for position, data in self._quality.events(feed, entries, since)
        )
        ordered = sorted(each, key=lambda pair: pair[0])
        for position, group in groupby(ordered, key=lambda pair: pair[0]):
            yield from _last_has_the_id([data for _, data in group], position)

    async def _rest(self) -> AsyncIterator[bytes]:
        """Let an interval pass, and show now and then that we are there."""
        until = time.monotonic() + self._quality.every
        while (left := until - time.monotonic()) > 0 and not self._stopped.is_set():
            try:
                await asyncio.wait_for(self._stopped.wait(), min(left, self._heartbeat))
            except TimeoutError:
                if until - time.monotonic() > 0:
                    yield HEARTBEAT


def _last_has_the_id(events: Sequence[bytes], position: int) -> Iterator[bytes]:
    plain = [without_id(each) for each in events]
    yield from plain[:-1]
    if plain:
        yield plain[-1].replace(b"\ndata: ", f"\nid: {position}\ndata: ".encode(), 1)
