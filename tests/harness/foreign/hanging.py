"""Foreign functions that never return: in Python, and in C."""

from __future__ import annotations

import time


def hang(number: int) -> int:
    print("hanging", flush=True)
    while True:
        pass


def sleep(number: int) -> int:
    print("hanging", flush=True)
    time.sleep(10_000)
    return number
