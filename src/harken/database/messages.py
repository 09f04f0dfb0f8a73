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
- `state` is `waiting`, `sent` or `dead` (it was given up); `attempts`, `due` (not before), `tried`
  and `error` belong to whoever delivers.

Law: a message is there exactly if the transaction that caused it was committed, and it is `sent`
only after a channel has accepted it: at least once, never lost.
"""

from __future__ import annotations

import datetime
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harken.database.runtime import Runtime
from harken.database.stored_functions import store
from harken.errors import IntegrityError, NameFault, ValueFault
from harken.ir.relations import Column, Relation
from harken.ir.schema import Function, FunctionKind
from harken.values.encoding import decode_timestamp, encode_timestamp
from harken.values.rows import Row
from harken.values.types import INTEGER, TEXT, TIMESTAMP

NAME = "delivery"
KINDS = ("results", "stopped", "error", "recovered", "announcement", "sample")
"""New results; the query has stopped; it fails; it works again; news of the operator; a trial."""
WAITING, SENT, DEAD = "waiting", "sent", "dead"
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
)
TEXT_OF_FUNCTION = "create function delivery(integer number) -> messages to people"
_STATE, _ATTEMPTS, _DUE, _TRIED, _ERROR = 11, 12, 13, 14, 15


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


class Messages:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

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
        )
        self._runtime.engine.set_row(self._relation(), row)
        return number

    # --- delivering ----------------------------------------------------------------------------

    def waiting(self, now: datetime.datetime) -> list[StoredMessage]:
        """The messages that are due, in order of number. One that is not due keeps back the later
        ones of its query and recipient, so that none overtakes another."""
        found, kept_back = [], set()
        for each in self.listed(WAITING):
            line = (
                each.message.query,
                each.message.recipient.channel,
                each.message.recipient.address,
            )
            if each.due > now:
                kept_back.add(line)
            elif line not in kept_back:
                found.append(each)
        return found

    def next_due(self) -> datetime.datetime | None:
        """When the next waiting message is due."""
        return min((each.due for each in self.listed(WAITING)), default=None)

    def listed(self, state: str | None = None) -> list[StoredMessage]:
        """The messages, all or those in a state, in order of number."""
        if not self.is_declared:
            return []
        known = {} if state is None else {_STATE: state}
        return [
            _read(row) for row in sorted(self._runtime.engine.matching(self._relation(), known))
        ]

    def mark_sent(self, number: int) -> None:
        """In a transaction: a channel has accepted the message."""
        row = self._row(number)
        self._change(row, SENT, row[_DUE], "")

    def mark_failed(self, number: int, error: str, retry: datetime.datetime | None) -> None:
        """In a transaction: the message was not accepted; without a time to retry it is dead."""
        row = self._row(number)
        due = row[_DUE] if retry is None else encode_timestamp(retry)
        self._change(row, DEAD if retry is None else WAITING, due, error)

    def resend(self, number: int) -> None:
        """In a transaction: a dead or sent message waits again, under its old id."""
        row = self._row(number)
        now = encode_timestamp(self._runtime.engine.connection.now())
        changed = (*row[:_STATE], WAITING, 0, now, row[_TRIED], row[_ERROR])
        self._runtime.engine.set_row(self._relation(), changed)

    def remove(self, number: int) -> None:
        """In a transaction: forget a message."""
        self._runtime.engine.clear(self._relation(), (number,))

    def _change(self, row: Row, state: str, due: Any, error: str) -> None:
        tried = encode_timestamp(self._runtime.engine.connection.now())
        changed = (*row[:_STATE], state, row[_ATTEMPTS] + 1, due, tried, error)
        self._runtime.engine.set_row(self._relation(), changed)

    def _row(self, number: int) -> Row:
        rows = self._runtime.engine.results(self._relation(), (number,)) if self.is_declared else []
        if not rows:
            raise IntegrityError(
                f"there is no message {number}",
                code="no-such-row",
                hint=f"SELECT * FROM {NAME} lists them; it may have been removed meanwhile",
            )
        return (number, *rows[0])

    def _relation(self) -> Relation:
        relation = self._runtime.catalog.function(f"{NAME}(integer)").relation
        assert relation is not None
        return relation


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _read(row: Row) -> StoredMessage:
    number, id, query, execution, kind, at, owner, channel, address, options, payload = row[:11]
    state, attempts, due, tried, error = row[11:]
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
