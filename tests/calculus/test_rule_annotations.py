"""COSMA on the program of the paper: the annotations of section 5.4, with its corrections."""

import pytest

from harken.calculus.rule_annotations import AnnotatedProgram, RuleAnnotation
from tests.calculus.paper_program import PROGRAM
from tests.harness.production_rules import analysed


@pytest.fixture(scope="module")
def program() -> AnnotatedProgram:
    return analysed(PROGRAM).annotated()


def subexpressions(rule: RuleAnnotation) -> list[tuple[set[str], set[str]]]:
    return [
        (
            {f"{o.sign}{o.name}" for o in each.producer.literals},
            {f"{o.sign}{o.name}" for o in each.filters},
        )
        for each in rule.subexpressions
    ]


def test_r1_stores_its_join_with_a_flag_for_c(program: AnnotatedProgram) -> None:
    (r1,) = program.of("r1")
    assert subexpressions(r1) == [({"A", "B", "E", "¬F"}, {"¬C"})]
    (effect,) = r1.effects
    assert (effect.reads, effect.materialise, effect.once) == ((0,), False, False)


def test_r2_stores_nothing(program: AnnotatedProgram) -> None:
    (r2,) = program.of("r2")
    assert r2.subexpressions == ()
    assert not r2.effects[0].once


def test_r3_stores_one_relation_for_both_effects(program: AnnotatedProgram) -> None:
    """The paper computes e6 from the base relations; it reads T2 as well. What the paper calls the
    second ∂e5 is ∂e6, which is empty."""
    (r3,) = program.of("r3")
    assert subexpressions(r3) == [({"B", "¬D1", "E"}, {"C"})]
    d, c = r3.effects
    assert (str(d.token.head.relation.name), d.reads, d.once) == ("D", (0,), True)
    assert (str(c.token.head.relation.name), c.reads, c.once) == ("C", (0,), False)


def test_r4_fires_once(program: AnnotatedProgram) -> None:
    (r4,) = program.of("r4")
    assert r4.subexpressions == ()
    assert r4.fires_once


def test_what_is_stored_follows_all_labels(program: AnnotatedProgram) -> None:
    """Definition 5.4 drops the changes by r4; T1 has to follow them all the same."""
    (r1,) = program.of("r1")
    assert {str(each) for each in r1.changes} == {"+C", "-C"}
    assert {str(each) for each in r1.all_changes} == {"+C", "-C", "-A", "+F"}


def test_instance_oriented_rules_store_their_output_tokens() -> None:
    """R2, and example 4.1: worth storing for instances, computed once for sets."""
    text = ".decl R(x: number, z: number) .decl P(x: number, y: number)\n"
    rule = "rule r: R(x, z), P(x, y) -> P(x, z).\n"
    (sets,) = analysed(text + rule).annotated().rules
    (instances,) = analysed(f"{text}{rule}.semantics instance").annotated().rules
    assert sets.fires_once
    assert not sets.effects[0].materialise
    assert instances.effects[0].materialise
    assert not instances.fires_once


def test_proposition_5_1_is_about_all_predicates_of_a_rule() -> None:
    """No change of b makes OT(once, b) other than autonomous, but a gains rows."""
    text = """
    .decl a(x: number) .decl b(x: number) .decl c(x: number)
    rule feed: c(x) -> a(x).
    rule once: a(x), !c(x) -> b(x).
    """
    (_, once) = analysed(text).annotated().rules
    assert not once.fires_once
