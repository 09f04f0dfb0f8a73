"""The kinds of triggers: what reads a TRIGGER clause, and what watches for its events.

Time triggers and ON REQUEST are kinds, and so are content triggers. A kind that is registered in
`Kinds` gets the text of a clause, and is told in the open transaction when a query with such a
trigger is installed, dropped and executed. When its event happens, it calls `fire` of
`ContinualQueries` with a cause, in the transaction of the event.

Law: `str` of a trigger is read, in the layout of SQL, as an equal trigger.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from harken.continual.query_clauses import OnRequest, OnSchedule, Trigger
from harken.continual.words import Reader
from harken.errors import HarkenError

if TYPE_CHECKING:
    from harken.continual.installed_queries import InstalledQuery

SQL, THESIS = "sql", "thesis"
"""The layouts of a statement. In that of the thesis, AND and OR after WHERE join event groups."""
INSTALLED, ALTERED, SCHEDULE, REQUEST = "installed", "altered", "time", "request"
CONTENT, RETRY, STOPPING = "content", "retry", "stop"
"""The kinds of causes."""
MOST_ROWS = 1_000
"""Rows that the recorded cause of an execution has at most."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a query is executed: the kind of event, what happened in words, and the rows for which
    the condition became true, as objects by column."""

    kind: str
    text: str
    at: datetime.datetime
    """When it happened."""
    rows: Sequence[Mapping[str, Any]] = field(default=())
    missed: int = 0
    """The due times that have passed as well, and are not run."""

    def as_json(self) -> str:
        parts: dict[str, Any] = {"kind": self.kind, "text": self.text, "at": self.at.isoformat()}
        if self.rows:
            parts["rows"] = list(self.rows[:MOST_ROWS])
        if self.missed:
            parts["missed"] = self.missed
        return json.dumps(parts, ensure_ascii=False)


def read_cause(text: str) -> Cause:
    parts = json.loads(text)
    at = datetime.datetime.fromisoformat(parts["at"])
    return Cause(
        parts["kind"], parts["text"], at, tuple(parts.get("rows", ())), parts.get("missed", 0)
    )


class TriggerKind(Protocol):
    def reads(self, text: str, base: int, layout: str) -> Trigger | None:
        """The trigger that a text describes; None if it is not of this kind. `base` is where the
        text starts in its statement, for the places of errors."""

    def owns(self, trigger: Trigger) -> bool: ...

    def relations(self, trigger: Trigger) -> frozenset[str]:
        """The names of the tables, views and sources whose changes can cause an execution."""

    def explained(self, query: InstalledQuery) -> list[str]:
        """What is watched for, in lines for EXPLAIN."""

    # --- in the open transaction ---------------------------------------------------------------

    def installed(self, query: InstalledQuery) -> None:
        """The query was installed, resumed, or given this trigger: watch for its events."""

    def dropped(self, query: InstalledQuery) -> None:
        """It was dropped, paused, stopped, or given another trigger."""

    def executed(self, query: InstalledQuery, at: datetime.datetime) -> None:
        """It was executed: what refers to the last execution refers to this one now."""


class Kinds:
    """The registered kinds, in the order in which they are asked."""

    def __init__(self) -> None:
        self._kinds: list[TriggerKind] = []
        self.read_again: Callable[[str], Trigger | None] = lambda text: None
        """A trigger that is stored, if another one that differs in constants was read before."""
        self.content_mentions: Callable[[InstalledQuery], frozenset[str]] = lambda _: frozenset()
        """The tables that a content trigger reads, also those that its columns belong to without
        saying so."""

    def register(self, kind: TriggerKind) -> None:
        self._kinds.append(kind)

    def read(self, text: str, base: int = 0, layout: str = SQL) -> Trigger:
        for kind in self._kinds:
            found = kind.reads(text, base, layout)
            if found is not None:
                return found
        raise Reader(text, base).fault(
            "this is no trigger", "EVERY DAY, EVERY MONDAY AT '08:00', ON REQUEST, or a condition"
        )

    def is_condition(self, text: str) -> bool:
        """Whether a text, in the layout of the thesis, is a condition on data."""
        try:
            found = self.read(text, 0, THESIS)
        except HarkenError:
            return False
        return not isinstance(found, OnSchedule | OnRequest)

    def mentioned(self, query: InstalledQuery) -> frozenset[str]:
        """The tables and views that the trigger of a query reads."""
        trigger = query.clauses.trigger
        return self.content_mentions(query) or self.of(trigger).relations(trigger)

    def of(self, trigger: Trigger) -> TriggerKind:
        return next(kind for kind in self._kinds if kind.owns(trigger))
