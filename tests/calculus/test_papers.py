"""The examples of chapter 5 of the thesis, with its facts and its results.

Where the text has a misprint, what it means is clear from the facts, and the test says so.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import harken
from harken import Database
from harken.engines.sqlite.change_capture import CapturedDelta
from tests.harness.facts import Facts, grouped
from tests.harness.watching import Watching, signed

# --- 5.2 Update event detection ----------------------------------------------------------------


@pytest.fixture
def company() -> Iterator[tuple[Database, Watching]]:
    with harken.connect() as db:
        db.amosql(
            "create type employee; create function income(employee) -> integer;"
            "create function rich() -> employee as"
            "  select e for each employee e where income(e) > 10300;"
            "create employee instances :e1; set income(:e1) = 10100;"
        )
        yield db, Watching(db, ["rich"])


def test_two_updates_without_net_effect(company: tuple[Database, Watching]) -> None:
    db, watching = company
    e1 = db.variables["e1"].oid
    db.amosql("set income(:e1) = 10400;")
    assert watching.deltas()["income(employee)"] == {(e1, 10400): 1, (e1, 10100): -1}
    db.amosql("set income(:e1) = 10100;")
    assert watching.deltas() == {}
    assert watching.check() == {"rich": {}}


def test_the_delta_set_after_each_physical_event(company: tuple[Database, Watching]) -> None:
    db, watching = company
    e1 = db.variables["e1"].oid
    events = {
        "remove income(:e1) = 10100;": signed([], [(e1, 10100)]),
        "add income(:e1) = 10400;": signed([(e1, 10400)], [(e1, 10100)]),
        "remove income(:e1) = 10400;": signed([], [(e1, 10100)]),
        "add income(:e1) = 10100;": {},
    }
    for statement, delta in events.items():
        db.amosql(statement)
        assert watching.deltas().get("income(employee)", {}) == delta


def test_what_a_rollback_takes_back_is_no_event(company: tuple[Database, Watching]) -> None:
    db, watching = company
    db.commit()
    db.amosql("set income(:e1) = 10400;")
    db.rollback()
    assert watching.deltas() == {}


def test_a_released_delta_set_leaves_nothing_behind(company: tuple[Database, Watching]) -> None:
    db, watching = company
    for delta_set in watching.delta_sets.values():
        assert isinstance(delta_set, CapturedDelta)
        delta_set.unwatch()
    left = db.internals.connection.rows(
        "SELECT name FROM temp.sqlite_schema WHERE name <> 'harken_changed'"
    )
    assert [name for (name,) in left if not name.startswith("sqlite_")] == []


@pytest.mark.parametrize(
    ("physical", "logical"),
    [
        ("+q(1)", {(1,): 1}),
        ("-q(2)", {(2,): -1}),
        ("+q(1) -q(1)", {}),
        ("-q(2) +q(2)", {}),
        ("+q(1) +q(1)", {(1,): 1}),
        ("-q(2) -q(2)", {(2,): -1}),
        ("+q(2) -q(1)", {}),
    ],
)
def test_the_delta_union_of_figure_5_2(physical: str, logical: dict[object, int]) -> None:
    facts = Facts("q(2)")
    facts.define("p(X) ← q(X)")
    facts.change(physical)
    assert facts.delta("q") == logical


def test_the_delta_of_a_bag_counts() -> None:
    facts = Facts("q(2) q(2)", bag=True)
    facts.define("p(X) ← q(X)")
    facts.change("+q(1) +q(1) +q(1) -q(2)")
    assert facts.delta("q") == {(1,): 3, (2,): -1}
    facts.change("-q(1) -q(1) -q(1)")
    assert facts.delta("q") == {(2,): -1}, "if the count becomes 0 then the tuple is removed"


# --- 5.3 The relations p, q and r --------------------------------------------------------------


@pytest.fixture
def pqr() -> Facts:
    facts = Facts("q(1, 1)  r(1, 2)  r(2, 3)")
    facts.define("p(X, Z) ← q(X, Y) ∧ r(Y, Z)")
    return facts


def test_the_partial_differentials_of_p(pqr: Facts) -> None:
    assert grouped(pqr.differentials("p")) == {
        "Δ+p/Δ+q": ["Δ+q(X, Y) ∧ r(Y, Z)"],
        "Δ+p/Δ+r": ["Δ+r(Y, Z) ∧ q(X, Y)"],
        "Δ−p/Δ−q": ["Δ−q(X, Y) ∧ r@old(Y, Z)"],
        "Δ−p/Δ−r": ["Δ−r(Y, Z) ∧ q@old(X, Y)"],
    }


def test_positive_changes(pqr: Facts) -> None:
    """5.3.1. Its DB_new forgets r(1, 2), from which p(1, 2) is then derived, and it prints
    Δp = <{1, 3}, {}> as "no changes"; the final Δp is right."""
    assert pqr.watching.watches["p"].state() == {(1, 2): 1}
    pqr.change("+q(1, 2)  +r(1, 4)")
    assert pqr.delta("q") == {(1, 2): 1}
    assert pqr.delta("r") == {(1, 4): 1}
    assert pqr.watching.watches["p"].state().keys() == {(1, 2), (1, 3), (1, 4)}
    assert pqr.check() == {"p": signed([(1, 3), (1, 4)], [])}


def test_positive_changes_of_one_influent_at_a_time(pqr: Facts) -> None:
    pqr.change("+q(1, 2)")
    assert pqr.check() == {"p": signed([(1, 3)], [])}
    pqr.change("+r(1, 4)")
    assert pqr.check() == {"p": signed([(1, 4)], [])}


def test_negative_changes(pqr: Facts) -> None:
    """5.3.2. The old q matters: with the new one Δ−p would have p(1, 3), which never was."""
    pqr.change("+q(1, 2)  +r(1, 4)  -r(1, 2)  -r(2, 3)")
    assert pqr.delta("q") == {(1, 2): 1}
    assert pqr.delta("r") == signed([(1, 4)], [(1, 2), (2, 3)])
    assert pqr.watching.watches["p"].state() == {(1, 4): 1}
    assert pqr.check() == {"p": signed([(1, 4)], [(1, 2)])}


def test_combined_changes_of_a_bag() -> None:
    """5.3.3: p(1, 4) comes from two new facts and must not be counted twice."""
    facts = Facts("q(1, 1)  r(1, 2)", bag=True)
    facts.define("p(X, Z) ← q(X, Y) ∧ r(Y, Z)")
    facts.change("+q(1, 3)  +r(3, 4)")
    assert facts.check() == {"p": {(1, 4): 1}}
    facts.change("-q(1, 3)  -r(3, 4)")
    assert facts.check() == {"p": {(1, 4): -1}}


def test_a_conjunction_a_disjunction_and_a_negation() -> None:
    """The three definitions of 5.3.3, on one set of changes."""
    facts = Facts("q(1) q(2) q(3)  r(2) r(3) r(4)")
    facts.define("both(X) ← q(X) ∧ r(X)")
    facts.define("either(X) ← q(X)", "either(X) ← r(X)")
    facts.define("rest(X) ← q(X) ∧ ¬r(X)")
    facts.change("+q(4) +q(5) -q(3)  +r(1) +r(5) -r(2)")
    assert facts.check() == {
        "both": signed([(1,), (4,), (5,)], [(2,), (3,)]),
        "either": signed([(5,)], []),
        "rest": signed([(2,)], [(1,)]),
    }


# --- 5.3 The relations s and t -----------------------------------------------------------------


@pytest.fixture
def st() -> Facts:
    facts = Facts("t(11, 1)")
    facts.define("s(X) ← t(Y, X) ∧ Y > 10")
    return facts


def test_a_nervous_change_and_a_strict_one(st: Facts) -> None:
    """5.3.1: s(1) held already. The text prints Δt = <{(1, 2, 1)}, {}> for (12, 1)."""
    st.change("+t(12, 1)")
    assert st.delta("t") == {(12, 1): 1}
    s = st.watching.watches["s"]
    assert s.candidates(s.influents) == {(1,): 1}, "nervous: all that the differential gives"
    assert st.check() == {"s": {}}, "strict: only what did not hold before"


def test_positive_and_negative_tuples_extinguish_each_other(st: Facts) -> None:
    """5.3.2: another derivation takes the place of the one that is lost."""
    st.change("+t(12, 1)  -t(11, 1)")
    assert st.delta("t") == signed([(12, 1)], [(11, 1)])
    assert st.check() == {"s": {}}


def test_a_negative_change_is_checked_against_the_new_state(st: Facts) -> None:
    """5.3.2: "if we have t(11, 1) and t(12, 1) and retract one of them"."""
    st.change("+t(12, 1)")
    st.check()
    st.change("-t(11, 1)")
    assert st.check() == {"s": {}}
    st.change("-t(12, 1)")
    assert st.check() == {"s": signed([], [(1,)])}


def test_as_a_bag_every_derivation_counts() -> None:
    facts = Facts("t(11, 1)", bag=True)
    facts.define("s(X) ← t(Y, X) ∧ Y > 10")
    facts.change("+t(12, 1)")
    assert facts.check() == {"s": {(1,): 1}}
    facts.change("+t(12, 1)  -t(11, 1)")
    assert facts.check() == {"s": {}}
    facts.change("-t(12, 1)  -t(12, 1)")
    assert facts.check() == {"s": {(1,): -2}}


# --- 5.3.1 The rule no_high --------------------------------------------------------------------


def test_the_condition_of_no_high() -> None:
    """Two differentials for income: that of the manager, and that of the employee."""
    db = harken.connect()
    db.amosql(
        "create type department;"
        "create type employee properties (income number, dept department);"
        "create type manager subtype of employee;"
        "create function mgr(department) -> manager;"
        "create function netincome(employee e) -> number as select income(e) * 0.75;"
        "create function netincome(manager m) -> number as select (income(m) + 100) * 0.75;"
        "create function cnd_no_high(department d) -> employee as select e for each employee e"
        "  where dept(e) = d and employee.netincome(e) > manager.netincome(mgr(d));"
        "create department instances :toys;"
        "create manager(dept, income) instances :boss(:toys, 10400); set mgr(:toys) = :boss;"
        "create employee(dept, income) instances :e2(:toys, 10200), :e4(:toys, 10400);"
    )
    watching = Watching(db, ["cnd_no_high"])
    toys, boss, e2, e4 = (db.variables[name].oid for name in ("toys", "boss", "e2", "e4"))

    db.amosql("set income(:e2) = 10600; set income(:e4) = 10600;")
    assert watching.deltas() == {
        "income(employee)": signed([(e2, 10600.0), (e4, 10600.0)], [(e2, 10200.0), (e4, 10400.0)])
    }
    assert watching.check() == {"cnd_no_high": signed([(toys, e2), (toys, e4)], [])}
    watching.forget()

    # Figure 5.5: after the action, which sets both to 10500, the condition holds no longer.
    gone = watching.run("set income(:e2) = 10500; set income(:e4) = 10500;")
    assert gone == {"cnd_no_high": signed([], [(toys, e2), (toys, e4)])}
    again = watching.run("set income(:boss) = 10300;")
    assert again == {"cnd_no_high": signed([(toys, e2), (toys, e4)], [])}
    assert boss not in {row[1] for row in again["cnd_no_high"]}
