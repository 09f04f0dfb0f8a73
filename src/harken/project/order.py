"""The order in which declarations are made: each after those that it mentions.

Datalog relations may be mutually recursive; those are made together, in one text.
"""

from __future__ import annotations

from collections.abc import Sequence

from harken.database.language_names import DATALOG
from harken.project.project_files import Declared


def in_order(declared: Sequence[Declared]) -> list[list[Declared]]:
    """Groups of declarations that depend on each other, each after those that it depends on."""
    below = dependencies(declared)
    groups: list[list[Declared]] = []
    numbers: dict[int, int] = {}
    lowest: dict[int, int] = {}
    waiting: list[int] = []
    done: set[int] = set()
    for start in range(len(declared)):
        if start in numbers:
            continue
        # Tarjan's algorithm, without recursion: a project may be a chain of a thousand views.
        numbers[start] = lowest[start] = len(numbers)
        waiting.append(start)
        walk = [(start, iter(below[start]))]
        while walk:
            at, rest = walk[-1]
            following = next(rest, None)
            if following is None:
                walk.pop()
                if walk:
                    above = walk[-1][0]
                    lowest[above] = min(lowest[above], lowest[at])
                if lowest[at] == numbers[at]:
                    groups.append(_group(declared, waiting, at, done))
            elif following not in numbers:
                numbers[following] = lowest[following] = len(numbers)
                waiting.append(following)
                walk.append((following, iter(below[following])))
            elif following not in done:
                lowest[at] = min(lowest[at], numbers[following])
    return groups


def _group(
    declared: Sequence[Declared], waiting: list[int], first: int, done: set[int]
) -> list[Declared]:
    cut = waiting.index(first)
    members = sorted(waiting[cut:])
    del waiting[cut:]
    done.update(members)
    group = [declared[each] for each in members]
    others = [each for each in group if each.language != DATALOG]
    if len(group) > 1 and others:
        names = ", ".join(each.title for each in group)
        raise others[0].wrong(
            f"these are defined by each other: {names}",
            "bad-project",
            "only relations of Datalog may be; a query mentions itself in WITH RECURSIVE",
        )
    return group


def dependencies(declared: Sequence[Declared]) -> list[list[int]]:
    """For each declaration the positions of those that it mentions."""
    by_name: dict[str, list[int]] = {}
    for place, each in enumerate(declared):
        for name in each.declaration.called:
            by_name.setdefault(name, []).append(place)
    return [
        sorted({p for n in each.declaration.needs for p in by_name.get(n, ()) if p != place})
        for place, each in enumerate(declared)
    ]
