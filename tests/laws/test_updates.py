"""Law: after every step the database holds what a plain model of it holds.

Random changes come as text, through handles and as bulk loads, between commits and rollbacks.
A step that fails changes nothing; a rollback brings back exactly what was committed; no table
keeps a row for an object that is gone or has left the type. See `tests/harness/ledgers.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness.ledgers import Ledger

choices = st.randoms(use_true_random=False)
relaxed = list(HealthCheck)
pytestmark = pytest.mark.timeout(900)  # a failure takes long to shrink


@contextmanager
def ledger(random: Random, path: str = ":memory:") -> Iterator[Ledger]:
    opened = Ledger(random, path)
    try:
        yield opened
    finally:
        opened.db.close()


def live(random: Random, steps: int) -> None:
    with ledger(random) as book:
        for _ in range(3):
            book.create()
        for _ in range(steps):
            book.step()
        book.check_by_language()


@given(choices)
@settings(max_examples=60, suppress_health_check=relaxed)
def test_the_database_holds_what_the_model_holds(random: Random) -> None:
    live(random, 40)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@given(choices)
@settings(max_examples=1500, suppress_health_check=relaxed)
def test_the_database_holds_what_the_model_holds_all_night(random: Random) -> None:
    live(random, 80)


@given(choices)
@settings(max_examples=8, suppress_health_check=relaxed)
def test_a_file_holds_what_the_model_holds(
    tmp_path_factory: pytest.TempPathFactory, random: Random
) -> None:
    path = tmp_path_factory.mktemp("updates") / "ledger.db"
    with ledger(random, str(path)) as book:
        book.create()
        for _ in range(3):
            for _ in range(8):
                book.step()
            book.reopen()
            book.check()
            book.check_by_language()
