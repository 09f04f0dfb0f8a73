"""The continual queries of a session, as their content triggers see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harken.continual.continual_queries import ContinualQueries
from harken.continual.installed_queries import InstalledQuery, State
from harken.continual.relative_triggers import event_of
from harken.continual.trigger_kinds import Cause
from harken.continual.waiting_queries import ContentTrigger
from harken.errors import HarkenError


class ContentQueries:
    def __init__(self, continual: ContinualQueries) -> None:
        self._continual = continual

    def live(self) -> Iterator[InstalledQuery]:
        """The active queries that wait for conditions."""
        return (found for each in self._continual.queries.all() if (found := _waiting(each)))

    def find(self, number: int) -> InstalledQuery | None:
        query = self._continual.queries.find(number)
        return None if query is None else _waiting(query)

    def changed_since(self, version: int) -> list[int] | None:
        return self._continual.queries.changed_since(version)

    def version(self) -> int:
        return self._continual.queries.version()

    def fire(self, number: int, cause: Cause) -> None:
        self._continual.fire(number, cause)

    def catch_up(self, number: int, cause: Cause) -> None:
        query = self._continual.queries.find(number)
        if query is not None and query.retry is not None:
            self._continual.queries.write(replace(query, retry=self._continual.now))
        self._continual.fire(number, cause)

    def fail(self, number: int, error: HarkenError) -> None:
        self._continual.fail_here(number, error)


def _waiting(query: InstalledQuery) -> InstalledQuery | None:
    """The query, if it is active and waits for a condition; a delay is not the trigger's
    concern."""
    trigger = event_of(query.clauses.trigger)
    if query.state is not State.ACTIVE or not isinstance(trigger, ContentTrigger):
        return None
    return replace(query, clauses=replace(query.clauses, trigger=trigger))
