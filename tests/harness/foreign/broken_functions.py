"""Foreign functions that do not keep what their declarations promise."""

from __future__ import annotations

from collections.abc import Iterator

not_a_function = 5


def raises(n: int) -> int:
    raise ValueError(f"cannot do {n}")


def raises_on_the_way(n: int) -> Iterator[int]:
    yield n
    raise RuntimeError("halfway")


def gives_text(n: int) -> str:
    return str(n)


def gives_a_huge_integer(n: int) -> int:
    return 2**70


def gives_nan(n: int) -> float:
    return float("nan")


def gives_three(n: int) -> tuple[int, int, int]:
    return n, n, n


def takes_nothing() -> int:
    return 1
