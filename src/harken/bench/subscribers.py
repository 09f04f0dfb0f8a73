"""`harken bench subscribers`: what subscribers of a view cost the writer.

Two databases take turns. In one a single client follows a view, in the other a thousand follow the
same view, and each transaction changes it. In `subscribers` they are subscriptions of the session,
which fetch their changes after each round, outside of the measured time. In `subscribers-served`
they are streams of `harken serve`, in a process of its own, and a third process holds the clients;
the time is wall time. The writer either waits after each transaction until all have received it, or
does not.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import harken
from harken.bench.figures import Figure, compare, cpu_time

SCHEMA = """
create type item properties (quantity integer);
create function low(item i) -> integer as select quantity(i) where quantity(i) < 100;
commit;
"""
ITEMS, FULL = 1_000, 500
TRANSACTIONS = 100
NEEDS = "<= 1.2"


# --- in the session ------------------------------------------------------------------------


def figures(items: int = 1_000, rounds: int = 15) -> Iterator[Figure]:
    """`items` is the number of subscribers."""
    for keep in (False, True):
        yield from _in_session(items, rounds, keep)


def _in_session(count: int, rounds: int, keep: bool) -> Iterator[Figure]:
    params = {"subscribers": count, "changes": "kept" if keep else "in memory"}
    figure = partial(Figure, "subscribers", params=params)
    with harken.connect() as alone, harken.connect() as among:
        one, all_ = _shop(alone), _shop(among)
        subscriptions = [alone.monitor("low", keep=keep)]
        subscriptions += [among.monitor("low", keep=keep) for _ in range(count)]

        def read() -> None:
            for each in subscriptions:
                assert len(each.changes()) == TRANSACTIONS

        timings = []
        for _ in range(rounds):
            timings.append(compare(partial(_write, all_), partial(_write, one), 1, cpu_time))
            read()
    yield figure("one subscriber µs", statistics.median(t.theirs for t in timings) / SCALE)
    yield figure("all subscribers µs", statistics.median(t.ours for t in timings) / SCALE)
    yield figure("all/one", statistics.median(t.ratio for t in timings), needs=NEEDS)


SCALE = TRANSACTIONS / 1e6


class Shop:
    """Items whose quantities grow, one by one, each time in a transaction of its own."""

    def __init__(self, db: harken.Database) -> None:
        self._db = db
        self._quantity = db.function("quantity")
        self._items = list(self._quantity)
        self._turn = 0

    def next(self) -> tuple[harken.Object, int, int]:
        """The next item, its quantity, and its new quantity."""
        round_, number = divmod(self._turn, len(self._items))
        self._turn += 1
        return self._items[number], round_ or FULL, round_ + 1

    def write(self, item: harken.Object, _: int, quantity: int) -> None:
        with self._db.transaction():
            self._quantity[item] = quantity


def _shop(db: harken.Database) -> Shop:
    db.amosql(SCHEMA)
    db.load("item", ((FULL,) for _ in range(ITEMS)), ("quantity",))
    return Shop(db)


def _write(shop: Shop) -> None:
    for _ in range(TRANSACTIONS):
        shop.write(*shop.next())


# --- over HTTP -----------------------------------------------------------------------------


def figures_served(items: Sequence[int] = (1_000,), rounds: int = 3) -> Iterator[Figure]:
    for count in items:
        yield from _served(count, rounds)


def _served(count: int, rounds: int) -> Iterator[Figure]:
    figure = partial(Figure, "subscribers-served", params={"items": count})
    with ExitStack() as stack:
        one = stack.enter_context(_followed(1))
        all_ = stack.enter_context(_followed(count))
        for how, waits, posts in WAYS:
            ours: list[float] = []
            theirs: list[float] = []
            for number in range(rounds * TRANSACTIONS):
                order = [(all_, ours), (one, theirs)][:: 1 if number % 2 else -1]
                for followed, taken in order:
                    taken.append(followed.write(waits, posts))
            one.catch_up()
            all_.catch_up()
            yield figure(f"one stream µs{how}", statistics.median(theirs) * 1e6)
            yield figure(f"all streams µs{how}", statistics.median(ours) * 1e6)
            ratio = statistics.median(ours) / statistics.median(theirs)
            yield figure(f"all/one{how}", ratio, needs=NEEDS)
        yield figure("until all have it ms", statistics.median(all_.delays) * 1e3)


WAYS = (("", True, False), (", without a pause", False, False), (", posted", True, True))
"""How transactions are made: whether the writer waits, and whether the service makes them."""


class Followed:
    """A shop whose view is followed from another process."""

    def __init__(self, db: harken.Database, url: str, heard: Callable[[], str]) -> None:
        self._db = db
        self._shop = Shop(db)
        self._client = harken.Client(url)
        self._hear = heard
        self._heard = 0
        self.delays: list[float] = []

    def write(self, waits: bool, posts: bool) -> float:
        item, before, after = self._shop.next()
        started = time.perf_counter()
        if posts:
            gone, come = {"quantity": [(item, before)]}, {"quantity": [(item, after)]}
            self._client.apply(delete=gone, insert=come)
        else:
            self._shop.write(item, before, after)
        taken = time.perf_counter()
        if waits:
            self.catch_up()
            self.delays.append(time.perf_counter() - taken)
        return taken - started

    def catch_up(self) -> None:
        position = self._db.position
        while self._heard < position:
            self._heard = int(self._hear())


@contextmanager
def _followed(count: int) -> Iterator[Followed]:
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "shop.db")
        with harken.connect(path) as db:
            _shop(db)
            with _process("harken", "serve", "--db", path, "--port", "0") as told:
                url = told().split(" at ")[1].strip()
                with _process("harken.bench.listeners", url, "low", str(count)) as heard:
                    assert heard() == "ready\n"
                    yield Followed(db, url, heard)


@contextmanager
def _process(*arguments: str) -> Iterator[Callable[[], str]]:
    """A module of ours as a process; returns a function that reads its next line of output."""
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
