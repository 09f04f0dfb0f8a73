"""Detached actions that failed, or whose process died, as due work: they are tried again.

The first retry comes half a minute after the failure, each later one after twice as long, up to
four hours; after `notification_attempts` it waits for its operator.

Law: an action is tried by one session at a time, and is done once.
"""

from __future__ import annotations

import datetime
from contextlib import suppress

from harken.consumers.rules.detached import DetachedAction
from harken.consumers.rules.rules import Rules
from harken.database.due_work import DETACHED_ACTIONS
from harken.database.runtime import Runtime
from harken.database.transactions import Transactions
from harken.errors import HarkenError

FIRST_RETRY = datetime.timedelta(seconds=30)
LONGEST_RETRY = datetime.timedelta(hours=4)
LEFT_ALONE = datetime.timedelta(seconds=60)
"""An action without an attempt is about to be carried out by the session that recorded it, or that
has died."""


class DueActions:
    name = DETACHED_ACTIONS

    def __init__(self, runtime: Runtime, transactions: Transactions, rules: Rules) -> None:
        self._runtime, self._transactions, self._rules = runtime, transactions, rules

    def next_due(self) -> datetime.datetime | None:
        return min((at for _, at in self._open()), default=None)

    def run(self, now: datetime.datetime) -> list[int]:
        """Try what is due; returns the numbers of the actions. Their errors are in the records, and
        told to the operator."""
        due = [number for number, at in self._open() if at <= now]
        with suppress(HarkenError):
            self._transactions.run_later(lambda: self._rules.queue(due))
        return due

    def _open(self) -> list[tuple[int, datetime.datetime]]:
        most = int(self._runtime.settings["notification_attempts"])
        actions = self._rules.detached.listed() if self._rules.detached.is_declared else []
        return [(each.number, _due_at(each)) for each in actions if each.attempts < most]


def _due_at(action: DetachedAction) -> datetime.datetime:
    if action.tried is None:
        return action.recorded + LEFT_ALONE
    wait = FIRST_RETRY.total_seconds() * 2.0 ** min(action.attempts - 1, 32)
    return action.tried + min(datetime.timedelta(seconds=wait), LONGEST_RETRY)
