"""The inventory of the AMOS papers, told as a story.

`inventory.amosql` is the script: a program like any other, whose comments are the narration. What
a program cannot show by itself (a mistake, a bulk load, its own clauses) follows from Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files

from rich.console import Console
from rich.text import Text

import harken
from harken.demo.stage import Stage, seconds_of

MISTAKE = "set quantiy(:laces) = 120;"
MANY = 100_000
LOW_STOCK = "select count(low_stock());"
FAREWELL = """
  harken shell              type statements yourself; `help` helps
  harken run FILE.amosql    run a program; --db PATH keeps its data
  docs/amosql.md            the whole language, with examples
"""


def play(console: Console | None = None) -> None:
    """Run the story on a database in memory."""
    LanguageStory(console or Console(highlight=False)).play()


class LanguageStory(Stage):
    def __init__(self, console: Console) -> None:
        super().__init__(console, harken.connect())

    def play(self) -> None:
        with self._db:
            self._title("An inventory in AMOSQL")
            for narration, program in scenes():
                self._say(narration)
                self._run(program)
            self._title("A mistake")
            self._make_a_mistake()
            self._title(f"The same with {MANY:,} items")
            self._grow()
            self._title("What Harken made of it")
            self._show_clauses()
            self._title("Your turn")
            self._part()

    # --- the scenes after the script -------------------------------------------------------

    def _make_a_mistake(self) -> None:
        self._say("An error says where it is and what to do, and leaves nothing half done.")
        self._run(MISTAKE)

    def _grow(self) -> None:
        self._say(
            "From Python, many objects load in one call. Each gets a supplier of its own, and one "
            "in a hundred is low."
        )
        took = seconds_of(self._load)
        self._fact(f"{MANY:,} items and {MANY:,} suppliers loaded", took)
        took = seconds_of(lambda: self._run(LOW_STOCK))
        self._fact("five tables joined, every item looked at", took)
        took = seconds_of(self._update)
        self._fact("10,000 quantities changed, one at a time, and committed", took)
        self._run(LOW_STOCK)

    def _load(self) -> None:
        rows = ((f"item {n}", 119 + n % 100, 10_000, 100, 20) for n in range(MANY))
        names = ["name", "quantity", "max_stock", "min_stock", "consume_freq"]
        self._items = self._db.load("item", rows, properties=names)
        suppliers = self._db.load(
            "supplier",
            ((f"supplier of {item}", item) for item in self._items),
            properties=["name", "supplies"],
        )
        delivery_time = self._db.function("delivery_time")
        with self._db.transaction():
            for item, supplier in zip(self._items, suppliers, strict=True):
                delivery_time[item, supplier] = 1

    def _update(self) -> None:
        self._console.print(
            Text('  quantity = db.function("quantity")\n  quantity[item] = 0', style="cyan")
        )
        quantity = self._db.function("quantity")
        with self._db.transaction():
            for item in self._items[: MANY // 10]:
                quantity[item] = 0

    def _show_clauses(self) -> None:
        self._say(
            "A function becomes clauses of ObjectLog, the one language under everything here, and "
            "the clauses become one SQL statement."
        )
        self._show_indented(Text(str(self._db.explain("threshold", verbose=True))))

    def _part(self) -> None:
        self._console.print(FAREWELL)


def scenes() -> Iterator[tuple[str, str]]:
    """The script's comments, each with the statements that follow it."""
    script = files(__package__).joinpath("inventory.amosql").read_text("utf-8")
    parts = re.split(r"/\*(.*?)\*/", script, flags=re.DOTALL)
    for narration, program in zip(parts[1::2], parts[2::2], strict=True):
        yield " ".join(narration.split()), program
