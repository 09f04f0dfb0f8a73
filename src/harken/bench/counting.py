"""`harken bench counting`: sets whose rows have many derivations, by differentials and by counting.

    projection   p(x) ← e(x, y)                      another derivation is the next row
    dead ends    p(x) ← e(x, y) ∧ f(y, z) ∧ z > 0     of those that begin, one in a thousand holds
    far change   p(x) ← e(x, y) ∧ g(y)               a row of g is in a derivation of every p

The same rows go and come again in a database for each strategy, in turns; `external` is plain
differentials, `naive` recomputation.

Law: all strategies see the same rows and the same changes, and tell the same.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from harken.bench.contestants import contestant, in_turns, learn
from harken.bench.figures import Figure

SIZES = (10_000, 100_000)
STRATEGIES = DIFFERENTIALS, COUNTING, NAIVE, AUTO = ("external", "counting", "naive", "auto")
GROUPS = 20
"""The rows of a view; each has as many derivations as there are rows of e for it."""
HOLDING = 1_000
"""Where there are dead ends, one in this many derivations that begin with a row of e holds."""
WARMING = 10
"""Changes before the measured ones, while plans are made."""
NAIVE_ROUNDS = 1
"""Recomputation takes part in this many rounds, the last ones."""

DECLARED = (
    ".decl e(x: number, y: number)\n.decl f(y: number, z: number)\n.decl g(y: number)\n"
    ".decl p(x: number)\n"
)


@dataclass(frozen=True, slots=True)
class View:
    name: str
    rule: str
    changed: str
    """The relation of which a row is deleted and inserted again."""


VIEWS = (
    View("projection", "p(x) :- e(x, y).", "e"),
    View("dead ends", "p(x) :- e(x, y), f(y, z), z > 0.", "e"),
    View("far change", "p(x) :- e(x, y), g(y).", "g"),
)


def figures(items: Sequence[int] = SIZES, rounds: int = 20) -> Iterator[Figure]:
    for view in VIEWS:
        for size in items:
            yield from _figures(view, size, rounds)


def _rows(size: int) -> dict[str, list[tuple[int, ...]]]:
    """Each group has rows of its own, and all of them share those of g."""
    each = max(2, size // GROUPS)
    return {
        "e": [(x, x * each + y if y else -1) for x in range(GROUPS) for y in range(each)],
        "f": [(y, int((y + 1) % min(HOLDING, each) == 0)) for y in range(GROUPS * each)],
        "g": [(-1,), *((x * each + 1,) for x in range(0, GROUPS, 2))],
    }


def _figures(view: View, size: int, rounds: int) -> Iterator[Figure]:
    rows = _rows(size)
    random = Random(size)
    there = {y for y, z in rows["f"] if z}
    holding = [row for row in rows["e"] if row[1] in there]
    with contextlib.ExitStack() as stack:
        text = f"{DECLARED}{view.rule}\n"
        field = [contestant(text, "p", each, rows, stack) for each in STRATEGIES]
        chosen = partial(random.sample, [(-1,)] if view.changed == "g" else holding, 1)
        learn(field[-1], view.changed, chosen)
        for number in range(WARMING + rounds):
            last = number >= WARMING + rounds - NAIVE_ROUNDS
            taking_part = [each for each in field if last or each.strategy != NAIVE]
            counts = number >= WARMING
            in_turns(taking_part, view.changed, chosen(), random, counts=counts)
        params = {"items": size, "derivations": size // GROUPS}
        took = {each.strategy: statistics.median(each.times) for each in field}
    name = f"counting, {view.name}"
    for strategy, seconds in took.items():
        yield Figure(name, f"{strategy} ms", seconds * 1e3, params)
    for strategy in (DIFFERENTIALS, NAIVE):
        ratio = took[strategy] / took[COUNTING]
        yield Figure(name, f"{strategy}/counting", ratio, params)
    best = min(took[each] for each in (DIFFERENTIALS, COUNTING, NAIVE))
    yield Figure(name, "auto/best", took[AUTO] / best, params)
