"""Rules whose events are joined, come from a clock or a signal, or are waited for.

What such a rule's condition gained and what its events' functions changed is held back until the
rule is checked: at the end of the transaction and after each action from then on, for an immediate
rule after each statement. Then one look at its events says which tuples it acts on.

    strict     what the condition gained in this check, and the event is about
    patient    what it gained since the rule last acted on it, and the event is about
    nervous    all that it holds for, and the event is about

Law: a patient rule acts on a tuple at most once for each time that its condition becomes true.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence

from harken.consumers.rules.composed_events import About, Look, concerning, duration
from harken.consumers.rules.conflict_set import ConflictSet
from harken.consumers.rules.definition import CompiledRule, TimeEvent
from harken.consumers.rules.event_memory import EventMemory
from harken.database.due_work import Timers
from harken.database.runtime import Runtime
from harken.database.system import HAPPENINGS, signal_key, time_key
from harken.propagation.watched_events import Summed, occurred
from harken.propagation.wave import ViewChange
from harken.values.rows import Row

TIMERS_OF_RULES = "rules"


class ComposedRules:
    def __init__(self, runtime: Runtime, rows_now: Callable[[str], list[Row]]) -> None:
        self._runtime = runtime
        self._rows_now = rows_now
        self.held = ConflictSet()
        """What has changed for each rule since it was last checked."""
        self.memory = EventMemory(runtime.engine.connection)
        self.timers = Timers(runtime.engine.connection, TIMERS_OF_RULES)

    def make_room(self, rule: CompiledRule, of_data: Sequence[bool]) -> None:
        """A rule is created: what it needs in the file."""
        if rule.is_composed:
            self.memory.make_room()
        if (rule.waits or not all(of_data)) and not self._runtime.engine.exists(HAPPENINGS):
            self._runtime.engine.create(HAPPENINGS)

    def receive(self, change: ViewChange, rule: CompiledRule) -> None:
        self.held.add(change, len(rule.rule.parameters), keep_losses=True)
        self.held.events.setdefault(rule.name, Summed())

    def settle(self, rule: CompiledRule) -> list[Row]:
        """The tuples that a rule acts on after this check."""
        name = rule.name
        summed = self.held.events.pop(name)
        gained, lost = self.held.take_all(name)
        happened = self._happened(rule, summed)
        if not rule.acts_on_gains:
            return concerning(self._rows_now(name), happened) if happened else []
        if not rule.rule.patient:
            return concerning(gained, happened)
        self.memory.wait_no_longer(name, lost)
        self.memory.wait(name, gained)
        acts_on = concerning(self.memory.waiting(name), happened) if happened else []
        self.memory.wait_no_longer(name, acts_on)
        return acts_on

    def _happened(self, rule: CompiledRule, summed: Summed) -> set[About]:
        leaves = {number: _about(rule, number, rows) for number, rows in summed.weights.items()}
        now = self._runtime.engine.connection.now()
        happened = Look(rule.name, leaves, self.memory, now).happened(rule.tree)
        if rule.waits:
            self._wake(rule.name, len(rule.events) - 1, self.memory.next_due(rule.name))
        return happened

    # --- moments and signals ---------------------------------------------------------------

    def activated(self, rule: CompiledRule) -> None:
        """From now on the rule's moments count."""
        now = self._runtime.engine.connection.now()
        for event in rule.times:
            key = time_key(rule.name, event.number)
            first = _first(event, now)
            if self.timers.at(key) is None and first is not None:
                self.timers.set(key, first)

    def deactivated(self, rule: str, events: int) -> None:
        """No activation is left."""
        for number in range(events + 1):
            self.timers.clear(time_key(rule, number))
        self.memory.clear(rule)

    def _wake(self, rule: str, number: int, at: datetime.datetime | None) -> None:
        key = time_key(rule, number)
        if at is None:
            self.timers.clear(key)
        else:
            self.timers.set(key, at)

    def raise_signal(self, name: str) -> None:
        if self._runtime.engine.exists(HAPPENINGS):
            self.happen(signal_key(name))

    def happen(self, key: str) -> None:
        """Count a signal, or a moment that has come."""
        known = self._runtime.engine.results(HAPPENINGS, (key,))
        times = int(known[0][0]) + 1 if known else 1
        self._runtime.engine.set_row(HAPPENINGS, (key, times))


def _about(rule: CompiledRule, number: int, weights: dict[Row, int]) -> set[About]:
    """What the changed rows of an event's function are about."""
    event = rule.events[number]
    gained = [row for row, weight in weights.items() if weight > 0]
    lost = [row for row, weight in weights.items() if weight < 0]
    return {
        frozenset((place, row[column]) for column, place in binding)
        for row in occurred(event, gained, lost)
        for binding in event.bindings
    }


def _first(event: TimeEvent, now: datetime.datetime) -> datetime.datetime | None:
    """When an event of time first happens, after an activation."""
    if event.moment is not None:
        return event.moment if event.moment > now else None
    assert event.length is not None
    if event.time is None:
        return now + duration(event.length)
    first = datetime.datetime.combine(now.date(), event.time, datetime.UTC)
    return first if first > now else first + datetime.timedelta(days=1)


def next_time(
    event: TimeEvent, at: datetime.datetime, now: datetime.datetime
) -> datetime.datetime | None:
    """When it happens next after it was due; times that were missed are made up for once."""
    if event.kind != "every":
        return None
    assert event.length is not None
    step = duration(event.length)
    return at + step * ((now - at) // step + 1)
