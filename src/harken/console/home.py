"""The first page: what happened, and what needs attention."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harken.api.database import Database
from harken.console.rendering import plural, segment
from harken.console.source_routes import failing, visible

MOST_EVENTS = 50
EXECUTIONS_EACH = 10
"""The executions of one continual query that the timeline shows."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, or is wrong: `what` links to `path`, and `text` follows it."""

    kind: str
    what: str
    path: str
    text: str
    at: datetime.datetime | None = None


@dataclass(frozen=True, slots=True)
class FirstStep:
    """One of the first things to do here."""

    title: str
    text: str
    path: str
    done: bool


@dataclass(frozen=True, slots=True)
class Home:
    sentence: str
    attention: Sequence[Event]
    events: Sequence[Event]
    steps: Sequence[FirstStep] = ()
    """Empty once all of them are done."""


def home(db: Database) -> Home:
    attention = [
        *_failing_queries(db),
        *_failing_sources(db),
        *_full_outboxes(db),
        *_failed_actions(db),
        *_failed_messages(db),
    ]
    happened = [*_messages(db), *_executions(db), *_read_sources(db)]
    events = sorted(happened, key=_time, reverse=True)[:MOST_EVENTS]
    wrong = len(attention)
    sentence = (
        f"{plural(wrong, 'thing')} {'needs' if wrong == 1 else 'need'} attention."
        if wrong
        else "All is well: nothing is failing or waiting for you."
    )
    return Home(sentence, attention, events, first_steps(db))


def first_steps(db: Database) -> Sequence[FirstStep]:
    has_data = bool(db.sources.list()) or any(True for each in db.definitions())
    steps = [
        FirstStep(
            "Bring data in",
            "a table of PostgreSQL, a page, a feed, a file; or make a table of your own",
            "/new/source?kind=postgresql",
            has_data,
        ),
        FirstStep(
            "Set the mail server",
            "so that people can be told by mail",
            "/operator?tab=mail",
            bool(db.settings["smtp_host"]),
        ),
        FirstStep(
            "Say what you want to know",
            "a continual query watches, and tells people what has changed",
            "/new/query",
            bool(db.continual_queries.list()),
        ),
    ]
    return [] if all(each.done for each in steps) else steps


def home_of_user(db: Database) -> Home:
    """The first page of somebody who is no operator."""
    readable = len(db.views())
    sentence = (
        f"You can read {plural(readable, 'table or view')}."
        if readable
        else "You cannot read anything yet: an operator can grant you tables and views."
    )
    attention = [*_failing_queries(db), *_failing_sources(db)]
    events = sorted([*_executions(db), *_read_sources(db)], key=_time, reverse=True)
    return Home(sentence, attention, events[:MOST_EVENTS])


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
            yield Event("message", each.channel, _message_path(each.query), text, each.at)


def _messages(db: Database) -> Iterator[Event]:
    for each in db.notifications.list(limit=MOST_EVENTS):
        if not each.error:
            text = f"by {each.channel} {each.address}".rstrip() + f", {each.state}"
            what = f"{each.kind} of {each.query}" if each.query else each.kind
            yield Event("message", what, _message_path(each.query), text, each.at)


def _failing_queries(db: Database) -> Iterator[Event]:
    for each in db.continual_queries.list():
        if each.is_live and each.failures:
            text = f"failed {plural(each.failures, 'time')}: {each.problem}"
            yield Event("query", each.name, _query_path(each.name), text, each.evaluated)


def _failing_sources(db: Database) -> Iterator[Event]:
    for each in failing(db):
        text = f"is {each.state}: {each.why}"
        yield Event("source", each.name, f"/sources/{segment(each.name)}", text, each.since)


def _executions(db: Database) -> Iterator[Event]:
    """The newest executions of each continual query."""
    for query in db.continual_queries.list():
        for each in db.continual_queries.get(query.id).history()[-EXECUTIONS_EACH:]:
            text = f"{each.outcome}: {each.error}" if each.error else each.outcome
            if each.inserted or each.deleted:
                text = f"{plural(each.inserted, 'row')} added, {each.deleted:,} removed"
            cause = each.cause.get("text", "")
            text = f"was executed ({cause}): {text}"
            yield Event("execution", query.name, _query_path(query.name), text, each.at)


def _read_sources(db: Database) -> Iterator[Event]:
    for each in visible(db):
        if each.changed_at is not None:
            path = f"/sources/{segment(each.name)}"
            text = f"brought changes, {plural(each.rows, 'row')} now"
            yield Event("source", each.name, path, text, each.changed_at)


def _query_path(name: str) -> str:
    return f"/queries/{segment(name)}"


def _message_path(query: str) -> str:
    return f"{_query_path(query)}?tab=deliveries" if query else "/operator?tab=messages"
