"""A session is used by one thread at a time; another thread is told so, and nothing is harmed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import harken


@pytest.fixture
def db() -> harken.Database:
    made = harken.connect()
    made.sql("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT count(*) AS n FROM t")
    made.amosql("create type item properties (quantity integer); create item instances :x; commit;")
    return made


def in_another_thread(call: Callable[[], Any]) -> Any:
    """What a call gives or raises there."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_another_thread_in_a_transaction_is_refused(db: harken.Database) -> None:
    quantity, view = db.function("quantity"), db.monitor("v")
    item = db.variables["x"]
    calls: list[Callable[[], Any]] = [
        lambda: db.sql("INSERT INTO t VALUES (2)"),
        lambda: db.amosql("rollback;"),
        lambda: db.datalog("?- t(x)."),
        lambda: db.function("quantity"),
        lambda: quantity.__setitem__(item, 9),
        lambda: quantity[item],
        lambda: quantity.get(item),
        lambda: list(quantity.items()),
        lambda: view.changes(),
        lambda: db.commit(),
        lambda: db.rollback(),
        lambda: db.close(),
        lambda: db.transaction().__enter__(),
    ]
    with db.transaction():
        db.sql("INSERT INTO t VALUES (1)")
        for call in calls:
            error = in_another_thread(call)
            assert isinstance(error, harken.IntegrityError)
            assert error.code == "other-thread"
    assert db.sql("SELECT a FROM t").rows == [(1,)]
    assert [(each.plus, each.minus) for each in view.changes()] == [([(1,)], [(0,)])]


def test_another_thread_while_a_statement_runs_is_refused(db: harken.Database) -> None:
    refused: list[Any] = []

    def ask(x: int) -> int:
        refused.append(in_another_thread(lambda: db.sql("INSERT INTO t VALUES (5)")))
        assert db.sql("SELECT 1").rows == [(1,)]  # the thread itself may
        return x

    db.foreign("ask", ask)
    assert db.amosql("select ask(7);")[-1].rows == [(7,)]
    assert [each.code for each in refused] == ["other-thread"]
    assert db.sql("SELECT count(*) FROM t").rows == [(0,)]


def test_a_session_may_be_handed_over(db: harken.Database) -> None:
    assert in_another_thread(lambda: db.sql("INSERT INTO t VALUES (4)")) == []
    assert db.sql("SELECT a FROM t").rows == [(4,)]


def test_many_threads_at_once_leave_it_whole(db: harken.Database) -> None:
    """Each insert is done or refused, and as many rows are there as were done."""
    done, refused, other = [], [], []
    start = threading.Barrier(4)

    def insert() -> None:
        start.wait()
        for _ in range(50):
            try:
                db.sql("INSERT INTO t VALUES (1)")
                done.append(1)
            except harken.IntegrityError as error:
                refused.append(error.code)
            except BaseException as error:
                other.append(error)

    threads = [threading.Thread(target=insert) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not other
    assert set(refused) <= {"other-thread"}
    assert db.sql("SELECT n FROM v").rows == [(len(done),)]
