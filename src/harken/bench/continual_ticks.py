"""`harken bench cq`: what installed continual queries cost the one who changes the data.

A stock exchange of 10,000 shares ticks. In one database 10 continual queries wait for a price to
drop by 5 %, in the others 1,000 and 10,000 do, each for a company of its own. Ten shares tick in
turn: most ticks drop the price by too little, every sixth fires the query of the share, which is
then executed. The databases take turns, and a tick is compared with one where 10 are installed.

Beside it stand the naive algorithm of the thesis, which executes every query after each tick, and a
client that polls: it asks for the price of each company it follows.

The queries beyond the first ten are installed without their first execution, which is not measured.
Their answers are recomputed at an execution (STRATEGY naive).
"""

from __future__ import annotations

import datetime
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import harken
from harken.bench.figures import Figure, cpu_time, seconds
from harken.continual.installed_queries import InstalledQuery

FIRING = 10
SHARES = 10_000
TICKS = 60
"""Ticks of a round: each of the ten shares ticks six times, and fires once."""
NEEDS = "<= 1.5"
START = datetime.datetime(2026, 1, 5, 12, tzinfo=datetime.UTC)
QUERY = "SELECT symbol, price FROM stock WHERE company = 'c{}'"
TRIGGER = "WHEN price DECBYP 5 WHERE company = 'c{}'"


def figures(items: Sequence[int] = (10, 1_000, 10_000), rounds: int = 7) -> Iterator[Figure]:
    """`items` are the numbers of installed queries; the first is the one to compare with."""
    exchanges = {count: Exchange(count) for count in items}
    try:
        yield from _compared(exchanges, rounds)
    finally:
        for each in exchanges.values():
            each.db.close()


def _compared(exchanges: dict[int, Exchange], rounds: int) -> Iterator[Figure]:
    taken: dict[int, list[float]] = {count: [] for count in exchanges}
    for each in exchanges.values():
        each.round()
    for number in range(rounds):
        order = list(exchanges.items())[:: 1 if number % 2 else -1]
        for count, exchange in order:
            taken[count].append(seconds(exchange.round, cpu_time) / TICKS)
    first = next(iter(exchanges))
    for count, exchange in exchanges.items():
        figure = partial(Figure, "cq", params={"queries": count, "firing": FIRING})
        tick = statistics.median(taken[count])
        yield figure("tick µs", tick * 1e6)
        if count != first:
            pairs = zip(taken[count], taken[first], strict=True)
            ratio = statistics.median(ours / theirs for ours, theirs in pairs)
            yield figure(f"tick/tick with {first}", ratio, needs=NEEDS)
        yield figure("naive/tick", exchange.naive() / tick)
        yield figure("polling/tick", exchange.polling() / tick)


class Exchange:
    """Shares whose prices tick, and continual queries on them."""

    def __init__(self, count: int) -> None:
        self._now = START
        self._count = count
        self.db = harken.connect(clock=lambda: self._now)
        self.db.sql("CREATE TABLE stock (symbol STRING PRIMARY KEY, company STRING, price DOUBLE)")
        self.db.insert("stock", [(f"s{i}", f"c{i}", 1e6) for i in range(SHARES)])
        self._prices = [1e6] * FIRING
        with self.db.transaction():
            for number in range(FIRING):
                self.db.sql(
                    f"CREATE CONTINUAL QUERY q{number} AS {QUERY.format(number)} "
                    f"TRIGGER {TRIGGER.format(number)} STRATEGY naive"
                )
        self._install_more(count)

    def _install_more(self, count: int) -> None:
        continual = self.db.internals.continual
        first = continual.queries.all()[0]
        with self.db.transaction():
            for number in range(FIRING, count):
                query = self._like(first, number)
                continual.queries.write(query)
                continual.kinds.of(query.clauses.trigger).installed(query)
                continual.queries.count_change(query.number)

    def _like(self, first: InstalledQuery, number: int) -> InstalledQuery:
        continual = self.db.internals.continual
        new = continual.queries.number()
        clauses = replace(
            first.clauses,
            query=QUERY.format(number),
            trigger=continual.kinds.read(TRIGGER.format(number)),
        )
        return replace(first, number=new, id=f"cq{new}", name=f"q{number}", clauses=clauses)

    def round(self) -> None:
        """Each share ticks six times; the last tick fires its query, which is executed."""
        for turn in range(TICKS):
            self._tick(turn % FIRING)
        done = self.db.run_due()
        assert len(done) == FIRING, len(done)
        self._now += datetime.timedelta(seconds=1)

    def _tick(self, share: int) -> None:
        self._prices[share] *= 0.99
        self.db.sql(
            "UPDATE stock SET price = ? WHERE symbol = ?", [self._prices[share], f"s{share}"]
        )

    def naive(self) -> float:
        """Seconds to execute every query once: what the naive algorithm does after each tick."""
        return self._asked(self._count, "SELECT symbol, price FROM stock WHERE company = ?")

    def polling(self) -> float:
        """Seconds that a client of every query needs to ask for its price once."""
        return self._asked(self._count, "SELECT price FROM stock WHERE company = ?")

    def _asked(self, count: int, text: str) -> float:
        few = min(count, 1_000)
        self.db.sql(text, ["c0"])  # planned once
        started = time.perf_counter()
        for number in range(few):
            self.db.sql(text, [f"c{number}"]).rows  # noqa: B018
        return (time.perf_counter() - started) * count / few
