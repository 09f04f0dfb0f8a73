"""Law: an answer of the system is what the text of the query means.

Random schemas, data, derived functions and queries go to the system and to the reference
interpreter (`tests/interpreter.py`), which knows neither ObjectLog nor SQL; their answers are
equal as sets or, where rows count, as bags. Between the questions data and schema change. Each
focus is dense in one kind of program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from focuses import FOCUSES
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from twins import Twins

pytestmark = pytest.mark.timeout(900)  # a failure takes long to shrink

choices = st.randoms(use_true_random=False)
# A failing program is long, but a smaller one takes minutes to find.
as_found = [Phase.explicit, Phase.reuse, Phase.generate]
few = settings(max_examples=12, phases=as_found, suppress_health_check=list(HealthCheck))
some = settings(max_examples=16, phases=as_found, suppress_health_check=list(HealthCheck))
many = settings(max_examples=1000, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def tally() -> Iterator[Counter[str]]:
    """What was asked and what became of it. A generator of nonsense would prove nothing."""
    counts: Counter[str] = Counter()
    yield counts
    print(dict(counts))
    assert counts["query refused"] <= 0.2 * counts["queries"]
    assert counts["definition refused"] <= 0.2 * counts["definitions"]
    assert counts["with rows"] >= 0.2 * counts["queries"]


def converse(focus: str, random: Random, questions: int = 12, rounds: int = 4) -> Counter[str]:
    """Ask, change, and ask the same again."""
    twins = Twins(random, maker=FOCUSES[focus])
    twins.build()
    asked = [twins.random_question() for _ in range(questions)]
    for question in asked:
        twins.ask(question)
    for _ in range(rounds):
        twins.change()
        twins.change()
        for question in asked:
            twins.ask(question)
    return twins.counts


@pytest.mark.parametrize("focus", FOCUSES)
@given(choices)
@some
def test_answers_are_those_of_the_reference_interpreter(
    tally: Counter[str], focus: str, random: Random
) -> None:
    tally += converse(focus, random)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("focus", FOCUSES)
@given(choices)
@many
def test_answers_are_those_of_the_reference_interpreter_all_night(
    tally: Counter[str], focus: str, random: Random
) -> None:
    tally += converse(focus, random)


@given(choices)
@few
def test_the_translation_means_what_the_text_means(tally: Counter[str], random: Random) -> None:
    """ObjectLog, evaluated naively as it was translated, against the reference interpreter."""
    twins = Twins(random)
    twins.build()
    for _ in range(12):
        twins.ask_oracle(twins.random_question())
    tally += twins.counts


@given(choices)
@few
def test_a_query_means_the_same_inside_a_function(tally: Counter[str], random: Random) -> None:
    twins = Twins(random)
    twins.build()
    for _ in range(8):
        twins.ask_inside()
    tally += twins.counts


@given(choices)
@few
def test_handles_give_the_values_that_queries_give(random: Random) -> None:
    twins = Twins(random)
    twins.build()
    twins.check_handles()


@given(choices)
@few
def test_a_reopened_database_gives_the_same_answers(
    tmp_path_factory: pytest.TempPathFactory, random: Random
) -> None:
    """Definitions are compiled again from their texts."""
    path = tmp_path_factory.mktemp("reopened") / "twins.db"
    twins = Twins(random, str(path))
    twins.build()
    asked = [twins.random_question() for _ in range(6)]
    for question in asked:
        twins.ask(question)
    twins.reopen()
    for question in asked:
        twins.ask(question)
    twins.change()
    twins.reopen()
    for question in asked:
        twins.ask(question)
    twins.db.close()


@given(choices)
@few
def test_what_is_put_back_was_never_gone(random: Random) -> None:
    """Removing rows and putting them back, or deleting an unrelated object, changes no answer."""
    twins = Twins(random)
    twins.build()
    asked = [twins.random_question() for _ in range(6)]
    twins.remove_and_put_back()
    for question in asked:
        twins.ask(question)
