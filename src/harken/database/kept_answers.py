"""The answers to requests that carried a key, so that a repeated request is carried out once.

A client that got no answer sends its request again under the same key, and gets the answer that the
first one got. A key belongs to an account, and to one request: with another body it is refused.

Law: the record of a key commits with what its request did. There are never more records than the
setting says, and a record is forgotten after `KEPT_SECONDS`.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from harken.engines.protocol import Field, RecordKind, Records
from harken.errors import IntegrityError, ValueFault

ANSWERS = RecordKind(
    "harken_answers",
    (
        Field("number", "integer"),
        Field("digest", "text"),
        Field("request", "text"),
        Field("status", "integer"),
        Field("answer", "text"),
        Field("at", "real"),
    ),
    key=("number",),
    numbered=True,
    ordered_by="digest",
)
KEPT_SECONDS = 24 * 3600.0
LONGEST_KEY = 255
LARGEST_ANSWER = 64 * 2**10
"""Characters of an answer that is kept."""


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request under a key: whose it is, and digests of the key and of all that it asks."""

    digest: str
    request: str

    @classmethod
    def of(cls, account: str, key: str, method: str, path: str, body: bytes) -> KeyedRequest:
        if not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
            raise ValueFault(
                f"an idempotency key is a text of 1 to {LONGEST_KEY} characters",
                code="bad-value",
                hint="a random UUID is a good one",
            )
        # The key is part of it, so that nobody learns a password in the body from the digest.
        asked = hashlib.sha256(f"{key}\n{method} {path}\n".encode() + body)
        return cls(hashlib.sha256(f"{account}\n{key}".encode()).hexdigest(), asked.hexdigest())


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    status: int
    text: str


class KeptAnswers:
    def __init__(
        self, records: Records, now: Callable[[], datetime.datetime], most: Callable[[], int]
    ) -> None:
        self._records = records
        self._now = now
        self._most = most

    def find(self, request: KeyedRequest) -> KeptAnswer | None:
        """The answer that this request had; None if it is the first under its key."""
        if not self._records.exist(ANSWERS):
            return None
        since = self._now().timestamp() - KEPT_SECONDS
        for _, _, asked, status, text, at in self._records.find(
            ANSWERS, {"digest": request.digest}
        ):
            if at < since:
                continue
            if asked != request.request:
                raise IntegrityError(
                    "this idempotency key belongs to another request",
                    code="key-reused",
                    hint="send a new key with each new request",
                )
            return KeptAnswer(status, text)
        return None

    def keep(self, request: KeyedRequest, status: int, text: str) -> None:
        """In the transaction that did what was asked."""
        self._records.make_room(ANSWERS)
        self._records.remove(ANSWERS, {"digest": request.digest})
        kept = text if len(text) <= LARGEST_ANSWER else ""
        at = self._now().timestamp()
        self._records.add(ANSWERS, (None, request.digest, request.request, status, kept, at))
        self._records.remove_oldest(ANSWERS, self._most())
