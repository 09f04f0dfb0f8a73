"""Law: a view of SQL has the rows that its query has in DuckDB, and its changes are exact.

Random tables, views over views and transactions (`generators/sql_scripts.py`) go to Harken and to
DuckDB; after each transaction every view is compared, as a bag, and so is the change that a client
of it was told, however it is monitored. The query is asked anew each time: maintained = recomputed.

The same holds in the life of a file (`harness/sql_lives.py`): materialized views over views, two
sessions in turn, refused statements, sessions opened again, larger tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from harken.engines.sqlite import engine
from harken.maintenance import tuning
from tests.generators.sql_scripts import Script, Scripts
from tests.generators.sql_shrinking import shrink, text_of
from tests.harness.sql_lives import Life
from tests.harness.sql_pairs import Difference, Pair

pytestmark = pytest.mark.timeout(900)  # a failure takes long to shrink

seeds = st.integers(0, 2**32 - 1)
# A script shrinks by its own parts, and not by the choices that made it.
as_found = [Phase.explicit, Phase.reuse, Phase.generate]
few = settings(max_examples=4, phases=as_found, suppress_health_check=list(HealthCheck))
some = settings(max_examples=8, phases=as_found, suppress_health_check=list(HealthCheck))
many = settings(max_examples=440, phases=as_found, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def tally() -> Iterator[Counter[str]]:
    """What was compared. A generator of nonsense would prove nothing."""
    counts: Counter[str] = Counter()
    yield counts
    print(dict(counts))
    assert counts["refused views"] <= 0.1 * counts["views"]
    assert counts["DuckDB died"] <= 0.01 * counts["views"]
    assert counts["with rows"] >= 0.4 * counts["pairs"]
    assert counts["changes"] >= 0.15 * counts["watched"]


def compare(script: Script, pair: Callable[[Script], Pair] = Pair) -> Counter[str]:
    """Run a script; if the law fails, fail with the smallest script that fails in the same way."""
    try:
        return pair(script).run()
    except Difference as difference:
        kind = difference.kind

    def fails(smaller: Script) -> bool:
        try:
            pair(smaller).run()
        except Difference as found:
            return found.kind == kind
        except Exception:
            return False
        return False

    smallest = shrink(script, fails)
    try:
        pair(smallest).run()
    except Difference as difference:
        pytest.fail(f"{difference}\n\n{text_of(smallest)}", pytrace=False)
    return pytest.fail(f"fails only sometimes\n\n{text_of(script)}", pytrace=False)


@given(seeds)
@few
def test_views_have_the_rows_and_changes_that_they_should(tally: Counter[str], seed: int) -> None:
    tally += compare(Scripts(Random(seed)).script(views=6, transactions=28))


@pytest.mark.nightly
@given(seeds)
@some
def test_views_have_the_rows_and_changes_that_they_should_in_long_scripts(
    tally: Counter[str], seed: int
) -> None:
    tally += compare(Scripts(Random(seed)).script(views=6, transactions=112))


@given(seeds)
@few
def test_materialized_views_follow_in_the_life_of_a_file(tally: Counter[str], seed: int) -> None:
    tally += compare(Scripts(Random(seed)).life(views=5, transactions=12, sessions=2), Life)


@pytest.mark.nightly
@pytest.mark.timeout(36000)
@given(seeds)
@many
def test_materialized_views_follow_in_the_long_life_of_a_file(
    tally: Counter[str], seed: int
) -> None:
    tally += compare(Scripts(Random(seed)).life(views=6, transactions=60, sessions=3), Life)


def break_off(seed: int, transactions: int) -> Counter[str]:
    """Whenever that happens: see `haste`."""
    script = Scripts(Random(seed)).script(views=4, transactions=transactions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "SMALL_CHANGE", 1)
        return Pair(replace(script, strategy="adaptive"), Random(seed)).run()


@given(seeds)
@few
def test_what_is_broken_off_changes_nothing(tally: Counter[str], seed: int) -> None:
    tally += break_off(seed, transactions=12)


@pytest.mark.nightly
@given(seeds)
@some
def test_what_is_broken_off_changes_nothing_in_long_scripts(tally: Counter[str], seed: int) -> None:
    tally += break_off(seed, transactions=25)


def take_for_too_long(seed: int) -> Counter[str]:
    """Whatever is evaluated from scratch is taken for too long."""
    strategy = ("naive", "adaptive")[seed % 2]
    script = replace(Scripts(Random(seed)).script(views=3, transactions=20), strategy=strategy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "MANY_ITEMS", 0)
        return Pair(script).run()


@given(seeds)
@few
def test_what_is_too_long_for_one_statement_is_found_in_each_state(
    tally: Counter[str], seed: int
) -> None:
    tally += take_for_too_long(seed)


@pytest.mark.nightly
@given(seeds)
@some
def test_what_is_too_long_for_one_statement_is_found_in_each_state_of_more_scripts(
    tally: Counter[str], seed: int
) -> None:
    tally += take_for_too_long(seed)


@pytest.mark.nightly
@pytest.mark.timeout(36000)
@given(seeds)
@many
def test_views_have_the_rows_and_changes_that_they_should_all_night(
    tally: Counter[str], seed: int
) -> None:
    tally += compare(Scripts(Random(seed)).script(views=4, transactions=120))
