"""Databases that find the changes of one view by different strategies, measured side by side.

Law: all of them see the same changes, and report the same.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import harken
from harken.bench.figures import cpu_time
from harken.consumers.monitors.subscription import Subscription
from harken.engines.protocol import BrokenOff

Fact = tuple[int, ...]

PATIENCE = 20.0
"""A strategy that takes more seconds than this for one change is left out."""

LEARNING, LEARNING_SECONDS = 4_000, 5.0
"""Where Harken chooses, it learns from this many changes, or for this many seconds."""


@dataclass(slots=True)
class Contestant:
    """A database that finds the changes of the view by one strategy."""

    strategy: str
    db: harken.Database
    view: Subscription
    times: list[float] = field(default_factory=list)
    """The seconds of each measured change."""
    derived: list[int] = field(default_factory=list)
    """The rows that each of them derived."""

    def change(self, name: str, rows: Iterable[Fact], adding: bool, counts: bool) -> object:
        """Insert rows into a relation or delete them; returns the reported changes of the view."""
        connection, relation = self.db.internals.connection, self.db.function(name)
        before, gc_was = connection.rows_added, gc.isenabled()
        gc.disable()
        start = cpu_time()
        with self.db.transaction():
            for row in rows:
                (relation.add if adding else relation.remove)(*row)
        took = cpu_time() - start
        if gc_was:
            gc.enable()
        if counts:
            self.times.append(took)
            self.derived.append(connection.rows_added - before)
        return [(each.plus, each.minus) for each in self.view.changes()]

    def keeps_up(self, name: str, rows: Sequence[Fact], patience: float = PATIENCE) -> bool:
        """Whether deleting the rows and inserting them again takes no longer than PATIENCE."""
        try:
            for adding in (False, True):
                with self.db.internals.connection.limited(patience):
                    self.change(name, rows, adding, counts=False)
        except BrokenOff:
            return False
        return True

    def forget(self) -> None:
        self.times.clear()
        self.derived.clear()

    def bytes_kept(self) -> int:
        """The size of the session's tables."""
        pages = self.db.internals.connection.value(
            "SELECT coalesce(sum(payload), 0) FROM dbstat('temp') WHERE name NOT LIKE 'sqlite%'"
        )
        return int(pages)


def contestant(
    text: str,
    view: str,
    strategy: str,
    facts: Mapping[str, Sequence[Fact]],
    stack: contextlib.ExitStack,
) -> Contestant:
    """A Datalog program with these facts, and a monitored view of it."""
    db = stack.enter_context(harken.connect())
    db.datalog(text)
    with db.transaction():
        for name, rows in facts.items():
            relation = db.internals.relation(name)
            db.internals.engine.add_many(relation, rows)
    return Contestant(strategy, db, db.monitor(view, strategy=strategy))


def in_turns(
    field: Sequence[Contestant], name: str, rows: Sequence[Fact], order: Random, *, counts: bool
) -> None:
    """Delete rows and insert them again, in each database, in random order: whoever follows one
    that read all the data finds it in the processor's caches."""
    for adding in (False, True):
        turns = order.sample(field, len(field))
        told = [each.change(name, rows, adding, counts) for each in turns]
        if any(each != told[0] for each in told):
            raise AssertionError("the strategies do not tell the same")


def learn(learner: Contestant, name: str, chosen: Callable[[], Sequence[Fact]]) -> None:
    """Delete rows and insert them again until the chooser knows its strategies."""
    until = cpu_time() + LEARNING_SECONDS
    for _ in range(LEARNING // 2):
        rows = chosen()
        for adding in (False, True):
            learner.change(name, rows, adding, counts=False)
        if cpu_time() > until:
            break
