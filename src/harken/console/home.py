"""The first page: what happened, and what needs attention."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harken.api.database import Database
from harken.console.rendering import plural, segment

MOST_EVENTS = 50


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, or is wrong: `what` links to `path`, and `text` follows it."""

    kind: str
    what: str
    path: str
    text: str
    at: datetime.datetime | None = None


@dataclass(frozen=True, slots=True)
class Home:
    sentence: str
    attention: Sequence[Event]
    events: Sequence[Event]


def home(db: Database) -> Home:
    attention = [*_full_outboxes(db), *_failed_actions(db), *_failed_messages(db)]
    events = sorted(_messages(db), key=_time, reverse=True)[:MOST_EVENTS]
    wrong = len(attention)
    sentence = (
        f"{plural(wrong, 'thing')} {'needs' if wrong == 1 else 'need'} attention."
        if wrong
        else "All is well: nothing is failing or waiting for you."
    )
    return Home(sentence, attention, events)


def home_of_user(db: Database) -> Home:
    """The first page of somebody who is no operator."""
    readable = len(db.views())
    sentence = (
        f"You can read {plural(readable, 'table or view')}."
        if readable
        else "You cannot read anything yet: an operator can grant you tables and views."
    )
    return Home(sentence, [], [])


def _time(event: Event) -> datetime.datetime:
    at = event.at or datetime.datetime.min
    return at if at.tzinfo else at.replace(tzinfo=datetime.UTC)


def _full_outboxes(db: Database) -> Iterator[Event]:
    for each in db.outboxes():
        if each.alarm:
            path = f"/data/{segment(each.view)}"
            yield Event("outbox", each.name, path, each.alarm, each.waiting_since)


def _failed_actions(db: Database) -> Iterator[Event]:
    for each in db.detached_actions():
        if each.error:
            text = f"failed {plural(each.attempts, 'time')}: {each.error}"
            yield Event("action", each.rule, f"/rules/{segment(each.rule)}", text, each.tried)


def _failed_messages(db: Database) -> Iterator[Event]:
    for each in db.notifications.list(limit=MOST_EVENTS):
        if each.error:
            text = f"to {each.address}: {each.error}"
            yield Event("message", each.channel, "/operator?tab=messages", text, each.at)


def _messages(db: Database) -> Iterator[Event]:
    for each in db.notifications.list(limit=MOST_EVENTS):
        if not each.error:
            text = f"to {each.address}, {each.state}"
            yield Event("message", each.kind, "/operator?tab=messages", text, each.at)
