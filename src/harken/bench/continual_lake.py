"""`harken bench cq-lake`: continual queries over a table in the lake, against running them.

A hundred queries watch a table of shares: what some companies' dear shares are, how many shares and
how much volume others have, and the shares of others with the names of their sectors. Somebody else
writes ten thousand changed rows into the table. One step of the pipeline takes them in and follows
the answers, and then all queries are executed, each with its difference. Beside it, the hundred
queries are run over the same table, in the same Spark session.

The queries beyond the first of each form are installed without their first execution, which is not
measured: it is one run of the query.

Law: the differences of the executions are those of the answers before and after the step.
"""

from __future__ import annotations

import datetime
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import harken
from harken.bench.figures import Figure
from harken.continual.query_clauses import Clauses

QUERIES = 100
CHANGED = 10_000
COMPANIES = 5_000
SECTORS = 50
SIZES = (10_000_000,)
NEEDS = ">= 10"
START = datetime.datetime(2026, 1, 5, 12, tzinfo=datetime.UTC)
FORMS = (
    "SELECT symbol, price FROM stock WHERE company = {0} AND price > {1}",
    "SELECT company, count(*) AS shares, sum(volume) AS volume FROM stock "
    "WHERE company = {0} GROUP BY company",
    "SELECT symbol, name, price FROM stock JOIN sector ON stock.sector = sector.number "
    "WHERE company = {0} AND volume > {1}",
)
CHECKED = 3
"""Queries whose differences are compared with their answers before and after."""


def figures(items: Sequence[int] = SIZES, rounds: int = 3) -> Iterator[Figure]:
    from harken.api.opening import spark_session

    with ExitStack() as stack:
        spark = spark_session()
        stack.callback(spark.stop)
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="harken-bench-"))
        for size in sorted(set(items)):
            exchange = Exchange(size, spark, Path(directory) / f"{size}")
            try:
                yield from _compared(exchange, rounds)
            finally:
                exchange.db.close()


def _compared(exchange: Exchange, rounds: int) -> Iterator[Figure]:
    params = {"items": exchange.items, "queries": QUERIES, "changed": CHANGED}
    figure = partial(Figure, "cq-lake", params=params)
    exchange.turn()  # plans are made, and totals are built
    turns = [exchange.turn() for _ in range(rounds)]
    step, execute, run = (statistics.median(each) for each in zip(*turns, strict=True))
    yield figure("step s", step)
    yield figure("executions s", execute)
    yield figure(f"running the {QUERIES} s", run)
    needs = NEEDS if exchange.items == SIZES[0] else None
    yield figure("running/step and executions", run / (step + execute), needs=needs)


class Exchange:
    """Shares in the lake, and continual queries on them that are executed every hour."""

    def __init__(self, items: int, spark: Any, path: Path) -> None:
        self.items, self.now, self._turns = items, START, 0
        path.mkdir()
        self.db = harken.connect(path / "cq.db", spark=spark, clock=lambda: self.now)
        self._fill()
        self._texts = [
            FORMS[number % len(FORMS)].format(number * COMPANIES // QUERIES, 900)
            for number in range(QUERIES)
        ]
        for number, text in enumerate(self._texts):
            self._install(number, text)

    def _fill(self) -> None:
        import numpy as np
        import pyarrow as pa

        random = np.random.default_rng(7)
        symbol = np.arange(self.items)
        shares = {
            "symbol": symbol,
            "company": symbol % COMPANIES,
            "sector": random.integers(0, SECTORS, self.items),
            "price": random.integers(1, 1_000, self.items).astype("float64"),
            "volume": random.integers(1, 1_000, self.items),
        }
        self.db.lake("stock", pa.table(shares), key=["symbol"])
        self.db.sql("CREATE TABLE sector (number INT PRIMARY KEY, name STRING)")
        self.db.insert("sector", [(number, f"sector {number}") for number in range(SECTORS)])

    def _install(self, number: int, text: str) -> None:
        if number < len(FORMS):
            self.db.sql(
                f"CREATE CONTINUAL QUERY q{number} AS {text} TRIGGER EVERY HOUR "
                "STRATEGY differential"
            )
            return
        continual = self.db.internals.continual
        first = continual.queries.need("q0")
        made = continual.queries.number()
        clauses: Clauses = replace(first.clauses, query=text)
        query = replace(first, number=made, id=f"cq{made}", name=f"q{number}", clauses=clauses)
        with self.db.transaction():
            continual.queries.write(query)
            continual.changed(query)
            continual.answers.start(made)

    def turn(self) -> tuple[float, float, float]:
        """The seconds of a step with changed rows, of the executions after it, and of running all
        queries."""
        self._turns += 1
        checked = self._texts[:CHECKED]
        before = [Counter(self.db.sql(text).rows) for text in checked]
        self._change_outside()
        step, _ = _timed(self.db.step)
        self.now += datetime.timedelta(hours=1)
        execute, done = _timed(self.db.run_due)
        run, answers = _timed(lambda: [self.db.sql(text).rows for text in self._texts])
        found = {each.query: each for each in done}
        assert len(found) == QUERIES, len(found)
        for number, old in enumerate(before):
            each = found[f"q{number}"]
            old.update(each.inserted)
            old.subtract(each.deleted)
            assert +old == Counter(answers[number]), checked[number]
        return step, execute, run

    def _change_outside(self) -> None:
        """Somebody else writes the table: some shares get other prices and volumes."""
        import numpy as np
        import pyarrow as pa

        from harken.sources.own_table import open_table

        table = open_table(self.db.internals.engine.lake_relations["stock(integer)"].place.path)
        version = table.version
        rows = table.rows(version)
        random = np.random.default_rng(self._turns)
        chosen = np.sort(random.choice(self.items, min(CHANGED // 2, self.items), replace=False))
        before = rows.take(pa.array(chosen))
        moved = before["price"].to_numpy() % 999 + 1
        after = before.set_column(before.schema.get_field_index("price"), "price", pa.array(moved))
        place = before.schema.get_field_index("volume")
        after = after.set_column(place, "volume", pa.array(before["volume"].to_numpy() % 999 + 1))
        table.commit(after, before, expected_version=version)


def _timed(work: Any) -> tuple[float, Any]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found
