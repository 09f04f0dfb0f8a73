"""How often a continual query would have fired: what is kept of the past is replayed.

A database in memory gets the relations that the query names, as they were a day ago, and the query,
with a clock of its own. Then every kept transaction is applied at its time, and what is due at its.

Law: nothing of it reaches the database; when the query fires is found by the code that always does.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harken.api.view_history import ViewHistory
from harken.continual.clause_texts import Part
from harken.continual.words import words_of
from harken.database.changes import Change
from harken.errors import ValueFault
from harken.lang.sql.table_texts import create_text

MOST_ROWS = 100_000
"""Rows of all relations together; a replay is for looking at, and must not take long."""
MOST_CHANGES = 5_000
MOST_TIMES = 3_000
"""How often what is due is run."""
NAME = "replayed"
LEFT_OUT = ("NOTIFY", "OWNER", "PRIORITY", "DEADLINE")
"""Clauses that say nothing about when it fires."""


@dataclass(frozen=True, slots=True)
class WouldHaveFired:
    at: datetime.datetime
    cause: str
    inserted: int
    deleted: int


@dataclass(frozen=True, slots=True)
class KeptPast:
    """What is known of a relation: how many changes, and since when; none is kept if None."""

    relation: str
    changes: int
    since: datetime.datetime | None
    is_kept: bool


@dataclass(frozen=True, slots=True)
class Replay:
    since: datetime.datetime
    until: datetime.datetime
    firings: Sequence[WouldHaveFired]
    past: Sequence[KeptPast]
    is_cut: bool = False
    """Whether there was more than is replayed."""


def named_relations(parts: Iterable[Part], known: Iterable[str]) -> list[str]:
    """The relations whose names stand in the query or its trigger."""
    names = {each.lower(): each for each in known}
    found = dict.fromkeys(
        names[word.value.lower()]
        for part in parts
        if part.name in ("QUERY", "TRIGGER", "STOP")
        for word in words_of(part.text)
        if word.kind in ("name", "quoted") and word.value.lower() in names
    )
    return list(found)


def replayed(
    parts: Sequence[Part],
    histories: Sequence[ViewHistory],
    since: datetime.datetime,
    until: datetime.datetime,
    zone: str,
) -> Replay:
    from harken.api.connect import connect

    if sum(len(each.rows) for each in histories) > MOST_ROWS:
        raise ValueFault(
            f"the relations have more than {MOST_ROWS:,} rows, too many for a replay",
            code="too-large",
            hint="ask for fewer rows by a view, and write the query over that",
        )
    moment = [since]
    settings = {"time_zone": zone}
    with connect(":memory:", clock=lambda: moment[0], settings=settings) as db:
        changes = []
        for each in histories:
            later = [change for change in each.changes if change.at and change.at >= since]
            changes += later
            db.sql(create_text(each.view, each.columns, each.key))
            rows = each.rows_at(min((c.position for c in later), default=each.position + 1) - 1)
            db.insert(each.view, rows)
        db.sql(_statement(parts))
        is_cut = len(changes) > MOST_CHANGES
        clock = _Clock(moment, db.next_due, db.run_due)
        for at, together in _transactions(changes[:MOST_CHANGES]):
            clock.advance(at)
            with db.transaction():
                for change in together:  # what goes first: a row may come back with the same key
                    db.delete(change.view, change.minus)
                    db.insert(change.view, change.plus)
            db.run_due()
        clock.advance(until)
        executions = db.continual_queries.get(NAME).history()[1:]
    firings = [
        WouldHaveFired(each.at, str(each.cause.get("text", "")), each.inserted, each.deleted)
        for each in executions
        if not each.error
    ]
    return Replay(
        since, until, firings, [_past(each) for each in histories], is_cut or clock.ran_out
    )


class _Clock:
    """Runs what is due on the way to a moment."""

    def __init__(
        self,
        moment: list[datetime.datetime],
        next_due: Callable[[], datetime.datetime | None],
        run_due: Callable[[], object],
    ) -> None:
        self._moment, self._next_due, self._run_due = moment, next_due, run_due
        self._runs = 0

    @property
    def ran_out(self) -> bool:
        return self._runs >= MOST_TIMES

    def advance(self, until: datetime.datetime) -> None:
        while not self.ran_out:
            due = self._next_due()
            if due is None or due > until:
                break
            self._moment[0] = max(self._moment[0], due)
            self._run_due()
            self._runs += 1
        self._moment[0] = max(self._moment[0], until)


def _transactions(changes: Sequence[Change]) -> Iterable[tuple[datetime.datetime, list[Change]]]:
    together: dict[int, list[Change]] = {}
    for change in changes:
        together.setdefault(change.position, []).append(change)
    for _, each in sorted(together.items()):
        assert each[0].at is not None
        yield each[0].at, each


def _statement(parts: Sequence[Part]) -> str:
    lines = [f"CREATE CONTINUAL QUERY {NAME} AS", parts[0].text]
    lines += [f"{each.name} {each.text}" for each in parts[1:] if each.name not in LEFT_OUT]
    return "\n".join(lines)


def _past(history: ViewHistory) -> KeptPast:
    times = [each.at for each in history.changes if each.at is not None]
    return KeptPast(history.view, len(history.changes), min(times, default=None), history.is_kept)
