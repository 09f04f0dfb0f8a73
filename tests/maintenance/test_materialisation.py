"""What each policy stores for rules, and how `auto` learns."""

import pytest

import harken
from harken import HarkenError
from harken.calculus.rule_memories import with_memories
from harken.maintenance.materialisation import (
    CHOICES,
    Estimates,
    Materialisation,
    Parts,
)
from tests.calculus.paper_program import PROGRAM
from tests.consumers.programs.paper import R1, R2, STATE
from tests.harness.production_rules import Analysed, analysed

FEW = Estimates(lambda _: 1.0, lambda _: 100.0)
MANY = Estimates(lambda _: 90.0, lambda _: 100.0)


def stored(program: Analysed, policy: str, estimates: Estimates = FEW) -> dict[str, list[str]]:
    return {
        each.name: [_shown(part) for part in CHOICES[policy](each, estimates)]
        for each in program.annotated().rules
    }


def _shown(part: object) -> str:
    literals = part.literals  # type: ignore[attr-defined]
    return " ".join(f"{o.sign}{o.name}" for o in literals)


def test_figure_1_and_figure_2() -> None:
    """RETE has n1, n2, n3 and p1; p2 is the conflict set. TREAT has the alpha nodes."""
    program = analysed(STATE + R1 + "\n.semantics instance")
    assert stored(program, "rete") == {"r1": ["a", "b", "c1", "a b"]}
    assert stored(program, "treat") == {"r1": ["a", "b", "c1"]}


def test_a_treat_reads_what_is_not_selective_through_virtual_nodes() -> None:
    program = analysed(STATE + R1)
    assert stored(program, "atreat") == {"r1": ["a", "b", "c1"]}
    assert stored(program, "atreat", MANY) == {"r1": []}


def test_cosma_stores_what_the_program_does_not_change() -> None:
    """r1 inserts into C, so A ⋈ B is worth storing; r2 only deletes from B: nothing is."""
    assert stored(analysed(STATE + R1), "cosma") == {"r1": ["a b"]}
    assert stored(analysed(PROGRAM), "cosma") == {
        "r1": ["A B E ¬F"],
        "r2": [],
        "r3": ["B ¬D1 E"],
        "r4": [],
    }


def test_rules_share_a_memory() -> None:
    program = analysed(f"{STATE}{R1}{R2}\n.semantics instance")
    relations = []
    for annotation in program.annotated().rules:
        wanted: dict[int, Parts] = {0: CHOICES["rete"](annotation, FEW)}
        made = with_memories(annotation.formulas.rule, [annotation.formulas], wanted)
        relations.append({each.relation.id for each in made.memories})
    assert len(relations[0] & relations[1]) == 4


def test_what_has_no_room_is_not_stored() -> None:
    annotated = analysed(STATE + R1).annotated()
    choices = Materialisation()
    assert choices.parts("rete", annotated, MANY, room=100.0)["r1"] != [()]
    assert choices.parts("rete", annotated, MANY, room=10.0)["r1"] == [()]


def test_auto_begins_with_the_analysis_and_keeps_what_was_faster() -> None:
    choices = Materialisation()
    assert choices.policy("p", "rete") == "rete"
    assert choices.policy("p", "auto") == "cosma"
    choices.note("p", "cosma", seconds=2.0, firings=10)
    assert choices.policy("p", "auto") == "atreat"
    choices.note("p", "atreat", seconds=1.0, firings=10)
    assert choices.policy("p", "auto") == "atreat"


def test_auto_changes_its_mind_when_the_load_changes() -> None:
    choices = Materialisation()
    choices.note("p", "cosma", seconds=2.0, firings=10)
    choices.note("p", "atreat", seconds=1.0, firings=10)
    for _ in range(4):
        choices.note("p", "atreat", seconds=9.0, firings=10)
    assert choices.policy("p", "auto") == "cosma"


@pytest.mark.parametrize("policy", [*CHOICES, "auto"])
def test_every_policy_makes_the_same_firings(policy: str) -> None:
    with harken.connect() as db:
        run = db.program(f"{STATE}{R1}\n.semantics instance").run(materialise=policy)
        assert (run.firings, len(db.sql("SELECT * FROM c").rows)) == (3, 4)
        assert run.policy == ("cosma" if policy == "auto" else policy)
        assert (
            db.internals.connection.value(
                "SELECT count(*) FROM sqlite_temp_master WHERE sql LIKE '%memory%'"
            )
            == 0
        )


def test_stored_rows_are_those_of_the_nodes_and_the_conflict_set() -> None:
    found = {}
    for policy in CHOICES:
        with harken.connect() as db:
            found[policy] = (
                db.program(f"{STATE}{R1}\n.semantics instance")
                .run(materialise=policy, limit=10)
                .stored_rows
            )
    assert found["rete"] >= found["cosma"]
    assert found["rete"] >= found["treat"] >= found["atreat"]


def test_a_dropped_label_leaves_nothing_out_of_date() -> None:
    """Definition 5.4 as printed would not follow what `low` deletes."""
    text = """
    .decl a(x: number) .decl c(x: number) .decl g(x: number) .decl h(x: number)
    a(1). g(1). h(1).
    rule top: a(x) -> c(x).
    rule low: g(x), a(x) -> !a(x), !g(x).
    rule last: h(x), !g(x) -> !c(x), !h(x).
    .priority top > low
    .priority low > last
    """
    for policy in CHOICES:
        with harken.connect() as db:
            db.program(text).run(materialise=policy)
            assert db.sql("SELECT * FROM c").rows == []


@pytest.mark.parametrize("policy", CHOICES)
def test_a_set_oriented_rule_whose_head_reads_no_variable(policy: str) -> None:
    text = """
    .decl a(x: number) .decl b(x: number, y: number) .decl e(x: number)
    a(1). a(2). b(1, 1). e(7).
    rule r: b(z, x), a(x), !b(x, 2) -> !e(7).
    """
    with harken.connect() as db:
        db.program(text).run(materialise=policy)
        assert db.sql("SELECT * FROM e").rows == []


def test_an_unknown_policy_is_refused() -> None:
    with harken.connect() as db, pytest.raises(HarkenError, match="no policy memo"):
        db.program(STATE + R1).run(materialise="memo")
