"""Sources as due work: each is read when its time comes, followed servers every second.

An idle look at a followed server writes nothing, so when it is looked at next is known to this
session only.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from harken.database.due_work import SOURCES
from harken.database.runtime import Runtime
from harken.intake.session_sources import SessionSources
from harken.intake.source_records import (
    FOLLOW_EVERY,
    SourceRecord,
    State,
    read_moment,
    stored_moment,
)

if TYPE_CHECKING:
    from harken.intake.taking_in import Taken

TIDY_EVERY = 300_000_000
"""Microseconds between two tries to remove what dropped sources have left."""


class DueSources:
    name = SOURCES

    def __init__(self, runtime: Runtime, sources: SessionSources) -> None:
        self._runtime, self._sources = runtime, sources
        self._looks: dict[str, int] = {}
        """By server: when its log is read next."""
        self._next_look = 0
        self._tidied = 0

    def next_due(self) -> datetime.datetime | None:
        if self._runtime.engine.connection.read_only:
            return None
        records = self._sources.records
        due = records.next_due()
        if records.has_followed():
            due = self._next_look if due is None else min(due, self._next_look)
        return None if due is None else read_moment(due)

    def run(self, now: datetime.datetime) -> list[Taken]:
        moment, work = stored_moment(now), self._sources.work
        polled = [each.name for each in self._sources.records.due(moment)]
        groups = work.log.groups()
        servers = [key for key in groups if self._looks.get(key, 0) <= moment]
        found = work.rounds.run(polled, servers)
        self._sources.news.extend(found)
        groups = work.log.groups()
        for key in servers:
            if key in groups:
                self._looks[key] = moment + self._pause(groups[key])
        self._looks = {key: at for key, at in self._looks.items() if key in groups}
        self._next_look = min(self._looks.values(), default=moment + int(FOLLOW_EVERY * 1e6))
        work.zones.collect(now=moment / 1e6)
        if moment - self._tidied >= TIDY_EVERY:
            self._tidied = moment
            work.leftovers.remove()
        return found

    def _pause(self, records: list[SourceRecord]) -> int:
        """Microseconds until the log is read again."""
        failing = [each for each in records if each.progress.state == State.FAILING]
        if failing:
            first = failing[0]
            failures = self._sources.work.failures
            return int(failures.wait(first, first.progress.attempts) * 1e6)
        asked = [each.definition.poll for each in records if each.definition.poll is not None]
        return int(min(asked, default=FOLLOW_EVERY) * 1e6)
