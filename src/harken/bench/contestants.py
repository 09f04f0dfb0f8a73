"""Databases that find the changes of one view in different ways, and are measured side by side.

Law: all of them see the same changes, and tell the same of them.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import harken
from harken.bench.figures import cpu_time
from harken.database.monitors.subscription import Subscription

Row = tuple[int, ...]


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

    def change(self, name: str, rows: Iterable[Row], adding: bool, counts: bool) -> object:
        """Put rows into a relation or take them out; what was told of the view."""
        connection, relation = self.db._connection, self.db.function(name)
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

    def forget(self) -> None:
        self.times.clear()
        self.derived.clear()

    def bytes_kept(self) -> int:
        """What the tables of the session hold."""
        pages = self.db._connection.value(
            "SELECT coalesce(sum(payload), 0) FROM dbstat('temp') WHERE name NOT LIKE 'sqlite%'"
        )
        return int(pages)


def contestant(
    text: str,
    view: str,
    strategy: str,
    facts: Mapping[str, Sequence[Row]],
    stack: contextlib.ExitStack,
) -> Contestant:
    """A program of Datalog with these facts, and a view of it that is followed."""
    db = stack.enter_context(harken.connect())
    db.datalog(text)
    with db.transaction():
        for name, rows in facts.items():
            relation = db._find(name).relation
            assert relation is not None
            db._runtime.engine.add_many(relation, rows)
    return Contestant(strategy, db, db.monitor(view, strategy=strategy))


def in_turns(field: list[Contestant], name: str, rows: Sequence[Row], *, counts: bool) -> None:
    """Take rows out and put them back, in each database."""
    for adding in (False, True):
        told = [each.change(name, rows, adding, counts) for each in field]
        if any(each != told[0] for each in told):
            raise AssertionError("the strategies do not tell the same")
