"""Continual queries in Python: `db.continual(...)` and its handle, `db.continual_queries`.

Law: a handle does what the statement of SQL does, and every method looks at the database anew.
"""

from __future__ import annotations

import builtins
import datetime
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from harken.api.internals import Internals
from harken.api.notifications import Notification, shown_message
from harken.api.replays import Replay, named_relations, replayed
from harken.api.sample_messages import ReadySample, Sample, sample_of
from harken.api.statement_previews import (
    Checked,
    QueryDescription,
    check_recipients,
    described_query,
    next_times,
    parts_of_statement,
)
from harken.api.view_history import ViewHistory
from harken.continual import query_documents
from harken.continual.clause_texts import Part, clauses_of
from harken.continual.execution_log import Execution
from harken.continual.installed_queries import InstalledQuery
from harken.continual.local_times import zone_named
from harken.continual.query_alterations import Alterations
from harken.continual.schedules import instant
from harken.continual.words import quoted
from harken.database.arguments import check_flag, check_text, check_whole
from harken.database.exclusive import SessionLock, exclusive
from harken.database.messages import Messages, StoredMessage
from harken.errors import HarkenError, NameFault, TypeFault, ValueFault, offered

T = TypeVar("T")
CLAUSES = (*query_documents.TEXTS[1:], "notify", "priority")
"""The clauses that `db.continual` takes by name."""


@dataclass(frozen=True, slots=True)
class PastExecution:
    """A recorded execution: a row of `continual_execution`, with its result read."""

    execution: int
    at: datetime.datetime
    event: str
    cause: Mapping[str, Any]
    outcome: str
    strategy: str
    inserted: int
    deleted: int
    rows: int
    seconds: float
    error: str
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Preview:
    """What a statement would install: nothing of it was kept."""

    query: InstalledQuery
    description: QueryDescription
    due: tuple[datetime.datetime, ...]
    samples: tuple[Sample, ...]


class ContinualQuery:
    """A handle on one continual query; the name is that of the installation, or its id."""

    def __init__(
        self, internals: Internals, session_lock: SessionLock, query: InstalledQuery
    ) -> None:
        self._internals = internals
        self.session_lock = session_lock
        self._number = query.number
        self._name = query.name
        self.id = query.id

    def __repr__(self) -> str:
        return f"ContinualQuery({self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    @exclusive
    def status(self) -> InstalledQuery:
        """Its clauses and state as of now."""
        self._internals.look()
        return self._find()

    @exclusive
    def history(self) -> list[PastExecution]:
        """Its recorded executions, oldest first."""
        self._internals.look()
        return [_past(row) for row in self._internals.continual.log.of_query(self._find().number)]

    @exclusive
    def execution(self, number: int) -> PastExecution | None:
        """One of its recorded executions; the first is 1."""
        self._internals.look()
        check_whole(number, "the number of an execution", least=1)
        found = self._internals.continual.log.of_query(self._find().number, number)
        return _past(found[-1]) if found else None

    @exclusive
    def describe(self) -> QueryDescription:
        """Its columns, and how it is executed: what EXPLAIN CONTINUAL QUERY shows."""
        self._internals.look()
        return described_query(self._internals.continual, self._find())

    @exclusive
    def deliveries(self) -> list[Notification]:
        """The messages about it, oldest first; none about another query that had its name."""
        self._internals.look()
        return [shown_message(each) for each in self._messages()]

    @exclusive
    def resend(self, number: int) -> None:
        """Let one of its messages wait again, under its old id."""
        self._internals.check_open()
        check_whole(number, "the number", least=0)
        if number not in {each.number for each in self._messages()}:
            raise NameFault(
                f"{self._name} has no message {number}",
                code="unknown-table",
                hint="`deliveries()` lists them",
            )
        with self._internals.alone():
            Messages(self._internals.runtime).resend(number)

    def _messages(self) -> builtins.list[StoredMessage]:
        query = self._find()
        found = self._internals.continual.messages_of(query)
        return [each for each in found if each.message.at >= query.installed]

    @exclusive
    def run(self) -> Execution | None:
        """Execute it now; None if it has stopped meanwhile. `db.run_due()` delivers the message."""
        self._internals.look()
        return self._internals.continual.execute(self._find())

    def alter(self, query: str | None = None, **clauses: Any) -> None:
        """Put clauses in place of those that it has: `alter(trigger="EVERY DAY")`."""
        parts = _parts(query, clauses)
        self._change(lambda alterations, known: alterations.set_clauses(known, parts))

    def pause(self) -> None:
        """Do not execute it until `resume`."""
        self._change(lambda alterations, known: alterations.pause(known))

    def resume(self) -> None:
        """End a pause or a snooze."""
        self._change(lambda alterations, known: alterations.resume(known))

    def mute(self) -> None:
        """Execute it, and send nothing."""
        self._change(lambda alterations, known: alterations.mute(known, True))

    def unmute(self) -> None:
        """Send messages again."""
        self._change(lambda alterations, known: alterations.mute(known, False))

    def snooze(self, until: datetime.datetime) -> None:
        """Execute it once, at this moment, for all that happens until then. A time without a zone
        is one of its own zone."""
        if not isinstance(until, datetime.datetime):
            raise TypeFault(
                f"until must be a datetime, not a {type(until).__name__}", code="type-mismatch"
            )
        self._change(
            lambda alterations, known: alterations.snooze(known, instant(until, known.zone))
        )

    def give_to(self, owner: str) -> None:
        """Make it somebody else's."""
        check_text(owner, "the owner")
        self._change(lambda alterations, known: alterations.give_to(known, owner))

    @exclusive
    def drop(self) -> None:
        """Delete it, with its recorded executions."""
        self._internals.check_open()
        with self._internals.alone():
            self._internals.continual.drop(self._find())

    @exclusive
    def _change(self, change: Callable[[Alterations, InstalledQuery], InstalledQuery]) -> None:
        self._internals.check_open()
        with self._internals.alone():
            self._name = change(Alterations(self._internals.continual), self._find()).name

    def _find(self) -> InstalledQuery:
        found = self._internals.continual.queries.find(self._number)
        return self._internals.continual.queries.need(self._name) if found is None else found


class ContinualQueryList:
    """The continual queries of a database: `db.continual_queries`."""

    def __init__(self, internals: Internals, session_lock: SessionLock) -> None:
        self._internals = internals
        self.session_lock = session_lock

    @exclusive
    def install(self, name: str | None, query: str, clauses: Mapping[str, Any]) -> ContinualQuery:
        """Install a query and execute it for the first time."""
        self._internals.check_open()
        with self._internals.alone():
            made = self._installed(name, query, clauses)
        return ContinualQuery(self._internals, self.session_lock, made)

    def _installed(
        self, name: str | None, query: str, clauses: Mapping[str, Any]
    ) -> InstalledQuery:
        if name is not None:
            check_text(name, "the name of a continual query")
            if not name.strip():
                raise ValueFault("a continual query needs a name", code="bad-name", hint="or none")
        continual = self._internals.continual
        wanted = query_documents.described(name or "?", {"query": query, **clauses}, continual)
        return continual.install(name, wanted.clauses)

    @exclusive
    def get(self, name: str) -> ContinualQuery:
        """The query of a name or an id."""
        self._internals.look()
        check_text(name, "the name of a continual query")
        found = self._internals.continual.queries.need(name)
        self._internals.continual.permissions.check_own(found)
        return ContinualQuery(self._internals, self.session_lock, found)

    @exclusive
    def list(self) -> builtins.list[InstalledQuery]:
        """All of them, oldest first, with their clauses and states. A user sees only the user's
        own."""
        self._internals.look()
        continual = self._internals.continual
        return [each for each in continual.queries.all() if continual.permissions.sees(each)]

    @exclusive
    def export(self, names: Iterable[str] | None = None) -> dict[str, Any]:
        """Queries as plain data, all that have not stopped by default: what a YAML file has under
        `queries`."""
        self._internals.look()
        queries, permissions = (
            self._internals.continual.queries,
            self._internals.continual.permissions,
        )
        if names is None:
            chosen = [each for each in queries.all() if each.is_live and permissions.sees(each)]
        else:
            chosen = [queries.need(name) for name in _texts(names)]
            for each in chosen:
                permissions.check_own(each)
        return {each.name: query_documents.document_of(each) for each in chosen}

    @exclusive
    def install_all(self, documents: Mapping[str, Any]) -> dict[str, str]:
        """Make the database have these queries, as `export` gives them, in one transaction; says
        for each what was done: installed, altered or unchanged. Others stay."""
        self._internals.check_open()
        if not isinstance(documents, Mapping):
            raise TypeFault(
                "queries are a mapping of names to clauses",
                code="type-mismatch",
                hint='as {"bayer": {"query": "SELECT ..."}}',
            )
        continual = self._internals.continual
        with self._internals.alone():
            return {
                str(name): query_documents.make_so(
                    continual, query_documents.described(str(name), document, continual)
                )
                for name, document in documents.items()
            }

    @exclusive
    def compare(self, documents: Mapping[str, Any]) -> dict[str, str]:
        """What `install_all` would do with each of these, without doing it."""
        self._internals.look()
        continual = self._internals.continual
        return {
            name: query_documents.difference(
                continual, query_documents.described(name, document, continual)
            )
            for name, document in documents.items()
        }

    @exclusive
    def test(
        self,
        query: str,
        clauses: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        send: bool = False,
    ) -> builtins.list[Sample]:
        """The messages that a query would send when it is installed, and with `send` they are sent
        as samples. Nothing is installed."""
        self._internals.look()
        check_text(query, "the query")
        check_flag(send, "send")
        self._internals.check_committed("a query is tried in a transaction of its own")
        continual, found = self._internals.continual, list[StoredMessage]()
        if name is not None and continual.queries.named(name) is not None:
            name = None
        try:
            with self._internals.transactions.block():
                found += continual.messages_of(self._installed(name, query, clauses or {}))
                raise _Tried
        except _Tried:
            pass
        samples = [sample_of(each) for each in found]
        for each in samples if send else ():
            ReadySample.of(each, self._internals.runtime).send()
        return samples

    @exclusive
    def check(self, statement: str) -> Checked:
        """Read CREATE CONTINUAL QUERY and compile its query, without executing it. The place of an
        error is one in the statement."""
        self._internals.look()
        check_text(statement, "the statement")
        continual = self._internals.continual
        try:
            _, parts = parts_of_statement(statement)
            clauses = clauses_of(parts, continual.kinds)
            continual.compile(clauses.query, "a continual query", parts[0].base)
            check_recipients(continual, parts)
        except HarkenError as error:
            error.locate(statement, None)
            raise
        zone = zone_named(clauses.zone or str(self._internals.runtime.settings["time_zone"]))
        now = continual.now
        return Checked(zone, next_times(clauses.trigger, now, now, zone))

    @exclusive
    def preview(self, statement: str) -> Preview:
        """What CREATE CONTINUAL QUERY would do: its columns, what triggers it, the next times, and
        its first message. Nothing is installed. The place of an error is one in the statement."""
        self._internals.look()
        check_text(statement, "the statement")
        self._internals.check_committed("a query is tried in a transaction of its own")
        continual, found = self._internals.continual, None
        try:
            name, parts = parts_of_statement(statement)
            clauses = clauses_of(parts, continual.kinds)
            check_recipients(continual, parts)
            if name is not None and continual.queries.named(name) is not None:
                name = None
            with self._internals.transactions.block():
                query = continual.install(name, clauses, parts[0].base)
                new = [
                    each
                    for each in continual.messages_of(query)
                    if each.message.at >= query.installed
                ]
                samples = tuple(map(sample_of, new))
                due = next_times(query.clauses.trigger, query.looked, query.installed, query.zone)
                found = Preview(query, described_query(continual, query), due, samples)
                raise _Tried
        except _Tried:
            assert found is not None
            return found
        except HarkenError as error:
            error.locate(statement, None)
            raise

    @exclusive
    def replay(
        self, statement: str, histories: Iterable[ViewHistory], since: datetime.datetime
    ) -> Replay:
        """How often CREATE CONTINUAL QUERY would have fired since then, by what is kept of the
        past of the relations that it names: `db.history` of each of `named_in(statement)`."""
        self._internals.look()
        _, parts = parts_of_statement(statement)
        zone = str(self._internals.runtime.settings["time_zone"])
        return replayed(parts, list(histories), since, self._internals.continual.now, zone)

    def named_in(self, statement: str, known: Iterable[str]) -> builtins.list[str]:
        """Those of the known relations whose names stand in a statement."""
        return named_relations(parts_of_statement(statement)[1], known)

    @exclusive
    def prepare(self, sample: Sample) -> ReadySample:
        """Read the secrets that a sample needs, so that it can be sent in any thread."""
        self._internals.look()
        return ReadySample.of(sample, self._internals.runtime)


class _Tried(Exception):
    """Rolls back what was only tried."""


def _parts(query: str | None, clauses: Mapping[str, Any]) -> list[Part]:
    parts = []
    if query is not None:
        check_text(query, "the query")
        parts.append(Part("QUERY", query, 0))
    for name, value in clauses.items():
        if name not in CLAUSES:
            raise TypeFault(
                f"there is no clause {name}",
                code="bad-value",
                hint=offered(name, CLAUSES, "clauses"),
            )
        for each in value if name == "notify" and not isinstance(value, str) else [value]:
            said = str(each) if isinstance(each, int) else each
            check_text(said, name)
            is_quoted = name in ("zone", "owner")
            parts.append(Part(name.upper(), quoted(said) if is_quoted else said, 0))
    return parts


def _texts(names: Any) -> builtins.list[str]:
    listed = [names] if isinstance(names, str) else list(names)
    for each in listed:
        check_text(each, "the name of a continual query")
    return listed


def _past(row: Mapping[str, Any]) -> PastExecution:
    try:
        cause, result = json.loads(row["cause"]), json.loads(row["result"] or "{}")
    except ValueError as error:
        raise HarkenError("a recorded execution cannot be read", code="bad-value") from error
    names = ("event", "outcome", "strategy", "inserted", "deleted", "rows", "seconds", "error")
    rest = {name: row[name] for name in names}
    return PastExecution(
        execution=row["execution"], at=row["at"], cause=cause, result=result, **rest
    )
