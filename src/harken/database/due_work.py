"""Due work: what a session has to do when its time comes, without any statement asking for it.

Views over the clock, continual queries and the delivery of messages are due work. Each is one
object that says when it is due next and does what is due; `api/opening.py` registers them, in the
order in which they run. `db.run_due()` runs an agenda once, and a scheduler does so whenever
`db.next_due()` has come. The clock is passed in.

Moments that must survive the session are timers, in the file (`Timers`).

Law: when a run ends, no work that succeeded was due when it was last looked at. Work that fails
does not keep the rest from running.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from harken.engines.protocol import Connection, Field, RecordKind
from harken.errors import HarkenError

SOURCES, CLOCK_VIEWS = "sources", "clock views"
CONTINUAL_QUERIES, MESSAGES = "continual queries", "messages"
DETACHED_ACTIONS, RULE_TIMES = "detached actions", "moments of rules"
"""The names of the work that comes with Harken."""
MOST_PASSES = 100
"""How often one run starts over because its own work made other work due."""
Clock: TypeAlias = Callable[[], datetime.datetime]
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)
TIMERS = RecordKind(
    "harken_timers",
    (Field("kind", "text"), Field("name", "text"), Field("at", "integer")),
    key=("kind", "name"),
    ordered_by="at",
)


class DueWork(Protocol):
    @property
    def name(self) -> str:
        """What the results of a run are listed under."""

    def next_due(self) -> datetime.datetime | None:
        """When there is something to do next: a moment in the past if it is overdue, None if there
        is nothing to wait for."""

    def run(self, now: datetime.datetime) -> Iterable[Any]:
        """Do what is due, in transactions of its own (the session is in none), and return what was
        done."""


@dataclass(frozen=True, slots=True)
class DueRun:
    """What one run did, by the name of the work, and the errors of work that failed."""

    done: dict[str, list[Any]] = field(default_factory=dict)
    errors: list[HarkenError] = field(default_factory=list)


class Agenda:
    """The due work of a session, in the order of registration."""

    def __init__(self) -> None:
        self._works: list[DueWork] = []

    def register(self, work: DueWork) -> None:
        self._works.append(work)

    def works(self) -> Iterator[DueWork]:
        yield from self._works

    def next_due(self) -> datetime.datetime | None:
        """When `run` has something to do next."""
        found = (work.next_due() for work in self._works)
        return min((each for each in found if each is not None), default=None)

    def run(self, clock: Clock, see_others: Callable[[], None] = lambda: None) -> DueRun:
        """Do what is due; `see_others` is called before each look at the file."""
        found, failed = DueRun(), set[str]()
        for _ in range(MOST_PASSES):
            was_due = False
            for work in self._works:
                see_others()
                now = clock()
                if work.name in failed or not _is_due(work, now):
                    continue
                was_due = True
                try:
                    found.done.setdefault(work.name, []).extend(work.run(now))
                except HarkenError as error:
                    failed.add(work.name)
                    found.errors.append(error)
            if not was_due:
                break
        return found


def _is_due(work: DueWork, now: datetime.datetime) -> bool:
    due = work.next_due()
    return due is not None and due <= now


class Timers:
    """Moments in the file, each under a kind of work and a name; kept in the open transaction."""

    def __init__(self, connection: Connection, kind: str) -> None:
        self._records = connection.records
        self._kind = kind

    def set(self, name: str, at: datetime.datetime) -> None:
        """In a transaction: wake at a moment, instead of any other moment under this name."""
        self._records.make_room(TIMERS)
        self._records.add(TIMERS, (self._kind, name, _stored(at)), replace=True)

    def clear(self, name: str) -> None:
        """In a transaction: do not wake for this name."""
        if self._records.exist(TIMERS):
            self._records.remove(TIMERS, {"kind": self._kind, "name": name})

    def at(self, name: str) -> datetime.datetime | None:
        """The moment under a name."""
        if not self._records.exist(TIMERS):
            return None
        found = self._records.find(TIMERS, {"kind": self._kind, "name": name})
        return _read(found[0][2]) if found else None

    def next(self) -> datetime.datetime | None:
        """The earliest moment of this kind."""
        found = self._first(1)
        return found[0][1] if found else None

    def due(
        self, now: datetime.datetime, limit: int = 1_000
    ) -> list[tuple[str, datetime.datetime]]:
        """The names whose moment has come, earliest first, at most some."""
        return [(name, at) for name, at in self._first(limit) if at <= now]

    def _first(self, limit: int) -> list[tuple[str, datetime.datetime]]:
        if not self._records.exist(TIMERS):
            return []
        rows = self._records.find(TIMERS, {"kind": self._kind}, above=("at", -(2**62)), limit=limit)
        return [(name, _read(at)) for _, name, at in rows]


def _stored(at: datetime.datetime) -> int:
    return (at - EPOCH) // MICROSECOND


def _read(at: int) -> datetime.datetime:
    return EPOCH + at * MICROSECOND
