"""The model of section 2 reproduces what the paper and the issue say of rule r1 of section 3."""

from tests.consumers.programs.paper import FACTS, c_of, program
from tests.models.productions import after, candidates, conflict_set, reachable, run

CHOICES = [("r1", (3, 1, 2, 1)), ("r1", (2, 0, 0, 3)), ("r1", (3, 1, 2, 3))]
"""Variables in the order of the body: x, z, y, w. The first two are the paper's."""


def test_instance_by_instance_r1_reaches_19_states_and_two_fixpoints() -> None:
    states, fixpoints = reachable(program(by_instance=True), FACTS)
    assert len(states) == 19
    found = sorted(sorted(c_of(each)) for each in fixpoints)
    assert found == [["03", "23", "31", "33"], ["03", "23", "33"]]


def test_the_greatest_tuple_gives_the_choices_of_tables_2_and_3() -> None:
    outcome = run(program(by_instance=True), FACTS)
    assert list(outcome.firings) == CHOICES
    assert c_of(outcome.state) == {"03", "23", "31", "33"}


def test_table_2_and_table_3_are_the_conflict_sets() -> None:
    r1 = program(by_instance=True)
    table_2 = conflict_set(r1, FACTS)
    assert {values for _, values in table_2} == {(0, 1, 2, 1), (2, 0, 0, 3), (3, 1, 2, 1)}
    second = after(next(e for (_, v), e in table_2.items() if v == (3, 1, 2, 1)), FACTS)
    assert {values for _, values in conflict_set(r1, second)} == {(2, 0, 0, 3)}


def test_the_smallest_tuple_first_never_ends() -> None:
    r1, state = program(by_instance=True), FACTS
    seen = [state]
    for _ in range(100):
        found = candidates(r1, state)
        smallest = min(found, key=lambda each: each[1] or ())
        state = after(found[smallest], state)
        seen.append(state)
    assert len(set(seen)) < 20
    assert candidates(r1, state)


def test_set_oriented_r1_fires_twice() -> None:
    outcome = run(program(by_instance=False), FACTS)
    assert len(outcome.firings) == 2
    assert c_of(outcome.state) == {"01", "03", "23", "31", "33"}
