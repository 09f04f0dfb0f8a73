"""Every engine gives the same rows for the same plan over the same relations.

The answers of the reference engine count: it follows the definition of the language. Spark gets all
programs over one database in few jobs.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from harken.ir.clauses import Atom, Clause, Comparison, Definition, Program, stored_relations
from harken.ir.relations import Column, Kind, Relation, Semantics
from harken.ir.terms import Parameter, Variable
from harken.planner.prepare import Plan, prepare
from harken.values.types import INTEGER, Hierarchy
from tests.engines.conftest import MAKERS
from tests.harness.both import FAST, Cases, settings
from tests.harness.facts import Facts

Clauses = tuple[str | tuple[str, ...], ...]

PROGRAMS: dict[str, Clauses] = {
    "a selection": ("p(X) ← q(X, Y) ∧ Y > 2",),
    "a constant": ("p(Y) ← q(1, Y)",),
    "a join": ("p(X, Z) ← q(X, Y) ∧ r(Y, Z)",),
    "a self-join": ("p(X, Z) ← q(X, Y) ∧ q(Y, Z)",),
    "a product": ("p(X, Z) ← u(X) ∧ r(Z, Z)",),
    "a union": (("p(X, Y) ← q(X, Y)", "p(X, Y) ← r(Y, X)"),),
    "a negation": ("p(X, Y) ← q(X, Y) ∧ ¬r(X, Y)",),
    "a negation of what is derived": ("d(X) ← q(X, Y) ∧ r(Y, X)", "p(X) ← u(X) ∧ ¬d(X)"),
    "arithmetic": ("p(X, Z) ← q(X, Y) ∧ Z = X + Y",),
    "a sum by groups": ("d(X, V) ← q(X, V)", "p(X, N) ← u(X) ∧ N = sum(V : d(X, V))"),
    "a count of nothing": ("d(X, V) ← q(X, V) ∧ V > 99", "p(N) ← N = count(V : d(X, V))"),
    "a maximum": ("d(X, V) ← r(X, V)", "p(X, N) ← u(X) ∧ N = max(V : d(X, V))"),
    "a view of a view": ("d(X, Z) ← q(X, Y) ∧ r(Y, Z)", "p(X) ← d(X, X)"),
    "a closure": (("p(X, Y) ← q(X, Y)", "p(X, Z) ← p(X, Y) ∧ q(Y, Z)"),),
    "a closure without some": (
        ("d(X, Y) ← q(X, Y)", "d(X, Z) ← d(X, Y) ∧ q(Y, Z)"),
        "p(X, Y) ← d(X, Y) ∧ ¬r(X, Y)",
    ),
}
SEEDS = range(6)


def facts_of(seed: int, *, bag: bool) -> Facts:
    """A few small numbers, so that rows meet; the first database is empty."""
    random = Random(seed)
    made = Facts(relations="q/2 r/2 u/1", bag=bag)
    for name, arity in (("q", 2), ("r", 2), ("u", 1)):
        for _ in range(random.randint(0, 8) if seed else 0):
            row = ", ".join(str(random.randint(1, 4)) for _ in range(arity))
            made.change(f"+{name}({row})")
    return made


def programs_of(facts: Facts, *, bag: bool) -> dict[str, Program]:
    """All programs; a recursion has no meaning in a bag."""
    found = {}
    for name, definitions in PROGRAMS.items():
        if bag and "closure" in name:
            continue
        for clauses in definitions:
            watch = facts.define(*((clauses,) if isinstance(clauses, str) else clauses))
        found[name] = watch.program
    return found


def filled(engine: Any, program: Program, facts: Facts) -> Any:
    for relation in stored_relations(program).values():
        if not engine.exists(relation):
            engine.create(relation)
            engine.insert_many(relation, facts.rows(relation.name).elements())
    return engine


def planned(program: Program) -> Plan:
    return prepare(program, Hierarchy({}))


@pytest.mark.parametrize("bag", [False, True], ids=["sets", "bags"])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_engine_answers_as_the_reference_does(seed: int, bag: bool) -> None:
    facts = facts_of(seed, bag=bag)
    engines = {name: make() for name, make in MAKERS.items()}
    for name, program in programs_of(facts, bag=bag).items():
        found = {
            each: Counter(filled(engine, program, facts).compile(planned(program)).rows(()))
            for each, engine in engines.items()
        }
        for each, rows in found.items():
            assert rows == found["reference"], f"{name} on {each}"


@pytest.mark.parametrize("bag", [False, True], ids=["sets", "bags"])
def test_spark_answers_as_the_reference_does(spark: Any, bag: bool) -> None:
    cases = Cases()
    for seed in (1, 2):
        facts = facts_of(seed, bag=bag)
        reference, sqlite = MAKERS["reference"](), MAKERS["sqlite"]()
        for name, program in programs_of(facts, bag=bag).items():
            if "closure" in name and seed > 1:
                continue  # each recursion is several jobs
            filled(reference, program, facts)
            case = cases.add(name, program, Hierarchy({}), filled(sqlite, program, facts))
            case.answer = Counter(reference.compile(planned(program)).rows(()))
    with settings(spark, **FAST):
        cases.check(spark)


X, Y = Variable("X", INTEGER), Variable("Y", INTEGER)
PAIRS = Relation("q", (Column("x", INTEGER), Column("y", INTEGER)), 0, Kind.STORED, Semantics.BAG)


def derived(name: str, *columns: Variable) -> Relation:
    made = tuple(Column(each.name.lower(), each.type) for each in columns)
    return Relation(name, made, 0, Kind.DERIVED, Semantics.BAG)


def pairs(engine: Any) -> Any:
    engine.create(PAIRS)
    engine.insert_many(PAIRS, [(1, 5), (1, 5), (1, -5), (2, 3), (2, -3)])
    return engine


def test_a_query_is_run_with_other_values(engine: Any) -> None:
    goal = derived("p", Y)
    body = (Atom(PAIRS, (X, Y)), Comparison("=", X, Parameter(0, INTEGER)))
    program = Program(goal, {goal.id: Definition(goal, (Clause(Atom(goal, (Y,)), body),))})
    query = pairs(engine).compile(planned(program))
    assert Counter(query.rows((1,))) == Counter([(5,), (5,), (-5,)])
    assert Counter(query.rows((2,))) == Counter([(3,), (-3,)])
    assert query.rows((3,)) == []
    engine.insert_many(PAIRS, [(3, 4)])
    assert query.rows((3,)) == [(4,)]


def whole() -> Plan:
    goal = derived("p", X, Y)
    clause = Clause(Atom(goal, (X, Y)), (Atom(PAIRS, (X, Y)),))
    return planned(Program(goal, {goal.id: Definition(goal, (clause,))}))


def test_weights_are_summed_and_nothing_is_left_out_but_nothing(engine: Any) -> None:
    assert Counter(pairs(engine).compile(whole()).summed()) == Counter([(1, 5)])


def test_a_foreign_function_is_called_with_its_arguments(engine: Any) -> None:
    columns = (Column("n", INTEGER), Column("m", INTEGER))
    up_to = Relation("up_to", columns, 1, Kind.FOREIGN, Semantics.BAG)
    engine.register_foreign(up_to, lambda n: range(n), [int])
    goal = derived("p", X, Y)
    body = (Atom(PAIRS, (X, Variable("_", INTEGER))), Atom(up_to, (X, Y)))
    program = Program(goal, {goal.id: Definition(goal, (Clause(Atom(goal, (X, Y)), body),))})
    found = Counter(pairs(engine).compile(planned(program)).rows(()))
    assert found == Counter({(1, 0): 3, (2, 0): 2, (2, 1): 2})
