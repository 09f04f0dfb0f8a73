"""The installed continual queries: the relation `continual_query`.

A row is one query: its system-given `id`, the name that its owner gave it (or the id), what its
statement says clause by clause, and how far it is. The clauses are kept as text and read again, so
that a query means the same after it was exported, altered and imported.

Law: what is read from a row writes the same row.
"""

from __future__ import annotations

import datetime
import logging
import zoneinfo
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from harken.continual import clause_texts
from harken.continual.local_times import zone_named
from harken.continual.own_relations import OwnRelation
from harken.continual.query_clauses import Clauses, OnRequest, OnSchedule, Trigger, schedule_of
from harken.continual.schedules import instant
from harken.continual.trigger_kinds import SQL, Kinds
from harken.continual.words import quoted
from harken.database.audit_log import note_change
from harken.database.runtime import Runtime
from harken.engines.protocol import COUNTERS, Field, RecordKind
from harken.errors import HarkenError, NameFault, offered
from harken.ir.relations import Column
from harken.values.types import BOOLEAN, INTEGER, TEXT, TIMESTAMP

logger = logging.getLogger("harken.continual")
NAME = "continual_query"
VERSION = "continual"
"""The counter of the file that tells other sessions that queries have changed."""
NAMES = RecordKind(
    "harken_query_names",
    (Field("name", "text"), Field("number", "integer")),
    key=("name",),
    ordered_by="number",
)
CHANGES = RecordKind(
    "harken_query_changes",
    (Field("number", "integer"), Field("version", "integer")),
    key=("number",),
    ordered_by="version",
)
"""Which query was changed last by which version, so that others need not read all queries."""
MOST_CHANGES = 1_000
"""A session that has missed more versions reads all queries."""
SOMETIME = TIMESTAMP.or_null(True)
COLUMNS = (
    *(Column(name, TEXT) for name in ("id", "name", "owner", "type", "sources", "zone", "state")),
    *(Column(name, TEXT) for name in ("query", "trigger", "stop", "deliver", "notify")),
    *(Column(name, TEXT) for name in ("strategy", "deadline", "coupling")),
    Column("priority", INTEGER),
    Column("muted", BOOLEAN),
    Column("snoozed", SOMETIME),
    Column("installed", TIMESTAMP),
    Column("resumed", TIMESTAMP),
    Column("evaluated", SOMETIME),
    Column("executions", INTEGER),
    Column("failures", INTEGER),
    Column("retry", SOMETIME),
    Column("problem", TEXT),
    Column("follows", TEXT),
    Column("rows", INTEGER),
)


class State(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledQuery:
    number: int
    id: str
    name: str
    owner: str
    clauses: Clauses
    sources: tuple[str, ...] = ()
    zone_name: str = "UTC"
    """The time zone of its times: that of its clause, or else of the setting."""
    state: State = State.ACTIVE
    muted: bool = False
    snoozed: datetime.datetime | None = None
    """It is not executed before this moment."""
    installed: datetime.datetime
    resumed: datetime.datetime
    """From when on its schedule counts as not run: the installation, or the end of a pause."""
    evaluated: datetime.datetime | None = None
    """When it was last executed without an error."""
    executions: int = 0
    failures: int = 0
    """How often it has failed since it last worked."""
    retry: datetime.datetime | None = None
    """A failing query is not executed before."""
    problem: str = field(default="", compare=False)
    follows: str = "differential"
    """How its difference is found: `differential` or `naive`."""
    rows: int = 0
    """How many rows its answer had at the last execution."""

    @property
    def zone(self) -> zoneinfo.ZoneInfo:
        return zone_named(self.zone_name)

    @property
    def title(self) -> str:
        return f"the continual query {self.name}"

    @property
    def ending(self) -> str:
        return f"DROP CONTINUAL QUERY {self.name}"

    @property
    def is_live(self) -> bool:
        """Whether its answer is followed: also while it is paused."""
        return self.state is not State.STOPPED

    @property
    def stops_at(self) -> datetime.datetime | None:
        """The first of the moments that its STOP clause gives."""
        stop, found = self.clauses.stop, []
        if stop.at is not None:
            found.append(instant(stop.at, self.zone))
        if stop.after is not None:
            end = stop.after.after(self.installed, self.zone)
            found += [] if end is None else [end]
        return min(found, default=None)

    def wakes_at(self) -> datetime.datetime | None:
        """When there is something to do for it next because of the time."""
        found = [self.stops_at]
        match self.state:
            case State.STOPPED:
                return None
            case State.ACTIVE if self.snoozed is not None:
                found.append(self.snoozed)
            case State.ACTIVE if self.retry is not None:
                found.append(self.retry)
            case State.ACTIVE:
                found.append(self._due_next())
        return min((each for each in found if each is not None), default=None)

    @property
    def looked(self) -> datetime.datetime:
        """Up to when its schedule has been followed."""
        return self.resumed if self.evaluated is None else max(self.evaluated, self.resumed)

    def _due_next(self) -> datetime.datetime | None:
        schedule = schedule_of(self.clauses.trigger)
        if schedule is None:
            return None
        return schedule.next_after(self.looked, self.installed, self.zone)


def type_of(trigger: Trigger) -> str:
    if isinstance(trigger, OnSchedule):
        return "time"
    return "request" if isinstance(trigger, OnRequest) else "content"


class InstalledQueries:
    def __init__(self, runtime: Runtime, kinds: Kinds) -> None:
        self._runtime, self._kinds = runtime, kinds
        self._relation = OwnRelation(runtime, NAME, COLUMNS, "continual queries", ("id",))
        self._read_parts: dict[clause_texts.Part, dict[str, Any]] = {}

    def declare(self) -> bool:
        return self._relation.declare()

    def number(self) -> int:
        return self._relation.number()

    def version(self) -> int:
        found = self._runtime.engine.connection.records.find(COUNTERS, {"key": VERSION})
        return int(found[0][1]) if found else 0

    def all(self) -> list[InstalledQuery]:
        found = map(self._readable, self._relation.matching())
        return [each for each in found if each is not None]

    def find(self, number: int) -> InstalledQuery | None:
        row = self._relation.find(number)
        return None if row is None else self._readable(row)

    def named(self, name: str) -> InstalledQuery | None:
        """The query of a name or an id; names do not differ in case."""
        records = self._runtime.engine.connection.records
        if records.exist(NAMES):
            for _, number in records.find(NAMES, {"name": name.lower()}):
                return self.find(int(number))
        found = self._relation.matching(id=name.lower())
        return self._readable(found[0]) if found else None

    def need(self, name: str) -> InstalledQuery:
        found = self.named(name)
        if found is None:
            names = [row["name"] for row in self._relation.matching()]
            raise NameFault(
                f"there is no continual query {name}",
                code="unknown-table",
                hint=offered(name, names, "continual queries"),
            )
        return found

    # --- in a transaction ----------------------------------------------------------------------

    def write(self, query: InstalledQuery) -> None:
        self._name(query)
        texts = query.clauses.texts()
        values: dict[str, Any] = {
            "id": query.id,
            "name": query.name,
            "owner": query.owner,
            "type": type_of(query.clauses.trigger),
            "sources": ", ".join(query.sources),
            "zone": query.zone_name,
            "state": str(query.state),
            "query": query.clauses.query,
            "trigger": texts["TRIGGER"],
            "stop": texts["STOP"],
            "deliver": texts.get("DELIVER", ""),
            "notify": texts.get("NOTIFY", ""),
            "strategy": query.clauses.strategy,
            "deadline": texts.get("DEADLINE", ""),
            "coupling": texts.get("COUPLING", ""),
            "priority": query.clauses.priority,
            "muted": int(query.muted),
            "snoozed": query.snoozed,
            "installed": query.installed,
            "resumed": query.resumed,
            "evaluated": query.evaluated,
            "executions": query.executions,
            "failures": query.failures,
            "retry": query.retry,
            "problem": query.problem,
            "follows": query.follows,
            "rows": query.rows,
        }
        self._relation.write(query.number, values)

    def _name(self, query: InstalledQuery) -> None:
        """Names are found without regard to case."""
        records, name = self._runtime.engine.connection.records, query.name.lower()
        records.make_room(NAMES)
        if records.find(NAMES, {"name": name}) != [(name, query.number)]:
            records.remove(NAMES, {"number": query.number})
            records.add(NAMES, (name, query.number))

    def remove(self, query: InstalledQuery) -> None:
        self._relation.remove(query.number)
        self._runtime.engine.connection.records.remove(NAMES, {"number": query.number})
        note_change(self._runtime, "drop continual query", query.name, query.owner)

    def count_change(self, number: int) -> int:
        """Tell other sessions that a query has changed."""
        records = self._runtime.engine.connection.records
        version = records.count_up(VERSION)
        records.make_room(CHANGES)
        records.add(CHANGES, (number, version), replace=True)
        records.remove(CHANGES, {}, up_to=("version", version - MOST_CHANGES))
        return version

    def changed_since(self, version: int) -> list[int] | None:
        """The numbers of the queries that were changed after a version; None if that is no longer
        known."""
        records = self._runtime.engine.connection.records
        if not 0 < version <= self.version() < version + MOST_CHANGES:
            return None
        found = records.find(CHANGES, above=("version", version)) if records.exist(CHANGES) else []
        return sorted(number for number, _ in found)

    def _readable(self, row: dict[str, Any]) -> InstalledQuery | None:
        """A row that somebody has changed must not keep the database from being opened: what
        cannot be read is as if it were not installed."""
        try:
            return self._read(row)
        except (HarkenError, ValueError) as error:
            logger.warning("the continual query %s cannot be read: %s", row["name"], error)
            return None

    def _read(self, row: dict[str, Any]) -> InstalledQuery:
        return InstalledQuery(
            number=row["number"],
            id=row["id"],
            name=row["name"],
            owner=row["owner"],
            clauses=self._clauses(row),
            sources=tuple(row["sources"].split(", ")) if row["sources"] else (),
            zone_name=row["zone"],
            state=State(row["state"]),
            muted=bool(row["muted"]),
            snoozed=row["snoozed"],
            installed=row["installed"],
            resumed=row["resumed"],
            evaluated=row["evaluated"],
            executions=row["executions"],
            failures=row["failures"],
            retry=row["retry"],
            problem=row["problem"],
            follows=row["follows"],
            rows=row["rows"],
        )

    def _clauses(self, row: dict[str, Any]) -> Clauses:
        """Most queries have clauses like those of others: each is read once."""
        given = [clause_texts.Part(name.upper(), str(row[name]), 0) for name in CLAUSES]
        given.append(clause_texts.Part("ZONE", quoted(row["zone"]), 0))
        given.append(clause_texts.Part("OWNER", quoted(row["owner"]), 0))
        values: dict[str, Any] = {}
        for each in given:
            if each.text:
                values |= self._values(each)
        trigger = self._kinds.read_again(row["trigger"])
        if trigger is None:
            trigger = self._values(clause_texts.Part("TRIGGER", row["trigger"], 0))["trigger"]
        return Clauses(query=row["query"], trigger=trigger, **values)

    def _values(self, part: clause_texts.Part) -> dict[str, Any]:
        known = self._read_parts.get(part)
        if known is None:
            if len(self._read_parts) >= MOST_READ:
                self._read_parts.clear()
            parts = [part]
            if part.name == "NOTIFY":
                parts = clause_texts.parts_of(f"x NOTIFY {part.text}")[1:]
            known = self._read_parts[part] = clause_texts.values_of(parts, self._kinds, SQL)
        return known


CLAUSES = ("stop", "deliver", "strategy", "deadline", "coupling", "priority", "notify")
MOST_READ = 20_000
"""How many different texts of clauses a session keeps read."""
