"""One run of delivery: every message that is due is offered to its channel once.

The channel is called outside of any transaction; what became of the message is recorded in one of
its own. After a failure the later messages of the same query and recipient wait, so that none
overtakes another; other recipients are not delayed.

Law: a message that a channel accepted is offered again only if the process died before recording
it; one that failed is offered again until it is accepted or `MOST_ATTEMPTS` are used up.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from harken.database.messages import DEAD, SENT, WAITING, Messages, StoredMessage
from harken.database.transactions import Transactions
from harken.errors import HarkenError
from harken.notify.channel_registry import NotDelivered, Surroundings, channel_named, reason_of

MOST_ATTEMPTS = 8
FIRST_RETRY = 30.0
"""Seconds until the second attempt; each later one waits twice as long as the one before."""
LONGEST_RETRY = 3600.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a message: `sent`, `waiting` for another attempt, or `dead`."""

    number: int
    state: str
    error: str = ""


def deliver_due(
    messages: Messages, transactions: Transactions, around: Surroundings
) -> list[Outcome]:
    """Deliver what is due; the session must not be in a transaction."""
    outcomes, blocked = [], set()
    for message in messages.waiting(around.now()):
        to = message.message.recipient
        line = message.message.query, to.channel, to.address
        if line in blocked:
            continue
        outcome = _deliver(message, messages, transactions, around)
        if outcome.state == WAITING:
            blocked.add(line)
        outcomes.append(outcome)
    return outcomes


def _deliver(
    message: StoredMessage,
    messages: Messages,
    transactions: Transactions,
    around: Surroundings,
) -> Outcome:
    try:
        channel_named(message.message.recipient.channel).send(message, around)
    except (NotDelivered, HarkenError) as error:
        again = not (isinstance(error, NotDelivered) and not error.retry)
        retry = _retry_at(message, around.now()) if again else None
        with transactions.block():
            messages.mark_failed(message.number, reason_of(error), retry)
        return Outcome(message.number, DEAD if retry is None else WAITING, reason_of(error))
    with transactions.block():
        messages.mark_sent(message.number)
    return Outcome(message.number, SENT)


def _retry_at(message: StoredMessage, now: datetime.datetime) -> datetime.datetime | None:
    if message.attempts + 1 >= MOST_ATTEMPTS:
        return None
    wait = min(FIRST_RETRY * 2**message.attempts, LONGEST_RETRY)
    return now + datetime.timedelta(seconds=wait)
