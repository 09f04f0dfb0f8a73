"""Choices, taken from anything like `random.Random`: hypothesis gives one whose choices shrink."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Of several options the first is the simplest."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._names = 0

    def below(self, limit: int) -> int:
        return self.random.randrange(limit)

    def one_in(self, n: int) -> bool:
        """False is the simpler choice."""
        return self.random.randrange(n) == n - 1

    def choose(self, options: Sequence[T]) -> T:
        return options[self.random.randrange(len(options))]

    def between(self, limits: tuple[int, int]) -> int:
        least, most = limits
        return least + self.below(most - least + 1)

    def fresh(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"
