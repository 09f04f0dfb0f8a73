"""The autonomy criteria of section 4.1, producer-filter decompositions, and section 4.3."""

from harken.calculus.autonomy import (
    Change,
    changes_into,
    criterion,
    is_autonomous,
    is_autonomous_for,
)
from harken.calculus.influence import influence_graph, simplified
from harken.calculus.profitable_relations import (
    Profitable,
    decomposition_is_autonomous,
    is_decomposition,
    maximal_profitable_relations,
)
from harken.calculus.rule_formulas import Formula, Occurrence
from tests.calculus.paper_program import PROGRAM
from tests.harness.production_rules import Analysed, analysed

NUMBERS = "\n".join(f".decl {name}(x: number, y: number)" for name in "ABCDEPR")


def formula(body: str) -> tuple[Formula, Analysed]:
    program = analysed(f"{NUMBERS}\n.decl Z(x: number)\nrule r: {body} -> Z(x).")
    return program.of("r").body, program


def named(given: Formula, name: str) -> Occurrence:
    return next(each for each in given.literals if each.name == name)


def change(given: Formula, text: str, *stable: int) -> Change:
    relation = named(given, text[1:]).relation
    kept = (frozenset(stable),) if stable else ()
    return Change(relation.id, text[0] == "+", None, kept, relation.name)


def shown(found: tuple[Profitable, ...]) -> list[tuple[set[str], set[str]]]:
    return [
        (
            {f"{o.sign}{o.name}" for o in each.producer.literals},
            {f"{o.sign}{o.name}" for o in each.filters},
        )
        for each in found
    ]


def test_the_first_and_second_criterion() -> None:
    phi, program = formula("A(x, y), B(y, z), !D(z, x)")
    for text, number in (("-A", 1), ("+D", 2), ("+A", None), ("-D", None)):
        one = change(phi, text)
        assert criterion(phi, named(phi, text[1:]), one, (one,)) == number
    both = (change(phi, "-A"), change(phi, "+D"))
    assert is_autonomous(phi, both, program.bases)
    assert not is_autonomous(phi, (*both, change(phi, "-D")), program.bases)
    assert is_autonomous_for(phi, named(phi, "B"), both, program.bases)


def test_the_third_criterion_needs_a_stable_projection() -> None:
    """Example 4.1: R(x, z), P(x, y) → P(x, z) keeps P stable on its first column."""
    program = analysed(f"{NUMBERS}\nrule r: R(x, z), P(x, y) -> P(x, z).")
    graph = influence_graph(program.formulas, program.bases)
    (made,) = changes_into("r", graph, program.formulas)
    assert (made.inserts, made.stable) == (True, (frozenset({0}),))
    phi = program.of("r").body
    assert criterion(phi, named(phi, "P1"), made, (made,)) == 3
    assert is_autonomous(phi, (made,), program.bases)


def test_a_test_on_a_private_variable_makes_a_projection_unstable() -> None:
    program = analysed(f"{NUMBERS}\nrule r: R(x, z), P(x, y), y < 3 -> P(x, z).")
    graph = influence_graph(program.formulas, program.bases)
    changes = changes_into("r", graph, program.formulas)
    assert not is_autonomous(program.of("r").body, changes, program.bases)


def test_example_4_2() -> None:
    phi, program = formula("A(x, y), B(y, z), C(x, u), !D(z, x), !E(z, y)")
    changes = (
        change(phi, "-A"),
        change(phi, "+C", 0),
        change(phi, "+D"),
        change(phi, "+E"),
        change(phi, "-E"),
    )
    assert not is_autonomous(phi, changes, program.bases)
    assert is_autonomous(phi, changes[:4], program.bases)
    producer = phi.of([each for each in phi.literals if each.name != "E"])
    filters = [named(phi, "E")]
    assert is_decomposition(producer, filters)
    assert decomposition_is_autonomous(producer, filters, changes, program.bases)
    found = maximal_profitable_relations(phi, changes, program.bases)
    assert shown(found) == [({"A", "B", "C", "¬D"}, {"¬E"})]


def test_a_filter_needs_its_variables_bound() -> None:
    phi, program = formula("A(x, y), B(y, z), C(z, x)")
    assert not is_decomposition(phi.of([named(phi, "A")]), [named(phi, "B")])
    assert is_decomposition(phi.of([named(phi, "A"), named(phi, "B")]), [named(phi, "C")])
    assert program.compiled.rules


def test_the_example_of_section_4_3() -> None:
    """B ⋈ C is found from B, and step 3 makes A a filter of it."""
    phi, program = formula("A(x, y), B(y, z), C(z, x)")
    changes = (change(phi, "+A", 1), change(phi, "-B"), change(phi, "+C", 0))
    found = maximal_profitable_relations(
        phi, changes, program.bases, lambda each: 1.0 if each.name == "C" else 2.0
    )
    assert shown(found) == [({"B", "C"}, {"A"})]
    other = maximal_profitable_relations(
        phi, changes, program.bases, lambda each: 1.0 if each.name == "A" else 2.0
    )
    assert shown(other) == [({"A", "B"}, {"C"})]


def test_no_cartesian_product_is_stored() -> None:
    phi, program = formula("A(x, y), B(u, z)")
    assert maximal_profitable_relations(phi, (), program.bases) == ()


def test_the_changes_of_the_paper_s_program() -> None:
    program = analysed(PROGRAM)
    complete = influence_graph(program.formulas, program.bases)
    graph = simplified(complete, program.compiled.above)

    def changes(rule: str) -> set[str]:
        return {str(each) for each in changes_into(rule, graph, program.formulas)}

    assert changes("r1") == {"+C", "-C"}
    assert changes("r2") == changes("r3") == {"+C", "-C", "+D"}
    assert changes("r4") == {"-A", "+F"}
