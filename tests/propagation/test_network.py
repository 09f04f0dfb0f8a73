"""The propagation network: its nodes and levels, what it keeps, screens and chooses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken import Database
from harken.maintenance import tuning

SCHEMA = """
create type item properties (name charstring, quantity integer, frequency integer, stock integer);
create type fresh subtype of item properties (days integer);
create function threshold(item i) -> integer as select frequency(i) * 3 + stock(i);
create function need(item i) -> integer as select frequency(i) + stock(i);
create function need(fresh i) -> integer as select days(i) + stock(i);
create function next(item) -> item;
create function log() -> bag of charstring;
create item(name, quantity, frequency, stock) instances
    :a("a", 100, 5, 5), :b("b", 50, 3, 3), :c("c", 70, 1, 1);
create fresh(name, quantity, frequency, stock, days) instances :f("f", 90, 2, 2, 9);
commit;
"""


@pytest.fixture
def db() -> Iterator[Database]:
    with harken.connect() as db:
        db.amosql(SCHEMA)
        yield db


def rule(db: Database, name: str, condition: str, shown: str = "name(i)") -> None:
    db.amosql(
        f"create rule {name}() as when for each item i where {condition} "
        f'do add log() = "{name} " + {shown}; activate {name}(); commit;'
    )


def said(db: Database, text: str) -> list[str]:
    """What the rules logged in a transaction."""
    before = db.amosql("log();").rows
    db.amosql(text + " commit;")
    after = [row[0] for row in db.amosql("log();").rows]
    for (row,) in before:
        after.remove(row)
    return sorted(after)


def nodes(db: Database, name: str) -> dict[str, tuple[int, str]]:
    """The nodes of a rule's network with their levels and kinds; those of stored relations not."""
    network = db.explain(name, verbose=True).as_json()["network"]
    assert isinstance(network, list)
    return {n["id"]: (n["level"], n["kind"]) for n in network if n["level"] > 0}


def traced(db: Database, text: str) -> list[str]:
    lines: list[str] = []
    db.trace(lines.append)
    db.amosql(text + " commit;")
    db.trace(None)
    return lines


# --- nodes -------------------------------------------------------------------------------------


def test_a_condition_alone_is_expanded(db: Database) -> None:
    rule(db, "low", "quantity(i) < threshold(i)")
    assert nodes(db, "low") == {"cnd_low": (1, "condition")}


def test_what_two_rules_mention_has_a_node(db: Database) -> None:
    rule(db, "low", "quantity(i) < threshold(i)")
    rule(db, "empty", "2 * quantity(i) < threshold(i)")
    assert nodes(db, "low") == {
        "cnd_low": (2, "condition"),
        "threshold(item)": (1, "shared"),
    }
    assert said(db, "set frequency(:b) = 20;") == ["low b"]
    (first, *rest) = traced(db, "set frequency(:a) = 60;")
    assert first.startswith("Δfrequency(item)")
    assert sum(line.startswith("Δthreshold(item) from frequency(item)") for line in rest) == 1
    db.amosql("deactivate empty(); commit;")
    assert nodes(db, "low") == {"cnd_low": (1, "condition")}
    assert said(db, "set frequency(:c) = 40;") == ["low c"]


def test_rules_with_the_same_condition_share_it(db: Database) -> None:
    rule(db, "one", "quantity(i) < threshold(i)")
    db.amosql(
        "create rule two() as when for each item x where quantity(x) < threshold(x) "
        'do add log() = "two " + name(x); activate two(); commit;'
    )
    found = nodes(db, "one")
    assert sorted(found.values()) == [(1, "shared"), (2, "condition")]
    assert found.keys() & nodes(db, "two").keys() == {
        name for name, (_, kind) in found.items() if kind == "shared"
    }
    assert said(db, "set quantity(:a) = 1;") == ["one a", "two a"]


def test_a_relation_behind_a_shared_one_has_no_node(db: Database) -> None:
    db.amosql("create function twice(item i) -> integer as select threshold(i) + stock(i);")
    rule(db, "low", "quantity(i) < twice(i)")
    rule(db, "lower", "2 * quantity(i) < twice(i)")
    assert nodes(db, "low").keys() == {"cnd_low", "twice(item)"}
    rule(db, "lowest", "3 * quantity(i) < threshold(i)")
    assert nodes(db, "low").keys() == {"cnd_low", "twice(item)", "threshold(item)"}
    assert nodes(db, "low")["cnd_low"][0] == 3
    assert said(db, "set stock(:a) = 250;") == ["low a", "lower a"]
    assert said(db, "set stock(:b) = 250;") == ["low b", "lower b", "lowest b"]


def test_a_late_bound_call_has_a_level_of_its_own(db: Database) -> None:
    """Thesis, section 8.2."""
    rule(db, "low", "quantity(i) < need(i)")
    assert nodes(db, "low") == {
        "cnd_low": (2, "condition"),
        "need*[need(fresh)|need(item)](item)": (1, "late-bound call"),
    }
    assert said(db, "set days(:f) = 200;") == ["low f"]
    assert said(db, "set frequency(:f) = 200;") == []
    assert said(db, "remove fresh from :f;") == []
    assert said(db, "set frequency(:f) = 10; commit; set frequency(:f) = 99;") == ["low f"]
    assert said(db, "set frequency(:a) = 99;") == ["low a"]


def test_a_recursive_relation_has_a_node_and_is_rederived_on_demand(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        db.internals.connection, "working_time", lambda: 0.0
    )  # nothing takes any time
    db.amosql(
        "create rule reach() as when for each item i, item j where tclose(next, i) = j "
        "do add log() = name(i) + name(j); activate reach(); commit;"
    )
    assert (1, "recursive") in nodes(db, "reach").values()
    assert said(db, "set next(:a) = :b; set next(:b) = :c;") == ["ab", "ac", "bc"]
    lines = traced(db, "set next(:c) = :f;")
    assert any("external" in line for line in lines)
    assert "nothing is stored for it" in str(db.explain("reach", verbose=True))
    assert said(db, "set next(:b) = :f;") == []
    assert said(db, "set next(:b) = :c;") == ["ac", "bc"]
    db.amosql("set next(:b) = :a; rollback;")
    known = {"ab", "ac", "af", "bc", "bf", "cf"}
    every = {x + y for x in "abcf" for y in "abcf"}
    assert said(db, "set next(:f) = :a;") == sorted(every - known)


def test_nodes_go_with_the_last_rule(db: Database) -> None:
    rule(db, "low", "quantity(i) < threshold(i) and quantity(i) < need(i)")
    rule(db, "empty", "2 * quantity(i) < threshold(i)")
    db.amosql("deactivate low(); deactivate empty(); commit;")
    left = db.internals.connection.rows(
        "SELECT name FROM temp.sqlite_schema "
        "WHERE name NOT LIKE 'harken%' AND name NOT LIKE 'sqlite%'"
    )
    assert left == []


# --- kept totals -------------------------------------------------------------------------------


@pytest.fixture
def large_groups(db: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setattr(tuning, "LEAST_GROUP_MEMBERS", 2.0)
    db.amosql(
        "create function total() -> integer as select sum(select quantity(i) for each item i);"
        "create function most() -> integer as select max(select quantity(i) for each item i);"
        "create function mean() -> number as select avg(select quantity(i) for each item i);"
        'create rule sum_rule() as when total() > 1000 do add log() = "sum";'
        'create rule max_rule() as when most() > 500 do add log() = "max";'
        'create rule avg_rule() as when mean() > 200 do add log() = "avg";'
        "activate sum_rule(); activate max_rule(); activate avg_rule(); commit;"
    )
    return db


def test_totals_are_kept_and_follow(large_groups: Database) -> None:
    db = large_groups
    assert said(db, "set quantity(:a) = 120;") == []  # from here on they are kept
    lines = traced(db, "set quantity(:a) = 130;")
    assert any("(followed): <{<340>}, {<330>}>" in line for line in lines)
    assert said(db, "set quantity(:a) = 900;") == ["avg", "max", "sum"]
    assert said(db, "set quantity(:a) = 100; set quantity(:b) = 600;") == []
    assert said(db, "delete :b;") == []
    assert said(db, "set quantity(:c) = 801;") == ["avg", "max"]
    assert "totals are kept, 1 of them" in str(db.explain("sum_rule", verbose=True))


def test_members_that_come_and_go_one_for_another_leave_a_total_as_it_is(db: Database) -> None:
    """One that goes is found by one differential and one that comes by another."""
    db.datalog("""
        .decl edge(x: symbol, y: symbol)
        .decl near(x: symbol, y: symbol)
        .decl pairs(n: number)
        edge("a", "b"). edge("a", "c").
        near(x, y) :- edge(x, y).
        near(x, z) :- edge(x, y), edge(y, z).
        pairs(n) :- n = count : { near(_, _) }.
    """)
    pairs = db.monitor("pairs")
    db.datalog('+edge("a", "d").')
    assert [(each.plus, each.minus) for each in pairs.changes()] == [([(3,)], [(2,)])]
    db.datalog('-edge("a", "b"). +edge("a", "e").')
    assert pairs.changes() == []
    db.datalog('-edge("a", "e").')
    assert [(each.plus, each.minus) for each in pairs.changes()] == [([(2,)], [(3,)])]


def test_an_aggregate_among_the_members_of_another_has_no_totals(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The totals of the sum are read in its place, and nothing reads those of the maximum."""
    monkeypatch.setattr(tuning, "LEAST_GROUP_MEMBERS", 0.0)
    most = "max(select quantity(j) for each item j where next(j) = g)"
    members = f"select quantity(i) for each item i where next(i) = g and quantity(i) < {most}"
    db.amosql(
        f"create function rest(item g) -> integer as select sum({members});"
        "set next(:a) = :f; set next(:b) = :f; set next(:c) = :f;"
    )
    rule(db, "much", "rest(i) > 200")
    assert said(db, "set quantity(:b) = 130;") == []
    assert said(db, "set quantity(:a) = 140;") == []
    assert said(db, "set quantity(:c) = 150;") == ["much f"]
    assert said(db, "set quantity(:a) = 60;") == []
    assert said(db, "set quantity(:a) = 140;") == ["much f"]


def test_kept_totals_survive_a_rollback(large_groups: Database) -> None:
    db = large_groups
    db.amosql("set quantity(:a) = 120; commit;")
    db.amosql("set quantity(:a) = 5000; rollback;")
    assert said(db, "set quantity(:b) = 51;") == []
    assert said(db, "set quantity(:b) = 900;") == ["avg", "max", "sum"]


def test_kept_totals_of_small_groups_are_not_kept(db: Database) -> None:
    db.amosql(
        "create function total() -> integer as select sum(select quantity(i) for each item i);"
        'create rule sum_rule() as when total() > 1000 do add log() = "sum";'
        "activate sum_rule(); commit; set quantity(:a) = 120; commit;"
    )
    assert "totals are not kept: a group has about 4 members" in str(
        db.explain("sum_rule", verbose=True)
    )


def test_a_sum_that_leaves_the_range_is_an_error_that_loses_nothing(
    large_groups: Database,
) -> None:
    db = large_groups
    largest = 2**63 - 1
    db.amosql(
        "set quantity(:a) = 120; commit; deactivate avg_rule(); deactivate max_rule(); commit;"
    )
    with pytest.raises(harken.HarkenError) as caught:
        db.amosql(f"set quantity(:a) = {largest}; commit;")
    assert caught.value.code == "overflow"
    assert db.amosql("quantity(:a);").rows == [(120,)]
    assert said(
        db, f"set quantity(:a) = {largest}; set quantity(:b) = -100; set quantity(:c) = -100;"
    ) == ["sum"]


def test_another_process_makes_what_is_kept_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "LEAST_GROUP_MEMBERS", 2.0)
    path = str(tmp_path / "shared.db")
    with harken.connect(path) as one, harken.connect(path) as other:
        one.amosql(SCHEMA)
        one.amosql(
            "create function total() -> integer as select sum(select quantity(i) for each item i);"
            'create rule sum_rule() as when total() > 1000 do add log() = "sum";'
            "activate sum_rule(); commit;"
            "set quantity(:a) = 120; commit; set quantity(:a) = 130; commit;"
        )
        ((b,),) = other.amosql('select i for each item i where name(i) = "b";').rows
        other.function("quantity")[b] = 800
        assert said(one, "set quantity(:a) = 131;") == []  # it was true before
        assert said(one, "set quantity(:a) = 1; commit; set quantity(:a) = 900;") == ["sum"]


# --- screeners ---------------------------------------------------------------------------------


def test_changes_that_cannot_matter_bring_about_no_check(db: Database) -> None:
    rule(db, "low", "quantity(i) < threshold(i)")
    lines = traced(db, "set quantity(:a) = 99;")
    assert lines == [
        "Δquantity(item) = <{<:a, 99>}, {<:a, 100>}>",
        "no change passes its screener",
    ]
    assert said(db, "set quantity(:a) = 5;") == ["low a"]


def test_rows_that_can_never_matter_leave_no_event(db: Database) -> None:
    rule(db, "none", "quantity(i) < 10")
    assert traced(db, "set quantity(:a) = 99;") == []
    assert said(db, "set quantity(:a) = 9;") == ["none a"]
    assert said(db, "set quantity(:a) = 8; set quantity(:b) = 3;") == ["none b"]
    assert said(db, "set quantity(:a) = 50; commit; set quantity(:a) = 7;") == ["none a"]


def test_a_change_that_failed_its_screener_is_part_of_the_old_state(db: Database) -> None:
    """Two changes of one transaction: neither tells the whole story alone."""
    rule(db, "low", "quantity(i) < threshold(i)")
    assert said(db, "set quantity(:a) = 10;") == ["low a"]
    assert said(db, "set quantity(:a) = 25; set stock(:a) = 100;") == []  # true before, true now
    assert said(db, "set stock(:a) = 5; set quantity(:a) = 30; commit; set stock(:a) = 60;") == [
        "low a"
    ]


def test_a_screener_does_not_fail_where_numbers_grow_too_large(db: Database) -> None:
    rule(db, "low", "quantity(i) < frequency(i) * stock(i)")
    with pytest.raises(harken.HarkenError) as caught:
        db.amosql(f"set frequency(:a) = {2**62}; commit;")
    assert caught.value.code == "overflow"
    assert "condition of rule low" in caught.value.message
    assert said(db, f"set frequency(:a) = {2**62}; set frequency(:a) = 100;") == ["low a"]


def test_many_updates_in_a_transaction_are_not_screened_one_by_one(db: Database) -> None:
    rule(db, "low", "quantity(i) < threshold(i)")
    more = db.load(
        "item",
        [(f"x{n}", 1000, 1, 1) for n in range(500)],
        properties=["name", "quantity", "frequency", "stock"],
    )
    quantity = db.function("quantity")

    def checks() -> object:
        network = db.explain("low", verbose=True).as_json()["network"]
        assert isinstance(network, list)
        (found,) = (n["checks"] for n in network if n["id"] == "quantity(item)")
        return found

    assert checks() is not None
    for value in range(2000, 2030):
        with db.transaction():
            for item in more:
                quantity[item] = value
            quantity[more[0]] = value % 2
    assert checks() is None


def test_a_rule_switched_off_and_on_within_a_transaction_is_evaluated_anew(db: Database) -> None:
    rule(db, "low", "quantity(i) < threshold(i)")
    assert said(db, "deactivate low(); set quantity(:a) = 1; activate low();") == ["low a"]
    assert said(db, "deactivate low(); set quantity(:a) = 2; activate low();") == ["low a"]
    both = ["low a", "low b"]
    assert sorted(said(db, "set quantity(:b) = 1; deactivate low(); activate low();")) == both


# --- choices -----------------------------------------------------------------------------------


def test_large_changes_are_evaluated_naively_and_small_ones_are_not(db: Database) -> None:
    rule(db, "low", "quantity(i) < threshold(i)")
    more = db.load(
        "item",
        [(f"x{n}", 100, 1, 1) for n in range(300)],
        properties=["name", "quantity", "frequency", "stock"],
    )
    lines: list[str] = []
    db.trace(lines.append)
    functions = [db.function(name) for name in ("quantity", "frequency", "stock")]
    with db.transaction():
        for function in functions:
            for item in more:
                function[item] = 2
    with db.transaction():
        functions[0][more[7]] = 0
    db.trace(None)
    told = [line for line in lines if line.startswith("Δcnd_low")]
    assert "(naive)" in told[0]
    assert "(incremental)" in told[-1]


def test_explain_has_the_numbers_of_each_choice(db: Database) -> None:
    rule(db, "low", "quantity(i) < threshold(i)")
    parts = json.loads(json.dumps(db.explain("low", verbose=True).as_json()))
    condition, *tables = parts["network"]
    assert condition["whole"] > 0
    assert {name for name, _ in condition["each_row"]} == set(condition["influents"])
    (quantity,) = (each for each in tables if each["id"] == "quantity(item)")
    assert quantity["rows"] == 4
    assert 0 < quantity["checks"]["passing"] < 1
    assert "EXISTS" in quantity["checks"]["sql"]


def test_an_action_skips_what_an_earlier_one_deleted(db: Database) -> None:
    db.amosql(
        "create rule cull() as when for each item i where quantity(i) > 1000 "
        'do begin add log() = "cull"; delete next(i); end; activate cull(); commit;'
        "set next(:a) = :b; set next(:b) = :a; commit;"
    )
    assert said(db, "set quantity(:a) = 2000; set quantity(:b) = 2000;") == ["cull"]
