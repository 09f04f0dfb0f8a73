"""A message that was only tried: what it says, and how it is sent as a sample.

Law: nothing about a sample is stored, and it says that it is one.
"""

from __future__ import annotations

import secrets as random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harken.database.messages import WAITING, Message, Recipient, StoredMessage
from harken.database.runtime import Runtime
from harken.errors import HarkenError
from harken.notify.channel_registry import (
    NotDelivered,
    Surroundings,
    channel_named,
    surroundings_of,
)
from harken.notify.texts import Rendered, built_in


@dataclass(frozen=True, slots=True)
class Sample:
    """A message that a query would send first: who gets it, and what it says."""

    channel: str
    address: str
    payload: Mapping[str, Any]
    text: Rendered
    stored: StoredMessage = field(repr=False)


def sample_of(stored: StoredMessage) -> Sample:
    about, to = stored.message, stored.message.recipient
    return Sample(to.channel, to.address, about.payload, built_in(about), stored)


@dataclass(frozen=True, slots=True)
class ReadySample:
    """A sample with the secrets that it needs: it can be sent in any thread."""

    message: StoredMessage
    around: Surroundings

    @classmethod
    def written(cls, to: Recipient, text: str, runtime: Runtime) -> ReadySample:
        """A text of somebody's own."""
        now = runtime.engine.connection.now()
        message = Message("", 0, "sample", now, "", to, {"text": text})
        number = f"sample-{random.token_hex(8)}"
        stored = StoredMessage(0, number, message, WAITING, 0, now, None, "")
        return cls(stored, surroundings_of(runtime).prepared(stored))

    @classmethod
    def of(cls, sample: Sample, runtime: Runtime) -> ReadySample:
        stored = sample.stored
        message = replace(stored, message=replace(stored.message, kind="sample"))
        return cls(message, surroundings_of(runtime).prepared(message))

    def send(self) -> None:
        channel = channel_named(self.message.message.recipient.channel)
        try:
            channel.send(self.around.opened(self.message), self.around)
        except NotDelivered as error:
            raise HarkenError(
                f"the sample was not delivered: {self.around.hidden(str(error))}",
                code="not-allowed",
            ) from error
