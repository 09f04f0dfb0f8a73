"""A database with a clock that tests move, and a file that messages are written to."""

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken


class Clock:
    def __init__(self) -> None:
        self.now = datetime.datetime(2026, 1, 5, 12, tzinfo=datetime.UTC)  # a Monday

    def __call__(self) -> datetime.datetime:
        return self.now

    def move(self, **length: float) -> None:
        self.now += datetime.timedelta(**length)


class Watched:
    """A session on a file, and what its continual queries have written to `out`."""

    def __init__(self, directory: Path) -> None:
        self.clock = Clock()
        self.path = directory / "cq.db"
        self.out = directory / "out.jsonl"
        self.db = self.connect()

    def connect(self, **settings: Any) -> harken.Database:
        return harken.connect(str(self.path), clock=self.clock, settings=settings)

    def reopen(self) -> None:
        self.db.close()
        self.db = self.connect()

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return self.db.sql(text.replace("OUT", f"FILE '{self.out}'")).rows

    def run(self, **later: float) -> list[Any]:
        """What is executed when this much time has passed."""
        self.clock.move(**later)
        return self.db.run_due()

    def messages(self) -> list[dict[str, Any]]:
        self.db.run_due()
        if not self.out.exists():
            return []
        return [json.loads(line) for line in self.out.read_text().splitlines()]

    def state(self, *columns: str) -> tuple[Any, ...]:
        (row,) = self.sql(f"SELECT {', '.join(columns)} FROM continual_query")
        return row


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path)
    made.sql("CREATE TABLE stock (symbol STRING PRIMARY KEY, company STRING, price DOUBLE)")
    made.sql("INSERT INTO stock VALUES ('BAY', 'Bayer AG', 10.5), ('IBM', 'IBM', 100)")
    yield made
    made.db.close()
