"""Table 1 of the chapter: partial differencing of the relational operators, row by row.

Each operator P of Q and R is written as clauses. Twice: what `differentiate` makes of them is what
the table says, and the changes it gives are those that the table's formulas give, evaluated here
with Python's sets. In bag semantics they are the difference of the counts.

The table's columns stand for how P changes through Q and R: a row that leaves R makes Q − R grow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

import pytest

from tests.harness.facts import Facts, grouped
from tests.harness.watching import Row, Watch, difference

Rows = set[Row]
Bag = Counter[Row]


@dataclass(frozen=True)
class Relation:
    """A relation in both states, as the table's formulas use it."""

    old: Rows
    new: Rows

    @property
    def plus(self) -> Rows:
        return self.new - self.old

    @property
    def minus(self) -> Rows:
        return self.old - self.new


Formula = Callable[[Relation, Relation], Rows]


@dataclass(frozen=True)
class Operator:
    """A row of the table. The formulas are its columns: Δ+P through Q and R, Δ−P through both."""

    name: str
    clauses: tuple[str, ...]
    of_sets: Callable[[Rows, Rows], Rows]
    of_bags: Callable[[Bag, Bag], Bag]
    plus: tuple[Formula, ...]
    minus: tuple[Formula, ...]
    differentials: dict[str, list[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def cross(q: Rows, r: Rows) -> Rows:
    return {x + y for x, y in product(q, r)}


def joined(q: Rows, r: Rows) -> Rows:
    """On the last column of Q and the first of R."""
    return {x + y[1:] for x, y in product(q, r) if x[-1] == y[0]}


def counted(rows: list[tuple[Row, int]]) -> Bag:
    total: Bag = Counter()
    for row, times in rows:
        total[row] += times
    return total


SELECTION = Operator(
    "σ",
    ("p(X, Y) ← q(X, Y) ∧ X > 1",),
    of_sets=lambda q, r: {x for x in q if x[0] > 1},
    of_bags=lambda q, r: counted([(x, n) for x, n in q.items() if x[0] > 1]),
    plus=(lambda q, r: {x for x in q.plus if x[0] > 1},),
    minus=(lambda q, r: {x for x in q.minus if x[0] > 1},),
    differentials={
        "Δ+p/Δ+q": ["Δ+q(X, Y) ∧ X > 1"],
        "Δ−p/Δ−q": ["Δ−q(X, Y) ∧ X > 1"],
    },
)

PROJECTION = Operator(
    "π",
    ("p(Y) ← q(X, Y)",),
    of_sets=lambda q, r: {x[1:] for x in q},
    of_bags=lambda q, r: counted([(x[1:], n) for x, n in q.items()]),
    plus=(lambda q, r: {x[1:] for x in q.plus},),
    minus=(lambda q, r: {x[1:] for x in q.minus},),
    differentials={"Δ+p/Δ+q": ["Δ+q(X, Y)"], "Δ−p/Δ−q": ["Δ−q(X, Y)"]},
)

UNION = Operator(
    "∪",
    ("p(X, Y) ← q(X, Y)", "p(X, Y) ← r(X, Y)"),
    of_sets=lambda q, r: q | r,
    of_bags=lambda q, r: q + r,
    plus=(lambda q, r: q.plus - r.old, lambda q, r: r.plus - q.old),
    minus=(lambda q, r: q.minus - r.new, lambda q, r: r.minus - q.new),
    # The subtractions of the other side are part of the check against the other state of P.
    differentials={
        "Δ+p/Δ+q": ["Δ+q(X, Y)"],
        "Δ+p/Δ+r": ["Δ+r(X, Y)"],
        "Δ−p/Δ−q": ["Δ−q(X, Y)"],
        "Δ−p/Δ−r": ["Δ−r(X, Y)"],
    },
)

DIFFERENCE = Operator(
    "−",
    ("p(X, Y) ← q(X, Y) ∧ ¬r(X, Y)",),
    of_sets=lambda q, r: q - r,
    of_bags=lambda q, r: counted([(x, n) for x, n in q.items() if not r[x]]),
    plus=(lambda q, r: q.plus - r.new, lambda q, r: q.new & r.minus),
    minus=(lambda q, r: q.minus - r.old, lambda q, r: q.old & r.plus),
    differentials={
        "Δ+p/Δ+q": ["Δ+q(X, Y) ∧ ¬r(X, Y)"],
        "Δ+p/Δ−r": ["Δ−r(X, Y) ∧ ¬r(X, Y) ∧ q(X, Y)"],
        "Δ−p/Δ−q": ["Δ−q(X, Y) ∧ ¬r@old(X, Y)"],
        "Δ−p/Δ+r": ["Δ+r(X, Y) ∧ ¬r@old(X, Y) ∧ q@old(X, Y)"],
    },
)

PRODUCT = Operator(
    "×",
    ("p(X, Y, U, V) ← q(X, Y) ∧ r(U, V)",),
    of_sets=cross,
    of_bags=lambda q, r: counted([(x + y, q[x] * r[y]) for x, y in product(q, r)]),
    plus=(lambda q, r: cross(q.plus, r.new), lambda q, r: cross(q.new, r.plus)),
    minus=(lambda q, r: cross(q.minus, r.old), lambda q, r: cross(q.old, r.minus)),
    differentials={
        "Δ+p/Δ+q": ["Δ+q(X, Y) ∧ r(U, V)"],
        "Δ+p/Δ+r": ["Δ+r(U, V) ∧ q(X, Y)"],
        "Δ−p/Δ−q": ["Δ−q(X, Y) ∧ r@old(U, V)"],
        "Δ−p/Δ−r": ["Δ−r(U, V) ∧ q@old(X, Y)"],
    },
)

JOIN = Operator(
    "⋈",
    ("p(X, Y, Z) ← q(X, Y) ∧ r(Y, Z)",),
    of_sets=joined,
    of_bags=lambda q, r: counted(
        [(x + y[1:], q[x] * r[y]) for x, y in product(q, r) if x[-1] == y[0]]
    ),
    plus=(lambda q, r: joined(q.plus, r.new), lambda q, r: joined(q.new, r.plus)),
    minus=(lambda q, r: joined(q.minus, r.old), lambda q, r: joined(q.old, r.minus)),
    differentials={
        "Δ+p/Δ+q": ["Δ+q(X, Y) ∧ r(Y, Z)"],
        "Δ+p/Δ+r": ["Δ+r(Y, Z) ∧ q(X, Y)"],
        "Δ−p/Δ−q": ["Δ−q(X, Y) ∧ r@old(Y, Z)"],
        "Δ−p/Δ−r": ["Δ−r(Y, Z) ∧ q@old(X, Y)"],
    },
)

INTERSECTION = Operator(
    "∩",
    ("p(X, Y) ← q(X, Y) ∧ r(X, Y)",),
    of_sets=lambda q, r: q & r,
    of_bags=lambda q, r: counted([(x, q[x] * r[x]) for x in q]),
    plus=(lambda q, r: q.plus & r.new, lambda q, r: q.new & r.plus),
    minus=(lambda q, r: q.minus & r.old, lambda q, r: q.old & r.minus),
    differentials={
        "Δ+p/Δ+q": ["Δ+q(X, Y) ∧ r(X, Y)"],
        "Δ+p/Δ+r": ["Δ+r(X, Y) ∧ q(X, Y)"],
        "Δ−p/Δ−q": ["Δ−q(X, Y) ∧ r@old(X, Y)"],
        "Δ−p/Δ−r": ["Δ−r(X, Y) ∧ q@old(X, Y)"],
    },
)

TABLE = (SELECTION, PROJECTION, UNION, DIFFERENCE, PRODUCT, JOIN, INTERSECTION)

# Some rows are in both, some join, and some of Q's project on the same value.
SET_FACTS = "q(1, 1) q(2, 1) q(2, 2) q(3, 3)  r(1, 1) r(2, 2) r(2, 3) r(3, 1)"
SET_CHANGES = {
    "insertions in Q": "+q(3, 1) +q(2, 3) +q(4, 4)",
    "deletions from Q": "-q(1, 1) -q(3, 3)",
    "insertions in R": "+r(2, 1) +r(3, 3) +r(1, 4)",
    "deletions from R": "-r(1, 1) -r(2, 3)",
    "insertions in both": "+q(3, 1) +q(4, 4) +r(1, 4) +r(4, 4) +r(2, 1)",
    "deletions from both": "-q(1, 1) -q(2, 2) -r(1, 1) -r(3, 1)",
    "insertions in Q, deletions from R": "+q(2, 3) +q(3, 1) -r(2, 3) -r(2, 2)",
    "deletions from Q, insertions in R": "-q(2, 2) -q(1, 1) +r(3, 3) +r(2, 1)",
    "insertions and deletions in both": "+q(2, 3) -q(1, 1) -q(2, 1) +r(2, 1) -r(2, 3) -r(1, 1)",
    "a row that moves from Q to R": "-q(2, 1) +r(2, 1)",
    "nothing in the end": "+q(9, 9) -q(9, 9) -r(1, 1) +r(1, 1)",
}

# The same, with two and three copies of some rows, and changes of one copy and of all.
BAG_FACTS = (
    "q(1, 1) q(1, 1) q(2, 1) q(2, 2) q(2, 2) q(2, 2)  r(1, 1) r(1, 1) r(2, 2) r(2, 3) r(2, 3)"
)
BAG_CHANGES = {
    "insertions in Q": "+q(1, 1) +q(2, 3) +q(2, 3)",
    "deletions from Q": "-q(1, 1) -q(2, 1) -q(2, 2) -q(2, 2)",
    "insertions in R": "+r(1, 1) +r(2, 1) +r(2, 1)",
    "deletions from R": "-r(1, 1) -r(2, 2)",
    "the last copy from R": "-r(2, 3) -r(2, 3)",
    "insertions in both": "+q(1, 1) +q(3, 3) +r(1, 1) +r(3, 3) +r(3, 3)",
    "deletions from both": "-q(1, 1) -q(2, 2) -r(1, 1) -r(1, 1) -r(2, 2)",
    "insertions in Q, deletions from R": "+q(1, 1) +q(2, 3) -r(1, 1) -r(2, 3)",
    "deletions from Q, insertions in R": "-q(2, 2) -q(2, 2) -q(2, 2) +r(2, 2) +r(2, 1)",
    "insertions and deletions in both": "+q(2, 3) -q(1, 1) -q(2, 2) +r(2, 1) -r(2, 3) -r(1, 1)",
    "nothing in the end": "+q(1, 1) -q(1, 1) -r(1, 1) +r(1, 1)",
}


@pytest.mark.parametrize("operator", TABLE, ids=str)
def test_the_differentials_are_those_of_the_table(operator: Operator) -> None:
    facts = Facts(relations="q/2 r/2")
    facts.define(*operator.clauses)
    assert grouped(facts.differentials("p")) == operator.differentials


@pytest.mark.parametrize("change", SET_CHANGES)
@pytest.mark.parametrize("operator", TABLE, ids=str)
def test_a_change_of_sets_is_what_the_table_gives(operator: Operator, change: str) -> None:
    facts = Facts(SET_FACTS)
    facts.define(*operator.clauses)
    q_old, r_old = set(facts.rows("q")), set(facts.rows("r"))
    facts.change(SET_CHANGES[change])
    q, r = Relation(q_old, set(facts.rows("q"))), Relation(r_old, set(facts.rows("r")))
    p = Relation(operator.of_sets(q.old, r.old), operator.of_sets(q.new, r.new))
    found = facts.check()["p"]

    plus: Rows = set().union(*(formula(q, r) for formula in operator.plus))
    minus: Rows = set().union(*(formula(q, r) for formula in operator.minus))
    assert {row for row, weight in found.items() if weight > 0} == plus - p.old
    assert {row for row, weight in found.items() if weight < 0} == minus - p.new
    assert (plus - p.old, minus - p.new) == (p.plus, p.minus)


@pytest.mark.parametrize("change", BAG_CHANGES)
@pytest.mark.parametrize("operator", TABLE, ids=str)
def test_a_change_of_bags_is_the_difference_of_the_counts(operator: Operator, change: str) -> None:
    facts = Facts(BAG_FACTS, bag=True)
    facts.define(*operator.clauses)
    before = operator.of_bags(facts.rows("q"), facts.rows("r"))
    facts.change(BAG_CHANGES[change])
    after = operator.of_bags(facts.rows("q"), facts.rows("r"))
    assert facts.check()["p"] == difference(after, before)


@pytest.mark.parametrize("change", BAG_CHANGES)
@pytest.mark.parametrize("operator", [PRODUCT, JOIN, INTERSECTION], ids=str)
def test_what_two_changes_have_in_common_is_counted_once(operator: Operator, change: str) -> None:
    """Δ(Q ⋈ R) = ΔQ ⋈ R + Q ⋈ ΔR − ΔQ ⋈ ΔR, with the new Q and R."""
    facts = Facts(BAG_FACTS, bag=True)
    facts.define(*operator.clauses)
    facts.change(BAG_CHANGES[change])
    delta_q, delta_r = Counter(facts.delta("q")), Counter(facts.delta("r"))
    q, r = facts.rows("q"), facts.rows("r")
    total: Bag = Counter()
    total.update(operator.of_bags(delta_q, r))
    total.update(operator.of_bags(q, delta_r))
    total.subtract(operator.of_bags(delta_q, delta_r))
    assert facts.check()["p"] == difference(total, {})


@pytest.mark.parametrize("bag", [False, True], ids=("sets", "bags"))
def test_a_self_join_has_a_differential_for_each_occurrence(bag: bool) -> None:
    facts = Facts("q(1, 2) q(2, 3)", bag=bag)
    facts.define("p(X, Z) ← q(X, Y) ∧ q(Y, Z)")
    if not bag:
        assert grouped(facts.differentials("p")) == {
            "Δ+p/Δ+q": ["Δ+q(X, Y) ∧ q(Y, Z)", "Δ+q(Y, Z) ∧ q(X, Y)"],
            "Δ−p/Δ−q": ["Δ−q(X, Y) ∧ q@old(Y, Z)", "Δ−q(Y, Z) ∧ q@old(X, Y)"],
        }
    facts.change("+q(3, 4) +q(3, 3)")
    assert facts.check()["p"] == {(2, 4): 1, (2, 3): 1, (3, 3): 1, (3, 4): 1}
    facts.change("-q(2, 3) -q(3, 4)")
    assert facts.check()["p"] == {(1, 3): -1, (2, 3): -1, (2, 4): -1, (3, 4): -1}


@pytest.mark.parametrize("bag", [False, True], ids=("sets", "bags"))
def test_operators_over_derived_relations(bag: bool) -> None:
    """P = (Q ∪ R) ⋈ (Q − R), where neither side is stored."""
    facts = Facts("q(1, 1) q(1, 2)  r(2, 2)", bag=bag)
    facts.define("union(X, Y) ← q(X, Y)", "union(X, Y) ← r(X, Y)")
    facts.define("rest(X, Y) ← q(X, Y) ∧ ¬r(X, Y)")
    facts.define("p(X, Z) ← union(X, Y) ∧ rest(Y, Z)")
    for change in ("+q(2, 2)", "-r(2, 2)", "+r(1, 1) -q(1, 2)", "-q(1, 1) -r(1, 1) +q(2, 1)"):
        facts.change(change)
        facts.check()


@pytest.mark.parametrize("bag", [False, True], ids=("sets", "bags"))
def test_two_reasons_against_that_appear_and_disappear_at_once(bag: bool) -> None:
    """Neither reason alone leads to the group: the other one must be looked at as it was."""
    facts = Facts("q(1) q(2)  r(1) r(2)  s(2)  t(2)", bag=bag)
    facts.define("first(X) ← s(X) ∧ X > 0")
    facts.define("second(X) ← t(X) ∧ X > 0")
    facts.define("neither(X) ← r(X) ∧ ¬first(X) ∧ ¬second(X)")
    facts.define("p(X) ← q(X) ∧ ¬neither(X)")
    facts.change("+s(1) +t(1)  -s(2) -t(2)")
    assert facts.check()["p"] == {(1,): 1, (2,): -1}
    facts.change("-s(1) -t(1)  +s(2) +t(2)")
    assert facts.check()["p"] == {(1,): -1, (2,): 1}


@pytest.mark.parametrize("bag", [False, True], ids=("sets", "bags"))
def test_two_reasons_against_that_disappear_at_once_below_an_aggregate(bag: bool) -> None:
    """Which group is affected is seen only with both of them in the same state."""
    facts = Facts("q(1)  r(1)  s(1, 1) s(2, 1)", bag=bag)
    facts.define("d(X, Y) ← s(X, Y) ∧ ¬q(Y) ∧ ¬r(Y)")
    facts.define("e(N) ← N = sum(V : d(V, 1))")
    assert facts.check()["e"] == {}
    facts.change("-q(1) -r(1)")
    assert facts.check()["e"] == {(0,): -1, (3,): 1}
    facts.change("+q(1) +r(1)")
    assert facts.check()["e"] == {(0,): 1, (3,): -1}


@pytest.mark.parametrize("bag", [False, True], ids=("sets", "bags"))
def test_a_derived_influent_with_a_delta_set(bag: bool) -> None:
    """Differentials take the change of a derived relation as they take that of a stored one."""
    facts = Facts("q(1, 1) q(1, 2)  r(2, 2)", bag=bag)
    inner = facts.define("union(X, Y) ← q(X, Y)", "union(X, Y) ← r(X, Y)")
    outer = facts.define("p(X, Z) ← union(X, Y) ∧ union(Y, Z) ∧ ¬q(X, Z)")
    for change in ("+q(2, 2) +r(2, 1)", "-r(2, 2) -q(1, 2)", "+r(1, 1) +q(1, 2) -q(2, 2)"):
        facts.change(change)
        assert_same_with_a_delta_set(facts, inner, outer)


def test_a_recursive_influent_with_a_delta_set() -> None:
    facts = Facts("q(1, 2)")
    inner = facts.define("closure(X, Y) ← q(X, Y)", "closure(X, Z) ← closure(X, Y) ∧ q(Y, Z)")
    outer = facts.define("p(X) ← closure(X, X)")
    for change in ("+q(2, 1)", "-q(1, 2) +q(3, 3)"):
        facts.change(change)
        assert_same_with_a_delta_set(facts, inner, outer)


def assert_same_with_a_delta_set(facts: Facts, inner: Watch, outer: Watch) -> None:
    deltas = facts.watching.deltas()
    found = facts.watching.check()
    facts.watching.give(inner.program.goal, found[inner.name])
    assert outer.change({*deltas, inner.program.goal.id}) == found[outer.name]
    facts.watching.forget()
