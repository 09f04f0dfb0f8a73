"""One look at a trigger: does its condition happen, given what its leaves gained and lost?

A look is taken at the end of a transaction, and when a moment comes that a state waits for. Rows
are those of leaves, without the subscription.

Law: a look finds what happens from the leaves and from the states alone, and leaves the states as
the next look needs them.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from harken.continual.durations import Duration, Unit
from harken.continual.event_states import EventState, EventStates, read, written
from harken.continual.trigger_conditions import CompiledTrigger, query_and_leaf
from harken.ir.event_trees import (
    AtOnce,
    Collected,
    FirstOf,
    Held,
    InOrder,
    Leaf,
    Length,
    Moving,
    NotHolding,
    OneOf,
    Tree,
    parts_of,
)
from harken.propagation.wave import ViewChange
from harken.values.rows import Row

MICROSECOND = datetime.timedelta(microseconds=1)
WHOLE = "[]"
"""The key of a condition as a whole."""
Fired: TypeAlias = list[tuple[int, Row]]
"""The rows that a condition became true for: the number of a leaf, and a key there."""


@dataclass(slots=True)
class News:
    """What one leaf gained and lost for one query."""

    plus: list[Row] = field(default_factory=list)
    minus: list[Row] = field(default_factory=list)


def news_of(received: Iterable[ViewChange]) -> dict[int, dict[int, News]]:
    """What each leaf of each query gained and lost."""
    weights: dict[str, Counter[Row]] = {}
    for change in received:
        weight = weights.setdefault(change.view.name, Counter())
        if change.fresh:  # what was true before is not known
            weight.clear()
            continue
        weight.update(change.plus)
        weight.subtract(change.minus)
    found: dict[int, dict[int, News]] = {}
    for weight in weights.values():
        for row, count in weight.items():
            if count:
                query, leaf = query_and_leaf(row[0])
                news = found.setdefault(query, {}).setdefault(leaf, News())
                (news.plus if count > 0 else news.minus).append(row[1:])
    return found


class LeafRows(Protocol):
    def rows(self, leaf: int) -> list[Row]:
        """All present rows of a leaf, for this query."""


class Look:
    """`quiet` looks only keep the states: the query was executed in this transaction, so whatever
    is true now was looked at by that."""

    def __init__(
        self,
        query: int,
        trigger: CompiledTrigger,
        news: Mapping[int, News],
        rows: LeafRows,
        states: EventStates,
        now: datetime.datetime,
        zone: datetime.tzinfo,
        due: Iterable[EventState] = (),
    ) -> None:
        self._query = query
        self._trigger = trigger
        self._news = news
        self._rows = rows
        self._states = states
        self._now = now
        self._zone = zone
        self._due: dict[int, list[EventState]] = {}
        for each in due:
            self._due.setdefault(each.node, []).append(each)
        self._numbers = numbered(trigger.tree)
        self._present: dict[int, list[Row]] = {}

    def happened(self) -> Fired | None:
        """The rows that the condition became true for; None if it did not happen."""
        return self._happened(self._trigger.tree)

    # --- what happens ----------------------------------------------------------------------

    def _happened(self, tree: Tree) -> Fired | None:
        match tree:
            case Leaf(number):
                return self._leaf(number)
            case AtOnce(parts):
                return self._at_once(parts)
            case OneOf(parts):
                return _together(map(self._happened, parts))
            case FirstOf(parts):
                found = [self._happened(each) for each in parts]
                return next((each for each in found if each is not None), None)
            case NotHolding(part):
                self._happened(part)
                return [] if self._held_before(part) and not self._holds(part) else None
            case InOrder():
                return self._in_order(tree)
            case Collected():
                return self._collected(tree)
            case Held():
                return self._held(tree)
            case Moving():
                return self._moving(tree)

    def _leaf(self, number: int) -> Fired | None:
        news = self._news.get(number)
        if news is None:
            return None
        leaf = self._trigger.leaves[number]
        width = len(leaf.names)
        match leaf.kind:
            case "signal":
                return [(number, ())] if news.plus else None
            case "events":
                keys = _events(news, width, leaf.events)
            case _ if self._trigger.repeats:
                keys = [row[:width] for row in news.plus]
            case _:
                before = {row[:width] for row in news.minus}
                keys = [row[:width] for row in news.plus if row[:width] not in before]
        return [(number, key) for key in dict.fromkeys(keys)] or None

    def _at_once(self, parts: Sequence[Tree]) -> Fired | None:
        happened = [self._happened(each) for each in parts]
        if all(each is None for each in happened):
            return None
        rows: Fired = []
        for part, found in zip(parts, happened, strict=True):
            if found is None:
                if not self._holds(part):
                    return None
                found = self._holding_rows(part)
            rows += found
        return list(dict.fromkeys(rows))

    # --- what holds ------------------------------------------------------------------------

    def _holds(self, tree: Tree) -> bool:
        match tree:
            case Leaf(number):
                is_state = self._trigger.leaves[number].kind == "rows"
                return is_state and bool(self._all_rows(number))
            case AtOnce(parts):
                return all(map(self._holds, parts))
            case OneOf(parts) | FirstOf(parts):
                return any(map(self._holds, parts))
            case NotHolding(part):
                return not self._holds(part)
            case Held() | Moving():
                states = self._states.of_node(self._query, self._numbers[id(tree)])
                return any(each.told for each in states)
            case Collected(parts):
                return len(self._times(tree)) == len(parts)
        return False

    def _held_before(self, tree: Tree) -> bool:
        match tree:
            case Leaf(number):
                news = self._news.get(number)
                if news is None:
                    return self._holds(tree)
                gained = set(news.plus)
                return bool(news.minus) or any(e not in gained for e in self._all_rows(number))
            case AtOnce(parts):
                return all(map(self._held_before, parts))
            case OneOf(parts) | FirstOf(parts):
                return any(map(self._held_before, parts))
            case NotHolding(part):
                return not self._held_before(part)
        return self._holds(tree)

    def _all_rows(self, number: int) -> list[Row]:
        if number not in self._present:
            self._present[number] = self._rows.rows(number)
        return self._present[number]

    def _holding_rows(self, tree: Tree) -> Fired:
        match tree:
            case Leaf(number):
                width = len(self._trigger.leaves[number].names)
                return [(number, row[:width]) for row in self._all_rows(number)]
            case NotHolding():
                return []
        return [row for part in parts_of(tree) for row in self._holding_rows(part)]

    # --- one after another -----------------------------------------------------------------

    def _in_order(self, tree: InOrder) -> Fired | None:
        """For each part the moment at which the latest chain began that has reached it."""
        happened = [self._happened(each) for each in tree.parts]
        times = self._times(tree)
        last = len(tree.parts) - 1
        for place in range(last, -1, -1):
            if happened[place] is None:
                continue
            began = self._now if place == 0 else times.get(place - 1)
            if began is None or not self._is_within(began, tree.within):
                continue
            if place == last:
                self._states.clear(self._query, self._numbers[id(tree)])
                return happened[place]
            self._remember(tree, str(place), began)
        return None

    def _collected(self, tree: Collected) -> Fired | None:
        happened = [self._happened(each) for each in tree.parts]
        if all(each is None for each in happened):
            return None
        times = self._times(tree)
        rows: Fired = []
        for place, found in enumerate(happened):
            if found is not None:
                times[place] = self._now
                rows += found
                self._remember(tree, str(place), self._now)
        recent = [each for each in times.values() if self._is_within(each, tree.within)]
        if len(recent) < len(tree.parts):
            return None
        self._states.clear(self._query, self._numbers[id(tree)])
        return rows

    def _times(self, tree: Tree) -> dict[int, datetime.datetime]:
        states = self._states.of_node(self._query, self._numbers[id(tree)])
        return {int(each.key): each.since for each in states}

    def _remember(self, tree: Tree, key: str, since: datetime.datetime) -> None:
        self._states.set(self._query, EventState(self._numbers[id(tree)], key, since))

    def _is_within(self, began: datetime.datetime, within: Length | None) -> bool:
        if within is None:
            return True
        end = self._after(within, began)
        return end is None or self._now <= end

    # --- for some time ---------------------------------------------------------------------

    def begin(self) -> None:
        """The query is new: what is true now has held since now."""
        for tree in _nodes(self._trigger.tree):
            number = self._numbers[id(tree)]
            if isinstance(tree, Held):
                for key in self._true_keys(tree.part):
                    due = self._due_after(tree, self._now)
                    self._states.set(self._query, EventState(number, key, self._now, due=due))
            elif isinstance(tree, Moving):
                for row in self._all_rows(tree.leaf.number):
                    self._states.set(self._query, EventState(number, written(row[:-1]), self._now))

    def _true_keys(self, part: Tree) -> list[str]:
        if isinstance(part, Leaf):
            width = len(self._trigger.leaves[part.number].names)
            return [written(row[:width]) for row in self._all_rows(part.number)]
        return [WHOLE] if self._holds(part) else []

    def _held(self, tree: Held) -> Fired | None:
        number = self._numbers[id(tree)]
        began, ended = self._turned(tree.part)
        told = [key for key in ended if self._was_due(number, key)]
        for key in ended:
            self._states.clear(self._query, number, key)
        for key in began:
            due = self._due_after(tree, self._now)
            self._states.set(self._query, EventState(number, key, self._now, due=due))
        for each in self._due.get(number, ()):
            state = self._states.find(self._query, number, each.key)
            if state is not None and not state.told and state.due == each.due:
                done = EventState(number, each.key, state.since, told=True)
                self._states.set(self._query, done)
                told.append(each.key)
        if not told:
            return None
        part = tree.part
        return [(part.number, read(key)) for key in told] if isinstance(part, Leaf) else []

    def _was_due(self, node: int, key: str) -> bool:
        """Whether a state has come to its moment, and nobody has looked since."""
        state = self._states.find(self._query, node, key)
        if state is None or state.told or state.due is None:
            return False
        return state.due <= self._now

    def _turned(self, part: Tree) -> tuple[list[str], list[str]]:
        """The keys that a condition has become true and false for."""
        if isinstance(part, Leaf):
            news = self._news.get(part.number, News())
            width = len(self._trigger.leaves[part.number].names)
            plus = {row[:width] for row in news.plus}
            minus = {row[:width] for row in news.minus}
            return [written(k) for k in plus - minus], [written(k) for k in minus - plus]
        self._happened(part)
        before, now = self._held_before(part), self._holds(part)
        return ([WHOLE] if now and not before else []), ([WHOLE] if before and not now else [])

    def _due_after(self, tree: Held, since: datetime.datetime) -> datetime.datetime | None:
        end = self._after(tree.length, since)
        return end + MICROSECOND if tree.longer and end is not None else end

    def _after(self, length: Length, at: datetime.datetime) -> datetime.datetime | None:
        return Duration(length.amount, Unit(length.unit)).after(at, self._zone)

    def _moving(self, tree: Moving) -> Fired | None:
        """`since` is when the value last did anything else than move in the direction, or came to
        be; `last` when it last moved there."""
        node = self._numbers[id(tree)]
        news = self._news.get(tree.leaf.number, News())
        was = {row[:-1]: row[-1] for row in news.minus}
        now = {row[:-1]: row[-1] for row in news.plus}
        found: list[Row] = []
        for key in was.keys() - now.keys():
            if self._was_due(node, written(key)):
                found.append(key)
            self._states.clear(self._query, node, written(key))
        for key, value in now.items():
            if self._moved(tree, node, key, was.get(key), value):
                found.append(key)
        for each in self._due.get(node, ()):
            state = self._states.find(self._query, node, each.key)
            if state is not None and not state.told and state.due == each.due:
                told = EventState(node, each.key, state.since, state.last, told=True)
                self._states.set(self._query, told)
                found.append(read(each.key))
        return [(tree.leaf.number, key) for key in dict.fromkeys(found)] or None

    def _moved(self, tree: Moving, node: int, key: Row, was: object, now: object) -> bool:
        name = written(key)
        state = self._states.find(self._query, node, name)
        forward = _is_above(now, was) if tree.rising else _is_above(was, now)
        if state is None or not forward:
            was_due = self._was_due(node, name)
            self._states.set(self._query, EventState(node, name, self._now))
            return was_due
        end = self._after(tree.length, state.since)
        if end is None or self._now < end:
            going = EventState(node, name, state.since, self._now, due=end)
            self._states.set(self._query, going)
            return False
        still = None if state.last is None else self._after(tree.length, state.last)
        is_new = not state.told or (still is not None and still < self._now)
        self._states.set(self._query, EventState(node, name, state.since, self._now, told=True))
        return is_new


def _is_above(one: object, other: object) -> bool:
    return one is not None and other is not None and one > other  # type: ignore[operator]


def _events(news: News, width: int, kinds: frozenset[str]) -> list[Row]:
    plus = {row[:width]: row[width:] for row in news.plus}
    minus = {row[:width]: row[width:] for row in news.minus}
    found: list[Row] = []
    if "INSERT" in kinds:
        found += [key for key, rest in plus.items() if key not in minus and rest[-1]]
    if "DELETE" in kinds:
        found += [key for key, rest in minus.items() if key not in plus and rest[-1]]
    if "UPDATE" in kinds:
        both = plus.keys() & minus.keys()
        found += [k for k in both if plus[k][:-1] != minus[k][:-1] and plus[k][-1]]
    return found


def _together(found: Iterable[Fired | None]) -> Fired | None:
    happened = [each for each in found if each is not None]
    return list(dict.fromkeys(row for each in happened for row in each)) if happened else None


def numbered(tree: Tree) -> dict[int, int]:
    """The number of each node of a tree, by its identity."""
    return {id(node): number for number, node in enumerate(_nodes(tree))}


def _nodes(tree: Tree) -> list[Tree]:
    return [tree, *(node for part in parts_of(tree) for node in _nodes(part))]


def clear_progress(
    query: int, trigger: CompiledTrigger, states: EventStates, forget: Callable[[int], None]
) -> None:
    """After an execution, what counts since the last execution starts over."""
    for number, node in enumerate(_nodes(trigger.tree)):
        if isinstance(node, InOrder | Collected):
            forget(number)
