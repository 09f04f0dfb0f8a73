"""Links to the pages of results, in messages.

A message about a query knows its page: `cq208/2` is what the second execution of a query found,
and `cq208` the list of its executions. The link is made when the message is sent, for it begins
with the setting `public_address`; without one there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harken.database.messages import PAGE, StoredMessage

LINK = "link"
FOLDER = "/results/"


def with_links(message: StoredMessage, address: str) -> tuple[StoredMessage, str]:
    """The message as it is sent, and the link to all that it is about; empty if there is none."""
    payload = _linked(message.message.payload, address.rstrip("/"))
    if isinstance(payload.get("parts"), list):
        payload["parts"] = [_linked(part, address.rstrip("/")) for part in payload["parts"]]
    about = replace(message.message, payload=payload)
    return replace(message, message=about), str(payload.get(LINK, ""))


def _linked(payload: Mapping[str, Any], address: str) -> dict[str, Any]:
    found = dict(payload)
    page = found.pop(PAGE, "")
    if page and address:
        found[LINK] = f"{address}{FOLDER}{page}"
    return found
