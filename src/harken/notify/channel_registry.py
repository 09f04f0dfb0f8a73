"""The registry of channels: the ways in which a message can reach someone.

A channel registers under the word that NOTIFY uses for it. `check` refuses a clause that can never
work, when the statement is run; `send` delivers one message, or raises `NotDelivered`.

Law: when `send` returns, the receiver has the message; when it raises, it may or may not have it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from harken.database.messages import Recipient, StoredMessage
from harken.errors import HarkenError, TypeFault, offered


class NotDelivered(Exception):
    """A channel could not deliver. `retry` says whether it may work later."""

    def __init__(self, message: str, *, retry: bool = True) -> None:
        super().__init__(message)
        self.retry = retry


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a channel may use of the session that delivers."""

    settings: Mapping[str, Any]
    resolve_secret: Callable[[str], str]
    now: Callable[[], datetime.datetime]


class Channel(Protocol):
    name: str
    """The word after NOTIFY, in lower case."""

    def check(self, recipient: Recipient, around: Surroundings) -> None:
        """Raise if nothing can ever be delivered there."""

    def send(self, message: StoredMessage, around: Surroundings) -> None:
        """Deliver a message, or raise NotDelivered."""


_CHANNELS: dict[str, Channel] = {}


def register(channel: Channel) -> None:
    _CHANNELS[channel.name] = channel


def withdraw(name: str) -> None:
    """Undo `register`."""
    del _CHANNELS[name]


def channel_names() -> Iterable[str]:
    return sorted(_CHANNELS)


def channel_named(name: str) -> Channel:
    found = _CHANNELS.get(name)
    if found is None:
        raise TypeFault(
            f"there is no channel {name.upper()}",
            code="bad-value",
            hint=offered(name, channel_names(), "channels"),
        )
    return found


def reason_of(error: Exception) -> str:
    """The error of a delivery for people."""
    return f"[{error.code}] {error.message}" if isinstance(error, HarkenError) else str(error)
