"""The continual queries of a session, as their content triggers see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harken.continual.content_triggers import ContentTrigger
from harken.continual.continual_queries import ContinualQueries
from harken.continual.installed_queries import InstalledQuery, State
from harken.continual.relative_triggers import event_of
from harken.continual.trigger_kinds import Cause


class ContentQueries:
    def __init__(self, continual: ContinualQueries) -> None:
        self._continual = continual

    def live(self) -> Iterator[InstalledQuery]:
        """The active queries that wait for conditions; a delay is not the trigger's concern."""
        for each in self._continual.queries.all():
            trigger = event_of(each.clauses.trigger)
            if each.state is State.ACTIVE and isinstance(trigger, ContentTrigger):
                yield replace(each, clauses=replace(each.clauses, trigger=trigger))

    def version(self) -> int:
        return self._continual.queries.version()

    def fire(self, number: int, cause: Cause) -> None:
        self._continual.fire(number, cause)
