"""The id of the request that is being answered: in its answer, in errors, and in the log."""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar
from typing import Any

HEADER = "x-request-id"
_GIVEN = re.compile(r"[A-Za-z0-9._:-]{1,64}")
request_id: ContextVar[str] = ContextVar("request_id", default="")
request_notes: ContextVar[dict[str, Any] | None] = ContextVar("request_notes", default=None)
"""What the log says of the request besides; None if nobody logs it."""


def note_request(**members: Any) -> None:
    """Say more of the request in its line of the log, such as the `transaction` it made."""
    notes = request_notes.get()
    if notes is not None:
        notes.update(members)


def id_for(given: str | None) -> str:
    """The id that the sender, or a proxy, gave the request; a new one if that is none.

    >>> id_for("a-1"), len(id_for("a\\nb"))
    ('a-1', 16)
    """
    if given is not None and _GIVEN.fullmatch(given):
        return given
    return secrets.token_hex(8)
