"""Who wants no more messages: one click in a mail, and one row in the file.

Every query and address has a link of its own, made with the first message that can carry one (the
setting `public_address`). Whoever has the link can end these messages and no others, for it is a
random number that only they were sent.

Law: after `end`, no message of that query reaches that address until `resume`, errors for the
operator excepted.
"""

from __future__ import annotations

import datetime
import secrets
from dataclasses import dataclass

from harken.engines.protocol import Connection, Field, RecordKind
from harken.errors import IntegrityError
from harken.values.encoding import decode_timestamp, encode_timestamp

LINKS = RecordKind(
    "harken_unsubscribe",
    (
        Field("token", "text"),
        Field("query", "text"),
        Field("channel", "text"),
        Field("address", "text"),
        Field("ended", "integer", optional=True),
    ),
    key=("token",),
    unique=("query", "channel", "address"),
)


@dataclass(frozen=True, slots=True)
class Link:
    """Someone who gets the messages of a query, and since when they want no more."""

    token: str
    query: str
    channel: str
    address: str
    ended: datetime.datetime | None


class Unsubscribing:
    def __init__(self, connection: Connection) -> None:
        self._connection, self._records = connection, connection.records

    def token(self, query: str, channel: str, address: str) -> str:
        """In a transaction: the secret part of the link of a query and an address."""
        found = self._of(query, channel, address)
        if found is not None:
            return found.token
        token = secrets.token_urlsafe(18)
        self._records.make_room(LINKS)
        self._records.add(LINKS, (token, query, channel, address, None))
        return token

    def find(self, token: str) -> Link | None:
        return self._first({"token": token})

    def is_ended(self, query: str, channel: str, address: str) -> bool:
        found = self._of(query, channel, address)
        return found is not None and found.ended is not None

    def end(self, token: str) -> Link:
        """In a transaction: no more messages. Doing it again changes nothing."""
        found = self.find(token)
        if found is None:
            raise IntegrityError(
                "this link is not known",
                code="no-such-row",
                hint="use the link of a newer message",
            )
        if found.ended is None:
            now = encode_timestamp(self._connection.now())
            self._records.change(LINKS, {"token": token}, {"ended": now})
        return found

    def resume(self, query: str, channel: str, address: str) -> bool:
        """In a transaction: messages are wanted again; false if they were."""
        found = self._of(query, channel, address)
        if found is None or found.ended is None:
            return False
        self._records.change(LINKS, {"token": found.token}, {"ended": None})
        return True

    def ended(self) -> list[Link]:
        """Everyone who wants no more."""
        if not self._records.exist(LINKS):
            return []
        found = map(_read, self._records.find(LINKS))
        return sorted((e for e in found if e.ended is not None), key=lambda e: (e.query, e.address))

    def _of(self, query: str, channel: str, address: str) -> Link | None:
        return self._first({"query": query, "channel": channel, "address": address})

    def _first(self, wanted: dict[str, str]) -> Link | None:
        if not self._records.exist(LINKS):
            return None
        rows = self._records.find(LINKS, wanted)
        return _read(rows[0]) if rows else None


def _read(row: tuple[object, ...]) -> Link:
    token, query, channel, address, ended = row
    at = decode_timestamp(ended) if isinstance(ended, int) else None
    return Link(str(token), str(query), str(channel), str(address), at)
