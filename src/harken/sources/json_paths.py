"""Paths into JSON values.

    data.items          members, one inside the other; "a.b" in quotes is one name
    items[0]            an element; -1 is the last
    items[*].lines      each element of a list, or each member of an object
    ^.id                in a column: of the object around the row
    @key                in a column: the name of the member that the row is

Law: a path that is not there is told from one that leads to null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harken.errors import SourceFault

_STEP = re.compile(
    r"""\.?(?:(?P<name>[^\s."'\[\]*^@$]+)|(?P<quote>["'])(?P<quoted>.*?)(?P=quote)|(?P<each>\*))
    |\[(?:(?P<place>-?\d{1,9})|(?P<all>\*)|(?P<q>["'])(?P<member>.*?)(?P=q))\]
    |\.?(?P<up>\^)|\.?(?P<key>@key)""",
    re.VERBOSE,
)
EACH, UP, KEY = object(), object(), object()
LONGEST = 1_000
"""Characters of a path."""


@dataclass(frozen=True, slots=True)
class Place:
    """A value in a document: with the name or number that it has in what is around it."""

    value: Any
    key: Any = None
    around: Place | None = None

    def member(self, key: Any) -> Place | None:
        value = self.value
        if isinstance(value, dict) and isinstance(key, str):
            return Place(value[key], key, self) if key in value else None
        if isinstance(value, list) and isinstance(key, int):
            is_there = -len(value) <= key < len(value)
            return Place(value[key], key, self) if is_there else None
        return None

    def members(self) -> Iterator[Place]:
        if isinstance(self.value, dict):
            yield from (Place(value, key, self) for key, value in self.value.items())
        elif isinstance(self.value, list):
            yield from (Place(value, key, self) for key, value in enumerate(self.value))

    def above(self) -> Place | None:
        """The object around this one; lists between them do not count."""
        found = self.around
        while found is not None and isinstance(found.value, list):
            found = found.around
        return found


@dataclass(frozen=True, slots=True)
class JsonPath:
    text: str
    steps: tuple[Any, ...]

    def places(self, root: Place) -> list[Place]:
        """All places that the path leads to; none if it leads nowhere."""
        found = [root]
        for step in self.steps:
            found = [next_ for place in found for next_ in _step(place, step)]
        return found

    def first(self, root: Place) -> Place | None:
        return next(iter(self.places(root)), None)

    @property
    def name(self) -> str:
        """The last name on the path."""
        names = [step for step in self.steps if isinstance(step, str)]
        return names[-1] if names else "key" if KEY in self.steps else "value"

    @property
    def is_of_members(self) -> bool:
        return bool(self.steps) and self.steps[-1] is EACH


def read_path(text: str) -> JsonPath:
    """
    >>> read_path('$.a."x.y"[0]').steps
    ('a', 'x.y', 0)
    >>> read_path("rates.*").is_of_members, read_path("^.id").name, read_path(".").name
    (True, 'id', 'value')
    """
    given = text.strip()
    rest = given.removeprefix("$")
    steps: list[Any] = []
    place = 0
    if rest in (".", ""):
        return JsonPath(given, ())
    while place < len(rest):
        found = _STEP.match(rest, place)
        if found is None or len(rest) > LONGEST:
            raise SourceFault(
                f"{given[:80]!r} is no path into JSON",
                code="bad-option",
                hint="write for example data.items, items[0].name or items[*].lines",
            )
        steps.append(_read_step(found))
        place = found.end()
    return JsonPath(given, tuple(steps))


def _read_step(found: re.Match[str]) -> Any:
    if found["place"] is not None:
        return int(found["place"])
    for group, step in (("each", EACH), ("all", EACH), ("up", UP), ("key", KEY)):
        if found[group] is not None:
            return step
    return next(found[group] for group in ("name", "quoted", "member") if found[group] is not None)


def _step(place: Place, step: Any) -> Iterator[Place]:
    if step is EACH:
        yield from place.members()
    elif step is KEY:
        yield Place(place.key, None, place)
    else:
        found = place.above() if step is UP else place.member(step)
        if found is not None:
            yield found
