"""`NOTIFY FILE 'out.jsonl'`: one JSON object in a line for each message.

The object has `id`, `query`, `kind`, `at`, `execution`, and all of the payload. A repeated message
has the same `id`, and is written again only if the process died between writing and recording it.
"""

from __future__ import annotations

import os
from pathlib import Path

from harken.database.messages import Recipient, StoredMessage
from harken.database.results import to_json
from harken.errors import ValueFault
from harken.notify.channel_registry import NotDelivered, Surroundings


class FileLines:
    name = "file"

    def check(self, recipient: Recipient, around: Surroundings) -> None:
        if not recipient.address.strip():
            raise ValueFault(
                "NOTIFY FILE needs the path of a file",
                code="bad-value",
                hint="NOTIFY FILE 'messages.jsonl'",
            )
        directory = Path(recipient.address).parent
        if not directory.is_dir():
            raise ValueFault(
                f"messages cannot be written to {recipient.address!r}: there is no directory "
                f"{directory}",
                code="bad-value",
                hint="create the directory, or write NOTIFY FILE 'messages.jsonl'",
            )

    def send(self, message: StoredMessage, around: Surroundings) -> None:
        line = to_json(as_object(message)) + "\n"
        try:
            with Path(message.message.recipient.address).open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            reason = error.strerror or str(error)
            raise NotDelivered(f"{message.message.recipient.address}: {reason}") from error


def as_object(message: StoredMessage) -> dict[str, object]:
    """A message as a JSON object, for channels that send JSON."""
    about = message.message
    return {
        "id": message.id,
        "query": about.query,
        "kind": about.kind,
        "at": about.at.isoformat(),
        "execution": about.execution,
        **about.payload,
    }
