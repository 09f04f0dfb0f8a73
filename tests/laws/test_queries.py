"""Law: an answer of the system is what the text of the query means.

Random schemas, data, derived functions and queries go to the system and to the reference
interpreter (`tests/models/interpreter.py`), which knows neither ObjectLog nor SQL; the answers are
equal as sets or, where rows count, as bags. Between the questions data and schema change. Each
focus is dense in one kind of program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.generators.focuses import FOCUSES
from tests.harness.twins import Question, Twins

pytestmark = pytest.mark.timeout(900)  # a failure takes long to shrink

choices = st.randoms(use_true_random=False)
# A failing program is long, but a smaller one takes minutes to find.
as_found = [Phase.explicit, Phase.reuse, Phase.generate]
few = settings(max_examples=8, phases=as_found, suppress_health_check=list(HealthCheck))
some = settings(max_examples=8, phases=as_found, suppress_health_check=list(HealthCheck))
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


BINDINGS = (
    *("not (i != 5)", "not (i != 5 or i = 6)", "i = 5 or not (i != 6)", "not (not (i = 5))"),
    *("i + 1 = 5", "1 - (i - 2) = 5", "i in s(3)", "(select i) = 5", "i = min(select s(3))"),
    "(select j for each integer j where not (j != i)) = 5",
    "u((select b for each boolean b where b)) = i",
    *("<i, true> = w(3)", "<i + 1, true> = w(3)", "w(i) = <1, true>", "<inc(i), true> = w(3)"),
    *("<inc(i), i> = <(select j for each integer j where j = i + 1), 5>", "equal((select i, 3))"),
    *("s(i) = 4", "s(i + 1) = 4", "s(1 - i) = 4", "s(s(i) - 1) = 4", "s(inc(i)) = 4"),
    *("tclose(s, i) = 5", "tclose(s, i + 1) = 5", "tclose(s, i, 2) = 5"),
    *("same(i) = 5", "inc(i) = 5", "inc(inc(i)) + 1 = 5", "5 in same(i)", "same(i) = inc(3)"),
    *("equal(i, 3)", "equal(inc(i), 3)", "equal(<i, 3>)", "equal(s(3), i)"),
)
"""Each gives an integer i its values in another way."""


@pytest.mark.parametrize("condition", BINDINGS)
def test_a_variable_has_all_the_values_that_its_condition_gives_it(condition: str) -> None:
    twins = Twins(Random(0))
    for text in (
        "create function s(integer) -> integer",
        "create function u(boolean) -> integer",
        "create function w(integer) -> <integer, boolean>",
        "create function same(integer q) -> integer as select q",
        "create function inc(integer q) -> integer as select q + 1",
        "create function equal(integer q, integer r) -> boolean as select true where q = r",
        f"create function d(integer i) -> integer as select i where {condition}",
    ):
        assert twins.define(text)
    for text in (
        *("set s(3) = 4", "set s(4) = 5", "set u(true) = 5", "set u(false) = 6"),
        "set w(3) = <1, true>",
    ):
        twins.revise(text)
    twins.ask(Question(f"select i for each integer i where {condition}"))
    twins.ask(Question("select i, d(i) for each integer i"))
    assert twins.counts["with rows"] == 2, twins.refusals


def test_a_change_with_two_faults_fails_with_one_of_them() -> None:
    """Several values where one may be, one of them an object of another type."""
    twins = Twins(Random(0))
    for name, above in (("t", "object"), ("u", "t")):
        twins.run(f"create type {name} subtype of {above}")
        twins.world.supertypes[name] = (above,)
    twins.run("create t instances :a; create u instances :b")
    for name, types in (("a", {"t"}), ("b", {"t", "u"})):
        twins.world.interface[name] = twins.db.variables[name]
        twins.world.objects[twins.db.variables[name]] = {"object", *types}
    assert twins.define("create function s(t) -> u")
    for argument in (":a", "(select x for each t x)"):
        twins.revise(f"set s({argument}) = (select y for each t y)")
    assert twins.counts["changes failed"] == 2
    assert not twins.refusals


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
