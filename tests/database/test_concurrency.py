"""Several processes on one file: one writes at a time, readers are never in the way or blocked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Database, NameFault, Object, StorageError, TypeFault
from harken.database import catalog
from tests.harness import consistency
from tests.harness.patience import PATIENCE
from tests.harness.peer import Peer, PeerError

SHOP = """
create type item properties (name charstring, quantity integer);
create function low(item i) -> boolean as select true where quantity(i) < 10;
create item(name, quantity) instances :toy("toy", 5), :book("book", 50);
commit;
"""

Connect = Callable[..., Database]
Peers = Callable[[int], list[Peer]]


def quantities(db: Database) -> list[tuple[str, int]]:
    return sorted(db.amosql("select name(i), quantity(i) for each item i;").rows)


# --- readers -------------------------------------------------------------------------------


def test_readers_see_the_last_committed_state_while_another_session_writes(
    connect: Connect,
) -> None:
    writer = connect()
    writer.amosql(SHOP)
    reader = connect(timeout=0)
    before = [("book", 50), ("toy", 5)]
    assert quantities(reader) == before

    writer.amosql('set quantity(:toy) = 99; create item(name, quantity) instances :new("new", 1);')
    assert quantities(writer) == [("book", 50), ("new", 1), ("toy", 99)]
    assert quantities(reader) == before

    writer.commit()
    assert quantities(reader) == [("book", 50), ("new", 1), ("toy", 99)]


def test_readers_in_another_process_are_not_blocked(
    connect: Connect, path: str, peers: Peers
) -> None:
    db = connect()
    db.amosql(SHOP)
    (reader,) = peers(1)
    reader("open", path, 0)
    db.amosql("set quantity(:toy) = 99; delete :book;")
    query = "select name(i), quantity(i) for each item i;"
    assert sorted(reader.amosql(query)) == [["book", 50], ["toy", 5]]
    db.commit()
    assert reader.amosql(query) == [["toy", 99]]


def test_a_query_that_wants_an_index_runs_without_it_while_another_writes(connect: Connect) -> None:
    writer = connect()
    writer.amosql(SHOP)
    reader = connect(timeout=0)
    writer.amosql("set quantity(:toy) = 6;")
    assert reader.amosql('select quantity(i) for each item i where name(i) = "toy";').rows == [(5,)]
    assert reader.amosql("select name(i) for each item i where quantity(i) = 50;").rows == [
        ("book",)
    ]


def test_an_opened_database_that_reads_only_sees_commits(connect: Connect) -> None:
    writer = connect()
    writer.amosql(SHOP)
    reader = connect(read_only=True)
    quantity = reader.function("quantity")
    toy = writer.variables["toy"]
    assert quantity[toy] == 5
    writer.amosql("set quantity(:toy) = 6;")
    assert quantity[toy] == 5
    writer.commit()
    assert quantity[toy] == 6


def test_a_writer_is_not_blocked_by_a_reader(connect: Connect) -> None:
    writer = connect(timeout=0)
    writer.amosql(SHOP)
    reader = connect()
    with reader.internals.connection.snapshot():
        assert quantities(reader) == [("book", 50), ("toy", 5)]
        writer.amosql("set quantity(:toy) = 6; commit;")
        assert quantities(reader) == [("book", 50), ("toy", 5)]
    assert quantities(reader) == [("book", 50), ("toy", 6)]


# --- writers -------------------------------------------------------------------------------


def test_a_second_writer_gets_a_clear_error_after_its_timeout(
    connect: Connect, path: str, peers: Peers
) -> None:
    db = connect()
    db.amosql(SHOP)
    (second,) = peers(1)
    second("open", path, 0.01)
    db.amosql("set quantity(:toy) = 6;")
    with pytest.raises(PeerError) as caught:
        second.amosql("for each item i do set quantity(i) = 0;")
    assert caught.value.code == "locked"
    db.commit()
    second.amosql("for each item i do set quantity(i) = quantity(i) + 1; commit;")
    assert quantities(db) == [("book", 51), ("toy", 7)]


def test_a_locked_error_says_what_to_do_and_changes_nothing(connect: Connect) -> None:
    first = connect()
    first.amosql(SHOP)
    second = connect(timeout=0)
    second.assign("toy", first.variables["toy"])
    first.amosql("set quantity(:toy) = 6;")
    for attempt in (
        lambda: second.amosql("set quantity(:toy) = 7;"),
        lambda: second.amosql("create type other;"),
        lambda: second.amosql("create item instances :x;"),
        lambda: second.function("quantity").__setitem__(first.variables["toy"], 7),
        lambda: second.load("item", [("x",)], ["name"]),
        lambda: second.transaction().__enter__(),
    ):
        with pytest.raises(StorageError) as caught:
            attempt()
        assert caught.value.code == "locked"
        assert caught.value.hint
        assert not second.in_transaction
    assert "x" not in second.variables
    first.commit()
    second.amosql("set quantity(:toy) = quantity(:toy) + 1; commit;")
    assert quantities(first) == [("book", 50), ("toy", 7)]


def test_a_second_writer_waits_for_the_first(connect: Connect, path: str, peers: Peers) -> None:
    db = connect()
    db.amosql(SHOP)
    (second,) = peers(1)
    second("open", path, 60)
    second("ask_while_waiting")
    db.amosql("set quantity(:toy) = 6;")
    second.send("amosql", "for each item i do set quantity(i) = quantity(i) + 1; commit;")
    assert second.receive() == "waiting"
    db.amosql("set quantity(:book) = 60; commit;")
    second.send("try again")
    assert second.receive() == []
    assert quantities(db) == [("book", 61), ("toy", 7)]


def test_increments_by_several_processes_are_all_counted(
    connect: Connect, path: str, peers: Peers
) -> None:
    """Each reads the value inside its own transaction, so no update is lost."""
    db = connect()
    db.amosql(SHOP)
    workers = peers(2)
    for worker in workers:
        worker("open", path, 60)
    bump = 'for each item i where name(i) = "toy" do set quantity(i) = quantity(i) + 1; commit;'
    for _ in range(25):
        for worker in workers:
            worker.send("amosql", bump)
        for worker in workers:
            worker.receive()
    assert quantities(db) == [("book", 50), ("toy", 55)]


# --- creating ------------------------------------------------------------------------------


def test_processes_that_create_the_same_database_at_once_all_get_it(
    tmp_path: Path, peers: Peers
) -> None:
    both = peers(2)
    for number in range(30):
        path = str(tmp_path / f"{number}.db")
        for peer in both:
            peer.send("open", path, 60)
        for peer in both:
            peer.receive()
        for which, peer in enumerate(both):
            peer.amosql(f"create type mine{which}; create mine{which} instances :x; commit;")
        for peer in both:
            assert peer.amosql("select count(select x for each mine0 x);") == [[1]]
            assert peer.amosql("select count(select x for each mine1 x);") == [[1]]
            peer("close")
        with harken.connect(path) as db:
            consistency.check(db)


# --- the schema ----------------------------------------------------------------------------


def test_an_open_session_sees_the_schema_that_another_commits(connect: Connect) -> None:
    one, other = connect(), connect()
    one.amosql(SHOP)
    assert quantities(other) == [("book", 50), ("toy", 5)]

    one.amosql("create type shelf; create function on_shelf(item) -> shelf;")
    with pytest.raises(NameFault):
        other.amosql("select on_shelf(i) for each item i;")
    one.amosql("create shelf instances :s; set on_shelf(:toy) = :s; commit;")
    assert other.amosql("select name(i) for each item i, shelf s where on_shelf(i) = s;").rows == [
        ("toy",)
    ]
    one.amosql("delete function on_shelf; commit;")
    with pytest.raises(NameFault) as caught:
        other.amosql("select on_shelf(i) for each item i;")
    assert caught.value.code == "unknown-function"
    one.amosql("delete type shelf; commit;")
    with pytest.raises(NameFault) as caught:
        other.amosql("create shelf instances :t;")
    assert caught.value.code == "unknown-type"


def test_a_new_overload_of_another_session_is_used(connect: Connect) -> None:
    one, other = connect(), connect()
    one.amosql(SHOP + "create function label(item i) -> charstring as select name(i); commit;")
    labels = "select label(i) for each item i;"
    assert sorted(other.amosql(labels).rows) == [("book",), ("toy",)]
    one.amosql("""
        create type dear subtype of item;
        create function label(dear d) -> charstring as select name(d) + "!";
        add dear to :toy;
        commit;
    """)
    assert sorted(other.amosql(labels).rows) == [("book",), ("toy!",)]
    one.amosql("delete function dear.label; commit;")
    assert sorted(other.amosql(labels).rows) == [("book",), ("toy",)]


def test_a_changed_definition_of_another_session_is_used(connect: Connect) -> None:
    one, other = connect(), connect()
    one.amosql(SHOP)
    query = "select name(i) for each item i where low(i) = true;"
    assert other.amosql(query).rows == [("toy",)]
    one.amosql("create function low(item i) -> boolean as select true where quantity(i) < 100;")
    assert other.amosql(query).rows == [("toy",)]
    one.commit()
    assert sorted(other.amosql(query).rows) == [("book",), ("toy",)]


def test_a_subtype_of_another_session_is_filled_when_an_object_is_created(connect: Connect) -> None:
    one, other = connect(), connect()
    one.amosql(SHOP)
    assert len(quantities(other)) == 2
    one.amosql("create type toyware subtype of item; commit;")
    other.amosql('create toyware(name, quantity) instances :t("train", 1); commit;')
    assert ("train", 1) in quantities(one)


def test_a_schema_that_changed_while_waiting_for_the_lock_is_the_one_that_counts(
    connect: Connect,
) -> None:
    """The first try finds the old schema and the lock taken; the second finds the new one."""
    one, other = connect(), connect()
    one.amosql(SHOP)
    other.assign("toy", one.variables["toy"])
    assert quantities(other) == [("book", 50), ("toy", 5)]
    one.amosql("""
        delete function low; delete function quantity;
        create function quantity(item) -> charstring;
    """)
    other.internals.connection.raw.set_busy_handler(lambda tries: one.commit() is None)
    with pytest.raises(TypeFault) as caught:
        other.amosql("set quantity(:toy) = 6;")
    assert caught.value.code == "type-mismatch"
    other.amosql('set quantity(:toy) = "six"; commit;')
    assert one.function("quantity")[one.variables["toy"]] == "six"


def test_a_function_deleted_while_waiting_for_the_lock_is_unknown(connect: Connect) -> None:
    one, other = connect(), connect()
    one.amosql(SHOP)
    other.assign("toy", one.variables["toy"])
    other.amosql("set quantity(:toy) = 7; commit;")
    one.amosql("delete function low; delete function quantity;")
    other.internals.connection.raw.set_busy_handler(lambda tries: one.commit() is None)
    with pytest.raises(NameFault) as caught:
        other.amosql("set quantity(:toy) = 6;")
    assert caught.value.code == "unknown-function"


def test_reading_while_another_process_keeps_changing_the_schema(
    connect: Connect, path: str, peers: Peers
) -> None:
    """Each query meets one state of the schema, whole: it answers or does not know the function."""
    db = connect()
    db.amosql(SHOP)
    (changer,) = peers(1)
    changer("open", path, 60)
    for number in range(60):
        changer.send(
            "amosql",
            f"""
            create type t{number} subtype of item properties (extra integer);
            create t{number}(name, quantity, extra) instances :x("x", 1, {number});
            commit;
            for each t{number} x do delete x;
            delete type t{number};
            commit;
            """,
        )
        for _ in range(4):
            assert len(quantities(db)) in (2, 3)
            with suppress(NameFault):
                extra = db.amosql(f"select extra(x) for each t{number} x;").rows
                assert extra == [(number,)]
        changer.receive()
    assert quantities(db) == [("book", 50), ("toy", 5)]
    consistency.check(db)


# --- objects -------------------------------------------------------------------------------


def test_numbers_are_never_given_twice(connect: Connect, path: str, peers: Peers) -> None:
    db = connect()
    db.amosql(SHOP)
    workers = peers(2)
    for worker in workers:
        worker("open", path, 60)
    given: set[int] = set()
    for round_ in range(6):
        for worker in workers:
            made = worker.amosql(
                "create item instances :a, :b; select x for each item x where x = :a or x = :b;"
            )
            numbers = {number for (number,) in made}
            assert len(numbers) == 2
            assert not numbers & given
            given |= numbers
            worker("rollback" if round_ % 2 else "commit")
        (loaded,) = db.load("item", [("x",)], ["name"])
        assert loaded.oid not in given
        given.add(loaded.oid)


def test_numbers_are_new_also_when_a_query_came_before(connect: Connect) -> None:
    """The query has seen that the other session committed; the creation must know it, too."""
    one, other = connect(), connect()
    one.amosql(SHOP)
    assert len(quantities(other)) == 2
    one.amosql("create item instances :x; commit;")
    assert len(quantities(other)) == 2
    other.amosql("create item instances :x; commit;")
    assert other.variables["x"] != one.variables["x"]


def test_a_number_that_was_rolled_back_is_not_given_to_another_process(
    connect: Connect, path: str, peers: Peers
) -> None:
    db = connect()
    db.amosql(SHOP)
    db.amosql("create item instances :gone;")
    gone = db.variables["gone"]
    db.rollback()
    (other,) = peers(1)
    other("open", path)
    other.amosql('create item(name, quantity) instances :x("x", 1); commit;')
    assert db.function("name").get(gone) is None
    with pytest.raises(harken.ValueFault):
        db.function("name")[gone] = "mine"


def test_numbers_go_on_after_reopening(connect: Connect) -> None:
    first = connect()
    first.amosql(SHOP)
    first.amosql("create item instances :x; commit; create item instances :y;")
    given = first.variables["y"].oid
    first.rollback()
    first.close()
    second = connect()
    second.amosql("create item instances :z;")
    assert second.variables["z"].oid > given


def test_an_object_deleted_by_another_session_is_gone(connect: Connect) -> None:
    one, other = connect(), connect()
    one.amosql(SHOP)
    other.assign("toy", one.variables["toy"])
    assert other.amosql("select name(:toy);").rows == [("toy",)]
    one.amosql("delete :toy; commit;")
    with pytest.raises(harken.ValueFault) as caught:
        other.amosql("select name(:toy);")
    assert caught.value.code == "wrong-object"


def test_a_type_added_by_another_session_counts(connect: Connect) -> None:
    one, other = connect(), connect()
    one.amosql(
        SHOP + "create type dear subtype of item; create function price(dear) -> integer; commit;"
    )
    other.assign("toy", one.variables["toy"])
    with pytest.raises(TypeFault):
        other.amosql("set price(:toy) = 5;")
    one.amosql("add dear to :toy; commit;")
    other.amosql("set price(:toy) = 5; commit;")
    assert one.amosql("select price(d) for each dear d;").rows == [(5,)]


# --- handles -------------------------------------------------------------------------------


@pytest.fixture
def pair(connect: Connect) -> tuple[Database, Database, Object]:
    one, other = connect(), connect()
    one.amosql(SHOP)
    return one, other, one.variables["toy"]


def test_a_handle_follows_data_of_another_session(pair: tuple[Database, Database, Object]) -> None:
    one, other, toy = pair
    quantity = other.function("quantity")
    assert quantity[toy] == 5
    one.amosql("set quantity(:toy) = 6; commit;")
    assert quantity[toy] == 6
    assert dict(quantity.items())[toy] == 6


def test_a_handle_knows_when_its_function_was_deleted(
    pair: tuple[Database, Database, Object],
) -> None:
    one, other, toy = pair
    quantity = other.function("quantity")
    assert quantity[toy] == 5
    one.amosql("delete function low; delete function quantity; commit;")
    for attempt in (
        lambda: quantity[toy],
        lambda: quantity.get(toy),
        lambda: quantity.__setitem__(toy, 6),
        lambda: list(quantity.items()),
    ):
        with pytest.raises(harken.LanguageError) as caught:
            attempt()
        assert caught.value.code == "unknown-function"
    assert not other.in_transaction


def test_a_handle_uses_the_new_result_type_of_its_function(
    pair: tuple[Database, Database, Object],
) -> None:
    one, other, toy = pair
    quantity = other.function("quantity")
    quantity[toy] = 7
    one.amosql("""
        delete function low; delete function quantity;
        create function quantity(item) -> bag of charstring;
        add quantity(:toy) = "many";
        commit;
    """)
    assert quantity[toy] == ["many"]
    with other.transaction():
        quantity[toy] = ["few", "few"]
    assert one.function("quantity")[toy] == ["few", "few"]


def test_a_handle_uses_the_new_definition_of_its_function(
    pair: tuple[Database, Database, Object],
) -> None:
    one, other, toy = pair
    low = other.function("low")
    assert low.get(toy) is True
    one.amosql(
        "create function low(item i) -> boolean as select true where quantity(i) < 2; commit;"
    )
    assert not low.get(toy)


def test_a_handle_used_in_a_transaction_after_a_change_of_the_schema(
    pair: tuple[Database, Database, Object],
) -> None:
    one, other, toy = pair
    quantity = other.function("quantity")
    assert quantity[toy] == 5
    one.amosql("""
        delete function low; delete function quantity;
        create function quantity(item) -> number;
        commit;
    """)
    with other.transaction():
        quantity[toy] = 1.5
        assert quantity[toy] == 1.5
    assert one.function("quantity")[toy] == 1.5


def test_a_foreign_function_of_another_session_is_found(connect: Connect) -> None:
    one, other = connect(), connect()
    one.amosql(SHOP)
    assert len(quantities(other)) == 2
    one.amosql('create function squared(integer n) -> integer as foreign "operator:neg"; commit;')
    assert other.amosql("select squared(3);").rows == [(-3,)]
    assert sorted(other.amosql("select squared(quantity(i)) for each item i;").rows) == [
        (-50,),
        (-5,),
    ]


def test_a_schema_that_changes_while_a_database_is_opened_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its version was read after its relations, and so what came between was never looked for."""
    path = str(tmp_path / "shop.db")
    with harken.connect(path) as db:
        db.amosql("create function a() -> integer; commit;")
    read = catalog.read_memory
    has_read, may_go_on = threading.Event(), threading.Event()

    def slowly(engine: Any) -> Any:
        found = read(engine)
        if threading.current_thread() is not threading.main_thread():
            has_read.set()
            may_go_on.wait(PATIENCE)
        return found

    monkeypatch.setattr(catalog, "read_memory", slowly)
    seen: list[str] = []

    def open_slowly() -> None:
        with harken.connect(path) as db, db.transaction():
            seen.extend(each.name for each in db.internals.catalog.functions() if not each.system)

    opening = threading.Thread(target=open_slowly)
    opening.start()
    has_read.wait(PATIENCE)
    with harken.connect(path) as db:
        db.amosql("create function b() -> integer; commit;")
    may_go_on.set()
    opening.join()
    assert sorted(seen) == ["a", "b"]
