"""The text of CREATE CONTINUAL QUERY, and what can be said of it without installing anything."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Iterable
from dataclasses import dataclass

from harken.continual.clause_texts import Part, parts_of, recipients_of
from harken.continual.continual_queries import ContinualQueries
from harken.continual.installed_queries import InstalledQuery
from harken.continual.query_clauses import Trigger, schedule_of
from harken.continual.words import Reader
from harken.errors import HarkenError
from harken.ir.relations import Column

TIMES_SHOWN = 5
"""The due times that a preview lists."""


@dataclass(frozen=True, slots=True)
class QueryDescription:
    """What a continual query is made of: the columns of its answer, those that identify a row, what
    is delivered, and in sentences what triggers it and how its difference is found."""

    columns: tuple[Column, ...]
    key: tuple[str, ...]
    delivery: str
    plan: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """What can be said of a statement without executing its query."""

    zone: zoneinfo.ZoneInfo
    due: tuple[datetime.datetime, ...]
    """The next times of a time trigger."""


def described_query(continual: ContinualQueries, query: InstalledQuery) -> QueryDescription:
    compiled = continual.answers.compiled(query)
    return QueryDescription(
        compiled.columns,
        tuple(compiled.names[at] for at in compiled.key or ()),
        str(continual.delivery_of(query)),
        tuple(continual.explained(query)),
    )


def next_times(
    trigger: Trigger,
    after: datetime.datetime,
    installed: datetime.datetime,
    zone: datetime.tzinfo,
) -> tuple[datetime.datetime, ...]:
    found = list[datetime.datetime]()
    schedule = schedule_of(trigger)
    if schedule is None:
        return ()
    at: datetime.datetime | None = after
    while at is not None and len(found) < TIMES_SHOWN:
        at = schedule.next_after(at, installed, zone)
        found += [] if at is None else [at]
    return tuple(found)


def check_recipients(continual: ContinualQueries, parts: Iterable[Part]) -> None:
    for part in parts:
        for recipient in recipients_of([part]):
            try:
                continual.check_recipient(recipient)
            except HarkenError as error:
                error.span = error.span or part.span
                raise


def parts_of_statement(text: str) -> tuple[str | None, list[Part]]:
    """The name and the clauses of CREATE CONTINUAL QUERY; the first clause is the query."""
    reader = Reader(text.rstrip().removesuffix(";"))
    reader.need("CREATE")
    reader.takes("OR", "REPLACE")
    reader.need("CONTINUAL", "QUERY")
    reader.takes("IF", "NOT", "EXISTS")
    name = None if reader.sees("AS") else reader.need_name("the name of the query")
    reader.need("AS")
    return name, parts_of(*reader.rest())
