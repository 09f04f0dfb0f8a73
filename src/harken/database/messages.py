"""The outbox for people: messages that wait to be delivered, as the relation `delivery`.

Whoever has something to tell (an execution of a continual query, a rule) calls `Messages.write` in
the transaction that caused it, once for each recipient; `notify` delivers after the commit. The
relation is a stored function like any other, so SQL can query it and monitors can watch it.

A row keeps one message for one recipient:

- `number` orders the messages: a channel gets those of one query in this order.
- `id` never changes, however often the message is tried: receivers recognise a repetition by it.
- `query`, `execution` and `kind` (one of `KINDS`) say what it is about; `at` when it was caused.
- `channel` and `address` are the NOTIFY clause, `options` the rest of the clause as a JSON object.
- `payload` is a JSON object: `inserted` and `deleted` are lists of objects by column, `changed` a
  list of `{"old": {...}, "new": {...}}`, `rows` the whole answer where it was asked for, `count`
  the number of rows, `columns` their names; `text` a sentence for people.
- `state` is one of `STATES`; `attempts`, `due` (not before), `tried`, `error` and `claim` belong to
  whoever delivers. `claim` names the run that is sending the message, until its lease is over.

A line is the messages of one query for one address of a channel: they are delivered in order.

Law: a message is there exactly if the transaction that caused it was committed, and it is
`delivered` only after a channel has accepted it: at least once, never lost.
"""

from __future__ import annotations

import datetime
import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from harken.database.runtime import Runtime
from harken.database.stored_functions import store
from harken.database.unsubscribing import Unsubscribing
from harken.engines.protocol import COUNTERS
from harken.errors import IntegrityError, NameFault, ValueFault
from harken.ir.relations import Column, Relation
from harken.ir.schema import Function, FunctionKind
from harken.values.encoding import decode_timestamp, encode_timestamp
from harken.values.rows import Row
from harken.values.types import INTEGER, TEXT, TIMESTAMP

NAME = "delivery"
PAGE = "page"
"""In a payload: the page of the results, `cq208/2` for the second execution of a query, `cq208` for
all of them."""
KINDS = (
    "results",
    "stopped",
    "error",
    "operator_error",
    "recovered",
    "announcement",
    "sample",
)
"""New results; the query has stopped; it fails, for its owner and for the operator; it works again;
news of the operator; a trial."""
WAITING, SENDING, FAILED = "waiting", "sending", "failed"
"""The states of a message that is still to be delivered; a failed one has a next attempt."""
DELIVERED, DEAD = "delivered", "dead"
MUTED, GROUPED, UNSUBSCRIBED = "muted", "grouped", "unsubscribed"
"""Messages that are not sent: nobody wants them, or another one has their content."""
OPEN = (WAITING, SENDING, FAILED)
DONE = (DELIVERED, MUTED, GROUPED, UNSUBSCRIBED)
"""The states of a message that needs nothing more."""
STATES = (*OPEN, DELIVERED, DEAD, MUTED, GROUPED, UNSUBSCRIBED)
ATTEMPTS = "delivery attempts"
"""The counter of the file that says how often delivery was attempted."""
NUMBER = Column("number", INTEGER)
RESULTS = (
    Column("id", TEXT),
    Column("query", TEXT),
    Column("execution", INTEGER),
    Column("kind", TEXT),
    Column("at", TIMESTAMP),
    Column("owner", TEXT),
    Column("channel", TEXT),
    Column("address", TEXT),
    Column("options", TEXT),
    Column("payload", TEXT),
    Column("state", TEXT),
    Column("attempts", INTEGER),
    Column("due", TIMESTAMP),
    Column("tried", TIMESTAMP.or_null(True)),
    Column("error", TEXT),
    Column("claim", TEXT),
)
TEXT_OF_FUNCTION = "create function delivery(integer number) -> messages to people"
_QUERY, _CHANNEL, _ADDRESS, _OPTIONS = 2, 7, 8, 9
_PAYLOAD = 10
_STATE, _ATTEMPTS, _DUE, _TRIED, _ERROR, _CLAIM = 11, 12, 13, 14, 15, 16


Line: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Recipient:
    """One NOTIFY clause: `EMAIL 'me@example.org' TEMPLATE alert` is the channel `email`, that
    address, and the option `template`."""

    channel: str
    address: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """What is to be said, before it has a number."""

    query: str
    execution: int
    kind: str
    at: datetime.datetime
    owner: str
    recipient: Recipient
    payload: Mapping[str, Any]
    due: datetime.datetime | None = None
    """Not to be delivered before; None means at once."""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A row of the outbox."""

    number: int
    id: str
    message: Message
    state: str
    attempts: int
    due: datetime.datetime
    tried: datetime.datetime | None
    error: str

    @property
    def line(self) -> Line:
        """The messages that must not overtake one another have the same line."""
        to = self.message.recipient
        return self.message.query, to.channel, to.address


class Messages:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.unsubscribing = Unsubscribing(runtime.engine.connection)

    @property
    def is_declared(self) -> bool:
        catalog, name = self._runtime.catalog, f"{NAME}(integer)"
        return catalog.has_function(name) and catalog.function(name).text == TEXT_OF_FUNCTION

    def declare(self) -> None:
        """Create the relation, in a transaction, if it does not exist."""
        if self.is_declared:
            return
        if self._runtime.catalog.named(NAME):
            raise NameFault(
                f"messages wait in {NAME}, and there is another table of that name",
                code="exists",
                hint=f"rename yours first: ALTER TABLE {NAME} RENAME TO ...",
            )
        stored = FunctionKind.STORED
        function = Function(NAME, (NUMBER,), RESULTS, stored, text=TEXT_OF_FUNCTION)
        store(self._runtime, function, resident=True)

    # --- in the transaction that causes it ----------------------------------------------------

    def write(self, message: Message) -> int:
        """Record a message; returns its number."""
        if message.kind not in KINDS:
            raise ValueFault(f"there is no message of kind {message.kind}", code="bad-value")
        self.declare()
        number = self._runtime.catalog.allocate(1)
        to = message.recipient
        row = (
            number,
            f"msg_{secrets.token_hex(12)}",
            message.query,
            message.execution,
            message.kind,
            encode_timestamp(message.at),
            message.owner,
            to.channel,
            to.address,
            _json(to.options),
            _json(message.payload),
            WAITING,
            0,
            encode_timestamp(message.due or message.at),
            None,
            "",
            "",
        )
        self._runtime.engine.set_row(self._relation(), row)
        return number

    # --- delivering ----------------------------------------------------------------------------

    def ready(self, now: datetime.datetime, lease: float = 0) -> list[StoredMessage]:
        """The messages that are due, in order of number. One that is not, or that another run is
        sending, keeps back the later ones of its line. A run that died holds its messages for
        `lease` seconds."""
        found, kept_back = [], set()
        for row in self._rows(OPEN):
            line = _line_of(row)
            if line in kept_back:
                continue
            if _may_be_sent(row, now, lease):
                found.append(_read(row))
            else:
                kept_back.add(line)
        return found

    def next_due(self, lease: float = 0) -> datetime.datetime | None:
        """When a message can be sent next: it is due, or the lease on it ends. Behind a first one
        that has failed all others of its line wait; one that is held back may be overtaken by
        news that end the holding."""
        blocked, found = set[Line](), list[datetime.datetime]()
        for row in self._rows(OPEN):
            line = _line_of(row)
            if line not in blocked:
                found.append(_free_at(row, lease))
            if row[_ATTEMPTS]:
                blocked.add(line)
        return min(found, default=None)

    def listed(self, *states: str) -> list[StoredMessage]:
        """The messages, all or those in some states, in order of number."""
        return [_read(row) for row in self._rows(states)]

    def listed_if(self, state: str, is_wanted: Callable[[Line, str], bool]) -> list[StoredMessage]:
        """Those in a state whose lines and options, as JSON, are wanted; the others are not even
        decoded."""
        known: dict[tuple[Line, str], bool] = {}
        found = []
        for row in self._rows((state,)):
            key = _line_of(row), row[_OPTIONS]
            if key not in known:
                known[key] = is_wanted(*key)
            found += [_read(row)] if known[key] else []
        return found

    def claim(self, number: int, run: str, now: datetime.datetime, lease: float) -> bool:
        """In a transaction: reserve a message for a run; False if it is not to be sent any more."""
        row = self._find(number)
        if row is None or row[_STATE] not in OPEN or not _may_be_sent(row, now, lease):
            return False
        tried = encode_timestamp(now)
        changed = (*row[:_STATE], SENDING, row[_ATTEMPTS] + 1, row[_DUE], tried, row[_ERROR], run)
        self._runtime.engine.set_row(self._relation(), changed)
        return True

    def mark_delivered(self, number: int, run: str) -> bool:
        """In a transaction: a channel has accepted the message. False if the message is no longer
        this run's, because its lease was over and another run took it."""
        return self._settle(number, run, DELIVERED, None, "")

    def mark_failed(
        self, number: int, run: str, error: str, retry: datetime.datetime | None
    ) -> bool:
        """In a transaction: the message was not accepted; without a time to retry it is dead."""
        return self._settle(number, run, DEAD if retry is None else FAILED, retry, error)

    def set_aside(self, number: int, state: str, reason: str) -> None:
        """In a transaction: the message will not be sent."""
        row = self._row(number)
        self._runtime.engine.set_row(
            self._relation(), (*row[:_STATE], state, *row[_ATTEMPTS:_ERROR], reason, "")
        )

    def postpone(self, number: int, due: datetime.datetime) -> None:
        """In a transaction: a waiting message is not to be sent before a moment."""
        row = self._row(number)
        changed = (*row[:_DUE], encode_timestamp(due), *row[_TRIED:])
        self._runtime.engine.set_row(self._relation(), changed)

    def rewrite(self, number: int, payload: Mapping[str, Any]) -> None:
        """In a transaction: a waiting message says something else."""
        row = self._row(number)
        changed = (*row[:_PAYLOAD], _json(payload), *row[_PAYLOAD + 1 :])
        self._runtime.engine.set_row(self._relation(), changed)

    def resend(self, number: int) -> None:
        """In a transaction: the message waits again, under its old id."""
        row = self._row(number)
        now = encode_timestamp(self._runtime.engine.connection.now())
        changed = (*row[:_STATE], WAITING, 0, now, row[_TRIED], row[_ERROR], "")
        self._runtime.engine.set_row(self._relation(), changed)

    def remove(self, number: int) -> None:
        """In a transaction: forget a message."""
        self._runtime.engine.clear(self._relation(), (number,))

    def count_settled(self, count: int, each: int) -> bool:
        """In a transaction: so many attempts were made. Whether their number has passed a multiple
        of `each`."""
        records = self._runtime.engine.connection.records
        known = records.find(COUNTERS, {"key": ATTEMPTS})
        before = int(known[0][1]) if known else 0
        records.add(COUNTERS, (ATTEMPTS, before + count), replace=True)
        return before // each != (before + count) // each

    def superfluous(self, keep: int) -> list[int]:
        """The oldest messages that need nothing more, beyond so many."""
        found = sorted(row[0] for row in self._rows(DONE))
        return found[: max(0, len(found) - keep)]

    def _settle(
        self, number: int, run: str, state: str, due: datetime.datetime | None, error: str
    ) -> bool:
        row = self._find(number)
        if row is None or row[_STATE] != SENDING or row[_CLAIM] != run:
            return False
        when = row[_DUE] if due is None else encode_timestamp(due)
        changed = (*row[:_STATE], state, row[_ATTEMPTS], when, row[_TRIED], error, "")
        self._runtime.engine.set_row(self._relation(), changed)
        return True

    def _rows(self, states: Iterable[str]) -> list[Row]:
        if not self.is_declared:
            return []
        engine, relation = self._runtime.engine, self._relation()
        chosen: list[dict[int, Any]] = [{_STATE: state} for state in states] or [{}]
        return sorted(row for known in chosen for row in engine.matching(relation, known))

    def _find(self, number: int) -> Row | None:
        rows = self._runtime.engine.results(self._relation(), (number,)) if self.is_declared else []
        return (number, *rows[0]) if rows else None

    def _row(self, number: int) -> Row:
        row = self._find(number)
        if row is None:
            raise IntegrityError(
                f"there is no message {number}",
                code="no-such-row",
                hint=f"SELECT * FROM {NAME} lists them; it may have been removed meanwhile",
            )
        return row

    def _relation(self) -> Relation:
        relation = self._runtime.catalog.function(f"{NAME}(integer)").relation
        assert relation is not None
        return relation


def _line_of(row: Row) -> Line:
    return row[_QUERY], row[_CHANNEL], row[_ADDRESS]


def _free_at(row: Row, lease: float) -> datetime.datetime:
    """When a message can be sent: a claimed one when its lease ends."""
    if row[_STATE] != SENDING:
        return decode_timestamp(row[_DUE])
    return decode_timestamp(row[_TRIED]) + datetime.timedelta(seconds=lease)


def _may_be_sent(row: Row, now: datetime.datetime, lease: float) -> bool:
    return _free_at(row, lease) <= now


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _read(row: Row) -> StoredMessage:
    number, id, query, execution, kind, at, owner, channel, address, options, payload = row[:11]
    state, attempts, due, tried, error, _ = row[11:]
    try:
        recipient = Recipient(channel, address, json.loads(options))
        content = json.loads(payload)
    except ValueError as fault:
        raise ValueFault(
            f"the message {number} cannot be read",
            code="bad-value",
            hint=f"options and payload of {NAME} must not be changed; DELETE the row",
        ) from fault
    caused = decode_timestamp(at)
    message = Message(
        query, execution, kind, caused, owner, recipient, content, decode_timestamp(due)
    )
    last = None if tried is None else decode_timestamp(tried)
    return StoredMessage(number, id, message, state, attempts, decode_timestamp(due), last, error)
