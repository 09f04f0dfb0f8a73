"""A continual query as data: what its statement says, clause by clause.

CREATE CONTINUAL QUERY name AS query TRIGGER ... STOP ... DELIVER ... NOTIFY ...
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from enum import StrEnum

from harken.continual.durations import Duration, Unit
from harken.continual.schedules import DAILY, Schedule
from harken.database.messages import Recipient
from harken.errors import SyntaxFault, ValueFault

UNLESS_SAID = Duration(1, Unit.YEAR)
"""How long a query runs that does not say when it stops."""


class Deliver(StrEnum):
    """Which part of the answer is delivered at an execution after the first."""

    INSERTED = "INSERTED"
    CHANGED = "CHANGED"
    DELETED = "DELETED"
    COMPLETE = "COMPLETE"
    COUNT = "COUNT"


@dataclass(frozen=True, slots=True)
class OnSchedule:
    """A time trigger: the query is executed when the schedule is due."""

    schedule: Schedule

    def __str__(self) -> str:
        return str(self.schedule)


@dataclass(frozen=True, slots=True)
class OnRequest:
    """The query is executed only when someone asks for it."""

    def __str__(self) -> str:
        return "ON REQUEST"


Trigger = OnSchedule | OnRequest


@dataclass(frozen=True, slots=True)
class Stop:
    """When a query stops: at the first of these."""

    at: datetime.datetime | None = None
    after: Duration | None = None
    executions: int | None = None
    condition: str | None = None
    """A condition in SQL; the query stops when it is true of any row."""

    def __post_init__(self) -> None:
        if self.executions is not None and self.executions < 1:
            raise ValueFault(
                "a query stops after at least one execution", code="bad-value", hint="the first run"
            )

    def __str__(self) -> str:
        said = []
        if self.at is not None:
            said.append(f"AT '{self.at.isoformat(sep=' ')}'")
        if self.after is not None:
            said.append(f"AFTER {self.after}")
        if self.executions is not None:
            said.append(f"AFTER {self.executions} EXECUTION{'S' if self.executions > 1 else ''}")
        if self.condition is not None:
            said.append(f"WHEN {self.condition}")
        return " OR ".join(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clauses:
    """Everything that a statement says about a continual query, apart from its name."""

    query: str
    trigger: Trigger = OnSchedule(DAILY)
    stop: Stop = Stop(after=UNLESS_SAID)
    deliver: Deliver = Deliver.INSERTED
    notify: tuple[Recipient, ...] = field(default=())
    zone: str | None = None
    """The time zone of its times; None means that of its owner or of the setting."""

    def __post_init__(self) -> None:
        if not self.query.strip():
            raise SyntaxFault(
                "a continual query needs a query",
                code="syntax",
                hint="CREATE CONTINUAL QUERY name AS SELECT ...",
            )
