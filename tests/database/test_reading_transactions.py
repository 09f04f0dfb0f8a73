"""A transaction that has only read holds no lock; its first change takes it, if nothing is stale.

All that such a transaction reads is one state of the file. What it then changes must be based on
that state, so a commit of somebody else in between makes its first change fail.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import harken
from harken import Database, StorageError
from tests.harness.patience import PATIENCE

Connect = Callable[..., Database]

TABLE = "CREATE TABLE t (k INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 10)"


@pytest.fixture
def two(connect: Connect) -> tuple[Database, Database]:
    """Two sessions that do not wait for each other."""
    first, second = connect(timeout=0), connect(timeout=0)
    first.sql(TABLE)
    assert values(second) == [(10,)]
    return first, second


def values(db: Database) -> list[tuple[int]]:
    return db.sql("SELECT v FROM t ORDER BY k").rows


def code_of(attempt: Callable[[], object]) -> str:
    with pytest.raises(StorageError) as caught:
        attempt()
    assert caught.value.hint
    return caught.value.code


Begin = Callable[[Database], object]


@pytest.mark.parametrize(
    "read",
    [
        lambda db: db.sql("SELECT v FROM t"),
        lambda db: db.amosql("select x for each integer x where x = 1;"),
        lambda db: db.function("t"),
        lambda db: db.sql("SHOW TABLES; DESCRIBE t; EXPLAIN SELECT * FROM t"),
    ],
)
def test_others_write_while_a_transaction_reads(
    two: tuple[Database, Database], read: Begin
) -> None:
    reader, writer = two
    reader.sql("BEGIN")
    read(reader)
    writer.sql("UPDATE t SET v = 11")
    reader.sql("COMMIT")
    assert values(reader) == [(11,)]


def test_all_that_a_transaction_reads_is_one_state(two: tuple[Database, Database]) -> None:
    reader, writer = two
    reader.sql("BEGIN")
    assert values(reader) == [(10,)]
    writer.sql("UPDATE t SET v = 11; CREATE TABLE later (x INT)")
    assert values(reader) == [(10,)]
    assert [name for name, _ in reader.sql("SHOW TABLES").rows] == ["t"]
    reader.sql("ROLLBACK")
    assert values(reader) == [(11,)]
    assert [name for name, _ in reader.sql("SHOW TABLES").rows] == ["later", "t"]


def test_the_state_is_that_of_the_first_read(two: tuple[Database, Database]) -> None:
    reader, writer = two
    reader.sql("BEGIN")
    writer.sql("UPDATE t SET v = 11; CREATE TABLE later (x INT)")
    assert values(reader) == [(11,)]
    assert reader.sql("SELECT * FROM later").rows == []
    reader.sql("COMMIT")


def test_a_change_after_a_read_takes_the_lock(two: tuple[Database, Database]) -> None:
    first, second = two
    first.sql("BEGIN")
    assert values(first) == [(10,)]
    first.sql("UPDATE t SET v = v + 1")
    assert code_of(lambda: second.sql("UPDATE t SET v = 0")) == "locked"
    first.sql("COMMIT")
    assert values(second) == [(11,)]


def test_a_change_based_on_a_stale_state_is_refused(two: tuple[Database, Database]) -> None:
    first, second = two
    first.sql("BEGIN")
    assert values(first) == [(10,)]
    second.sql("UPDATE t SET v = 20")
    for attempt in ("UPDATE t SET v = v + 1", "CREATE TABLE u (x INT)", "DROP TABLE t"):
        assert code_of(lambda: first.sql(attempt)) == "stale-snapshot"  # noqa: B023
        assert first.in_transaction
        assert values(first) == [(10,)]
    first.sql("ROLLBACK; BEGIN; UPDATE t SET v = v + 1; COMMIT")
    assert values(second) == [(21,)]


def test_a_transaction_that_has_not_read_is_never_stale(two: tuple[Database, Database]) -> None:
    first, second = two
    first.sql("BEGIN")
    second.sql("UPDATE t SET v = 20; CREATE TABLE later (x INT)")
    first.sql("UPDATE t SET v = v + 1; INSERT INTO later VALUES (1); COMMIT")
    assert values(second) == [(21,)]


def test_a_change_while_another_writes_is_refused_after_the_timeout(
    two: tuple[Database, Database],
) -> None:
    first, second = two
    first.sql("BEGIN")
    assert values(first) == [(10,)]
    second.sql("BEGIN; UPDATE t SET v = 20")
    assert code_of(lambda: first.sql("UPDATE t SET v = v + 1")) == "locked"
    second.sql("ROLLBACK")
    first.sql("UPDATE t SET v = v + 1; COMMIT")
    assert values(second) == [(11,)]


def test_a_change_waits_for_another_that_is_rolled_back(connect: Connect, path: str) -> None:
    first, second = connect(timeout=PATIENCE), connect(timeout=0)
    first.sql(TABLE)
    first.sql("BEGIN")
    assert values(first) == [(10,)]
    second.sql("BEGIN; UPDATE t SET v = 20")
    tried = threading.Event()
    plain = first.internals.connection.retry_while_busy

    def retry(work: Callable[[], object]) -> None:
        def once() -> None:
            try:
                work()
            finally:
                tried.set()

        plain(once)

    first.internals.connection.retry_while_busy = retry  # type: ignore[method-assign]

    def give_up() -> None:
        tried.wait(PATIENCE)
        second.sql("ROLLBACK")

    other = threading.Thread(target=give_up)
    other.start()
    first.sql("UPDATE t SET v = v + 1; COMMIT")
    other.join()
    assert values(first) == [(11,)]


def test_no_index_is_made_by_a_transaction_that_reads(connect: Connect) -> None:
    """An index is written to the file, and so takes the lock."""
    first, second = connect(timeout=0), connect(timeout=0)
    first.sql("CREATE TABLE a (x INT, y INT); CREATE TABLE b (x INT, y INT)")
    first.load("a", [(n, n) for n in range(500)])
    first.load("b", [(n, n) for n in range(500)])
    second.sql("BEGIN; SELECT count(*) FROM a JOIN b ON a.y = b.y WHERE a.y = 3")
    assert second.internals.connection.raw.txn_state("main") == 1
    first.sql("INSERT INTO a VALUES (1, 1)")
    before = second.internals.connection.rows("SELECT name FROM sqlite_schema WHERE type = 'index'")
    second.sql("COMMIT")
    after = second.internals.connection.rows("SELECT name FROM sqlite_schema WHERE type = 'index'")
    assert len(after) > len(before), "it is made when the transaction is over"


# --- blocks --------------------------------------------------------------------------------


def test_a_block_for_reading_takes_no_lock(two: tuple[Database, Database]) -> None:
    reader, writer = two
    with reader.transaction(write=False):
        assert values(reader) == [(10,)]
        writer.sql("UPDATE t SET v = 11")
        assert values(reader) == [(10,)]
    assert values(reader) == [(11,)]


def test_a_block_takes_the_lock_at_its_start(two: tuple[Database, Database]) -> None:
    """What it reads cannot change before it ends, so no update is lost."""
    first, second = two
    with first.transaction():
        ((before,),) = values(first)
        assert code_of(lambda: second.sql("UPDATE t SET v = 0")) == "locked"
        first.sql(f"UPDATE t SET v = {before + 1}")
    assert values(second) == [(11,)]


def test_a_block_for_reading_that_changes_something(two: tuple[Database, Database]) -> None:
    first, second = two
    with first.transaction(write=False):
        assert values(first) == [(10,)]
        first.sql("UPDATE t SET v = v + 1")
    assert values(second) == [(11,)]

    def change_what_is_stale() -> None:
        with first.transaction(write=False):
            assert values(first) == [(11,)]
            second.sql("UPDATE t SET v = 20")
            first.sql("UPDATE t SET v = 12")

    assert code_of(change_what_is_stale) == "stale-snapshot"
    assert not first.in_transaction
    assert values(first) == [(20,)]


def test_a_block_in_a_transaction_that_reads(two: tuple[Database, Database]) -> None:
    first, second = two
    first.sql("BEGIN")
    assert values(first) == [(10,)]
    with first.transaction():
        assert code_of(lambda: second.sql("UPDATE t SET v = 0")) == "locked"
        first.sql("UPDATE t SET v = v + 1")
    assert values(second) == [(11,)]


# --- handles and monitors ------------------------------------------------------------------


def test_handles_in_a_transaction_that_reads(connect: Connect) -> None:
    first, second = connect(timeout=0), connect(timeout=0)
    first.amosql(
        "create type item properties (quantity integer); create item instances :i; commit;"
    )
    item = first.variables["i"]
    here, there = first.function("quantity"), second.function("quantity")
    here[item] = 1
    assert there[item] == 1
    with second.transaction(write=False):
        here[item] = 2
        assert there[item] == 2  # its first read
        here[item] = 3
        assert there[item] == 2
        assert code_of(lambda: there.__setitem__(item, 4)) == "stale-snapshot"
    with second.transaction(write=False):
        assert there[item] == 3
        there[item] = 4
        assert code_of(lambda: here.__setitem__(item, 5)) == "locked"
    assert here[item] == 4


def test_a_handle_sees_the_schema_of_its_first_read(connect: Connect) -> None:
    first, second = connect(timeout=0), connect(timeout=0)
    first.amosql("create function f(integer) -> integer; set f(1) = 1; commit;")
    handle = second.function("f")
    assert handle[1] == 1
    with second.transaction(write=False):
        first.amosql("delete function f; create function f(integer) -> charstring;")
        first.amosql('set f(1) = "one"; commit;')
        assert handle[1] == "one"


def test_rules_and_monitors_hear_of_the_change_of_a_transaction_that_read_first(
    connect: Connect,
) -> None:
    db = connect()
    db.sql(TABLE)
    db.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(v) AS s FROM t")
    changes = db.monitor("total")
    db.sql("BEGIN; SELECT * FROM total; COMMIT")
    assert changes.changes() == []
    db.sql("BEGIN; SELECT * FROM total; UPDATE t SET v = 11; COMMIT")
    (change,) = changes.changes()
    assert (change.plus, change.minus) == ([(11,)], [(10,)])


def test_a_durable_monitor_is_acknowledged_in_a_transaction_that_reads(connect: Connect) -> None:
    db = connect()
    db.sql(TABLE)
    db.sql("CREATE VIEW all_rows AS SELECT * FROM t")
    durable = db.monitor("all_rows", durable="d")
    db.sql("UPDATE t SET v = 11")
    with db.transaction(write=False):
        assert len(durable.changes()) == 1
        durable.acknowledge()
    assert db.monitor("all_rows", durable="d").changes() == []


def test_a_database_in_memory_and_one_for_reading(connect: Connect) -> None:
    with harken.connect() as db:
        db.sql(TABLE)
        db.sql("BEGIN; SELECT * FROM t; UPDATE t SET v = 11; COMMIT")
        assert values(db) == [(11,)]
    connect().sql(TABLE)
    reader = connect(read_only=True)
    reader.sql("BEGIN")
    assert values(reader) == [(10,)]
    assert code_of(lambda: reader.sql("UPDATE t SET v = 11")) == "read-only"
    reader.sql("COMMIT")
