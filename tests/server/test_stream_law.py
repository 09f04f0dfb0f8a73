"""Law: the copy of a client is always the view as it was at its position, and in the end as it is.

Here the service runs in the loop of the test, which decides when it looks at the file and when a
client takes an event: so clients fall behind the feed and behind the log, and are cut off anywhere.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import harken
from harken import Change, Copy, Database, Keep
from harken.client.client import events_of
from harken.server.feeds import Feed
from harken.server.server_sent_events import HEARTBEAT, StreamOptions
from harken.server.service import Service

SCHEMA = """
CREATE TABLE stock (item INT, quantity INT);
CREATE VIEW low AS SELECT quantity FROM stock WHERE quantity < 6;
"""
WISHES = ((["low"], None), (["low"], "quantity > 2"), (["low", "stock"], None))
CLIENT = st.integers(0, len(WISHES) - 1)
ROW = st.tuples(st.integers(1, 3), st.integers(0, 8))
COMES = st.sampled_from([True, True, True, False])
TRANSACTIONS = st.lists(st.tuples(COMES, ROW), min_size=1, max_size=6)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), TRANSACTIONS),
        st.tuples(st.just("write"), TRANSACTIONS),
        st.tuples(st.just("look"), st.none()),
        st.tuples(st.just("take"), CLIENT),
        st.tuples(st.just("take all"), CLIENT),
        st.tuples(st.just("cut off"), CLIENT),
        st.tuples(st.just("let go"), st.none()),
        st.tuples(st.just("define"), st.integers(4, 7)),
    ),
    min_size=3,
    max_size=20,
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("law") / "template.db"
    with harken.connect(path) as db:
        db.sql(SCHEMA)
    return path


class Client:
    """Its copies are what it has been sent up to the last id."""

    def __init__(self, service: Service, number: int, quality: StreamOptions) -> None:
        self.service, self.quality = service, quality
        self.views, self.where = WISHES[number]
        self.copies = {view: Copy() for view in self.views}
        self.position: int | None = None
        self.half: list[Change] = []
        self.arrived: list[tuple[str, str | None, dict[str, Any]]] = []
        self.events: AsyncIterator[bytes] | None = None

    async def take(self) -> bool:
        """The next event; False if nothing is new."""
        if self.events is None:
            self.half.clear()
            self.arrived.clear()
            feeds, self.leave = await self.service.enter(self.views, self.where)
            self.events = self.service.stream(feeds, self.quality).events(self.position)
        if not self.arrived:
            data = await anext(self.events)
            self.arrived = list(events_of(iter(data.splitlines(keepends=True))))
            if data == HEARTBEAT:
                return False
        if self.arrived:
            self.apply(*self.arrived.pop(0))
        return True

    def apply(self, kind: str, place: str | None, told: dict[str, Any]) -> None:
        if kind in ("snapshot", "change"):
            self.half.append(change_of(kind, told))
        if place is not None:
            self.position = int(place)
            for change in self.half:
                self.copies[change.view].apply(change)
            self.half.clear()

    async def take_all(self) -> None:
        while await self.take():
            pass

    async def cut_off(self) -> None:
        if self.events is not None:
            await self.events.aclose()  # type: ignore[attr-defined]
            self.leave()
            self.events = None


def change_of(kind: str, told: dict[str, Any]) -> Change:
    def rows(side: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in told[side]]

    if kind == "snapshot":
        return Change(told["view"], rows("rows"), [], told["position"], fresh=True)
    return Change(told["view"], rows("plus"), rows("minus"), told["position"])


class World:
    """A service, its clients, and another session that writes."""

    def __init__(self, service: Service, db: Database, qualities: list[StreamOptions]) -> None:
        self.service, self.db = service, db
        self.clients = [Client(service, n, quality) for n, quality in enumerate(qualities)]

    async def act(self, what: str, given: Any) -> None:
        match what:
            case "write":
                for comes, (item, quantity) in given:
                    if comes:
                        self.db.sql(f"INSERT INTO stock VALUES ({item}, {quantity})")
                    else:
                        self.db.sql(f"DELETE FROM stock WHERE quantity = {quantity}")
            case "look":
                await self.publish()
            case "take":
                await self.clients[given].take()
            case "take all":
                await self.clients[given].take_all()
            case "cut off":
                await self.clients[given].cut_off()
            case "let go":
                self.db.monitor("low", keep=True).delete()
            case "define":
                self.db.sql(
                    "CREATE OR REPLACE VIEW low AS SELECT quantity FROM stock "
                    f"WHERE quantity < {given}"
                )

    async def publish(self) -> None:
        """Until all feeds have what is in the file."""
        position = self.db.position
        await self.service.publish()
        while any(feed.seen < position for feed in self.feeds()):
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)

    def feeds(self) -> list[Feed]:
        return list(self.service.open_feeds.values())

    async def end(self) -> None:
        """All that is new reaches all who are there, and all who come back."""
        for client in self.clients:
            await self.publish()
            await client.take_all()
            await client.cut_off()

    def check(self) -> None:
        for client in self.clients:
            for view, copy in client.copies.items():
                where = f" WHERE {client.where}" if client.where else ""
                assert Counter(copy) == Counter(self.db.sql(f"SELECT * FROM {view}{where}").rows)


async def live(path: str, acts: Any, keep: Keep, qualities: list[StreamOptions]) -> None:
    service = Service(path, keep=keep, capacity=2, heartbeat=0.01, poll_interval=3600)
    await service.start()
    try:
        with harken.connect(path) as db:
            world = World(service, db, qualities)
            for client in world.clients:
                await client.take_all()
            for what, given in acts:
                await world.act(what, given)
            await world.end()
            world.check()
    finally:
        await service.close()


EVERYTHING = [StreamOptions()] * len(WISHES)
MANY = ("write", [(True, (1, quantity)) for quantity in range(6)])
BEHIND_THE_FEED = [MANY, ("look", None), ("take all", 0)]
IN_THE_MIDDLE = [MANY, ("look", None), ("take", 2), ("cut off", 2), ("take", 2), ("take", 2)]
QUALITY = st.builds(StreamOptions, every=st.sampled_from([0.0, 0.001]))


@example(acts=BEHIND_THE_FEED, keep=Keep(), qualities=EVERYTHING)
@example(acts=IN_THE_MIDDLE, keep=Keep(), qualities=EVERYTHING)
@settings(max_examples=24)
@given(
    acts=ACTS,
    keep=st.sampled_from([Keep(bytes=300), Keep(bytes=100_000)]),
    qualities=st.lists(QUALITY, min_size=len(WISHES), max_size=len(WISHES)),
)
def test_a_copy_always_ends_as_the_view(
    template: Path,
    tmp_path_factory: pytest.TempPathFactory,
    acts: Any,
    keep: Keep,
    qualities: list[StreamOptions],
) -> None:
    path = str(shutil.copy(template, tmp_path_factory.mktemp("law") / "shop.db"))
    asyncio.run(live(path, acts, keep, qualities))
