"""A million items in the lake, a stream of changes, and what Harken makes of them."""

from __future__ import annotations

import json
import random
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

import harken
from harken.demo import telling
from harken.demo.stage import Stage, seconds_of
from harken.errors import EngineError

ITEMS = 1_000_000
BATCHES = (1, 10, 1_000)
"""How many quantities each batch of the stream changes."""
LOW = 40
"""One item in this many of a batch becomes scarce, and at least one does."""

PROGRAM = """
create function threshold(integer i) -> integer as
    select consume_freq(i) * delivery_time(i) + min_stock(i);
create function low_stock() -> bag of <integer item, integer quantity> as
    select i, quantity(i) for each integer i where quantity(i) < threshold(i);
create function ordered(integer i) -> integer;
create rule reorder() as
    when for each integer i where quantity(i) < threshold(i)
    do set ordered(i) = 5000 - quantity(i);
activate reorder();
commit;
"""
FAREWELL = """
  harken demo language           the language itself, on a small inventory
  harken demo telling            the continual query alone
  harken bench lake              how this grows up to 30 million items
  harken pipeline run --watch    the same for your own Delta tables and directories: docs/lake.md
  docs/rules.md, docs/monitor.md rules and monitors, for people who know SQL
"""


def play(console: Console | None = None) -> None:
    """Run the story in a directory that is gone afterwards, on a Spark of its own."""
    from harken.api.opening import spark_session

    console = console or Console(highlight=False)
    try:
        with console.status("Starting Spark on this machine ..."):
            spark = spark_session()
    except EngineError as error:
        error.hint = f"{error.hint}; `harken demo language` needs no Spark"
        raise
    with ExitStack() as stack:
        stack.callback(spark.stop)
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="harken-demo-"))
        db = stack.enter_context(harken.connect(Path(directory) / "shop.db", spark=spark))
        LakeStory(console, db, spark, Path(directory)).play()


class LakeStory(Stage):
    def __init__(self, console: Console, db: harken.Database, spark: Any, directory: Path) -> None:
        super().__init__(console, db)
        self._spark = spark
        self._directory = directory
        self._random = random.Random(4)

    def play(self) -> None:
        self._title(f"An inventory of {ITEMS:,} items in the lake")
        self._fill()
        self._title("A rule and a monitor")
        self._watch()
        self._title("Changes stream in")
        self._stream()
        self._title("Against recomputing")
        self._recompute()
        telling.play(self._console)
        self._title("Your turn")
        self._console.print(FAREWELL)

    def _fill(self) -> None:
        self._say("Four Delta tables, each a function from the item to a number.")
        self._code('db.lake("quantity", table, key=["item"])')
        took = seconds_of(self._load)
        self._fact(f"four tables of {ITEMS:,} rows written", took)

    def _load(self) -> None:
        import numpy as np
        import pyarrow as pa

        chance = np.random.default_rng(4)
        ranges = {
            "quantity": (1_000, 5_000),
            "min_stock": (10, 100),
            "consume_freq": (1, 20),
            "delivery_time": (1, 10),
        }
        items = pa.array(np.arange(1, ITEMS + 1))
        for name, (low, high) in ranges.items():
            values = pa.array(chance.integers(low, high, ITEMS))
            self._db.lake(name, pa.table({"item": items, name: values}), key=["item"])

    def _watch(self) -> None:
        self._say(
            "The rule orders more of what runs low; the monitor tells a client what came into the "
            "view and what left it. Activating the rule evaluates its condition once, on Spark."
        )
        took = seconds_of(lambda: self._run(PROGRAM))
        self._fact("compiled, and evaluated for all items", took)
        self._code('\nlow = db.monitor("low_stock")')
        self._low = self._db.monitor("low_stock")

    def _stream(self) -> None:
        self._say(
            "A Spark stream reads files of new quantities as they arrive and puts them into the "
            "table, each batch exactly once. A step then processes what is new: it looks up the "
            "few rows that the change can concern, and computes what changed in the condition."
        )
        self._code('feed = db.feed("quantity", stream, mode="upsert", checkpoint=...)\ndb.step()')
        arriving = self._directory / "arriving"
        arriving.mkdir()
        stream = self._spark.readStream.schema("item BIGINT, quantity BIGINT").json(str(arriving))
        checkpoint = self._directory / "checkpoint"
        feed = self._db.feed("quantity", stream, mode="upsert", checkpoint=checkpoint)
        try:
            for number, size in enumerate(BATCHES, start=1):
                self._arrive(arriving, number, size)
                feed.catch_up()
                self._step(size)
        finally:
            feed.stop()

    def _arrive(self, directory: Path, number: int, size: int) -> None:
        items = self._random.sample(range(1, ITEMS + 1), size)
        scarce = set(items[: max(1, size // LOW)])
        lines = [
            json.dumps({"item": item, "quantity": 5 if item in scarce else 4_000}) for item in items
        ]
        draft = directory / f"_{number}.json"
        draft.write_text("\n".join(lines), "utf-8")
        draft.rename(directory / f"{number}.json")

    def _step(self, size: int) -> None:
        fired = self._fired()
        took = seconds_of(self._db.step)
        (change,) = self._low.changes()
        shown = ", ".join(f"+{row}" for row in change.plus[:3])
        more = f" and {len(change.plus) - 3} more" if len(change.plus) > 3 else ""
        self._console.print()
        self._fact(f"{size:,} quantities changed; the step", took)
        self._show_indented(
            Text(f"low_stock: {shown}{more}\nreorder acted on {self._fired() - fired} items")
        )
        self._last = took

    def _fired(self) -> int:
        rows = self._db.amosql('select fired(r) for each rule r where name(r) = "reorder";')
        return int(rows[-1].rows[0][0])

    def _recompute(self) -> None:
        self._say("The same view from scratch, by Spark over the same files:")
        count: list[int] = []
        took = min(seconds_of(lambda: count.append(len(self._low.rows()))) for _ in range(2))
        self._fact(f"{count[-1]} items are low; recomputing", took)
        self._show_indented(
            Text(f"\nThe last step took {took / self._last:.1f} times less.", style="bold")
        )
