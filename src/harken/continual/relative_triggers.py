"""Triggers that refer to something else: to changes of the answer, to another query, to an event.

    AFTER 100 CHANGES, IMMEDIATE            rows of the difference since the last execution
    AFTER EXECUTION OF other, AFTER STOP OF other
    50 SECONDS AFTER EXECUTION OF other     the same, later
    5 MINUTES AFTER WHEN price > 100        some time after any other trigger

Law: a delayed trigger fires exactly as often as the one it refers to, later by its delay.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harken.continual.durations import Duration
from harken.continual.query_clauses import OnRequest, OnSchedule, OrOnSchedule, Trigger, name_text
from harken.continual.schedules import Schedule
from harken.continual.time_texts import take_duration, take_schedule
from harken.continual.trigger_kinds import Cause
from harken.continual.words import Reader, depths, words_of
from harken.engines.protocol import Field, RecordKind
from harken.errors import HarkenError, TypeFault, ValueFault
from harken.values.rows import Row

if TYPE_CHECKING:
    from harken.continual.continual_queries import ContinualQueries
    from harken.continual.installed_queries import InstalledQuery

EXECUTION, STOP = "EXECUTION", "STOP"
CHANGES, QUERY = "changes", "query"
"""The kinds of their causes."""
MOST_CHANGES = 1_000_000
WAITING = RecordKind(
    "harken_query_events",
    (Field("query", "integer"), Field("event", "text"), Field("count", "integer")),
    key=("query",),
    ordered_by="event",
)
"""The queries that wait for changes of their answers, or for an event of another query."""


@dataclass(frozen=True, slots=True)
class AfterChanges:
    """When so many rows of the answer have come or gone since the last execution."""

    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_CHANGES:
            raise ValueFault(
                f"AFTER {self.count} CHANGES cannot be",
                code="bad-value",
                hint=f"from 1 to {MOST_CHANGES:,}",
            )

    def __str__(self) -> str:
        return f"AFTER {self.count} CHANGE{'S' if self.count > 1 else ''}"


@dataclass(frozen=True, slots=True)
class AfterQuery:
    """When another query was executed, or has stopped."""

    event: str
    query: str

    def __str__(self) -> str:
        return f"AFTER {self.event} OF {name_text(self.query)}"


@dataclass(frozen=True, slots=True)
class Delayed:
    """Some time after another trigger has fired."""

    delay: Duration
    event: Trigger

    def __str__(self) -> str:
        said = str(self.event)
        return f"{self.delay} {said if said.startswith('AFTER ') else f'AFTER {said}'}"


def event_of(trigger: Trigger) -> Trigger:
    """What must happen for a trigger: of a delayed one, the event that it refers to,
    and of one with a schedule, the event besides."""
    return trigger.event if isinstance(trigger, Delayed | OrOnSchedule) else trigger


class RelativeTriggers:
    def __init__(self, continual: ContinualQueries) -> None:
        self._continual = continual
        self._records = continual.records

    # --- the kind ------------------------------------------------------------------------------

    def reads(self, text: str, base: int, layout: str) -> Trigger | None:
        both = self._with_schedule(text, base, layout)
        if both is not None:
            return both
        reader = Reader(text, base)
        delay = take_duration(reader)
        if delay is not None and not reader.sees("AFTER"):
            return None
        found = self._after(reader)
        if found is None and delay is not None:
            reader.need("AFTER")
            found = self._event(reader, layout)
        if found is None:
            return None
        reader.need_end("the trigger")
        return found if delay is None else Delayed(delay, found)

    def _with_schedule(self, text: str, base: int, layout: str) -> Trigger | None:
        """EVERY MONDAY OR price > 5: the schedule comes first or last."""
        words = words_of(text)
        joins = [
            each
            for each, depth in zip(words, depths(words), strict=True)
            if depth == 0 and each.upper == "OR"
        ]
        if not joins:
            return None
        first, last = joins[0], joins[-1]
        schedule, rest, place = _schedule_alone(text[: first.start]), text[first.end :], first.end
        if schedule is None and _BY_CLOCK.match(text, last.end):
            schedule, rest, place = _schedule_alone(text[last.end :]), text[: last.start], 0
        if schedule is None:
            return None
        event = self._continual.kinds.read(rest, base + place, layout)
        if isinstance(event, OnSchedule | OnRequest | OrOnSchedule | Delayed):
            raise Reader(rest, base + place).fault(
                "OR joins one schedule with events of the data",
                "EVERY MONDAY OR stock.price > 5; of two schedules make two queries",
            )
        return OrOnSchedule(schedule, event)

    def _after(self, reader: Reader) -> Trigger | None:
        start = reader.at
        if reader.takes_one(("IMMEDIATE", "IMMEDIATELY")):
            return AfterChanges(1)
        if reader.takes("AFTER"):
            number = reader.takes_kind("number")
            if number is not None and reader.takes_one(("CHANGE", "CHANGES")):
                return AfterChanges(number.whole or 0)
            if number is None:
                reader.takes_one(("THE",))
                event = reader.takes_one((EXECUTION, STOP))
                if event is not None:
                    reader.need("OF")
                    return AfterQuery(event, reader.need_name("the name of a continual query"))
        reader.at = start
        return None

    def _event(self, reader: Reader, layout: str) -> Trigger:
        rest, place = reader.rest()
        event = self._continual.kinds.read(rest, place, layout)
        if isinstance(event, OnSchedule | OnRequest | OrOnSchedule | Delayed):
            raise Reader(rest, place).fault(
                "a delay refers to an event", "50 SECONDS AFTER EXECUTION OF other"
            )
        return event

    def owns(self, trigger: Trigger) -> bool:
        return isinstance(trigger, AfterChanges | AfterQuery | Delayed | OrOnSchedule)

    def relations(self, trigger: Trigger) -> frozenset[str]:
        event = event_of(trigger)
        if event is not trigger:
            return self._continual.kinds.of(event).relations(event)
        return frozenset()

    def explained(self, query: InstalledQuery) -> list[str]:
        trigger = query.clauses.trigger
        if isinstance(trigger, Delayed):
            inner = self._continual.kinds.of(trigger.event).explained(_of_event(query))
            return [f"{trigger.delay} after it is", *inner]
        if isinstance(trigger, OrOnSchedule):
            inner = self._continual.kinds.of(trigger.event).explained(_of_event(query))
            clock = f"triggered by the clock: {trigger.schedule}, in the time of {query.zone_name}"
            return [f"{clock}, and", *inner]
        return [f"triggered {trigger}"]

    def installed(self, query: InstalledQuery) -> None:
        trigger = event_of(query.clauses.trigger)
        if isinstance(trigger, AfterChanges) and query.follows == "naive":
            raise TypeFault(
                "the changes of this query are not followed, so they cannot be counted",
                code="unsupported",
                hint="write another TRIGGER, or leave out STRATEGY naive",
            )
        if isinstance(trigger, AfterQuery):
            other = self._continual.queries.need(trigger.query)
            self._wait(query, f"{trigger.event} {other.number}")
        elif isinstance(trigger, AfterChanges):
            self._wait(query, CHANGES, trigger.count)
        if trigger is not query.clauses.trigger:
            self._continual.kinds.of(trigger).installed(_of_event(query))

    def _wait(self, query: InstalledQuery, event: str, count: int = 1) -> None:
        self._records.make_room(WAITING)
        self._records.add(WAITING, (query.number, event, count), replace=True)

    def dropped(self, query: InstalledQuery) -> None:
        if self._records.exist(WAITING):
            self._records.remove(WAITING, {"query": query.number})
        trigger = event_of(query.clauses.trigger)
        if trigger is not query.clauses.trigger:
            self._continual.kinds.of(trigger).dropped(_of_event(query))

    def executed(self, query: InstalledQuery, at: datetime.datetime) -> None:
        trigger = event_of(query.clauses.trigger)
        if trigger is not query.clauses.trigger:
            self._continual.kinds.of(trigger).executed(_of_event(query), at)

    # --- what happens --------------------------------------------------------------------------

    def note_execution(self, query: InstalledQuery, at: datetime.datetime) -> None:
        self._note(EXECUTION, query, at)

    def note_stop(self, query: InstalledQuery, at: datetime.datetime) -> None:
        self._note(STOP, query, at)

    def _note(self, event: str, query: InstalledQuery, at: datetime.datetime) -> None:
        """In a transaction: something has happened to a query that others may wait for."""
        text = f"{query.name} was executed" if event == EXECUTION else f"{query.name} has stopped"
        for number, _, _ in self._waiting({"event": f"{event} {query.number}"}):
            if number != query.number:
                self._continual.fire(number, Cause(QUERY, text, at))

    def note_changes(self, numbers: set[int]) -> None:
        """In a transaction: the answers of queries have changed."""
        for number, _, most in self._waiting({"event": CHANGES}):
            if number not in numbers or self._continual.firings.of_query(number):
                continue
            count = self._continual.answers.records.count(number, most)
            if count >= most:
                text = f"{count:,} rows have changed"
                self._continual.fire(number, Cause(CHANGES, text, self._continual.now))

    def _waiting(self, conditions: dict[str, str]) -> list[Row]:
        return self._records.find(WAITING, conditions) if self._records.exist(WAITING) else []


def _of_event(query: InstalledQuery) -> InstalledQuery:
    return replace(query, clauses=replace(query.clauses, trigger=event_of(query.clauses.trigger)))


_BY_CLOCK = re.compile(r"\s*(EVERY\b|CRON\b|AT\s*')", re.IGNORECASE)


def _schedule_alone(text: str) -> Schedule | None:
    """The schedule that a text is; None if it is none, or more than one."""
    reader = Reader(text)
    try:
        found = take_schedule(reader)
    except HarkenError:
        return None
    return found if reader.is_done else None
