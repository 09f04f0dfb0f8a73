"""The registry of channels: the ways in which a message can reach someone.

A channel registers under the word that NOTIFY uses for it. `check` refuses a clause that can never
work, when the statement is run; `send` delivers one message, or raises `NotDelivered`. It runs in a
thread of its own and must not use the session.

Law: when `send` returns, the receiver has the message; when it raises, it may or may not have it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from harken.database.messages import Recipient, StoredMessage
from harken.database.runtime import Runtime
from harken.database.secrets import HIDDEN, SHORTEST, is_reference, redacted
from harken.errors import HarkenError, TypeFault, offered
from harken.notify.template_records import TemplateRecords
from harken.notify.templates import Template, context_of, render
from harken.notify.texts import Rendered, built_in
from harken.settings import SETTINGS

TEMPLATED = ("results", "sample")
"""The kinds of messages that a template words."""


class NotDelivered(Exception):
    """A channel could not deliver. `retry` says whether it may work later, and `after` in how many
    seconds at the earliest, if the receiver said so."""

    def __init__(self, message: str, *, retry: bool = True, after: float | None = None) -> None:
        super().__init__(message)
        self.retry = retry
        self.after = after


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a channel may use of the session that delivers."""

    settings: Mapping[str, Any]
    resolve_secret: Callable[[str], str]
    now: Callable[[], datetime.datetime]
    redacted: Callable[[str], str] = redacted
    """A text for people, without secrets."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """The secrets of one message, by reference."""
    find_template: Callable[[str], Template | None] = lambda name: None
    template: Template | None = None
    """The template of one message."""
    link: str = ""
    """Where people can see all that a message is about."""
    unsubscribe: str = ""
    """Where its receiver can say that no more messages are wanted."""

    def setting(self, name: str) -> Any:
        """A setting, or its default."""
        if name in self.settings:
            return self.settings[name]
        return next(each.default for each in SETTINGS if each.name == name)

    def prepared(self, message: StoredMessage) -> Surroundings:
        """In the thread of the session: read the secrets that a message refers to."""
        to = message.message.recipient
        named = [self.setting(name) for name in _SECRET_SETTINGS.get(to.channel, ())]
        texts = [to.address, *to.options.values(), *named]
        known = {text: self.resolve_secret(text) for text in texts if is_reference(text)}
        named_template = to.options.get("template")
        template = self.find_template(str(named_template)) if named_template else None
        return replace(self, secrets=known, template=template)

    def secret(self, text: str) -> str:
        """The value of `secret:name`; any other text unchanged."""
        return self.secrets.get(text, text)

    def opened(self, message: StoredMessage) -> StoredMessage:
        """The message with its secrets in place, for the channel alone."""
        if not self.secrets:
            return message
        to = message.message.recipient
        options = {
            name: self.secret(value) if isinstance(value, str) else value
            for name, value in to.options.items()
        }
        known = Recipient(to.channel, self.secret(to.address), options)
        return replace(message, message=replace(message.message, recipient=known))

    def texts(self, message: StoredMessage) -> Rendered:
        """The message in words: those of its template for results, else the built-in ones. A
        template that does not fit, because the query has other columns now, must not keep a
        message back: then the built-in words say so at their end."""
        about = message.message
        if self.template is None or about.kind not in TEMPLATED:
            return built_in(about, self.link, self.unsubscribe)
        context = context_of(
            about.payload,
            query=about.query,
            kind=about.kind,
            at=about.at,
            execution=about.execution,
            link=self.link,
            unsubscribe=self.unsubscribe,
        )
        try:
            return render(self.template, context)
        except HarkenError as error:
            said = f"(The template {self.template.name} was not used: {error.message})"
            found = built_in(about, self.link, self.unsubscribe)
            return replace(found, text=f"{found.text}\n{said}\n")

    def hidden(self, text: str) -> str:
        """A text without the secrets of this message."""
        for value in sorted(self.secrets.values(), key=len, reverse=True):
            if len(value) >= SHORTEST:
                text = text.replace(value, HIDDEN)
        return self.redacted(text)


def surroundings_of(runtime: Runtime) -> Surroundings:
    """The surroundings of the messages that a session delivers."""
    return Surroundings(
        runtime.settings,
        runtime.secrets.resolve,
        runtime.engine.connection.now,
        runtime.secrets.redacted,
        find_template=TemplateRecords(runtime).find,
    )


class Channel(Protocol):
    name: str
    """The word after NOTIFY, in lower case. A channel that comes with Harken may also have
    `options`: the names of those that it alone knows."""

    def check(self, recipient: Recipient, around: Surroundings) -> None:
        """Raise if nothing can ever be delivered there."""

    def send(self, message: StoredMessage, around: Surroundings) -> None:
        """Deliver a message, or raise NotDelivered."""


_CHANNELS: dict[str, Channel] = {}
_BUILT_IN: set[str] = set()
_SECRET_SETTINGS: dict[str, tuple[str, ...]] = {}
"""The settings that a channel reads and that name a secret."""


def register(channel: Channel) -> None:
    _CHANNELS[channel.name] = channel


def register_built_in(channel: Channel, secret_settings: tuple[str, ...] = ()) -> None:
    """Register a channel that comes with Harken, once for the process."""
    if channel.name not in _BUILT_IN:
        _BUILT_IN.add(channel.name)
        _SECRET_SETTINGS[channel.name] = secret_settings
        register(channel)


def is_built_in(name: str) -> bool:
    return name in _BUILT_IN


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
    if isinstance(error, HarkenError):
        return f"[{error.code}] {error.message}"
    if isinstance(error, NotDelivered):
        return str(error)
    return f"{type(error).__name__}: {error}"
