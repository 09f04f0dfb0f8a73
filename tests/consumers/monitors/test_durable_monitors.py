"""Durable monitors: whoever changes the data records the change, until it is acknowledged."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

import harken
from harken import Change, Database, HarkenError, Subscription
from tests.harness.peer import Peer

Connect = Callable[..., Database]

SCHEMA = """
create type item properties (name charstring, quantity integer);
create function low(item i) -> charstring as select name(i) where quantity(i) < 10;
create item(name, quantity) instances :a("a", 100), :b("b", 50), :c("c", 7);
commit;
"""


@pytest.fixture
def path(tmp_path: Any) -> str:
    path = str(tmp_path / "shop.db")
    with harken.connect(path) as db:
        db.amosql(SCHEMA)
    return path


def change(db: Database, name: str, quantity: int) -> None:
    db.amosql(f'for each item i where name(i) = "{name}" do set quantity(i) = {quantity}; commit;')


def told(sub: Subscription) -> list[tuple[int, list[str], list[str]]]:
    return [
        (each.transaction, [row[1] for row in each.plus], [row[1] for row in each.minus])
        for each in sub.changes()
    ]


def fails(code: str, *said: str) -> Any:
    def fits(error: HarkenError) -> bool:
        return error.code == code and re.search(".*".join(said), error.message) is not None

    return pytest.raises(HarkenError, check=fits)


def test_changes_are_given_until_they_are_acknowledged(connect: Connect) -> None:
    db = connect()
    sub = db.monitor("low", durable="reports")
    assert sub.durable == "reports"
    change(db, "a", 1)
    assert told(sub) == [(1, ["a"], [])]
    assert told(sub) == []
    change(db, "b", 2)
    db.close()

    db = connect()
    sub = db.monitor("low", durable="reports")
    assert told(sub) == [(1, ["a"], []), (2, ["b"], [])]
    sub.acknowledge()
    change(db, "a", 100)
    db.close()

    sub = connect().monitor("low", durable="reports")
    assert told(sub) == [(3, [], ["a"])]


def test_only_what_was_handed_out_is_acknowledged(connect: Connect) -> None:
    db = connect()
    sub = db.monitor("low", durable="reports")
    change(db, "a", 1)
    assert len(sub.changes()) == 1
    change(db, "b", 1)
    sub.acknowledge()
    assert told(sub) == [(2, ["b"], [])]


def test_changes_are_recorded_while_nobody_listens(connect: Connect) -> None:
    connect().monitor("low", durable="reports").close()
    db = connect()
    change(db, "a", 1)
    db.amosql("create item(name, quantity) instances :x('x', 1); rollback;")
    change(db, "a", 100)
    db.close()
    sub = connect().monitor("low", durable="reports")
    assert told(sub) == [(1, ["a"], []), (2, [], ["a"])]


def test_a_session_that_was_open_before_takes_part(connect: Connect) -> None:
    early, late = connect(), connect()
    change(early, "c", 8)
    sub = late.monitor("low", durable="reports")
    change(early, "a", 1)
    assert told(sub) == [(1, ["a"], [])]
    change(late, "b", 1)
    change(early, "b", 50)
    assert told(sub) == [(2, ["b"], []), (3, [], ["b"])]


def test_another_process_records_too(
    connect: Connect, path: str, peers: Callable[[int], list[Peer]]
) -> None:
    sub = connect().monitor("low", durable="reports")
    (peer,) = peers(1)
    peer("open", path)
    peer.amosql('for each item i where name(i) = "a" do set quantity(i) = 1; commit;')
    assert told(sub) == [(1, ["a"], [])]


def test_what_is_rolled_back_is_not_recorded(connect: Connect) -> None:
    db = connect()
    sub = db.monitor("low", durable="reports")
    db.amosql(
        "create rule never() as for each item i when quantity(i) < 0 do rollback;"
        "activate never(); commit;"
    )
    with fails("rolled-back"):
        change(db, "a", -1)
    db.amosql("create item(name, quantity) instances :x('x', 1); rollback;")
    assert sub.changes() == []
    change(db, "a", 1)
    assert told(sub) == [(1, ["a"], [])]


def test_the_outbox_is_a_table_of_the_file(connect: Connect) -> None:
    db = connect()
    db.monitor("low", durable="reports")
    db.monitor("item.name", durable="names")
    db.amosql('create item(name, quantity) instances :x("x", 1); commit;')
    rows = db.internals.connection.rows("SELECT * FROM harken_outbox ORDER BY name")
    assert [row[:4] for row in rows] == [
        ("names", 1, "item.name", 1),
        ("reports", 1, "low", 1),
    ]
    types = ["item", "charstring"]
    stored = json.loads(rows[1][4])
    assert stored.pop("at") <= time.time()
    assert stored == {
        "plus": {"types": types, "rows": [[db.variables["x"].oid, "x"]]},
        "minus": {"types": types, "rows": []},
    }


def test_numbers_go_on_after_reopening(connect: Connect) -> None:
    for number in (1, 2, 3):
        db = connect()
        sub = db.monitor("quantity")
        change(db, "a", number)
        assert [each.transaction for each in sub.changes()] == [number]
        db.close()


def test_a_durable_monitor_is_of_one_function(connect: Connect) -> None:
    db = connect()
    db.monitor("low", durable="reports")
    with fails("exists", "reports", "low\\(item\\)"):
        db.monitor("quantity", durable="reports")
    with fails("transaction"), db.transaction():
        db.monitor("quantity", durable="others")
    assert db.internals.monitors.durable("others") is None


def test_deleting_ends_it_in_every_session(connect: Connect) -> None:
    db, other = connect(), connect()
    sub = db.monitor("low", durable="reports")
    change(other, "a", 1)
    with fails("in-use", "durable monitor reports"):
        other.amosql("delete function low;")
    other.rollback()
    with fails("transaction"), db.transaction():
        sub.delete()
    sub.delete()
    with fails("closed"):
        sub.changes()
    change(other, "b", 1)
    other.amosql("delete function low; commit;")
    assert db.internals.connection.rows("SELECT * FROM harken_outbox") == []
    with fails("unknown-function"):
        db.monitor("low", durable="reports")


def test_a_plain_monitor_whose_function_another_session_deleted(connect: Connect) -> None:
    db, other = connect(), connect()
    sub = db.monitor("low")
    change(db, "a", 1)
    other.amosql("delete function low; commit;")
    change(db, "b", 1)
    assert told(sub) == [(1, ["a"], [])]
    for use in (sub.changes, sub.rows):
        with fails("in-use", "monitor of low", "was deleted"):
            use()
    sub.close()


def test_a_definition_in_another_session_is_recorded(connect: Connect) -> None:
    db, other = connect(), connect()
    sub = db.monitor("low", durable="reports")
    again = "create function low(item i) -> charstring as select name(i) where quantity(i) < {};"
    other.amosql(again.format(60) + "commit;")
    assert told(sub) == [(1, ["b"], [])]
    change(db, "a", 59)
    assert told(sub) == [(2, ["a"], [])]


def test_a_listener_receives_the_changes_of_others_in_order(connect: Connect) -> None:
    db, other = connect(), connect()
    found: list[int] = []

    def listen(change: Change) -> None:
        found.append(change.transaction)

    sub = db.monitor("low", listener=listen, durable="reports")
    change(other, "a", 1)
    assert found == []
    change(db, "b", 1)
    assert found == [1, 2]
    assert sub.changes() == []
    sub.acknowledge()
    assert db.internals.connection.rows("SELECT * FROM harken_outbox") == []


def test_an_acknowledgement_belongs_to_the_open_transaction(connect: Connect) -> None:
    db = connect()
    sub = db.monitor("low", durable="reports")
    change(db, "a", 1)
    assert len(sub.changes()) == 1
    with db.transaction():
        sub.acknowledge()
        assert len(db.internals.connection.rows("SELECT * FROM harken_outbox")) == 0
        db.amosql("create item(name, quantity) instances :x('x', 1);")
    assert told(sub) == [(2, ["x"], [])]


def test_one_who_only_reads_may_look(connect: Connect) -> None:
    db = connect()
    db.monitor("low", durable="reports")
    change(db, "a", 1)
    reader = connect(read_only=True)
    sub = reader.monitor("low", durable="reports")
    assert told(sub) == [(1, ["a"], [])]
    with fails("read-only"):
        sub.acknowledge()
    with fails("read-only"):
        reader.monitor("low", durable="more")
    assert reader.monitor("low").rows() == sub.rows()


def test_without_its_python_function_nothing_is_committed(connect: Connect) -> None:
    """It must not miss a change."""
    db = connect()
    db.amosql(
        "create function grade(integer n) -> integer as foreign;"
        "create function grades(item i) -> integer as select grade(quantity(i)); commit;"
    )
    db.foreign("grade", lambda n: n // 10)
    sub = db.monitor("grades", durable="reports")
    other = connect()
    with fails("foreign", "grades\\(item\\)"):
        change(other, "a", 1)
    other.foreign("grade", lambda n: n // 10)
    change(other, "a", 1)
    ((number, plus, minus),) = told(sub)
    assert (number, plus, minus) == (1, [0], [10])


def test_a_copy_and_its_place_in_the_outbox_are_taken_together(connect: Connect) -> None:
    db, other = connect(), connect()
    sub = db.monitor("low", durable="reports")
    change(other, "a", 1)
    with db.transaction():
        copy = sub.rows()
        sub.changes()
    change(other, "b", 1)
    (after,) = sub.changes()
    assert sorted(row[1] for row in [*copy, *after.plus]) == [row[1] for row in sub.rows()]
