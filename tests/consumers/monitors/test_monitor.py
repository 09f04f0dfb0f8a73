"""Monitors: a client is told exactly what each committed transaction did to a view."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import harken
from harken import Change, Database, HarkenError, Object, Subscription

SCHEMA = """
create type item properties (name charstring, quantity integer, stock integer);
create type fresh subtype of item properties (days integer);
create function need(item i) -> integer as select stock(i) * 2;
create function need(fresh i) -> integer as select days(i);
create function low(item i) -> charstring as select name(i) where quantity(i) < need(i);
create function lowest(item i) -> charstring as select name(i) where 2 * quantity(i) < need(i);
create function tags(item) -> bag of charstring;
create function labels(item i) -> bag of charstring as select tags(i) where quantity(i) > 0;
create function next(item) -> item;
create function closure(item i) -> item as select tclose(next, i);
create function total() -> integer as select sum(select quantity(i) for each item i);
create function untagged() -> item as
    select i for each item i where notany(select t for each charstring t where tags(i) = t);
create function idle(item i) -> boolean as select true where not quantity(i) > 0;
create item(name, quantity, stock) instances :a("a", 100, 5), :b("b", 50, 5), :c("c", 7, 5);
create fresh(name, quantity, stock, days) instances :f("f", 90, 5, 9);
commit;
"""


@pytest.fixture
def db() -> Iterator[Database]:
    with harken.connect() as db:
        db.amosql(SCHEMA)
        yield db


def named(db: Database, *names: str) -> tuple[Object, ...]:
    return tuple(db.variables[name] for name in names)


def only(sub: Subscription) -> Change:
    (change,) = sub.changes()
    return change


def net(sub: Subscription) -> tuple[list[Any], list[Any]]:
    """What the one transaction since the last look did; without the objects."""
    change = only(sub)
    return [row[-1] for row in change.plus], [row[-1] for row in change.minus]


def fails(code: str, *said: str) -> Any:
    def fits(error: HarkenError) -> bool:
        return error.code == code and re.search(".*".join(said), error.message) is not None

    return pytest.raises(HarkenError, check=fits)


# --- changes -----------------------------------------------------------------------------------


def test_a_change_has_whole_rows_of_python_values(db: Database) -> None:
    (a, c) = named(db, "a", "c")
    sub = db.monitor("low")
    assert sub.rows() == [(c, "c")]
    db.amosql("set quantity(:a) = 3; set quantity(:c) = 70; commit;")
    assert sub.changes() == [Change("low", [(a, "a")], [(c, "c")], 1)]
    assert sub.changes() == []
    assert sub.rows() == [(a, "a")]


def test_each_transaction_has_a_change_of_its_own(db: Database) -> None:
    (a,) = named(db, "a")
    sub = db.monitor("quantity")
    db.amosql("set quantity(:a) = 1; commit; set quantity(:a) = 2; set quantity(:a) = 3; commit;")
    with db.transaction():
        db.function("stock")[a] = 6
    assert sub.changes() == [
        Change("quantity", [(a, 1)], [(a, 100)], 1),
        Change("quantity", [(a, 3)], [(a, 1)], 2),
    ]


def test_what_was_done_and_undone_is_no_change(db: Database) -> None:
    sub = db.monitor("low")
    db.amosql("set quantity(:a) = 1; set quantity(:a) = 100; commit;")
    db.amosql('remove name(:c) = "c"; set name(:c) = "c"; commit;')
    db.amosql("set quantity(:b) = 11; set stock(:b) = 2; commit;")
    assert sub.changes() == []


def test_values_of_every_type(db: Database) -> None:
    db.amosql(
        "create function day(item) -> date; create function at(item) -> timestamp;"
        "create function good(item) -> boolean; create function part(item) -> number;"
        "create function all_of(item i) -> <date, timestamp, boolean, number> as "
        "select day(i), at(i), good(i), part(i); commit;"
    )
    (a,) = named(db, "a")
    day = datetime.date(2024, 2, 29)
    at = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC)
    subs = [db.monitor("all_of"), db.monitor("all_of", durable="kept")]
    with db.transaction():
        db.function("day")[a] = day
        db.function("at")[a] = at
        db.function("good")[a] = True
        db.function("part")[a] = 0.1
    for sub in subs:
        assert sub.changes() == [Change("all_of", [(a, day, at, True, 0.1)], [], 1)]
        assert sub.rows() == [(a, day, at, True, 0.1)]


def test_rows_are_in_order(db: Database) -> None:
    sub = db.monitor("item.name")
    db.amosql("create item(name) instances :y('y'), :x('x'); commit;")
    assert only(sub).plus == [(db.variables["y"], "y"), (db.variables["x"], "x")]
    assert sub.rows() == sorted(sub.rows(), key=lambda row: row[0].oid)


@pytest.mark.parametrize("strategy", ["adaptive", "incremental", "naive"])
@pytest.mark.parametrize(
    ("view", "text", "gained", "lost"),
    [
        ("low", "set quantity(:a) = 1; set stock(:b) = 40;", ["a", "b"], []),
        ("low", "set quantity(:f) = 8; set quantity(:c) = 10;", ["f"], ["c"]),
        ("low", "set days(:f) = 200;", ["f"], []),
        ("low", "delete :c;", [], ["c"]),
        ("total", "set quantity(:a) = 101; set quantity(:b) = 0;", [198], [247]),
        ("total", "create item(quantity) instances :n(1);", [248], [247]),
        ("idle", "set quantity(:a) = 0; remove quantity(:b) = 50;", [True, True], []),
        ("tags", "add tags(:a) = 'x'; add tags(:a) = 'x'; add tags(:b) = 'x';", ["x"] * 3, []),
        ("labels", "add tags(:a) = 'x'; add tags(:a) = 'x'; add tags(:b) = 'y';", [*"xxy"], []),
    ],
)
def test_what_a_view_gains_and_loses(
    db: Database, strategy: str, view: str, text: str, gained: list[Any], lost: list[Any]
) -> None:
    db.monitoring(strategy)
    sub = db.monitor(view)
    before = Counter(sub.rows())
    db.amosql(text + "commit;")
    change = only(sub)
    assert ([row[-1] for row in change.plus], [row[-1] for row in change.minus]) == (gained, lost)
    assert before - Counter(change.minus) + Counter(change.plus) == Counter(sub.rows())


def test_a_bag_counts(db: Database) -> None:
    sub = db.monitor("labels")
    db.amosql("add tags(:a) = 'x'; add tags(:a) = 'x'; add tags(:a) = 'y'; commit;")
    assert net(sub) == (["x", "x", "y"], [])
    db.amosql("remove tags(:a) = 'x'; add tags(:a) = 'y'; commit;")
    assert net(sub) == (["y"], ["x"])
    db.amosql("set quantity(:a) = 0; commit;")
    assert net(sub) == ([], ["x", "y", "y"])
    db.amosql("remove tags(:a) = 'x'; add tags(:a) = 'x'; set quantity(:a) = 1; commit;")
    assert net(sub) == (["x", "y", "y"], [])


def test_negation_over_a_bag(db: Database) -> None:
    sub = db.monitor("untagged")
    db.amosql("add tags(:a) = 'x'; add tags(:a) = 'x'; commit;")
    assert only(sub).minus == [named(db, "a")]
    db.amosql("remove tags(:a) = 'x'; commit;")
    assert sub.changes() == []
    db.amosql("remove tags(:a) = 'x'; commit;")
    assert only(sub).plus == [named(db, "a")]


def test_recursion(db: Database) -> None:
    a, b, c = named(db, "a", "b", "c")
    sub = db.monitor("closure")
    db.amosql("set next(:a) = :b; set next(:b) = :c; commit;")
    assert only(sub).plus == [(a, b), (a, c), (b, c)]
    db.amosql("set next(:c) = :a; commit;")
    assert only(sub).plus == [(a, a), (b, a), (b, b), (c, a), (c, b), (c, c)]
    db.amosql("remove next(:b) = :c; commit;")
    assert only(sub).minus == [(a, a), (a, c), (b, a), (b, b), (b, c), (c, c)]
    assert sub.rows() == [(a, b), (c, a), (c, b)]


def test_late_binding(db: Database) -> None:
    sub = db.monitor("low")
    db.amosql("set quantity(:f) = 9; commit;")
    assert sub.changes() == []
    db.amosql("remove fresh from :f; commit;")
    assert net(sub) == (["f"], [])
    db.amosql("add fresh to :f; set days(:f) = 9; commit;")
    assert net(sub) == ([], ["f"])


def test_an_overload_is_named_by_its_type(db: Database) -> None:
    with fails("ambiguous", "need"):
        db.monitor("need")
    sub = db.monitor("fresh.need")
    db.amosql("set days(:f) = 4; set stock(:a) = 77; commit;")
    assert sub.view == "fresh.need"
    assert only(sub) == Change("fresh.need", [(db.variables["f"], 4)], [(db.variables["f"], 9)], 1)


def test_what_is_constant_never_changes(db: Database) -> None:
    db.amosql("create function five() -> integer as select 5; commit;")
    sub = db.monitor("five")
    db.amosql("set quantity(:a) = 1; commit;")
    assert (sub.rows(), sub.changes()) == ([(5,)], [])


def test_the_catalog_can_be_monitored(db: Database) -> None:
    sub = db.monitor("supertypes")
    db.amosql("create type box subtype of item; commit;")
    assert len(only(sub).plus) == 1
    rules = db.monitor("activated")
    db.amosql("create rule r() as for each item i when quantity(i) < 0 do print(i);")
    db.amosql("activate r(); commit;")
    assert len(only(rules).plus) == 1
    db.amosql("delete rule r; commit;")
    assert len(only(rules).minus) == 1


# --- transactions ------------------------------------------------------------------------------


def test_what_is_undone_is_no_change(db: Database) -> None:
    (a,) = named(db, "a")
    sub = db.monitor("quantity")
    db.amosql("set quantity(:a) = 1; rollback;")
    with suppress(RuntimeError), db.transaction():
        db.function("quantity")[a] = 2
        raise RuntimeError
    assert sub.changes() == []
    with fails("division-by-zero"):
        db.amosql("set quantity(:a) = 3; set quantity(:a) = div(1, 0);")
    db.amosql("set stock(:a) = 9;")
    with fails("division-by-zero"):
        db.amosql("set quantity(:b) = 3; set quantity(:a) = div(1, 0);")
    db.commit()
    assert sub.changes() == []
    db.amosql("set quantity(:a) = 5; commit;")
    assert only(sub) == Change("quantity", [(a, 5)], [(a, 100)], 1)


def test_nothing_is_reported_before_the_commit(db: Database) -> None:
    sub = db.monitor("quantity")
    db.amosql("set quantity(:a) = 1;")
    assert sub.changes() == []
    assert (db.variables["a"], 1) in sub.rows()
    db.commit()
    assert net(sub) == ([1], [100])


def test_a_check_phase_that_fails_gives_nothing(db: Database) -> None:
    sub = db.monitor("quantity")
    db.amosql(
        "create rule never() as for each item i when quantity(i) < 0 do rollback;"
        "create rule less() as for each item i when quantity(i) = 1 do set quantity(i) = 0 - 1;"
        "activate never(); activate less(); commit;"
    )
    with fails("rolled-back"):
        db.amosql("set quantity(:a) = 1; commit;")
    assert sub.changes() == []


def test_numbers_count_the_commits_that_changed_something_watched(db: Database) -> None:
    low, quantity = db.monitor("low"), db.monitor("quantity")
    db.amosql("set quantity(:a) = 99; commit; set stock(:a) = 4; commit;")
    db.amosql("set quantity(:a) = 1; rollback; set quantity(:a) = 1; commit;")
    assert [each.transaction for each in quantity.changes()] == [1, 2]
    assert [each.transaction for each in low.changes()] == [2]


def test_a_monitor_begins_outside_a_transaction(db: Database) -> None:
    db.amosql("set quantity(:a) = 1;")
    with fails("transaction", "open"):
        db.monitor("quantity")
    db.commit()
    with db.transaction(), fails("transaction"):
        db.monitor("quantity")
    sub = db.monitor("quantity")
    assert (db.variables["a"], 1) in sub.rows()
    assert sub.changes() == []


# --- rules -------------------------------------------------------------------------------------


def test_what_rules_do_is_in_the_same_change(db: Database) -> None:
    (a,) = named(db, "a")
    sub, low = db.monitor("quantity"), db.monitor("low")
    db.amosql(
        "create rule refill() as for each item i when quantity(i) < need(i) "
        "do set quantity(i) = quantity(i) + 5; activate refill(); commit;"
    )
    c = db.variables["c"]
    assert sub.changes() == [Change("quantity", [(c, 12)], [(c, 7)], 1)]
    assert only(low).minus == [(c, "c")]
    db.amosql("set quantity(:a) = 6; commit;")
    assert sub.changes() == [Change("quantity", [(a, 11)], [(a, 100)], 2)]
    assert low.changes() == []  # it was low only until the rule acted


def test_an_immediate_rule_acts_within_the_transaction(db: Database) -> None:
    (a,) = named(db, "a")
    db.amosql(
        "create rule floor() immediate as for each item i when quantity(i) < 0 "
        "do set quantity(i) = 0; activate floor(); commit;"
    )
    sub, low = db.monitor("quantity"), db.monitor("low")
    db.amosql("set quantity(:a) = 0 - 5;")
    with fails("division-by-zero"):
        db.amosql("set quantity(:b) = div(1, 0);")
    db.amosql("set quantity(:a) = 50; commit;")
    assert sub.changes() == [Change("quantity", [(a, 50)], [(a, 100)], 1)]
    assert low.changes() == []


def test_what_was_propagated_and_undone_is_no_change(db: Database) -> None:
    """An immediate rule makes each statement propagate; the text it is in may still fail."""
    db.amosql(
        "create rule floor() immediate as for each item i when quantity(i) < 0 "
        "do set quantity(i) = 0; activate floor(); commit;"
    )
    sub = db.monitor("quantity")
    db.amosql("set quantity(:b) = 1;")
    with fails("division-by-zero"):
        db.amosql("set quantity(:a) = 0 - 1; set quantity(:c) = div(1, 0);")
    db.commit()
    assert net(sub) == ([1], [50])


def test_a_detached_rule_makes_a_transaction_of_its_own(db: Database) -> None:
    sub = db.monitor("quantity")
    db.amosql(
        "create rule later() detached as for each item i when quantity(i) = 1 "
        "do set quantity(i) = 2; activate later(); commit;"
    )
    db.amosql("set quantity(:a) = 1; commit;")
    a = db.variables["a"]
    assert sub.changes() == [
        Change("quantity", [(a, 1)], [(a, 100)], 1),
        Change("quantity", [(a, 2)], [(a, 1)], 2),
    ]


# --- the network -------------------------------------------------------------------------------


def traced(db: Database, text: str) -> list[str]:
    lines: list[str] = []
    db.trace(lines.append)
    db.amosql(text + "commit;")
    db.trace(None)
    return lines


def temporary(db: Database) -> set[str]:
    """The tables and triggers of the session."""
    rows = db.internals.connection.rows(
        "SELECT name FROM temp.sqlite_schema WHERE name NOT LIKE 'sqlite_%'"
    )
    return {name for (name,) in rows} - {"harken_changed", "harken_copies"}


def test_monitors_and_rules_share_nodes(db: Database) -> None:
    low, lowest = db.monitor("low"), db.monitor("lowest")
    db.amosql(
        'create rule r() as for each item i when low(i) = "a" do print(i); activate r(); commit;'
    )
    lines = traced(db, "set stock(:a) = 51;")
    assert sum(line.startswith("Δneed") for line in lines) == 1
    assert sum(line.startswith("Δlow(item)") for line in lines) == 1
    assert 'Δmonitored low from low(item) (incremental): <{<:a, "a">}, {}>' in lines
    assert net(low) == (["a"], [])
    assert lowest.changes() == []


def test_two_subscriptions_of_a_view_are_one_condition(db: Database) -> None:
    one, two = db.monitor("low"), db.monitor("low")
    lines = traced(db, "set quantity(:a) = 1;")
    assert sum(line.startswith("Δmonitored") for line in lines) == 1
    assert one.changes() == two.changes() != []
    one.close()
    db.amosql("set quantity(:a) = 100; commit;")
    assert net(two) == ([], ["a"])


def test_closing_takes_triggers_and_nodes_away(db: Database) -> None:
    assert temporary(db) == set()
    low, lowest = db.monitor("low"), db.monitor("lowest")
    assert any("quantity(item)" in name for name in temporary(db))
    low.close()
    assert any("quantity(item)" in name for name in temporary(db))
    lowest.close()
    assert temporary(db) == set()


def test_closing_in_a_transaction(db: Database) -> None:
    low, quantity = db.monitor("low"), db.monitor("quantity")
    db.amosql("set quantity(:a) = 1;")
    low.close()
    db.amosql("rollback; set quantity(:a) = 2; commit;")
    assert net(quantity) == ([2], [100])
    assert not any("stock" in name for name in temporary(db))


def test_transactions_that_touch_nothing_watched_cost_nothing(db: Database) -> None:
    db.monitor("low")
    assert traced(db, "add tags(:a) = 'x'; set next(:a) = :b;") == []


# --- the end -----------------------------------------------------------------------------------


def test_a_closed_monitor_says_so(db: Database) -> None:
    sub = db.monitor("low")
    sub.close()
    sub.close()
    for use in (sub.changes, sub.rows, sub.acknowledge, sub.delete):
        with fails("closed", "monitor of low\\(item\\)"):
            use()
    with db.monitor("low") as other:
        assert other.changes() == []
    with fails("closed"):
        other.changes()


def test_closing_the_database_closes_its_monitors() -> None:
    db = harken.connect()
    db.amosql(SCHEMA)
    sub = db.monitor("low")
    db.close()
    with fails("closed"):
        sub.changes()
    with fails("closed"):
        db.monitor("low")
    sub.close()


# --- what cannot be monitored ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("nothing", "unknown-function"),
        ("double", "unsafe"),
        ("order", "side-effect"),
        ("words", "unsafe"),
        ("quantiy", "unknown-function"),
    ],
)
def test_what_cannot_be_monitored(db: Database, name: str, code: str) -> None:
    def words(text: str) -> list[str]:
        return text.split()

    db.foreign("words", words)
    db.amosql(
        "create function double(integer n) -> integer as select 2 * n;"
        "create function order(item i) -> boolean as begin set quantity(i) = 0; end; commit;"
    )
    with fails(code):
        db.monitor(name)
    with fails("type-mismatch"):
        db.monitor(5)  # type: ignore[arg-type]
    with fails("type-mismatch"):
        db.monitor("low", durable=5)  # type: ignore[arg-type]
    assert temporary(db) == set()


def test_an_error_in_a_view_says_where(db: Database) -> None:
    db.amosql("create function ratio(item i) -> number as select 1 / stock(i); commit;")
    sub = db.monitor("ratio")
    with fails("division-by-zero", "monitored view ratio\\(item\\)"):
        db.amosql("set stock(:a) = 0; commit;")
    assert sub.changes() == []


def test_only_a_durable_monitor_is_acknowledged(db: Database) -> None:
    sub = db.monitor("low")
    for use in (sub.acknowledge, sub.delete):
        with fails("bad-value", "not durable"):
            use()


# --- the schema --------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["low", "name", "quantity", "fresh.days"])
def test_a_function_under_a_monitor_is_not_deleted(db: Database, function: str) -> None:
    db.monitor("low")
    with fails("in-use", "cannot be deleted", "monitor of low\\(item\\)"):
        db.amosql(f"delete function {function};")


def test_a_function_may_be_deleted_when_the_monitor_is_closed(db: Database) -> None:
    db.monitor("lowest").close()
    db.amosql("delete function lowest; commit;")


def test_a_function_defined_again(db: Database) -> None:
    sub = db.monitor("low")
    db.amosql(
        "create function low(item i) -> charstring as select name(i) where quantity(i) > 60;commit;"
    )
    assert net(sub) == (["a", "f"], ["c"])
    db.amosql("set quantity(:a) = 1; commit;")
    assert net(sub) == ([], ["a"])


def test_what_it_depends_on_defined_again_amid_changes(db: Database) -> None:
    sub = db.monitor("low")
    db.amosql("set quantity(:a) = 20; set quantity(:c) = 1000;")
    db.amosql("create function need(item i) -> integer as select 21;")
    db.amosql("set quantity(:b) = 3; set quantity(:b) = 2; commit;")
    assert net(sub) == (["a", "b"], ["c"])
    db.amosql("set quantity(:b) = 22; commit;")
    assert net(sub) == ([], ["b"])


def test_a_definition_that_is_undone(db: Database) -> None:
    sub = db.monitor("low")
    again = "create function need(item i) -> integer as select 1000;"
    db.amosql(again + "rollback;")
    db.amosql("set quantity(:a) = 1;")
    with fails("division-by-zero"):
        db.amosql(again + "set quantity(:b) = div(1, 0);")
    db.commit()
    assert net(sub) == (["a"], [])


def test_a_definition_that_changes_the_type(db: Database) -> None:
    (c,) = named(db, "c")
    plain, durable = db.monitor("low"), db.monitor("low", durable="reports")
    db.amosql("create function low(item i) -> integer as select 7 where quantity(i) < 8; commit;")
    for sub in (plain, durable):
        assert sub.changes() == [Change("low", [(c, 7)], [(c, "c")], 1)]


def test_a_new_overload_makes_a_call_late(db: Database) -> None:
    sub = db.monitor("low")
    db.amosql("create type rare subtype of item; create rare(name, quantity) instances :r('r', 1);")
    db.commit()
    assert sub.changes() == []
    db.amosql("create function need(rare i) -> integer as select 5; commit;")
    assert net(sub) == (["r"], [])
    db.amosql("delete function rare.need; commit;")
    assert net(sub) == ([], ["r"])


def test_a_definition_that_cannot_be_monitored_is_refused(db: Database) -> None:
    db.amosql(
        "create function twice(integer n) -> integer as "
        "select 2 * n for each item i where quantity(i) = n; commit;"
    )
    sub = db.monitor("twice")
    with fails("in-use", "monitor of twice\\(integer\\)"):
        db.amosql("create function twice(integer n) -> integer as select 2 * n;")
    db.amosql("set quantity(:a) = 101; commit;")
    assert net(sub) == ([202], [200])


# --- listeners ---------------------------------------------------------------------------------


def test_a_listener_is_called_right_after_the_commit(db: Database) -> None:
    told: list[Change] = []
    sub = db.monitor("quantity", listener=told.append)
    db.amosql("set quantity(:a) = 1;")
    assert told == []
    db.commit()
    assert [(change.plus[0][1], change.transaction) for change in told] == [(1, 1)]
    assert sub.changes() == []
    with db.transaction():
        db.function("quantity")[db.variables["a"]] = 2
    db.function("quantity")[db.variables["a"]] = 3
    assert [change.plus[0][1] for change in told] == [1, 2, 3]
    sub.close()
    db.function("quantity")[db.variables["a"]] = 4
    assert len(told) == 3


def test_a_listener_that_fails_loses_nothing(db: Database) -> None:
    told: list[int] = []

    def listen(change: Change) -> None:
        if broken:
            raise ValueError("no connection")
        told.append(change.transaction)

    broken = True
    sub = db.monitor("quantity", listener=listen)
    with fails("foreign", "is committed, but", "no connection"):
        db.amosql("set quantity(:a) = 1; commit;")
    assert not db.in_transaction
    assert db.function("quantity")[db.variables["a"]] == 1
    broken = False
    db.amosql("set quantity(:a) = 2; commit;")
    assert told == [1, 2]
    broken = True
    with fails("foreign"):
        db.function("quantity")[db.variables["a"]] = 3
    assert net(sub) == ([3], [2])


def test_a_listener_may_change_the_database(db: Database) -> None:
    def log(change: Change) -> None:
        with db.transaction():
            for item, _ in change.plus:
                db.function("tags").add(item, f"seen {change.transaction}")

    db.monitor("quantity", listener=log)
    tags = db.monitor("tags")
    with db.transaction():
        db.function("quantity")[db.variables["a"]] = 1
    assert tags.changes() == [Change("tags", [(db.variables["a"], "seen 1")], [], 2)]


def test_a_listener_may_end_its_own_monitor(db: Database) -> None:
    told: list[Change] = []

    def once(change: Change) -> None:
        told.append(change)
        sub.close()

    sub = db.monitor("quantity", listener=once)
    db.amosql("set quantity(:a) = 1; commit; set quantity(:a) = 2; commit;")
    assert len(told) == 1
