"""One run of delivery: every message that is due is offered to its channel once.

Lines are delivered beside one another, each in order: the messages of a query for one address. A
message is claimed in a transaction, offered to its channel in a thread, outside of any transaction,
and what became of it is recorded in the next one. After a failure the later messages of its line
wait; a slow or failing receiver delays no other line.

Law: a message that a channel accepted is offered again only if the process died before recording
it, or took longer than its lease; one that failed is offered again until it is accepted or its
attempts are used up.
"""

from __future__ import annotations

import datetime
import random
import secrets
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import SimpleQueue

from harken.database.delivery_log import Attempt, DeliveryLog
from harken.database.messages import DEAD, DELIVERED, FAILED, Line, Messages, StoredMessage
from harken.database.transactions import Transactions
from harken.errors import HarkenError
from harken.notify.channel_registry import NotDelivered, Surroundings, channel_named, reason_of
from harken.notify.held_messages import hold_and_gather
from harken.notify.result_links import with_links

FIRST_RETRY = 30.0
"""Seconds until the second attempt; each later one waits twice as long as the one before."""
LONGEST_RETRY = 4 * 3600.0
"""The most seconds between two attempts."""
LONGEST_ERROR = 2_000
"""Characters of an error that are kept."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a message: `delivered`, `failed` with another attempt to come, or `dead`."""

    number: int
    state: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Offered:
    """A message that was offered to its channel, and the error if it was refused."""

    message: StoredMessage
    around: Surroundings
    started: datetime.datetime
    ended: datetime.datetime
    error: Exception | None


def deliver_due(
    messages: Messages,
    transactions: Transactions,
    around: Surroundings,
    log: DeliveryLog,
    chance: Callable[[], float] = random.random,
) -> list[Outcome]:
    """Deliver what is due; the session must not be in a transaction. `chance` gives numbers from 0
    to 1, by which retries are spread."""
    hold_and_gather(messages, transactions, around.now())
    return _Run(messages, transactions, around, log, chance).outcomes()


PARTS = 10
"""The oldest messages are forgotten together, this part of those that are kept at a time."""


class _Run:
    def __init__(
        self,
        messages: Messages,
        transactions: Transactions,
        around: Surroundings,
        log: DeliveryLog,
        chance: Callable[[], float],
    ) -> None:
        self._messages, self._log = messages, log
        self._transactions, self._around, self._chance = transactions, around, chance
        self._name = secrets.token_hex(8)
        self._lease = float(around.setting("notification_lease"))
        self._workers = int(around.setting("notification_workers"))
        self._lines: dict[Line, deque[StoredMessage]] = {}
        self._offered: SimpleQueue[_Offered] = SimpleQueue()
        self._in_flight = 0
        self._links: dict[int, str] = {}
        """Where the receiver of a message can unsubscribe."""

    def outcomes(self) -> list[Outcome]:
        for message in self._messages.ready(self._around.now(), self._lease):
            self._lines.setdefault(message.line, deque()).append(message)
        if not self._lines:
            return []
        free, found = deque(self._lines), list[Outcome]()
        with ThreadPoolExecutor(self._workers, "harken-delivery") as pool:
            offered: list[_Offered] = []
            while free or offered or self._in_flight:
                with self._transactions.block():
                    for each in offered:
                        outcome = self._record(each)
                        found.append(outcome)
                        if outcome.state != FAILED and self._lines[each.message.line]:
                            free.append(each.message.line)
                    claimed = self._claim(free)
                for message in claimed:
                    pool.submit(self._offer, *self._prepared(message))
                self._in_flight += len(claimed)
                offered = self._finished()
        self._forget_oldest(len(found))
        return found

    def _forget_oldest(self, count: int) -> None:
        """Once in a while: forget the oldest messages that need nothing more."""
        keep = int(self._around.setting("delivered_messages"))
        with self._transactions.block():
            if self._messages.count_settled(count, max(1, keep // PARTS)):
                for number in self._messages.superfluous(keep):
                    self._log.forget(number)
                    self._messages.remove(number)

    def _claim(self, free: deque[Line]) -> list[StoredMessage]:
        """Reserve the first message of each free line, as many as there are workers."""
        claimed: list[StoredMessage] = []
        while free and self._in_flight + len(claimed) < self._workers:
            line = self._lines[free.popleft()]
            message = line.popleft()
            now = self._around.now()
            if self._messages.claim(message.number, self._name, now, self._lease):
                claimed.append(replace(message, attempts=message.attempts + 1, tried=now))
                self._link(message)
            else:
                line.clear()  # another run has the line
        return claimed

    def _link(self, message: StoredMessage) -> None:
        """In the transaction that claims it: the link by which its receiver can end these."""
        address = str(self._around.setting("public_address")).rstrip("/")
        if address and message.message.query:
            token = self._messages.unsubscribing.token(*message.line)
            self._links[message.number] = f"{address}/unsubscribe/{token}"

    def _finished(self) -> list[_Offered]:
        """What has been offered since: at least one, if there is any in flight."""
        found = [self._offered.get()] if self._in_flight else []
        while not self._offered.empty():
            found.append(self._offered.get())
        self._in_flight -= len(found)
        return found

    def _prepared(
        self, message: StoredMessage
    ) -> tuple[StoredMessage, Surroundings, HarkenError | None]:
        """Secrets are in the database, so they are read by the thread of the session."""
        address = str(self._around.setting("public_address"))
        message, link = with_links(message, address)
        try:
            unsubscribe = self._links.pop(message.number, "")
            around = replace(self._around, unsubscribe=unsubscribe, link=link)
            return message, around.prepared(message), None
        except HarkenError as error:
            return message, self._around, error

    def _offer(
        self, message: StoredMessage, around: Surroundings, problem: HarkenError | None
    ) -> None:
        """In a thread of its own: offer a message to its channel."""
        started = around.now()
        error: Exception | None = None
        try:
            if problem is not None:
                raise problem
            channel_named(message.message.recipient.channel).send(around.opened(message), around)
        except Exception as fault:  # a channel of a user's own may raise anything
            error = fault
        finally:
            self._offered.put(_Offered(message, around, started, around.now(), error))

    def _record(self, offered: _Offered) -> Outcome:
        """In a transaction: record what became of a message."""
        message, error = offered.message, offered.error
        if error is None:
            outcome = Outcome(message.number, DELIVERED)
            self._messages.mark_delivered(message.number, self._name)
        else:
            told = offered.around.hidden(reason_of(error))[:LONGEST_ERROR]
            retry = self._retry_at(message, error)
            outcome = Outcome(message.number, DEAD if retry is None else FAILED, told)
            self._messages.mark_failed(message.number, self._name, told, retry)
        to = message.message.recipient
        self._log.add(
            Attempt(
                message.number,
                message.id,
                to.channel,
                message.attempts,
                offered.started,
                offered.ended,
                outcome.state,
                outcome.error,
            )
        )
        return outcome

    def _retry_at(self, message: StoredMessage, error: Exception) -> datetime.datetime | None:
        """When to try again: between half of the wait and the whole of it, or when the receiver
        says."""
        again = error.retry if isinstance(error, NotDelivered) else True
        if not again or message.attempts >= int(self._around.setting("notification_attempts")):
            return None
        wait = min(FIRST_RETRY * 2 ** min(message.attempts - 1, 32), LONGEST_RETRY)
        seconds = wait * (0.5 + self._chance() / 2)
        if isinstance(error, NotDelivered) and error.after is not None:
            seconds = min(max(seconds, error.after), LONGEST_RETRY)
        return self._around.now() + datetime.timedelta(seconds=seconds)
