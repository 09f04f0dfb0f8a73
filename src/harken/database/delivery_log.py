"""The log of deliveries: each attempt to deliver a message, as the relation `delivery_attempt`.

Law: an attempt is logged in the transaction that records what became of the message. One whose
process died in between is not logged, and the message is tried again.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from harken.database.runtime import Runtime
from harken.database.stored_functions import store
from harken.errors import NameFault
from harken.ir.relations import Column, Relation
from harken.ir.schema import Function, FunctionKind
from harken.values.encoding import decode_timestamp, encode_timestamp
from harken.values.types import INTEGER, TEXT, TIMESTAMP

NAME = "delivery_attempt"
NUMBER = Column("number", INTEGER)
RESULTS = (
    Column("message", INTEGER),
    Column("id", TEXT),
    Column("channel", TEXT),
    Column("attempt", INTEGER),
    Column("started", TIMESTAMP),
    Column("ended", TIMESTAMP),
    Column("outcome", TEXT),
    Column("error", TEXT),
)
TEXT_OF_FUNCTION = "create function delivery_attempt(integer number) -> attempts to deliver"
_MESSAGE = 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to deliver a message; `outcome` is the state of the message after it."""

    message: int
    id: str
    channel: str
    attempt: int
    started: datetime.datetime
    ended: datetime.datetime
    outcome: str
    error: str


class DeliveryLog:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @property
    def is_declared(self) -> bool:
        catalog, name = self._runtime.catalog, f"{NAME}(integer)"
        return catalog.has_function(name) and catalog.function(name).text == TEXT_OF_FUNCTION

    def add(self, attempt: Attempt) -> None:
        """In a transaction: log an attempt."""
        self._declare()
        row = (
            self._runtime.catalog.allocate(1),
            attempt.message,
            attempt.id,
            attempt.channel,
            attempt.attempt,
            encode_timestamp(attempt.started),
            encode_timestamp(attempt.ended),
            attempt.outcome,
            attempt.error,
        )
        self._runtime.engine.set_row(self._relation(), row)

    def of_message(self, message: int) -> list[Attempt]:
        """The attempts to deliver a message, oldest first."""
        if not self.is_declared:
            return []
        found = sorted(self._runtime.engine.matching(self._relation(), {_MESSAGE: message}))
        return [
            Attempt(
                message,
                id,
                channel,
                attempt,
                decode_timestamp(started),
                decode_timestamp(ended),
                *told,
            )
            for _, message, id, channel, attempt, started, ended, *told in found
        ]

    def forget(self, message: int) -> None:
        """In a transaction: remove the attempts of a message."""
        if not self.is_declared:
            return
        self._runtime.engine.indexes.ensure([(self._relation(), (_MESSAGE,))])
        for row in self._runtime.engine.matching(self._relation(), {_MESSAGE: message}):
            self._runtime.engine.clear(self._relation(), row[:1])

    def _declare(self) -> None:
        if self.is_declared:
            return
        if self._runtime.catalog.named(NAME):
            raise NameFault(
                f"attempts to deliver are logged in {NAME}, and there is another table of that "
                "name",
                code="exists",
                hint=f"rename yours first: ALTER TABLE {NAME} RENAME TO ...",
            )
        stored = FunctionKind.STORED
        function = Function(NAME, (NUMBER,), RESULTS, stored, text=TEXT_OF_FUNCTION)
        store(self._runtime, function, resident=True)

    def _relation(self) -> Relation:
        relation = self._runtime.catalog.function(f"{NAME}(integer)").relation
        assert relation is not None
        return relation
