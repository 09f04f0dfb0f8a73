"""Messages as a run hands them to a channel."""

from __future__ import annotations

import datetime
from typing import Any

from harken.database.messages import Message, Recipient, StoredMessage
from harken.notify.channel_registry import Surroundings

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


def message(channel: str, address: str, **options: Any) -> StoredMessage:
    to = Recipient(channel, address, options)
    payload = {"inserted": [{"item": "pen", "left": 2}], "count": 1}
    said = Message("low", 3, "results", NOON, "ann", to, payload)
    return StoredMessage(7, "msg_1", said, "sending", 1, NOON, NOON, "")


def around(**settings: Any) -> Surroundings:
    return Surroundings(settings, str, lambda: NOON)
