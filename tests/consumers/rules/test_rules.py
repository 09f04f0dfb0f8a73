"""Rules from Python: foreign actions, the fast path, loads, other processes, trace and explain."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from harken import Database, HarkenError, Object
from tests.harness.peer import Peer

Connect = Callable[..., Database]
Peers = Callable[[int], list[Peer]]
Orders = list[tuple[Object, int]]

INVENTORY = """
create type item properties (name charstring);
create type supplier;
create function quantity(item) -> integer;
create function max_stock(item) -> integer;
create function min_stock(item) -> integer;
create function consume_freq(item) -> integer;
create function supplies(supplier) -> item;
create function delivery_time(item, supplier) -> integer;
create function threshold(item i) -> integer as
    select consume_freq(i) * delivery_time(i, s) + min_stock(i)
    for each supplier s where supplies(s) = i;
create function order(item i, integer n) -> boolean as foreign;

create item instances :item1, :item2;
set max_stock(:item1) = 5000; set max_stock(:item2) = 7500;
set min_stock(:item1) = 100; set min_stock(:item2) = 200;
set consume_freq(:item1) = 20; set consume_freq(:item2) = 30;
set quantity(:item1) = 5000; set quantity(:item2) = 7500;
create supplier instances :sup1, :sup2;
set supplies(:sup1) = :item1; set supplies(:sup2) = :item2;
set delivery_time(:item1, :sup1) = 2; set delivery_time(:item2, :sup2) = 3;
create rule monitor_items() as
    for each item i
    when quantity(i) < threshold(i)
    do order(i, max_stock(i) - quantity(i));
activate monitor_items();
commit;
"""

SHOP = """
create type item properties (name charstring, quantity integer);
create function log() -> bag of charstring;
create item(name, quantity) instances :pen("pen", 50), :ink("ink", 50);
create rule low() as
    when for each item i where quantity(i) < 10
    do add log() = name(i);
activate low();
commit;
"""

TOYS = """
create type department properties (name charstring);
create type employee properties (name charstring, income number, dept department);
create type manager subtype of employee;
create function grossincome(employee e) -> number as select income(e);
create function grossincome(manager m) -> number as select income(m) + 100;
create function netincome(employee e) -> number as select employee.grossincome(e) * 0.75;
create function netincome(manager m) -> number as select grossincome(m) * 0.75;
create function mgr(department) -> manager;
create function mgr(employee e) -> manager as select mgr(dept(e));
create rule no_high(department d) as
    when for each employee e
    where dept(e) = d and employee.netincome(e) > netincome(mgr(e))
    do set employee.grossincome(e) = grossincome(mgr(e));
create department(name) instances :toys_department("Toys");
create manager(name, dept, income) instances :boss("boss", :toys_department, 10400);
set mgr(:toys_department) = :boss;
create employee(name, dept, income) instances
    :e2("employee2", :toys_department, 10200), :e4("employee4", :toys_department, 10400);
activate no_high(:toys_department);
commit;
"""


@pytest.fixture
def orders(db: Database) -> Orders:
    """The inventory of the chapter in `db`; what its rule orders."""
    made: Orders = []
    db.amosql(INVENTORY)
    db.foreign("order", lambda item, amount: made.append((item, amount)))
    return made


@pytest.fixture
def shop(db: Database) -> Database:
    db.amosql(SHOP)
    return db


def log(db: Database) -> list[str]:
    return sorted(text for (text,) in db.amosql("log();").rows)


def quantity_of(db: Database, name: str) -> int:
    ((found,),) = db.amosql(f'select quantity(i) for each item i where name(i) = "{name}";').rows
    assert isinstance(found, int)
    return found


def fails(code: str, work: Callable[[], Any]) -> HarkenError:
    with pytest.raises(HarkenError) as caught:
        work()
    assert caught.value.code == code, caught.value.report()
    return caught.value


# --- foreign procedures as actions -----------------------------------------------------------


def test_a_foreign_action_is_called_once_for_each_tuple(db: Database, orders: Orders) -> None:
    item1, item2 = db.variables["item1"], db.variables["item2"]
    db.amosql("set quantity(:item1) = 139; set quantity(:item2) = 289;")
    assert orders == []
    db.commit()
    assert sorted(orders, key=lambda order: order[1]) == [(item1, 4861), (item2, 7211)]
    assert all(type(item) is Object for item, _ in orders)


def test_an_action_may_change_the_database_from_python(shop: Database) -> None:
    quantity = shop.function("quantity")

    def refill(item: Object) -> None:
        quantity[item] = quantity[item] + 100
        shop.amosql("add log() = 'refilled';")

    shop.foreign("refill", refill)
    shop.amosql("create rule full() as for each item i when quantity(i) < 5 do refill(i);")
    shop.amosql("activate full() priority 1; commit; set quantity(:pen) = 3; commit;")
    assert (quantity_of(shop, "pen"), log(shop)) == (103, ["refilled"])


def test_an_action_that_fails_in_python_undoes_the_transaction(shop: Database) -> None:
    def refuse(item: Object) -> None:
        raise ValueError("the supplier does not answer")

    shop.foreign("refuse", refuse)
    shop.amosql("create rule call() as for each item i when quantity(i) = 1 do refuse(i);")
    shop.amosql("activate call(); commit;")
    error = fails("foreign", lambda: shop.amosql("set quantity(:pen) = 1; commit;"))
    assert "in the action of rule call" in error.message
    assert "the supplier does not answer" in error.message
    assert (quantity_of(shop, "pen"), log(shop), shop.in_transaction) == (50, [], False)


@pytest.mark.parametrize(
    "end",
    [
        lambda db: db.commit(),
        lambda db: db.rollback(),
        lambda db: db.amosql("commit;"),
        lambda db: db.amosql("rollback;"),
        lambda db: db.transaction().__enter__(),
        lambda db: db.close(),
    ],
    ids=["commit", "rollback", "commit;", "rollback;", "transaction", "close"],
)
def test_an_action_cannot_end_the_transaction_from_python(
    shop: Database, end: Callable[[Database], Any]
) -> None:
    shop.foreign("end_it", lambda item: end(shop))
    shop.amosql("create rule ends() as for each item i when quantity(i) = 1 do end_it(i);")
    shop.amosql("activate ends(); commit;")
    fails("transaction", lambda: shop.amosql("set quantity(:pen) = 1; commit;"))
    assert (quantity_of(shop, "pen"), shop.in_transaction) == (50, False)


def test_a_rule_waits_for_its_python_function(connect: Connect) -> None:
    """The function is the session's, the rule the database's: another session may lack it."""
    first = connect()
    first.foreign("order", lambda item: None)
    first.amosql(SHOP)
    first.amosql("create rule orders() as for each item i when quantity(i) < 5 do order(i);")
    first.amosql("activate orders(); commit;")
    pen = first.variables["pen"]
    first.close()

    second = connect()
    quantity = second.function("quantity")
    error = fails("unknown-function", lambda: quantity.__setitem__(pen, 1))
    assert "in the action of rule orders" in error.message
    assert quantity[pen] == 50
    ordered: list[Object] = []
    second.foreign("order", ordered.append)
    quantity[pen] = 1
    assert ordered == [pen]


# --- every way to change data ----------------------------------------------------------------


def test_the_fast_path_triggers_rules(db: Database, orders: Orders) -> None:
    item1, item2 = db.variables["item1"], db.variables["item2"]
    quantity = db.function("quantity")
    quantity[item1] = 139
    assert orders == [(item1, 4861)]
    with db.transaction():
        quantity[item1] = 5000
        quantity[item1] = 120
        quantity[item2] = 1
        assert len(orders) == 1
    assert orders[1:] == [(item2, 7499)]
    del quantity[item2]
    quantity[item2] = 2
    assert orders[2:] == [(item2, 7498)]
    delivery_time = db.function("delivery_time")
    quantity[item1] = 150
    delivery_time[item1, db.variables["sup1"]] = 3
    assert orders[3:] == [(item1, 4850)]


def test_add_and_remove_of_a_handle_trigger_rules(shop: Database) -> None:
    shop.amosql("create function tags(item) -> bag of charstring;")
    shop.amosql("create rule tagged() as for each item i when tags(i) = 'x' do add log() = 'x';")
    shop.amosql("activate tagged(); commit;")
    pen, tags = shop.variables["pen"], shop.function("tags")
    tags.add(pen, "x")
    tags.add(pen, "x")
    assert log(shop) == ["x"]
    with shop.transaction():
        tags.remove(pen, "x")
        tags.remove(pen, "x")
    tags.add(pen, "x")
    assert log(shop) == ["x", "x"]


def test_a_load_triggers_rules(shop: Database) -> None:
    shop.load("item", [("cap", 5), ("hat", 50), ("bag", 6)], ["name", "quantity"])
    assert log(shop) == ["bag", "cap"]
    with shop.transaction():
        shop.load("item", [("mug", 5)], ["name", "quantity"])
        assert log(shop) == ["bag", "cap"]
    assert log(shop) == ["bag", "cap", "mug"]


def test_a_large_load_triggers_rules_whatever_the_strategy(shop: Database) -> None:
    rows = ((f"item {n}", n % 1000) for n in range(3000))
    shop.load("item", rows, ["name", "quantity"])
    assert len(log(shop)) == 30


def test_an_immediate_rule_sees_each_step_of_the_fast_path(shop: Database) -> None:
    seen: list[int] = []
    shop.foreign("see", lambda item, n: seen.append(n))
    shop.amosql("""
        create rule look() immediate as
            when for each item i where quantity(i) > 100 do see(i, quantity(i));
        activate look(); commit;
    """)
    quantity, pen = shop.function("quantity"), shop.variables["pen"]
    with shop.transaction():
        quantity[pen] = 101
        assert seen == [101]
        quantity[pen] = 102
        quantity[pen] = 10
        quantity[pen] = 103
        assert seen == [101, 103]
        shop.load("item", [("big", 1000)], ["name", "quantity"])
        assert seen == [101, 103, 1000]


def test_a_rule_that_rolls_back_says_which_and_for_what(shop: Database) -> None:
    shop.amosql("""
        create rule limit() as when for each item i where quantity(i) > 100 do rollback;
        activate limit(); commit;
    """)
    quantity, pen, ink = shop.function("quantity"), shop.variables["pen"], shop.variables["ink"]

    def block() -> None:
        with shop.transaction():
            quantity[ink] = 1
            quantity[pen] = 101

    for work in (
        lambda: quantity.__setitem__(pen, 101),
        block,
        lambda: shop.amosql("set quantity(:pen) = 101; commit;"),
    ):
        error = fails("rolled-back", work)
        assert error.message == "rule limit rolled the transaction back for <:pen>"
        assert not shop.in_transaction
        assert (quantity[pen], quantity[ink], log(shop)) == (50, 50, [])
    fails("rolled-back", lambda: shop.load("item", [("much", 999)], ["name", "quantity"]))
    assert len(shop.amosql("select i for each item i;").rows) == 2


def test_closing_commits_and_so_checks(connect: Connect) -> None:
    first = connect()
    first.amosql(SHOP)
    first.amosql("set quantity(:pen) = 1;")
    first.close()
    assert log(connect()) == ["pen"]


def test_an_exception_in_a_block_undoes_what_would_have_triggered(shop: Database) -> None:
    quantity, pen = shop.function("quantity"), shop.variables["pen"]

    def block() -> None:
        with shop.transaction():
            quantity[pen] = 1
            raise RuntimeError

    with pytest.raises(RuntimeError):
        block()
    shop.commit()
    quantity[shop.variables["ink"]] = 40
    assert log(shop) == []


# --- detached rules --------------------------------------------------------------------------

DETACHED = """
create rule broken() detached as
    when for each item i where quantity(i) = 13
    do begin add log() = "broken"; set quantity(i) = div(quantity(i), 0); end;
create rule withdrawn() detached as
    when for each item i where quantity(i) = 13
    do begin add log() = "withdrawn"; rollback; end;
create rule sound() detached as
    when for each item i where quantity(i) = 13
    do add log() = "sound";
activate broken() priority 5; activate withdrawn() priority 4; activate sound();
commit;
"""


def test_a_detached_rule_that_fails_leaves_the_commit_and_the_other_rules_alone(
    shop: Database,
) -> None:
    shop.amosql(DETACHED)
    error = fails("division-by-zero", lambda: shop.amosql("set quantity(:pen) = 13; commit;"))
    assert error.message.startswith("the transaction is committed, but")
    assert "in the action of rule broken" in error.message
    assert (quantity_of(shop, "pen"), log(shop)) == (13, ["sound"])
    assert not shop.in_transaction
    shop.amosql("deactivate broken(); set quantity(:ink) = 13;")
    error = fails("rolled-back", lambda: shop.amosql("commit;"))
    assert "committed" in error.message
    assert "withdrawn" in error.message
    assert (quantity_of(shop, "ink"), log(shop)) == (13, ["sound", "sound"])


def test_other_sessions_see_the_commit_before_the_detached_rule_acts(connect: Connect) -> None:
    one, other = connect(), connect(timeout=0)
    seen: list[int] = []
    one.amosql(SHOP)
    one.foreign("look", lambda item: seen.append(quantity_of(other, "pen")))
    one.amosql("""
        create rule afterwards() detached as for each item i when quantity(i) = 1 do look(i);
        create rule before() as for each item i when quantity(i) = 1 do look(i);
        activate afterwards(); activate before(); commit;
        set quantity(:pen) = 1; commit;
    """)
    assert seen == [50, 1]


# --- sessions and processes ------------------------------------------------------------------


def test_a_rule_activated_in_one_process_watches_the_other(
    connect: Connect, path: str, peers: Peers
) -> None:
    db = connect()
    db.amosql(SHOP.replace("activate low();", ""))
    (other,) = peers(1)
    other("open", path)
    change = 'for each item i where name(i) = "{}" do set quantity(i) = {}; commit;'
    other.amosql(change.format("pen", 1))
    assert log(db) == []
    db.amosql("activate low(); commit;")
    assert log(db) == ["pen"]
    other.amosql(change.format("ink", 2))
    assert log(db) == ["ink", "pen"]
    db.amosql("deactivate low(); commit;")
    other.amosql(change.format("ink", 50))
    other.amosql(change.format("ink", 3))
    assert log(db) == ["ink", "pen"]
    other.amosql("delete rule low; commit;")
    db.amosql("set quantity(:pen) = 4; commit;")
    assert log(db) == ["ink", "pen"]


def test_a_handle_that_was_there_before_the_rule_triggers_it(connect: Connect) -> None:
    one, other = connect(), connect()
    one.amosql(SHOP.replace("activate low();", ""))
    pen, quantity = one.variables["pen"], other.function("quantity")
    quantity[pen] = 60
    one.amosql("activate low(); commit;")
    quantity[pen] = 1
    with other.transaction():
        quantity[pen] = 60
    with other.transaction():
        quantity[pen] = 1
    assert log(one) == ["pen", "pen"]
    assert one.amosql("select fired(r) for each rule r;").rows == [(2,)]


def test_a_function_deleted_and_made_again_elsewhere_can_be_changed(connect: Connect) -> None:
    """Triggers of a session must not outlive the table they were on."""
    one, other = connect(), connect()
    one.amosql(SHOP)
    other.assign("pen", one.variables["pen"])
    other.amosql("set quantity(:pen) = 1; commit;")
    one.amosql("delete rule low; delete function quantity; commit;")
    assert log(other) == ["pen"]
    one.amosql("create function quantity(item) -> integer; commit;")
    other.amosql("set quantity(:pen) = 1; commit;")
    assert log(one) == ["pen"]


def test_rules_survive_reopening(connect: Connect) -> None:
    first = connect()
    first.amosql(SHOP)
    first.amosql("""
        create rule watch(item i, integer n) nervous on updated(quantity) as
            when quantity(i) > n do add log() = name(i) || " over " || to_string(n);
        activate watch(:pen, 60) priority 3; activate watch(:pen, 70); commit;
        set quantity(:pen) = 65; commit;
    """)
    pen = first.variables["pen"]
    about_rules = "select name(r), fired(r), activated(r) for each rule r;"
    before = sorted(first.amosql(about_rules).rows)
    first.close()

    second = connect()
    assert sorted(second.amosql(about_rules).rows) == before
    assert sorted(second.amosql("watch_activations();").rows) == [(pen, 60), (pen, 70)]
    quantity = second.function("quantity")
    quantity[pen] = 75
    quantity[pen] = 1
    assert log(second) == ["pen", "pen over 60", "pen over 60", "pen over 70"]


def test_a_database_that_is_read_only_shows_its_rules(connect: Connect) -> None:
    connect().amosql(SHOP)
    reader = connect(read_only=True)
    assert reader.amosql("select name(r), fired(r) for each rule r;").rows == [("low", 0)]
    assert "low is a strict, deferred rule" in str(reader.explain("low", verbose=True))
    fails("read-only", lambda: reader.amosql("activate low();"))


# --- the machine -----------------------------------------------------------------------------


def temporary(db: Database) -> dict[str, int]:
    """The temporary tables of the session with their numbers of rows; triggers are 0."""
    connection = db.internals.connection
    found = connection.rows(
        "SELECT type, name FROM temp.sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'"
    )
    rows = {
        name: connection.value(f'SELECT count(*) FROM temp."{name}"')
        for kind, name in found
        if kind == "table"
    }
    return rows | {name: 0 for kind, name in found if kind == "trigger"}


def delta_sets(db: Database) -> dict[str, int]:
    return {name: rows for name, rows in temporary(db).items() if name.startswith("Δ")}


def test_delta_sets_are_empty_after_the_check_phase(db: Database, orders: Orders) -> None:
    assert set(delta_sets(db).values()) == {0}
    db.amosql("set quantity(:item1) = 1; set min_stock(:item2) = 9000;")
    assert sorted(delta_sets(db).values())[-2:] == [2, 2]
    db.commit()
    assert len(orders) == 2
    assert set(temporary(db).values()) == {0}
    db.amosql("set quantity(:item1) = 2;")
    db.rollback()
    assert set(temporary(db).values()) == {0}


def test_nothing_is_kept_when_no_rule_is_active(db: Database, orders: Orders) -> None:
    assert len(delta_sets(db)) == 6
    db.amosql("deactivate monitor_items(); commit;")
    assert delta_sets(db) == {}
    assert not any("quantity" in name for name in temporary(db))
    db.amosql("activate monitor_items(); rollback;")
    assert delta_sets(db) == {}
    db.amosql("activate monitor_items(); commit; delete rule monitor_items; commit;")
    assert delta_sets(db) == {}


def test_only_what_an_active_rule_depends_on_is_watched(db: Database, orders: Orders) -> None:
    watched = " ".join(delta_sets(db))
    for influent in ("quantity", "min_stock", "consume_freq", "supplies", "delivery_time"):
        assert influent in watched
    assert "max_stock" not in watched
    assert "name" not in watched


def statements(db: Database, work: Callable[[], Any]) -> list[str]:
    """The SQL that runs meanwhile, also in triggers."""
    seen: list[str] = []
    raw = db.internals.connection.raw
    raw.trace_v2(0x01, lambda event: seen.append(event["sql"]), id=seen)
    try:
        work()
    finally:
        raw.trace_v2(0, None, id=seen)
    return seen


def test_a_transaction_that_touches_no_influent_runs_no_statement_of_a_rule(
    db: Database, orders: Orders
) -> None:
    max_stock, quantity = db.function("max_stock"), db.function("quantity")
    item1 = db.variables["item1"]

    def change(handle: Any, value: int) -> None:
        with db.transaction():
            handle[item1] = value

    for value in (1, 2):
        seen = statements(db, lambda: change(max_stock, value))  # noqa: B023
        assert not [sql for sql in seen if "Δ" in sql or "activations" in sql], seen
        assert len([sql for sql in seen if sql.startswith(("INSERT", "UPDATE", "DELETE"))]) == 1
    assert [sql for sql in statements(db, lambda: change(quantity, 7)) if "Δ" in sql]


def test_plans_are_made_once(db: Database, orders: Orders) -> None:
    quantity, item1 = db.function("quantity"), db.variables["item1"]
    quantity[item1] = 200
    first = statements(db, lambda: quantity.__setitem__(item1, 201))
    second = statements(db, lambda: quantity.__setitem__(item1, 202))
    assert first == second
    assert not [sql for sql in second if sql.startswith("CREATE")]


def test_a_rule_set_that_never_settles_is_stopped_after_the_limit(shop: Database) -> None:
    shop.amosql("""
        create rule up() as when for each item i where quantity(i) = 100 do set quantity(i) = 101;
        create rule down() as when for each item i where quantity(i) = 101 do set quantity(i) = 100;
        create rule calm() as when for each item i where quantity(i) > 99 do add log() = name(i);
        activate calm() priority 5; activate up(); activate down(); commit;
    """)
    shop.round_limit(20)
    error = fails("no-fixpoint", lambda: shop.amosql("set quantity(:pen) = 100; commit;"))
    assert "the rules down, up trigger each other" in error.message
    assert "20 rounds" in error.message
    assert (quantity_of(shop, "pen"), log(shop)) == (50, [])


def test_a_chain_within_the_limit_is_no_endless_one(shop: Database) -> None:
    shop.amosql("""
        create rule count_down() nervous as
            when for each item i where quantity(i) > 100 do set quantity(i) = quantity(i) - 1;
        activate count_down(); commit;
    """)
    shop.round_limit(20)
    shop.amosql("set quantity(:pen) = 120; commit;")
    assert quantity_of(shop, "pen") == 100
    fails("no-fixpoint", lambda: shop.amosql("set quantity(:pen) = 121; commit;"))


def test_a_rule_with_too_many_tuples_acts_on_the_set_instead(shop: Database) -> None:
    shop.amosql("""
        create function checked(item) -> integer;
        create rule each_item() as
            when for each item i where quantity(i) > 99 do set checked(i) = quantity(i);
        activate each_item(); commit;
    """)
    shop.action_limit(1)
    update = "set quantity(:pen) = 100; set quantity(:ink) = 101; commit;"
    before = quantity_of(shop, "pen")
    error = fails("large-action-set", lambda: shop.amosql(update))
    assert "rule each_item would act on 2 tuples" in error.message
    assert "for each" in str(error.hint)
    assert quantity_of(shop, "pen") == before
    shop.amosql("""
        delete rule each_item;
        create function many() -> item as select i for each item i where quantity(i) > 99;
        create rule all_items() as
            when count(many()) > 0
            do for each item i where quantity(i) > 99 set checked(i) = quantity(i);
        activate all_items(); commit;
    """)
    shop.amosql(update)
    assert sorted(shop.amosql("select checked(i) for each item i;").rows) == [(100,), (101,)]
    shop.action_limit(2)
    shop.amosql("set quantity(:pen) = 1; set quantity(:ink) = 1; commit;")


@pytest.mark.parametrize("strategy", ["adaptive", "incremental", "naive"])
def test_every_strategy_acts_on_the_same(strategy: str, db: Database, orders: Orders) -> None:
    db.monitoring(strategy)
    item1, item2 = db.variables["item1"], db.variables["item2"]
    db.amosql("set quantity(:item1) = 139; set min_stock(:item2) = 9000; commit;")
    assert sorted(orders, key=lambda order: order[1]) == [(item2, 0), (item1, 4861)]


def test_an_unknown_strategy_is_refused(db: Database) -> None:
    error = fails("bad-value", lambda: db.monitoring("clever"))
    assert error.hint == "use adaptive, incremental or naive"


# --- trace and explain -----------------------------------------------------------------------


def traced(db: Database, text: str) -> list[str]:
    lines: list[str] = []
    db.trace(lines.append)
    try:
        db.amosql(text)
    finally:
        db.trace(None)
    return lines


def test_the_trace_of_no_high_agrees_with_the_thesis(db: Database) -> None:
    """Section 5.3.1: two updates of income trigger the rule for two employees."""
    db.amosql(TOYS)
    lines = traced(db, "set income(:e2) = 10600; set income(:e4) = 10600; commit;")
    assert lines[0].replace(".0", "") == (
        "Δincome(employee) = <{<:e2, 10600>, <:e4, 10600>}, {<:e2, 10200>, <:e4, 10400>}>"
    )
    assert lines[1].startswith("Δcnd_no_high from income(employee) (incremental): ")
    assert lines[1].endswith("<{<:toys_department, :e2>, <:toys_department, :e4>}, {}>")
    assert lines[2].startswith("no_high acts")
    assert lines[2].endswith("on <:toys_department, :e2>, <:toys_department, :e4>")
    assert lines[3].replace(".0", "") == (
        "Δincome(employee) = <{<:e2, 10500>, <:e4, 10500>}, {<:e2, 10600>, <:e4, 10600>}>"
    )
    assert lines[4].endswith("<{}, {<:toys_department, :e2>, <:toys_department, :e4>}>")
    assert len(lines) == 5


def test_the_trace_of_p_q_and_r_agrees_with_the_thesis(db: Database) -> None:
    """Section 5.3.2: Δp = <{(1, 4)}, {(1, 2)}>."""
    db.amosql("""
        create function q(integer x) -> bag of integer;
        create function r(integer y) -> bag of integer;
        create function p(integer x) -> integer z as
            select z for each integer y where q(x) = y and r(y) = z;
        create rule watch() as when for each integer x, integer z where p(x) = z do print(x, z);
        add q(1) = 1; add r(1) = 2; add r(2) = 3; activate watch(); commit;
    """)
    lines = traced(db, "add q(1) = 2; add r(1) = 4; remove r(1) = 2; remove r(2) = 3; commit;")
    assert lines[:2] == [
        "Δq(integer) = <{<1, 2>}, {}>",
        "Δr(integer) = <{<1, 4>}, {<1, 2>, <2, 3>}>",
    ]
    assert lines[2].startswith("Δcnd_watch from q(integer), r(integer)")
    assert lines[2].endswith(": <{<1, 4>}, {<1, 2>}>")
    assert lines[3].endswith("on <1, 4>")


def test_the_trace_shows_who_was_chosen_and_who_fell_out(shop: Database) -> None:
    shop.amosql("""
        create rule refill() as when for each item i where quantity(i) < 10 do set quantity(i) = 60;
        activate refill() priority 2; commit;
    """)
    lines = traced(shop, "set quantity(:pen) = 1; commit;")
    acts = [line for line in lines if " acts " in line]
    assert len(acts) == 1
    assert acts[0].startswith("refill acts")
    assert "priority 2" in acts[0]
    lost = "Δcnd_low from quantity(item) (incremental): <{}, {<:pen>}>"
    assert lines.count(lost) == 1


def test_a_trace_changes_nothing_and_ends(shop: Database) -> None:
    assert traced(shop, "set quantity(:pen) = 1; commit;")
    assert log(shop) == ["pen"]
    assert traced(shop, "set name(:pen) = 'Pen'; commit;") == []
    lines: list[str] = []
    shop.trace(lines.append)
    shop.trace(None)
    shop.amosql("set quantity(:pen) = 60; commit; set quantity(:pen) = 2; commit;")
    assert lines == []
    assert log(shop) == ["Pen", "pen"]


def test_explain_shows_the_condition_and_each_differential(db: Database, orders: Orders) -> None:
    """The expanded condition and ΔP/Δ+quantity of the chapter, section 1.5.3."""
    text = str(db.explain("monitor_items", verbose=True))
    assert text.startswith("monitor_items is a strict, deferred rule, active\n")
    assert "when quantity(i) < threshold(i)" in text
    assert "\ncnd_monitor_items_item(I) ←\n" in text
    for influent in ("quantity(item)", "supplies(supplier)", "delivery_time(item,supplier)"):
        assert f"level 0: {influent}, stored\n  2 rows;" in text
        assert f"When {influent} changes" in text
    assert text.count("SELECT") >= 12
    assert "Δ+cnd_monitor_items_item(I) ←" in text
    assert "threshold" not in text.split("Its condition as ObjectLog:")[1]
    assert "brings about a check: (" in text
    assert "naive evaluation costs" in text


def test_explain_can_be_written_as_json(db: Database, orders: Orders) -> None:
    parts = json.loads(json.dumps(db.explain("monitor_items", verbose=True).as_json()))
    assert parts["name"] == "monitor_items"
    assert (parts["semantics"], parts["coupling"], parts["active"]) == ("strict", "deferred", True)
    by_relation = {influent["relation"]: influent for influent in parts["influents"]}
    quantity = by_relation["quantity(item)"]
    assert quantity["rows"] == 2
    assert len(quantity["gains"]) == len(quantity["losses"]) == 1
    assert "quantity(item)" in quantity["gain_sql"]


def test_each_occurrence_has_a_differential_of_its_own(db: Database) -> None:
    """Thesis 4.5: two for income, of the employee and of the manager."""
    db.amosql(TOYS)
    influents = db.explain("no_high", verbose=True).as_json()["influents"]
    assert isinstance(influents, list)
    (income,) = (each for each in influents if each["relation"] == "income(employee)")
    assert len(income["gains"]) == len(income["losses"]) == 2


def test_explain_knows_rules_that_are_not_active(shop: Database) -> None:
    shop.amosql("create rule rest() nervous immediate as when 1 = 2 do print(1);")
    assert str(shop.explain("rest", verbose=True)).startswith(
        "rest is a nervous, immediate rule, not active"
    )
    fails("unknown-function", lambda: shop.explain("nothing", verbose=True))


def test_results_of_actions_reach_the_listener_of_the_commit(shop: Database) -> None:
    shop.amosql("create rule say() as for each item i when quantity(i) = 7 do print(name(i));")
    shop.amosql("activate say();")
    assert [result.lines() for result in shop.amosql("set quantity(:pen) = 7; commit;")] == [
        ["pen"]
    ]
