"""A continual query as data: what its statement says, clause by clause.

CREATE CONTINUAL QUERY name AS query TRIGGER ... STOP ... DELIVER ... NOTIFY ...

Law: the text of a clause (`str`) is read as an equal clause. The catalog keeps the texts.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from harken.continual.couplings import ALL_AFTER_COMMIT, Couplings
from harken.continual.durations import Duration, Unit
from harken.continual.schedules import DAILY, Schedule
from harken.continual.words import quoted
from harken.database.messages import Recipient
from harken.errors import SyntaxFault, ValueFault

UNLESS_SAID = Duration(1, Unit.YEAR)
"""How long a query runs that does not say when it stops."""
STRATEGIES = ("auto", "differential", "naive")
"""How the difference between two executions is found: from the changes of the query's answer, or by
comparing the whole answer with a stored copy; `auto` leaves it to Harken."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


class Deliver(StrEnum):
    """Which part of the answer is delivered at an execution after the first."""

    INSERTED = "INSERTED"
    CHANGED = "CHANGED"
    DELETED = "DELETED"
    COMPLETE = "COMPLETE"
    COUNT = "COUNT"


class Shown(StrEnum):
    """What a message has of the rows: all of them, or where they can be seen."""

    TABLE = "TABLE"
    LINK = "LINK"


@dataclass(frozen=True, slots=True)
class Delivery:
    """`CHANGED BY (symbol) AS LINK ALWAYS`."""

    part: Deliver
    key: tuple[str, ...] = ()
    """The columns by which old and new rows are paired; empty for the key of the answer."""
    shown: Shown = Shown.TABLE
    always: bool = False
    """Whether a message is sent even when there is nothing to say."""

    def __str__(self) -> str:
        said = [str(self.part)]
        if self.key:
            said.append(f"BY ({', '.join(map(name_text, self.key))})")
        if self.shown is Shown.LINK:
            said.append("AS LINK")
        if self.always:
            said.append("ALWAYS")
        return " ".join(said)


class Trigger(Protocol):
    """What causes an execution: a frozen dataclass whose text is that of its clause. Content
    triggers are kinds of their own (`trigger_kinds`)."""

    def __str__(self) -> str: ...


@dataclass(frozen=True, slots=True)
class OnSchedule:
    """A time trigger: the query is executed when the schedule is due."""

    schedule: Schedule

    def __str__(self) -> str:
        return str(self.schedule)


@dataclass(frozen=True, slots=True)
class OrOnSchedule:
    """When a schedule is due, and when an event happens."""

    schedule: Schedule
    event: Trigger

    def __str__(self) -> str:
        return f"{self.schedule} OR {self.event}"


def schedule_of(trigger: Trigger) -> Schedule | None:
    """What is due by the clock for a trigger."""
    return trigger.schedule if isinstance(trigger, OnSchedule | OrOnSchedule) else None


@dataclass(frozen=True, slots=True)
class OnRequest:
    """The query is executed only when someone asks for it."""

    def __str__(self) -> str:
        return "ON REQUEST"


@dataclass(frozen=True, slots=True)
class Stop:
    """When a query stops: at the first of these."""

    at: datetime.datetime | None = None
    after: Duration | None = None
    executions: int | None = None
    condition: str | None = None
    """A condition; the query stops when it is true of any row."""

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
        return " OR ".join(said) or "NEVER"


@dataclass(frozen=True, slots=True)
class Deadline:
    """How long after it was triggered an execution is still wanted, and the statement that is run
    in its place if it is later."""

    after: Duration
    contingency: str | None = None

    def __str__(self) -> str:
        return f"{self.after}" + ("" if self.contingency is None else f" ELSE {self.contingency}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clauses:
    """Everything that a statement says about a continual query, apart from its name."""

    query: str
    trigger: Trigger = OnSchedule(DAILY)
    stop: Stop = Stop(after=UNLESS_SAID)
    deliver: Delivery | None = None
    """None leaves it to the trigger: INSERTED, or COMPLETE if it reads other relations only."""
    notify: tuple[Recipient, ...] = field(default=())
    zone: str | None = None
    """The time zone of its times; None means that of the setting."""
    strategy: str = "auto"
    priority: int = 0
    """Of executions that are due at the same time, those of the highest priority come first."""
    deadline: Deadline | None = None
    owner: str | None = None
    coupling: Couplings = ALL_AFTER_COMMIT

    def __post_init__(self) -> None:
        if not self.query.strip():
            raise SyntaxFault(
                "a continual query needs a query",
                code="syntax",
                hint="CREATE CONTINUAL QUERY name AS SELECT ...",
            )

    def texts(self) -> dict[str, str]:
        """The clauses as they are written, without those that say nothing."""
        found = {"TRIGGER": str(self.trigger), "STOP": str(self.stop)}
        if self.deliver is not None:
            found["DELIVER"] = str(self.deliver)
        if self.notify:
            found["NOTIFY"] = " NOTIFY ".join(map(recipient_text, self.notify))
        if self.zone is not None:
            found["ZONE"] = quoted(self.zone)
        if self.strategy != "auto":
            found["STRATEGY"] = self.strategy
        if self.priority:
            found["PRIORITY"] = str(self.priority)
        if self.deadline is not None:
            found["DEADLINE"] = str(self.deadline)
        if self.coupling != ALL_AFTER_COMMIT:
            found["COUPLING"] = str(self.coupling)
        return found


def name_text(name: str) -> str:
    return name if _NAME.fullmatch(name) else f"`{name}`"


def recipient_text(recipient: Recipient) -> str:
    """
    >>> recipient_text(Recipient("email", "me@example.org", {"template": "stock_alert"}))
    "EMAIL 'me@example.org' TEMPLATE 'stock_alert'"
    """
    said = [recipient.channel.upper()]
    if recipient.address:
        said.append(quoted(recipient.address))
    return " ".join([*said, *_options(recipient.options)])


def _options(options: Mapping[str, object]) -> list[str]:
    return [
        f"{name.upper()} {quoted(value) if isinstance(value, str) else value}"
        for name, value in options.items()
    ]
