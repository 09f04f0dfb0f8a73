"""Databases that find the changes of one view in different ways, and are measured side by side.

Law: all of them see the same changes, and tell the same of them.
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
"""A way that takes so many seconds for one change is not waited for."""

LEARNING, LEARNING_SECONDS = 4_000, 5.0
"""Where Harken chooses it learns from so many changes, unless they take longer than this."""


@dataclass(slots=True)
class Contestant:
    """A database that finds the changes of the view in one way."""

    strategy: str
    db: harken.Database
    view: Subscription
    times: list[float] = field(default_factory=list)
    """The seconds of each change that counts."""
    derived: list[int] = field(default_factory=list)
    """The rows that it derived."""

    def change(self, name: str, rows: Iterable[Fact], adding: bool, counts: bool) -> object:
        """Put rows into a relation or take them out; what was told of the view."""
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

    def keeps_up(self, name: str, rows: Sequence[Fact]) -> bool:
        """Does it take no longer than there is patience to take rows out and put them back?"""
        try:
            for adding in (False, True):
                with self.db.internals.connection.limited(PATIENCE):
                    self.change(name, rows, adding, counts=False)
        except BrokenOff:
            return False
        return True

    def forget(self) -> None:
        self.times.clear()
        self.derived.clear()

    def bytes_kept(self) -> int:
        """What the tables of the session hold."""
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
    """A program of Datalog with these facts, and a view of it that is followed."""
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
    """Take rows out and put them back, in each database. The order is drawn: whoever comes after
    one that went through all the data finds the processor's caches full of that."""
    for adding in (False, True):
        turns = order.sample(field, len(field))
        told = [each.change(name, rows, adding, counts) for each in turns]
        if any(each != told[0] for each in told):
            raise AssertionError("the strategies do not tell the same")


def learn(learner: Contestant, name: str, chosen: Callable[[], Sequence[Fact]]) -> None:
    """Take rows out and put them back, until it knows what its ways take."""
    until = cpu_time() + LEARNING_SECONDS
    for _ in range(LEARNING // 2):
        rows = chosen()
        for adding in (False, True):
            learner.change(name, rows, adding, counts=False)
        if cpu_time() > until:
            break
