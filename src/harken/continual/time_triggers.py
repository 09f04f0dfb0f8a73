"""Time triggers and ON REQUEST as kinds of triggers: the clock of due work sees to them."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from harken.continual.query_clauses import OnRequest, OnSchedule, Trigger
from harken.continual.time_texts import take_schedule
from harken.continual.words import Reader

if TYPE_CHECKING:
    from harken.continual.installed_queries import InstalledQuery


class TimeTriggers:
    def reads(self, text: str, base: int, layout: str) -> Trigger | None:
        reader = Reader(text, base)
        found: Trigger
        if reader.takes("ON", "REQUEST"):
            found = OnRequest()
        else:
            schedule = take_schedule(reader)
            if schedule is None:
                return None
            if reader.sees("OR"):
                return None  # an event as well: see RelativeTriggers
            found = OnSchedule(schedule)
        reader.need_end("the trigger")
        return found

    def owns(self, trigger: Trigger) -> bool:
        return isinstance(trigger, OnSchedule | OnRequest)

    def relations(self, trigger: Trigger) -> frozenset[str]:
        return frozenset()

    def explained(self, query: InstalledQuery) -> list[str]:
        trigger = query.clauses.trigger
        if isinstance(trigger, OnRequest):
            return ["triggered when someone asks for it: EXECUTE CONTINUAL QUERY"]
        return [f"triggered by the clock: {trigger}, in the time of {query.zone_name}"]

    def installed(self, query: InstalledQuery) -> None:
        """A query is woken at the moment that `InstalledQuery.wakes_at` gives."""

    def dropped(self, query: InstalledQuery) -> None: ...

    def executed(self, query: InstalledQuery, at: datetime.datetime) -> None: ...
