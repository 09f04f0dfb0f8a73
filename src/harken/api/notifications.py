"""Messages to people, as `db.notifications`: written, listed, delivered, sent again.

Law: nothing is sent before the transaction that wrote it is committed.
"""

from __future__ import annotations

import builtins
import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harken.api.internals import Internals
from harken.api.sample_messages import ReadySample
from harken.continual.installed_queries import InstalledQuery
from harken.database.arguments import check_numbers, check_text, check_whole
from harken.database.delivery_log import Attempt, DeliveryLog
from harken.database.exclusive import SessionLock, exclusive
from harken.database.messages import STATES, Message, Messages, Recipient, StoredMessage
from harken.database.unsubscribing import Link
from harken.errors import TypeFault, ValueFault, offered
from harken.notify.channel_registry import surroundings_of
from harken.notify.channels import register_all
from harken.notify.delivery_run import Outcome, deliver_due
from harken.notify.recipients import check_recipient
from harken.notify.template_records import TemplateRecords
from harken.notify.templates import Template

LONGEST_TEXT = 100_000
"""Characters of a text that is sent."""
MOST_LISTED = 100_000


@dataclass(frozen=True, slots=True)
class Notification:
    """A message for one recipient, and what became of it. `due` is when it is tried next."""

    number: int
    id: str
    query: str
    kind: str
    at: datetime.datetime
    channel: str
    address: str
    state: str
    attempts: int
    due: datetime.datetime
    error: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Unsubscribed:
    """Someone who has unsubscribed from the messages of a query."""

    query: str
    channel: str
    address: str
    since: datetime.datetime


class Notifications:
    """The outbox of a session: `db.notifications`."""

    def __init__(self, internals: Internals, session_lock: SessionLock) -> None:
        self._internals = internals
        self.session_lock = session_lock
        self._messages = Messages(internals.runtime)
        self._log = DeliveryLog(internals.runtime)
        self._templates = TemplateRecords(internals.runtime)
        register_all()

    @exclusive
    def send(
        self,
        channel: str,
        address: str,
        text: str,
        *,
        options: Mapping[str, Any] | None = None,
        owner: str = "",
    ) -> int:
        """Write an announcement to somebody; returns its number. The next `run` after the commit
        delivers it."""
        self._internals.check_open()
        for value, what in ((channel, "the channel"), (address, "the address"), (text, "the text")):
            check_text(value, what)
        check_text(owner, "the owner")
        if len(text) > LONGEST_TEXT:
            raise ValueFault(
                f"the text has {len(text):,} characters, and {LONGEST_TEXT:,} can be sent",
                code="bad-value",
                hint="send a link to the rest",
            )
        to = Recipient(channel.lower(), address, _checked_options(options))
        check_recipient(self._internals.runtime, to)
        with self._internals.alone():
            now = self._internals.connection.now()
            said = Message("", 0, "announcement", now, owner, to, {"text": text})
            return self._messages.write(said)

    @exclusive
    def sample(self, channel: str, address: str, text: str) -> ReadySample:
        """A text for somebody that can be sent at once, in any thread, and is stored nowhere."""
        self._internals.look()
        for value, what in ((channel, "the channel"), (address, "the address"), (text, "the text")):
            check_text(value, what)
        to = Recipient(channel.lower(), address, {})
        check_recipient(self._internals.runtime, to)
        return ReadySample.written(to, text, self._internals.runtime)

    @exclusive
    def list(self, state: str | None = None, *, limit: int = 1_000) -> builtins.list[Notification]:
        """The newest messages, at most `limit`, oldest first: all, or those in a state."""
        self._internals.look()
        if state is not None:
            check_text(state, "the state")
            if state not in STATES:
                raise TypeFault(
                    f"there is no state {state!r} of messages",
                    code="bad-value",
                    hint=offered(state, STATES, "states"),
                )
        check_whole(limit, "the limit", least=1)
        found = self._messages.listed(*([] if state is None else [state]))
        return [shown_message(each) for each in found[-min(limit, MOST_LISTED) :]]

    @exclusive
    def attempts(self, number: int) -> builtins.list[Attempt]:
        """The attempts to deliver a message, oldest first."""
        self._internals.look()
        check_whole(number, "the number", least=0)
        return self._log.of_message(number)

    @exclusive
    def resend(self, numbers: Iterable[int]) -> None:
        """Let messages wait again, dead letters and delivered ones, under their old ids."""
        self._internals.check_open()
        wanted = check_numbers(numbers)
        with self._internals.alone():
            for number in wanted:
                self._messages.resend(number)

    @exclusive
    def announce(
        self, text: str, *, subject: str = "", queries: Iterable[str] | None = None
    ) -> builtins.list[int]:
        """Write news to everyone whom continual queries notify, or those of some queries, each
        person once; returns the numbers of the messages."""
        self._internals.check_open()
        check_text(text, "the text")
        check_text(subject, "the subject")
        if len(text) > LONGEST_TEXT:
            raise ValueFault(f"the text is longer than {LONGEST_TEXT:,}", code="bad-value")
        chosen = self._queries_named(queries)
        people = {
            (to.channel, to.address): (query, to) for query in chosen for to in query.clauses.notify
        }
        payload = {"text": text, **({"subject": subject} if subject else {})}
        with self._internals.alone():
            now = self._internals.connection.now()
            return [
                self._messages.write(
                    Message(
                        query.name, query.executions, "announcement", now, query.owner, to, payload
                    )
                )
                for query, to in people.values()
            ]

    def _queries_named(self, names: Iterable[str] | None) -> builtins.list[InstalledQuery]:
        installed = self._internals.continual.queries
        if names is None:
            return installed.all()
        wanted = list(names)
        for name in wanted:
            check_text(name, "the name of a query")
        return [installed.need(name) for name in wanted]

    @exclusive
    def unsubscribed(self) -> builtins.list[Unsubscribed]:
        """Who wants no more messages of a query, and since when."""
        self._internals.look()
        return [
            Unsubscribed(each.query, each.channel, each.address, each.ended)
            for each in self._messages.unsubscribing.ended()
            if each.ended is not None
        ]

    @exclusive
    def link(self, token: str) -> Link | None:
        """Whose messages the link with this secret part is about; None if it is unknown."""
        self._internals.look()
        check_text(token, "the token")
        return self._messages.unsubscribing.find(token)

    @exclusive
    def unsubscribe(self, token: str) -> Link | None:
        """End the messages that the link with this secret part is about; None if it is unknown."""
        self._internals.check_open()
        check_text(token, "the token")
        with self._internals.alone():
            links = self._messages.unsubscribing
            return None if links.find(token) is None else links.end(token)

    @exclusive
    def resubscribe(self, query: str, channel: str, address: str) -> bool:
        """Send the messages of a query to an address again; False if they never ended."""
        self._internals.check_open()
        for value, what in (
            (query, "the query"),
            (channel, "the channel"),
            (address, "the address"),
        ):
            check_text(value, what)
        with self._internals.alone():
            return self._messages.unsubscribing.resume(query, channel.lower(), address)

    # --- templates -----------------------------------------------------------------------------

    @exclusive
    def save_template(
        self,
        name: str,
        text: str,
        *,
        subject: str = "",
        html: str = "",
        fields: Mapping[str, str] | None = None,
        replace: bool = False,
    ) -> None:
        """Save the words of messages, in Jinja2: `NOTIFY ... TEMPLATE name` uses them. `fields` are
        the columns of the rows and their types (`text`, `integer`, `number`, `boolean`, `date`,
        `timestamp`). It is tried with made-up rows, so a mistake is an error now."""
        self._internals.check_open()
        for value, what in ((name, "the name"), (text, "the text"), (subject, "the subject")):
            check_text(value, what)
        check_text(html, "the HTML")
        if not isinstance(fields or {}, Mapping):
            raise TypeFault(
                "the fields of a template are a mapping of columns to types",
                code="type-mismatch",
                hint='as fields={"symbol": "text", "price": "number"}',
            )
        known = {str(column): str(type_) for column, type_ in (fields or {}).items()}
        with self._internals.alone():
            self._templates.save(Template(name, text, subject, html, known), replace=replace)

    @exclusive
    def drop_template(self, name: str) -> None:
        """Delete a template. Messages that name it get the built-in words."""
        self._internals.check_open()
        check_text(name, "the name")
        with self._internals.alone():
            self._templates.drop(name)

    @exclusive
    def templates(self) -> builtins.list[Template]:
        """The templates, by name."""
        self._internals.look()
        return self._templates.all()

    # --- delivering ----------------------------------------------------------------------------

    @exclusive
    def run(self) -> builtins.list[Outcome]:
        """Deliver what is due now; returns what became of each message. A message that fails is
        tried again by a later run."""
        self._internals.look()
        self._internals.check_committed("messages are delivered after the commit")
        runtime, transactions = self._internals.runtime, self._internals.transactions
        return deliver_due(self._messages, transactions, surroundings_of(runtime), self._log)


def _checked_options(options: object) -> dict[str, Any]:
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise TypeFault(
            "the options of a channel are a mapping of names to values",
            code="type-mismatch",
            hint='as options={"template": "short"}',
        )
    for name, value in options.items():
        check_text(name, "the name of an option")
        if isinstance(value, str):
            check_text(value, f"the option {name}")
        elif not isinstance(value, bool | int) or abs(value) >= 2**63:
            raise TypeFault(
                f"the option {name} must be a text, a whole number or a boolean",
                code="type-mismatch",
            )
    return dict(options)


def shown_message(stored: StoredMessage) -> Notification:
    about = stored.message
    return Notification(
        stored.number,
        stored.id,
        about.query,
        about.kind,
        about.at,
        about.recipient.channel,
        about.recipient.address,
        stored.state,
        stored.attempts,
        stored.due,
        stored.error,
        about.payload,
    )
