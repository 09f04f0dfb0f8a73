"""Tables 5.1 and 5.2 of the paper, with what it lacks: see the docstring of the module."""

import pytest

from harken.calculus.influence import (
    InfluenceGraph,
    influence_graph,
    is_negative,
    is_positive,
    propagation_path,
    simplified,
)
from tests.calculus.paper_program import PROGRAM
from tests.harness.production_rules import analysed

TABLE_5_1 = {
    ("r1", "r2"): {"C + D"},
    ("r1", "r3"): {"C + ¬C"},
    ("r1", "r4"): {"C + ¬A", "C + F"},
    ("r2", "r2"): {"D + D"},
    ("r2", "r3"): {"D - D", "D - ¬C"},
    ("r2", "r4"): {"D + ¬A", "D + F"},
    ("r3", "r1"): {"¬C + C"},
    ("r3", "r2"): {"D + D"},
    ("r3", "r3"): {"D - D", "D - ¬C"},
    ("r3", "r4"): {"¬C - ¬A", "¬C - F", "D + ¬A", "D + F"},
    ("r4", "r1"): {"¬A - C"},
    ("r4", "r4"): {"¬A - ¬A", "¬A - F", "F + ¬A", "F + F"},
}
"""As printed, but for (r3, r4), where "C - F" stands for ¬C - F."""
MISSING_IN_5_1 = {
    ("r3", "r2"): {"D - D", "¬C - D"},
    ("r4", "r1"): {"F - C"},
    ("r1", "r1"): {"C - C"},
    ("r2", "r2"): {"D - D"},
    ("r3", "r3"): {"¬C - ¬C"},
    ("r4", "r4"): {"F - F"},
}
TABLE_5_2 = {
    ("r1", "r2"): {"C + D"},
    ("r1", "r3"): {"C + ¬C"},
    ("r2", "r2"): {"D + D"},
    ("r2", "r3"): {"D - D", "D - ¬C"},
    ("r3", "r1"): {"¬C + C"},
    ("r3", "r2"): {"D + D"},
    ("r3", "r3"): {"D - D", "D - ¬C"},
    ("r4", "r4"): {"¬A - ¬A", "¬A - F", "F + ¬A", "F + F"},
}


def labels(graph: InfluenceGraph) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for each in graph.labels:
        found.setdefault(each.arc, set()).add(str(each))
    return found


def joined(*tables: dict[tuple[str, str], set[str]]) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for table in tables:
        for arc, names in table.items():
            found[arc] = found.get(arc, set()) | names
    return found


@pytest.fixture(scope="module")
def complete() -> InfluenceGraph:
    program = analysed(PROGRAM)
    return influence_graph(program.formulas, program.bases)


def test_table_5_1(complete: InfluenceGraph) -> None:
    assert labels(complete) == joined(TABLE_5_1, MISSING_IN_5_1)


def test_table_5_2_keeps_the_labels_that_priorities_leave_relevant(
    complete: InfluenceGraph,
) -> None:
    added = {arc: names for arc, names in MISSING_IN_5_1.items() if arc != ("r4", "r1")}
    above = analysed(PROGRAM).compiled.above
    assert labels(simplified(complete, above)) == joined(TABLE_5_2, added)


def test_without_priorities_everything_is_relevant(complete: InfluenceGraph) -> None:
    assert simplified(complete, {}) == complete


def test_a_label_downwards_is_relevant_where_a_lower_rule_starts_a_positive_path() -> None:
    """low inserts what makes high firable, and high then changes what low matches."""
    program = analysed(
        """.decl a(x: number) .decl b(x: number) .decl c(x: number)
        rule high: b(x) -> c(x).
        rule low: a(x), !c(x) -> b(x).
        .priority high > low"""
    )
    graph = simplified(influence_graph(program.formulas, program.bases), program.compiled.above)
    assert {"c - b", "b + c"} <= {str(each) for each in graph.labels}


def test_propagation_paths(complete: InfluenceGraph) -> None:
    """Definition 5.3: r1 adds to OT(r2, D), and what r2 does by D removes from OT(r3, D)."""
    (first,) = complete.of("r1", "r2")
    second = next(each for each in complete.of("r2", "r3") if str(each) == "D - D")
    assert propagation_path([first, second])
    assert is_positive([first])
    assert is_negative([first, second])
    assert not propagation_path([second, first])


def test_constants_that_differ_have_no_influence() -> None:
    program = analysed(
        """.decl state(x: number, s: symbol)
        rule go: state(x, "new") -> state(x, "open"), !state(x, "new").
        rule end: state(x, "open") -> !state(x, "open")."""
    )
    graph = influence_graph(program.formulas, program.bases)
    assert labels(graph) == {
        ("go", "go"): {"state - state", "¬state - state", "¬state - ¬state"},
        ("go", "end"): {"state + ¬state"},
        ("end", "go"): {"¬state + state"},
        ("end", "end"): {"¬state - ¬state"},
    }


def test_an_aggregate_and_a_derived_relation_change_in_both_ways() -> None:
    program = analysed(
        """.decl a(x: number) .decl n(x: number) .decl p(x: number) p(x) :- a(x).
        rule add: n(x), p(x) -> a(x).
        rule sum: c = count : { a(_) } -> n(c)."""
    )
    found = labels(influence_graph(program.formulas, program.bases))
    assert {"a + n", "a - n"} <= found["add", "sum"]
    assert {"a + a", "a - a"} <= found["add", "add"]
