"""Composite events of a rule: `and`, `or`, `then`, `not`, and intervals.

An event happens *about* some tuples. What it is about is a set of alternatives, each of which fixes
some columns of the condition; one that fixes none is about every tuple. Joined events are about the
tuples that all of them are about: `updated(quantity) then updated(price)` of an item are both of
that item.

    a or b                  a happens, or b
    a and b                 both happen in one check, within an interval in any order
    a and not b             a happens, and b does not, in one check
    a then b                b happens in a later check than a; each a counts once
    a then not b within d   d has passed since a, and b has not happened

A check is a transaction; for an immediate rule it is a statement.

Law: what a look finds follows from what happened in it, and from what earlier looks remember.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from harken.consumers.rules.event_memory import EventMemory, Remembered
from harken.errors import EvaluationError
from harken.ir.event_trees import (
    AtOnce,
    Collected,
    InOrder,
    Leaf,
    Length,
    NotHolding,
    OneOf,
    Tree,
)

About: TypeAlias = frozenset[tuple[int, Any]]
"""The columns of the condition that an alternative fixes, each with its value."""
MOST_ALTERNATIVES = 100_000
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}


def duration(length: Length) -> datetime.timedelta:
    return datetime.timedelta(seconds=length.amount * SECONDS[length.unit])


def joined(one: About, other: About) -> About | None:
    """What both are about; None if they fix a column to different values."""
    known = dict(one)
    if any(known.get(place, value) != value for place, value in other):
        return None
    return one | other


def concerning(rows: Iterable[Any], happened: set[About]) -> list[Any]:
    """The tuples that an event is about."""
    if frozenset() in happened:
        return list(rows)
    by_places: dict[tuple[int, ...], set[tuple[Any, ...]]] = {}
    for about in happened:
        fixed = sorted(about)
        places = tuple(place for place, _ in fixed)
        by_places.setdefault(places, set()).add(tuple(value for _, value in fixed))
    return [
        row
        for row in rows
        if any(tuple(row[p] for p in places) in values for places, values in by_places.items())
    ]


@dataclass(slots=True)
class Look:
    rule: str
    leaves: Mapping[int, set[About]]
    memory: EventMemory
    now: datetime.datetime
    _node: int = 0

    def happened(self, tree: Tree) -> set[About]:
        self._node += 1
        node = self._node
        match tree:
            case Leaf(number):
                return set(self.leaves.get(number, ()))
            case OneOf(parts):
                return {about for part in parts for about in self.happened(part)}
            case AtOnce(parts):
                return self._at_once(parts)
            case InOrder(parts, within):
                if isinstance(parts[-1], NotHolding):
                    return self._absent(node, parts, within)
                return self._in_order(node, parts, within)
            case Collected(parts, within):
                return self._collected(node, parts, within)
            case NotHolding(part):
                self.happened(part)
        return set()

    def _at_once(self, parts: tuple[Tree, ...]) -> set[About]:
        found: set[About] = {frozenset()}
        prevented: set[About] = set()
        for part in parts:
            if isinstance(part, NotHolding):
                self._node += 1
                prevented |= self.happened(part.part)
            else:
                found = _all_of(found, self.happened(part))
        return {each for each in found if not _touches(each, prevented)}

    def _in_order(self, node: int, parts: tuple[Tree, ...], within: Length | None) -> set[About]:
        now = [self.happened(part) for part in parts]
        found: set[About] = set()
        last = len(parts) - 1
        for stage in range(last, 0, -1):
            for state in self._remembered(node, stage - 1, within) if now[stage] else ():
                reached = _all_of({state.about}, now[stage])
                if not reached:
                    continue
                if stage == last:
                    found |= reached
                    self.memory.forget(state)
                else:
                    self._remember(node, stage, reached, since=state.since)
        self._remember(node, 0, now[0], since=self.now)
        return found

    def _absent(self, node: int, parts: tuple[Tree, ...], within: Length | None) -> set[About]:
        assert within is not None
        assert isinstance(parts[-1], NotHolding)
        begun = (
            self._in_order(node, parts[:-1], within)
            if len(parts) > 2
            else (self.happened(parts[0]))
        )
        self._node += 1
        prevented = self.happened(parts[-1].part)
        stage, found = len(parts), set[About]()
        for state in self.memory.of(self.rule, node, stage):
            if state.due is not None and state.due <= self.now:
                found.add(state.about)
                self.memory.forget(state)
            elif _touches(state.about, prevented):
                self.memory.forget(state)
        due = self.now + duration(within)
        for about in begun:
            self.memory.add(Remembered(self.rule, node, stage, about, self.now, due))
        return found

    def _collected(self, node: int, parts: tuple[Tree, ...], within: Length | None) -> set[About]:
        now = [self.happened(part) for part in parts]
        if not any(now):
            return set()
        found: dict[About, list[Remembered]] = {frozenset(): []}
        for stage, happened in enumerate(now):
            self._remember(node, stage, happened, since=self.now)
            known = self._remembered(node, stage, within)
            found = {
                both: [*used, state]
                for about, used in found.items()
                for state in known
                if (both := joined(about, state.about)) is not None
            }
            _limit(len(found))
        complete = {a: used for a, used in found.items() if any(s.since == self.now for s in used)}
        for used in complete.values():
            for state in used:
                self.memory.forget(state)
        return set(complete)

    def _remember(
        self, node: int, stage: int, found: Iterable[About], since: datetime.datetime
    ) -> None:
        for about in found:
            self.memory.add(Remembered(self.rule, node, stage, about, since))

    def _remembered(self, node: int, stage: int, within: Length | None) -> list[Remembered]:
        """What happened before, as far as it is not too long ago."""
        found = self.memory.of(self.rule, node, stage)
        if within is None:
            return found
        first = self.now - duration(within)
        for state in found:
            if state.since < first:
                self.memory.forget(state)
        return [state for state in found if state.since >= first]


def _all_of(one: set[About], other: set[About]) -> set[About]:
    pairs = (joined(a, b) for a in one for b in other)
    found = {each for each in pairs if each is not None}
    _limit(len(found))
    return found


def _touches(about: About, others: set[About]) -> bool:
    """Whether another event is about any of the same tuples."""
    return any(joined(about, other) is not None for other in others)


def _limit(alternatives: int) -> None:
    if alternatives > MOST_ALTERNATIVES:
        raise EvaluationError(
            f"a composite event has more than {MOST_ALTERNATIVES:,} ways to happen",
            code="large-action-set",
            hint="let its events be about the same variables of the condition",
        )
