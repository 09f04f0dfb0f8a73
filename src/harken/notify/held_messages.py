"""Fewer, better messages: what waits is held back, and put together when its moment comes.

Before a run of delivery, the waiting messages for each person are looked at together (`pacing`).
They wait until the digest is over, the quiet hours have ended and the cap allows another message;
then all of them become the first one, and the others are set aside as `grouped`. News of errors, a
stop or the operator end a digest early, for they must not wait for it.

Law: everything that a held message told is told by the message that takes its place, or counted
there; the number of messages sent in any interval of AT_MOST is at most that.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harken.database.messages import (
    DELIVERED,
    GROUPED,
    PAGE,
    UNSUBSCRIBED,
    WAITING,
    Line,
    Messages,
    StoredMessage,
)
from harken.database.transactions import Transactions
from harken.errors import ValueFault
from harken.notify.pacing import Pacing, pacing_of

MOST_ROWS = 1_000
"""Rows of each kind in a message that several were put into; it says how many more there are."""
MOST_PARTS = 100
GATHERED = ("results",)
"""The kinds of messages that a digest gathers and a cap counts; the others are rare and matter."""
URGENT = ("operator_error",)
"""What comes through at any hour."""
SIGNS = {"inserted": 1, "deleted": -1}


def hold_and_gather(messages: Messages, transactions: Transactions, now: datetime.datetime) -> None:
    """In a transaction of its own: give each held message its moment, and put together what is to
    go out as one."""
    links = messages.unsubscribing

    def is_special(line: Line, options: str) -> bool:
        """Whether it may be held back, or is not to be sent at all."""
        try:
            return links.is_ended(*line) or _pacing(json.loads(options)).holds
        except ValueError:
            return True  # reading it says what is wrong

    found = messages.listed_if(WAITING, is_special)
    waiting = [each for each in found if each.message.kind not in URGENT]
    waiting = _wanted(messages, transactions, waiting)
    people: dict[tuple[str, str, str], list[StoredMessage]] = {}
    paces: dict[tuple[str, str, str], Pacing] = {}
    for each in waiting:
        pacing = _pacing(each.message.recipient.options)
        if pacing.holds:
            to = each.message.recipient
            about = f"group {pacing.group}" if pacing.group else f"query {each.message.query}"
            key = (to.channel, to.address, about)
            people.setdefault(key, []).append(each)
            paces[key] = pacing  # the newest message has the present wishes
    for person, found in people.items():
        _Person(messages, transactions, paces[person], found, now).settle()


def _wanted(
    messages: Messages, transactions: Transactions, waiting: list[StoredMessage]
) -> list[StoredMessage]:
    """Without those that their receivers have unsubscribed from, which are set aside."""
    links = messages.unsubscribing
    gone = [each for each in waiting if links.is_ended(*each.line)]
    if gone:
        with transactions.block():
            for each in gone:
                messages.set_aside(each.number, UNSUBSCRIBED, "unsubscribed by its receiver")
    return [each for each in waiting if each not in gone]


def _pacing(options: Mapping[str, Any]) -> Pacing:
    try:
        return pacing_of(options)
    except ValueFault:  # it was refused when the clause was read; the row was changed since
        return Pacing()


class _Person:
    """The waiting messages for one person, in order."""

    def __init__(
        self,
        messages: Messages,
        transactions: Transactions,
        pacing: Pacing,
        waiting: Sequence[StoredMessage],
        now: datetime.datetime,
    ) -> None:
        self._messages, self._transactions = messages, transactions
        self._pacing, self._waiting, self._now = pacing, waiting, now

    def settle(self) -> None:
        moment = self._moment()
        is_held = moment > self._now
        others = [each for each in self._waiting if is_held or each.due > self._now]
        others = [each for each in others if each.due != moment]
        if others:
            with self._transactions.block():
                for each in others:
                    self._messages.postpone(each.number, moment)
        if is_held:
            return
        gathered = [each for each in self._waiting if each.message.kind in GATHERED]
        if len(gathered) > 1:
            with self._transactions.block():
                self._gather(gathered)

    def _moment(self) -> datetime.datetime:
        """When the messages may go out."""
        found = self._now
        only_results = all(each.message.kind in GATHERED for each in self._waiting)
        if self._pacing.digest is not None and only_results:
            found = max(found, self._waiting[0].message.at + self._pacing.digest)
        if self._pacing.most is not None and only_results:
            found = max(found, self._allowed())
        return self._pacing.next_moment(found)

    def _allowed(self) -> datetime.datetime:
        """When the cap allows another message."""
        assert self._pacing.most is not None
        since = self._now - self._pacing.per
        sent = sorted(
            each.tried
            for each in self._messages.listed_if(DELIVERED, self._is_to)
            if each.tried is not None and each.tried > since and self._is_alike(each)
        )
        if len(sent) < self._pacing.most:
            return self._now
        return sent[-self._pacing.most] + self._pacing.per

    def _is_to(self, line: Line, options: str) -> bool:
        to = self._waiting[0].message.recipient
        return line[1:] == (to.channel, to.address)

    def _is_alike(self, sent: StoredMessage) -> bool:
        first, to = self._waiting[0].message, sent.message.recipient
        if sent.message.kind not in GATHERED:
            return False
        same = (to.channel, to.address) == (first.recipient.channel, first.recipient.address)
        if self._pacing.group:
            return same and str(to.options.get("group", "")) == self._pacing.group
        return same and sent.message.query == first.query

    def _gather(self, found: Sequence[StoredMessage]) -> None:
        first, rest = found[0], found[1:]
        self._messages.rewrite(first.number, gathered(found))
        for each in rest:
            self._messages.set_aside(each.number, GROUPED, f"told by {first.id}")


def gathered(found: Sequence[StoredMessage]) -> dict[str, Any]:
    """The payload of several messages in one."""
    queries = dict.fromkeys(each.message.query for each in found)
    by_query = [[each for each in found if each.message.query == query] for query in queries]
    if len(by_query) == 1:
        return _sum(by_query[0])
    parts = [
        {
            "query": each[0].message.query,
            "execution": each[-1].message.execution,
            "at": each[-1].message.at.isoformat(),
            **_sum(each),
        }
        for each in by_query[:MOST_PARTS]
    ]
    more = len(by_query) - len(parts)
    left_out = {"left_out": {"parts": more}} if more else {}
    return {"parts": parts, **left_out}


def _sum(found: Sequence[StoredMessage]) -> dict[str, Any]:
    """Several results of one query: the sum of the differences, and the last of what is whole."""
    payloads = [each.message.payload for each in found]
    result: dict[str, Any] = {}
    for payload in payloads:
        result |= payload
    if len(found) > 1 and PAGE in result:
        result[PAGE] = str(result[PAGE]).partition("/")[0]  # of all executions
    texts = dict.fromkeys(str(each["text"]) for each in payloads if each.get("text"))
    if texts:
        result["text"] = "\n".join(list(texts)[-MOST_PARTS:])
    left_out = Counter[str]()
    for payload in payloads:
        for name, more in (payload.get("left_out") or {}).items():
            if name != "rows":
                left_out[name] += int(more)
    for name, rows in _net(payloads).items():
        result[name] = rows[:MOST_ROWS]
        left_out[name] += max(0, len(rows) - MOST_ROWS)
    last = (payloads[-1].get("left_out") or {}).get("rows")
    result["left_out"] = {**{n: more for n, more in left_out.items() if more}} | (
        {"rows": last} if last else {}
    )
    if not result["left_out"]:
        del result["left_out"]
    result["gathered"] = len(found)
    return result


def _net(payloads: Iterable[Any]) -> dict[str, list[Any]]:
    """The rows inserted and deleted, without those that came and went; all that changed."""
    weights, known = Counter[str](), dict[str, Any]()
    found: dict[str, list[Any]] = {}
    for payload in payloads:
        for name, sign in SIGNS.items():
            if isinstance(payload.get(name), list):
                found[name] = []
                for row in payload[name]:
                    text = json.dumps(row, sort_keys=True, default=str)
                    known.setdefault(text, row)
                    weights[text] += sign
        if isinstance(payload.get("changed"), list):
            found.setdefault("changed", []).extend(payload["changed"])
    for text, weight in weights.items():
        if weight:
            name = "inserted" if weight > 0 else "deleted"
            found.setdefault(name, []).extend([known[text]] * abs(weight))
    return found
