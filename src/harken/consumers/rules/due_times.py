"""The moments that rules wait for, as due work: `on every 10 minutes`, `on at ...`, `on after ...`,
and the ends of intervals of composite events.

Each moment is an event in a transaction of its own, in which rules act on it as on any other. If it
fails, its error is told, and the rule waits for its next moment.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from harken.consumers.rules.composed_rules import next_time
from harken.consumers.rules.rules import Rules
from harken.database.due_work import RULE_TIMES
from harken.database.system import rule_of_time
from harken.database.transactions import Transactions
from harken.errors import HarkenError


class DueTimes:
    name = RULE_TIMES

    def __init__(self, transactions: Transactions, rules: Rules) -> None:
        self._transactions, self._rules = transactions, rules

    def next_due(self) -> datetime.datetime | None:
        return self._rules.composed.timers.next()

    def run(self, now: datetime.datetime) -> Iterator[str]:
        """Let what is due happen; yields the names of the rules."""
        errors = []
        for key, at in self._rules.composed.timers.due(now):
            try:
                with self._transactions.block():
                    self._pass(key, at, now)
                    self._rules.composed.happen(key)
            except HarkenError as error:
                errors.append(error)
                with self._transactions.block():
                    self._pass(key, at, now)
            yield rule_of_time(key)[0]
        if errors:
            raise errors[0]

    def _pass(self, key: str, at: datetime.datetime, now: datetime.datetime) -> None:
        """Set the next moment of this event, if it has one."""
        name, number = rule_of_time(key)
        rule = self._rules.active_rule(name)
        events = rule.times if rule is not None else ()
        following = next((next_time(e, at, now) for e in events if e.number == number), None)
        if following is None:
            self._rules.composed.timers.clear(key)
        else:
            self._rules.composed.timers.set(key, following)
