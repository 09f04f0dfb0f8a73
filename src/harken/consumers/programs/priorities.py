"""The priority order of a program: numbers and `.priority` together, as one partial order.

A higher number goes first. If any rule of a program has a number, a rule without one has 0.

Law: the order is transitive and without cycles; which rules have priority over a rule is known
before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from harken.errors import Span, SyntaxFault


def priority_order(
    numbers: Mapping[str, int | None], pairs: Iterable[tuple[str, str, Span]]
) -> dict[str, frozenset[str]]:
    """For each rule those that have priority over it. `pairs` are of a rule that goes first and one
    that goes after it.

    >>> order = priority_order({"a": None, "b": None, "c": None}, [("a", "b", Span(0, 0))])
    >>> sorted(order["b"]), sorted(order["a"])
    (['a'], [])
    """
    below: dict[str, set[str]] = {name: set() for name in numbers}
    stated = list(pairs)
    for one, other, _ in stated:
        below[one].add(other)
    ranks = _ranks(numbers)
    for higher, lower in pairwise(ranks):
        for name in higher:
            below[name].update(lower)
    order = _sorted(below, stated)
    above: dict[str, set[str]] = {name: set() for name in numbers}
    for name in order:
        for other in below[name]:
            above[other] |= {name, *above[name]}
    return {name: frozenset(found) for name, found in above.items()}


def _ranks(numbers: Mapping[str, int | None]) -> list[list[str]]:
    """The rules of each number, the highest first; nothing if there are no numbers."""
    if all(number is None for number in numbers.values()):
        return []
    ranks: dict[int, list[str]] = {}
    for name, number in numbers.items():
        ranks.setdefault(number or 0, []).append(name)
    return [ranks[number] for number in sorted(ranks, reverse=True)]


def _sorted(below: Mapping[str, set[str]], pairs: list[tuple[str, str, Span]]) -> list[str]:
    """The rules, those that go first first."""
    waiting = dict.fromkeys(below, 0)
    for others in below.values():
        for each in others:
            waiting[each] += 1
    ready = [name for name, number in waiting.items() if not number]
    order: list[str] = []
    while ready:
        name = ready.pop()
        order.append(name)
        for other in below[name]:
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    if len(order) < len(below):
        raise _cycle(below, set(below) - set(order), pairs)
    return order


def _cycle(
    below: Mapping[str, set[str]], left: set[str], pairs: list[tuple[str, str, Span]]
) -> SyntaxFault:
    """Each rule that is left has one above it that is left, so walking upwards finds the cycle."""
    walked: list[str] = [min(left)]
    while len(set(walked)) == len(walked):
        walked.append(min(each for each in left if walked[-1] in below[each]))
    found = walked[walked.index(walked[-1]) :][::-1]
    span = next((s for one, other, s in pairs if one in found and other in found), None)
    return SyntaxFault(
        f"the priorities are a cycle: {' > '.join(found)}",
        code="priority-cycle",
        span=span,
        hint="a rule without a number has the priority 0 if any rule has a number",
    )
