"""The events of a rule, from what the parser saw to numbered leaves and how they are joined.

Law: without `and`, `then`, `not` and `within` there is no tree: any of the events will do.
"""

from __future__ import annotations

import datetime
import re
from typing import Any

from harken.errors import Span, SyntaxFault, nearest
from harken.ir.event_trees import AtOnce, Collected, InOrder, Leaf, Length, NotHolding, OneOf, Tree
from harken.lang.amosql.syntax import Event, EventTree

UNITS = ("second", "minute", "hour", "day", "week")
LONGEST = 100_000_000
NEVER = OneOf(())
AN_INTERVAL = "write it with a unit, as in 10 minutes; units are second, minute, hour, day and week"


def length_of(amount: int, unit: str, span: Span) -> Length:
    """A length of time, its unit in the singular."""
    named = unit.lower().removesuffix("s")
    if named not in UNITS:
        meant = nearest(named, UNITS)
        raise SyntaxFault(
            f"{unit} is not a unit of time",
            code="bad-value",
            span=span,
            hint=f"did you mean {meant}?" if meant else AN_INTERVAL,
        )
    if not 1 <= amount <= LONGEST:
        raise SyntaxFault(
            f"{amount} {unit} is not an interval", code="bad-value", span=span, hint=AN_INTERVAL
        )
    return Length(amount, named)


def moment_of(value: object, span: Span) -> datetime.datetime:
    """The moment of `at`: a time value, or the text of one. Without an offset it is in UTC."""
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value)
        except ValueError:
            value = None
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime.datetime):
        raise SyntaxFault(
            "this is not a moment",
            code="bad-value",
            span=span,
            hint="write at |2026-11-20/08:00:00| or at '2026-11-20 08:00'",
        )
    return value if value.tzinfo else value.replace(tzinfo=datetime.UTC)


def time_of(text: str, length: Length, span: Span) -> datetime.time:
    """The time of day of `every day at '08:00'`."""
    if length.unit not in ("day", "week"):
        raise SyntaxFault(
            f"every {length.unit} has no time of day",
            code="bad-value",
            span=span,
            hint="write it as in every day at '08:00'",
        )
    found = re.fullmatch(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", text.strip())
    if found is not None:
        hour, minute, second = (int(part or 0) for part in found.groups())
        if hour < 24 and minute < 60 and second < 60:
            return datetime.time(hour, minute, second)
    raise SyntaxFault(
        f"'{text}' is not a time of day", code="bad-value", span=span, hint="write '08:00'"
    )


def joined(operator: str, parts: list[Any], span: Span) -> EventTree:
    """A chain of one operator is one node."""
    found: list[Event | EventTree] = []
    for each in parts:
        if isinstance(each, EventTree) and each.operator == operator and each.within is None:
            found += each.parts
        elif isinstance(each, Event | EventTree):
            found.append(each)
    return EventTree(operator, tuple(found), span=span)


def flatten(node: Event | EventTree | None) -> tuple[tuple[Event, ...], Tree | None]:
    """The events in their order, and the tree that joins their numbers."""
    if node is None:
        return (), None
    events: list[Event] = []
    tree = _tree(node, events, inside=False)
    plain = isinstance(tree, Leaf) or (
        isinstance(tree, OneOf) and all(isinstance(part, Leaf) for part in tree.parts)
    )
    return tuple(events), None if plain else tree


def _tree(node: Event | EventTree, events: list[Event], inside: bool) -> Tree:
    if isinstance(node, Event):
        events.append(node)
        return Leaf(len(events) - 1)
    if node.operator == "not":
        if not inside:
            raise _nothing_happens(node.span)
        return NotHolding(_tree(node.parts[0], events, inside=False))
    if node.operator == "after":
        part = _tree(node.parts[0], events, inside=False)
        return InOrder((part, NotHolding(NEVER)), node.within)
    if node.operator == "or":
        return OneOf(tuple(_tree(each, events, inside=False) for each in node.parts))
    parts = tuple(_tree(each, events, inside=True) for each in node.parts)
    absent = [isinstance(each, NotHolding) for each in parts]
    if node.operator == "then":
        return _in_order(node, parts, absent)
    if all(absent):
        raise _nothing_happens(node.span)
    if node.within is None:
        return AtOnce(parts)
    if any(absent):
        raise SyntaxFault(
            "what does not happen within a time must come after something that does",
            span=node.span,
            hint="write it as in added(f) then not removed(f) within 5 minutes",
        )
    return Collected(parts, node.within)


def _in_order(node: EventTree, parts: tuple[Tree, ...], absent: list[bool]) -> Tree:
    if any(absent[:-1]):
        raise SyntaxFault(
            "only the last event of a sequence may be one that does not happen",
            span=node.span,
            hint="write it as in added(f) then not removed(f) within 5 minutes",
        )
    if absent[-1] and node.within is None:
        raise SyntaxFault(
            "`then not` needs an interval, at the end of which it has not happened",
            span=node.span,
            hint="write it as in added(f) then not removed(f) within 5 minutes",
        )
    return InOrder(parts, node.within)


def _nothing_happens(span: Span) -> SyntaxFault:
    return SyntaxFault(
        "something must happen for a rule to act",
        span=span,
        hint="join `not` to another event: added(f) and not removed(f), or "
        "added(f) then not removed(f) within 5 minutes",
    )
