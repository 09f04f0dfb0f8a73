"""Which rows of remote relations a clause can need: shown as the clauses that say the keys.

`r(Y, ·) ← q(X, Y)` reads: of r, the rows whose first column is a Y of q. `r` alone is all of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import harken
from harken.calculus.differentials import differentiate
from harken.engines.placement.query import LakeQuery
from harken.ir.clauses import Program
from harken.ir.printer import print_literal
from harken.ir.relations import Relation
from harken.planner import demand
from harken.planner.demand import Demand, demands, demands_beside
from harken.planner.prepare import prepare
from harken.values.types import Hierarchy
from tests.harness.facts import Facts

NAMES = "XYZVW"


def shown(demand: Demand) -> str:
    """A demand in one line, with its variables named anew."""
    name = demand.relation.name
    if demand.plan is None:
        return name
    (clause,) = demand.plan.program.definitions[demand.plan.program.goal.id].clauses
    keys = dict(zip(demand.columns, clause.head.terms, strict=True))
    terms = ", ".join(str(keys.get(i, "·")) for i in range(demand.relation.arity))
    body = " ∧ ".join(print_literal(literal) for literal in clause.body)
    text = f"{name}({terms}) ← {body}" if body else f"{name}({terms})"
    text = re.sub(r"_[a-z]+(,[a-z]+)*\(", "(", text)
    return re.sub(r"\bV(\d)\b", lambda found: NAMES[int(found[1]) - 1], text)


def asked(program: Program, remote: str) -> list[str]:
    plan = prepare(program, Hierarchy({}))
    return [shown(each) for each in demands(plan, is_remote(remote))]


def is_remote(names: str) -> Callable[[Relation], bool]:
    return lambda relation: relation.name in names.split()


def facts(*definitions: tuple[str, ...] | str) -> tuple[Facts, Program]:
    """The program of the last definition, over stored relations q, r, s and u."""
    made = Facts(relations="q/2 r/2 s/2 u/1")
    for clauses in definitions:
        watch = made.define(*((clauses,) if isinstance(clauses, str) else clauses))
    return made, watch.program


CLAUSES: dict[str, tuple[tuple[Any, ...], str, list[str]]] = {
    "nothing remote is asked for nothing": (("p(X, Y) ← q(X, Y)",), "r", []),
    "a constant": (("p(Z) ← r(1, Z)",), "r", ["r(1, ·)"]),
    "a constant in any column": (("p(Z) ← r(Z, 1)",), "r", ["r(·, 1)"]),
    "nothing is known": (("p(X, Y) ← r(X, Y)",), "r", ["r"]),
    "a test is no key": (("p(X, Y) ← r(X, Y) ∧ X > 3",), "r", ["r"]),
    "a join with what is here": (
        ("p(X, Z) ← q(X, Y) ∧ r(Y, Z)",),
        "r",
        ["r(X, ·) ← q(Y, X)"],
    ),
    "one remote relation leads to the next": (
        ("p(Z) ← q(1, Y) ∧ r(Y, Z)",),
        "q r",
        ["q(1, ·)", "r(X, ·) ← q(1, X)"],
    ),
    "the first of a chain comes whole": (
        ("p(X, Z) ← q(X, Y) ∧ r(Y, Z)",),
        "q r",
        ["q", "r(X, ·) ← q(Y, X)"],
    ),
    "what is here comes before what is remote": (
        ("p(X, Z) ← r(X, Y) ∧ s(Y, Z) ∧ u(X)",),
        "r s",
        ["r(X, ·) ← u(X)", "s(X, ·) ← u(Y) ∧ r(Y, X)"],
    ),
    "arithmetic": (
        ("p(X, Z) ← u(X) ∧ Y = X + 1 ∧ r(Y, Z)",),
        "r",
        ["r(X, ·) ← u(Y) ∧ X = Y + 1"],
    ),
    "tests narrow the keys": (
        ("p(X, Z) ← q(X, Y) ∧ Y > 3 ∧ r(Y, Z)",),
        "r",
        ["r(X, ·) ← q(Y, X) ∧ X > 3"],
    ),
    "a negation": (("p(X, Y) ← q(X, Y) ∧ ¬r(X, Y)",), "r", ["r(X, Y) ← q(X, Y)"]),
    "a remote negation does not narrow": (
        ("p(X, Z) ← q(X, Y) ∧ ¬s(X, Y) ∧ r(Y, Z)",),
        "r s",
        ["r(X, ·) ← q(Y, X)", "s(X, Y) ← q(X, Y)"],
    ),
    "the group of an aggregate": (
        ("d(X, V) ← r(X, V)", "p(X, N) ← u(X) ∧ N = sum(V : d(X, V))"),
        "r",
        ["r(X, ·) ← u(X)"],
    ),
    "an aggregate of everything": (
        ("d(X, V) ← r(X, V)", "p(N) ← N = sum(V : d(X, V))"),
        "r",
        ["r"],
    ),
    "through a derived relation, clause by clause": (
        (("d(X, Y) ← r(X, Y)", "d(X, Y) ← s(Y, X)"), "p(X, Z) ← q(X, Y) ∧ d(Y, Z)"),
        "r s",
        ["r(X, ·) ← q(Y, X)", "s(·, X) ← q(Y, X)"],
    ),
    "a remote row twice": (
        ("p(X, Z) ← r(1, X) ∧ r(X, Z)",),
        "r",
        ["r(1, ·)", "r(X, ·) ← r(1, X)"],
    ),
    "recursion": (
        (("d(X, Y) ← r(X, Y)", "d(X, Z) ← d(X, Y) ∧ r(Y, Z)"), "p(Z) ← d(1, Z)"),
        "r",
        ["r"],
    ),
    "whole once is whole": (
        (("p(X, Y) ← r(X, Y)", "p(X, Y) ← q(X, Z) ∧ r(Z, Y)"),),
        "r",
        ["r"],
    ),
}


@pytest.mark.parametrize("what", CLAUSES)
def test_demands_of_clauses(what: str) -> None:
    definitions, remote, wanted = CLAUSES[what]
    _, program = facts(*definitions)
    assert sorted(asked(program, remote)) == sorted(wanted)


def test_a_change_asks_for_what_joins_with_it() -> None:
    _, program = facts("p(X, Z) ← q(X, Y) ∧ r(Y, Z)")
    change = differentiate(program, [name_of(program, "q")])
    first = asked(change.plus, "q r")[0]
    assert first == "r(X, ·) ← Δq(Y, X, 1)"
    assert not [each for each in asked(change.plus, "q r") if "←" not in each], "nothing whole"


def name_of(program: Program, name: str) -> str:
    """The id of a stored relation of the program."""
    return next(
        literal.relation.id
        for definition in program.definitions.values()
        for clause in definition.clauses
        for literal in clause.body
        if hasattr(literal, "relation") and literal.relation.name == name
    )


def test_changes_in_both_directions_of_a_join() -> None:
    _, program = facts("p(X, Z) ← q(X, Y) ∧ r(Y, Z)")
    change = differentiate(program, [name_of(program, "q"), name_of(program, "r")])
    found = asked(change.plus, "q r")
    assert "r(X, ·) ← Δq(Y, X, 1)" in found
    assert "q(·, X) ← Δr(X, Y, 1)" in found
    assert not {"q", "r"} & set(found)


def test_too_many_demands_are_whole_relations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "MOST", 1)
    _, program = facts("p(Z) ← q(1, Y) ∧ r(Y, Z)")
    assert asked(program, "q r") == ["q", "r"]


def test_demands_are_in_an_order_in_which_they_can_be_met() -> None:
    """The query of each asks only remote relations that those before it have brought."""
    _, program = facts("p(W) ← q(1, X) ∧ r(X, Y) ∧ s(Y, Z) ∧ q(Z, W)")
    found = asked(program, "q r s")
    assert found == [
        "q(1, ·)",
        "r(X, ·) ← q(1, X)",
        "s(X, ·) ← q(1, Y) ∧ r(Y, X)",
        "q(X, ·) ← q(1, Y) ∧ r(Y, Z) ∧ s(Z, X)",
    ]


def test_a_rule_by_itself_asks_by_what_is_a_table_here() -> None:
    """What is small comes first: of the others there may be many rows."""
    _, program = facts("p(X, Z) ← q(X, Y) ∧ s(Y, V) ∧ r(V, Z)")
    plan = prepare(program, Hierarchy({}))
    goal = plan.program.definitions[plan.program.goal.id]
    tables = [name_of(program, "q"), name_of(program, "s")]
    by_small = {"q": "r(X, ·) ← q(Y, Z) ∧ s(Z, X)", "s": "r(X, ·) ← s(Y, X)"}
    for small, wanted in by_small.items():
        found = demands_beside(goal, plan, tables, is_remote("r"), is_remote(small))
        assert [shown(each) for each in found] == [wanted]


def test_parameters_are_keys() -> None:
    """As a statement of the language has them: constants and interface variables."""
    with harken.connect() as db:
        db.amosql("""
            create function price(integer) -> integer stored in lake;
            create function after(integer) -> integer stored in lake;
            create function dearer(integer i) -> integer as select price(after(i));
        """)
        engine, compiled = db.internals.engine, []
        compile_plan = engine.compile

        def spy(plan: Any) -> Any:
            compiled.append(compile_plan(plan))
            return compiled[-1]

        engine.compile = spy  # type: ignore[method-assign]
        db.assign("i", 7)
        db.amosql("dearer(:i);")
        queries = [query for query in compiled if isinstance(query, LakeQuery)]
        found = [shown(each) for query in queries for each, _ in query.asked]
    assert found == ["after(?1, ·)", "price(X, ·) ← after(?1, X)"]
