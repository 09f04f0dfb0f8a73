"""Python functions for `as foreign "foreign_functions:name"`."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator


def double(n: int) -> int:
    return 2 * n


def triple(n: int) -> int:
    return 3 * n


def positive(n: int) -> int | None:
    return n if n > 0 else None


def words(text: str) -> list[str]:
    return text.split()


def up_to(n: int) -> Iterator[int]:
    yield from range(n)


def divided(n: int, m: int) -> tuple[int, int]:
    return divmod(n, m)


def factors(n: int) -> list[tuple[int, int]]:
    return [(m, n // m) for m in range(1, n + 1) if n % m == 0]


def answer() -> int:
    return 42


def tomorrow(day: datetime.date) -> datetime.date:
    return day + datetime.timedelta(days=1)


class Calculator:
    @staticmethod
    def negated(n: int) -> int:
        return -n


def hang(number: int) -> int:
    """Never returns."""
    while True:
        time.sleep(0.01)
