"""`harken bench waves`: one UPDATE of one row in a transaction of its own, with views on top.

A table of sales, and three materialised views: sum and count by shop; a join of three tables with a
comparison; sum and count over a join by region. Beside it stand the same tables in SQLite with
triggers written by hand, to which the UPDATE is sent as text, as most programs do.

Law: what is compared made the same updates, and its views have the same rows in the end.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import harken
from harken.bench import baseline
from harken.bench.figures import Figure, cpu_time, seconds

SHOPS, KINDS, REGIONS, MOST = 1_000, 50, 20, 1_000
UPDATES = 300
"""Transactions that are timed together."""
BESIDE = (3, 10, 100)
"""Views over other tables."""
GROUPED = (3, 10, 30)
"""Grouped views over the same table."""

TABLES = (
    "CREATE TABLE shop (id BIGINT PRIMARY KEY, region BIGINT NOT NULL)",
    "CREATE TABLE kind (id BIGINT PRIMARY KEY, least BIGINT NOT NULL)",
    "CREATE TABLE sale (id BIGINT PRIMARY KEY, shop BIGINT NOT NULL, kind BIGINT NOT NULL, "
    "amount BIGINT NOT NULL)",
)
VIEWS = {
    "by_shop": "SELECT shop, sum(amount) AS total, count(*) AS n FROM sale GROUP BY shop",
    "dear": "SELECT s.id AS id, h.region AS region, s.amount AS amount FROM sale s "
    "JOIN shop h ON h.id = s.shop JOIN kind k ON k.id = s.kind WHERE s.amount > k.least",
    "by_region": "SELECT h.region AS region, sum(s.amount) AS total, count(*) AS n FROM sale s "
    "JOIN shop h ON h.id = s.shop GROUP BY h.region",
}
UPDATE = "UPDATE sale SET shop = {1}, kind = {2}, amount = {3} WHERE id = {0}"

BY_HAND = """
CREATE TABLE shop (id INTEGER PRIMARY KEY, region INTEGER NOT NULL) STRICT;
CREATE TABLE kind (id INTEGER PRIMARY KEY, least INTEGER NOT NULL) STRICT;
CREATE TABLE sale (id INTEGER PRIMARY KEY, shop INTEGER NOT NULL, kind INTEGER NOT NULL,
    amount INTEGER NOT NULL) STRICT;
CREATE TABLE by_shop (shop INTEGER PRIMARY KEY, total INTEGER NOT NULL, n INTEGER NOT NULL) STRICT;
CREATE TABLE dear (id INTEGER PRIMARY KEY, region INTEGER NOT NULL, amount INTEGER NOT NULL) STRICT;
CREATE TABLE by_region (region INTEGER PRIMARY KEY, total INTEGER NOT NULL, n INTEGER NOT NULL)
    STRICT;
"""
FILLED_BY_HAND = "INSERT INTO {0} {1}"
TRIGGER_BY_HAND = """
CREATE TRIGGER sale_changed AFTER UPDATE ON sale BEGIN
    UPDATE by_shop SET total = total - OLD.amount, n = n - 1 WHERE shop = OLD.shop;
    DELETE FROM by_shop WHERE shop = OLD.shop AND n = 0;
    INSERT INTO by_shop VALUES (NEW.shop, NEW.amount, 1)
        ON CONFLICT DO UPDATE SET total = total + NEW.amount, n = n + 1;
    DELETE FROM dear WHERE id = OLD.id;
    INSERT INTO dear SELECT NEW.id, h.region, NEW.amount FROM shop h, kind k
        WHERE h.id = NEW.shop AND k.id = NEW.kind AND NEW.amount > k.least;
    UPDATE by_region SET total = total - OLD.amount, n = n - 1
        WHERE region = (SELECT region FROM shop WHERE id = OLD.shop);
    DELETE FROM by_region WHERE n = 0
        AND region = (SELECT region FROM shop WHERE id = OLD.shop);
    INSERT INTO by_region SELECT region, NEW.amount, 1 FROM shop WHERE id = NEW.shop
        ON CONFLICT DO UPDATE SET total = total + NEW.amount, n = n + 1;
END;
"""

Sale = tuple[int, int, int, int]
Apply = Callable[[Sequence[Sale]], None]


def _contents(items: int) -> dict[str, list[tuple[int, ...]]]:
    chance = random.Random(1)
    return {
        "shop": [(number, number % REGIONS) for number in range(SHOPS)],
        "kind": [(number, MOST * 9 // 10) for number in range(KINDS)],
        "sale": [(number, *_rest(chance)) for number in range(items)],
    }


def _rest(chance: random.Random) -> tuple[int, int, int]:
    return chance.randrange(SHOPS), chance.randrange(KINDS), chance.randrange(MOST)


class Ours:
    """A database of Harken, or another session of one that is there."""

    def __init__(self, path: str, views: Sequence[str] = (), items: int | None = None) -> None:
        self.db = harken.connect(path)
        if items is not None:
            for text in TABLES:
                self.db.sql(text)
            for table, rows in _contents(items).items():
                self.db.load(table, rows)
        for name in views:
            self.db.sql(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")

    def fast(self, rows: Sequence[Sale]) -> None:
        """Without a parser."""
        sale = self.db.function("sale")
        for key, *rest in rows:
            sale[key] = tuple(rest)

    def text(self, rows: Sequence[Sale]) -> None:
        for row in rows:
            self.db.sql(UPDATE.format(*row))

    def views(self) -> list[list[Any]]:
        return [sorted(self.db.sql(f"SELECT * FROM {name}").rows) for name in VIEWS]


class ByHand:
    """SQLite with triggers, and with the settings of a database of Harken."""

    def __init__(self, path: str, items: int) -> None:
        self.connection = baseline.connect(path)
        execute = self.connection.execute
        execute(BY_HAND)
        with self.connection:
            for table, rows in _contents(items).items():
                marks = ", ".join("?" for _ in rows[0])
                self.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
            for name, query in VIEWS.items():
                execute(FILLED_BY_HAND.format(name, query))
        execute(TRIGGER_BY_HAND)

    def text(self, rows: Sequence[Sale]) -> None:
        for row in rows:
            self.connection.execute(UPDATE.format(*row))

    def views(self) -> list[list[Any]]:
        return [sorted(self.connection.execute(f"SELECT * FROM {name}")) for name in VIEWS]


@dataclass(slots=True)
class Race:
    """Ways to make updates, in turns; the seconds that one update took in each."""

    items: int
    ways: dict[str, Apply]
    clock: Callable[[], float] = cpu_time
    updates: int = field(default_factory=lambda: UPDATES)
    times: dict[str, list[float]] = field(default_factory=dict)
    chance: random.Random = field(default_factory=lambda: random.Random(2))

    def run(self, rounds: int) -> None:
        for number in range(rounds + 1):
            rows = [self._row() for _ in range(self.updates)]
            for name, way in self.ways.items():
                took = seconds(partial(way, rows), self.clock)
                if number:  # the first round plans
                    self.times.setdefault(name, []).append(took / self.updates)

    def _row(self) -> Sale:
        return (self.chance.randrange(self.items), *_rest(self.chance))

    def microseconds(self, name: str) -> float:
        return statistics.median(self.times[name]) * 1e6

    def ratio(self, name: str, other: str) -> float:
        pairs = zip(self.times[name], self.times[other], strict=True)
        return statistics.median(one / two for one, two in pairs)


def figures(items: int = 100_000, rounds: int = 7) -> Iterator[Figure]:
    with baseline.directory() as directory:
        yield from _by_hand(items, rounds, "memory", None)
        yield from _by_hand(items, rounds, "file", directory)
        yield from _two_writers(items, rounds, directory)
    yield from _beside(items, rounds)
    yield from _grouped(items, rounds)


def _by_hand(items: int, rounds: int, where: str, directory: Path | None) -> Iterator[Figure]:
    params = {"items": items, "database": where}

    def path(name: str) -> str:
        return ":memory:" if directory is None else str(directory / name)

    with ExitStack() as stack:
        ours = Ours(path("ours.db"), tuple(VIEWS), items)
        watched = Ours(path("watched.db"), tuple(VIEWS), items)
        texts = Ours(path("texts.db"), tuple(VIEWS), items)
        hand = ByHand(path("hand.db"), items)
        for each in (ours, watched, texts):
            stack.enter_context(closing(each.db))
        stack.enter_context(closing(hand.connection))
        changes = watched.db.monitor("by_shop")

        def watching(rows: Sequence[Sale]) -> None:
            watched.fast(rows)
            changes.changes()

        ways: dict[str, Apply] = {
            "by hand": hand.text,
            "fast": ours.fast,
            "monitor": watching,
            "text": texts.text,
        }
        clock = cpu_time if directory is None else perf_counter
        race = Race(items, ways, clock)
        race.run(rounds)
        if not hand.views() == ours.views() == watched.views() == texts.views():
            raise AssertionError("the two ways disagree about the views")
    for name in ways:
        yield Figure("waves", f"{name} µs", race.microseconds(name), params)
    for name, most in (("fast", 4), ("monitor", 5), ("text", 6)):
        yield Figure("waves", f"{name}/by hand", race.ratio(name, "by hand"), params, f"<= {most}")


def _two_writers(items: int, rounds: int, directory: Path) -> Iterator[Figure]:
    """Two sessions of one file take turns, after each update."""
    with ExitStack() as stack:
        alone, first = (
            Ours(str(directory / name), tuple(VIEWS), items) for name in ("alone.db", "two.db")
        )
        second = Ours(str(directory / "two.db"))
        for each in (alone, first, second):
            stack.enter_context(closing(each.db))

        def in_turns(rows: Sequence[Sale]) -> None:
            for number, row in enumerate(rows):
                (second if number % 2 else first).fast([row])

        race = Race(items, {"one": alone.fast, "two": in_turns}, perf_counter)
        race.run(rounds)
        if not alone.views() == first.views() == second.views():
            raise AssertionError("the two writers lost an update")
    params = {"items": items, "database": "file"}
    for name in race.ways:
        yield Figure("waves-writers", f"{name} µs", race.microseconds(name), params)
    yield Figure("waves-writers", "two/one", race.ratio("two", "one"), params, "<= 2")


def _beside(items: int, rounds: int) -> Iterator[Figure]:
    """Views over tables that the update does not concern."""
    with ExitStack() as stack:
        ways: dict[str, Apply] = {}
        for count in (0, *BESIDE):
            ours = Ours(":memory:", tuple(VIEWS), items)
            stack.enter_context(closing(ours.db))
            for number in range(count):
                ours.db.sql(f"CREATE TABLE other{number} (k BIGINT PRIMARY KEY, v BIGINT NOT NULL)")
                ours.db.sql(
                    f"CREATE MATERIALIZED VIEW above{number} AS "
                    f"SELECT v, count(*) AS n FROM other{number} GROUP BY v"
                )
            ways[str(count)] = ours.fast
        race = Race(items, ways)
        race.run(rounds)
    for count in BESIDE:
        params = {"items": items, "views": count}
        yield Figure("waves-beside", "with/without", race.ratio(str(count), "0"), params, "<= 1.1")


def _grouped(items: int, rounds: int) -> Iterator[Figure]:
    """Several grouped views over the same table: what each of them takes."""
    with ExitStack() as stack:
        ways: dict[str, Apply] = {}
        for count in (0, *GROUPED):
            ours = Ours(":memory:", (), items)
            stack.enter_context(closing(ours.db))
            for number in range(count):
                ours.db.sql(
                    f"CREATE MATERIALIZED VIEW grouped{number} AS SELECT shop, "
                    f"sum(amount + {number}) AS total, count(*) AS n FROM sale GROUP BY shop"
                )
            ways[str(count)] = ours.fast
        race = Race(items, ways)
        race.run(rounds)
    without = race.microseconds("0")
    each = {count: (race.microseconds(str(count)) - without) / count for count in GROUPED}
    for count in GROUPED:
        params = {"items": items, "views": count}
        yield Figure("waves-grouped", "µs a view", each[count], params)
        if count != GROUPED[0]:
            ratio = each[count] / each[GROUPED[0]]
            yield Figure("waves-grouped", f"a view/of {GROUPED[0]}", ratio, params, "<= 1.1")
