"""Channels of a user's own: `@harken.channel("pager")` lets `NOTIFY PAGER 'ann'` call a function.

    @harken.channel("pager")
    def page(message):
        pagers[message.address].show(message.subject)

The function runs in a thread of its own and must not use the session. The message is delivered when
it returns; any error is a failed attempt, and `harken.NotDelivered(..., retry=False)` a final one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from harken.database.arguments import check_callable, check_text
from harken.database.messages import Recipient, StoredMessage
from harken.errors import NameFault
from harken.notify.channel_registry import Surroundings, is_built_in, register

F = TypeVar("F", bound=Callable[["OutgoingMessage"], object])


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message as a channel of a user's own gets it. `id` is the same for every attempt."""

    id: str
    query: str
    execution: int
    kind: str
    at: Any
    owner: str
    address: str
    options: Mapping[str, Any]
    payload: Mapping[str, Any]
    """`inserted`, `deleted` and `changed` rows, `count`, `text`: what there is to say."""
    subject: str
    text: str
    html: str


@dataclass(slots=True)
class UserChannel:
    name: str
    function: Callable[[OutgoingMessage], object]

    def check(self, recipient: Recipient, around: Surroundings) -> None:
        pass

    def send(self, message: StoredMessage, around: Surroundings) -> None:
        about, texts = message.message, around.texts(message)
        self.function(
            OutgoingMessage(
                message.id,
                about.query,
                about.execution,
                about.kind,
                about.at,
                about.owner,
                about.recipient.address,
                dict(about.recipient.options),
                dict(about.payload),
                texts.subject,
                texts.text,
                texts.html,
            )
        )


def channel(name: str) -> Callable[[F], F]:
    """Decorates a function that delivers messages, as `NOTIFY NAME 'address'`."""
    check_text(name, "the name of a channel")
    word = name.lower()
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", word) or is_built_in(word):
        raise NameFault(
            f"a channel cannot be called {name!r}",
            code="bad-name",
            hint="use letters, digits and _, and no name of a channel that comes with Harken",
        )

    def decorate(function: F) -> F:
        check_callable(function, "a channel")
        register(UserChannel(word, function))
        return function

    return decorate
