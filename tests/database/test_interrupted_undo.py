"""Undoing is cut off at every statement that it sends to SQLite, by a limit and by Ctrl-C.

Law: whatever a session was doing when it was stopped, it then agrees with the file: with its rows,
its schema, its materialized views, and what its monitors are told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count

import pytest

import harken
from harken import Copy, Database, HarkenError

SCHEMA = """
CREATE TABLE t (a INT, b INT);
CREATE TABLE other (a INT);
CREATE VIEW w AS SELECT b FROM t;
CREATE VIEW whole AS SELECT * FROM t;
CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM t GROUP BY a;
INSERT INTO t SELECT id % 3, id FROM range(6);
"""
CHANGES = "ALTER TABLE t ADD COLUMN c INT; CREATE OR REPLACE VIEW w AS SELECT a, b FROM t"


class Stop:
    """Does something before one of the statements that SQLite is given."""

    def __init__(self, number: int, action: Callable[[], object]) -> None:
        self.number, self.action, self.seen = number, action, 0

    def __call__(self, _cursor: object, _sql: str, _bindings: object) -> bool:
        self.seen += 1
        if self.seen == self.number:
            self.action()
        return True

    @property
    def has_acted(self) -> bool:
        return self.seen >= self.number


@contextmanager
def stopped_at(db: Database, number: int, action: Callable[[], object]) -> Iterator[Stop]:
    raw = db.internals.connection.raw
    stop = Stop(number, action)
    raw.exec_trace = stop
    try:
        yield stop
    finally:
        raw.exec_trace = None


def press_ctrl_c() -> None:
    raise KeyboardInterrupt


def by_ctrl_c(db: Database) -> Callable[[], object]:
    return press_ctrl_c


def by_cancelling(db: Database) -> Callable[[], object]:
    return db.cancel


def roll_back(db: Database) -> Iterator[None]:
    db.sql(f"BEGIN; DELETE FROM t; {CHANGES}")
    yield
    db.sql("ROLLBACK")


def fail_in_a_transaction(db: Database) -> Iterator[None]:
    db.sql("BEGIN; INSERT INTO other VALUES (1)")
    yield
    db.sql(f"{CHANGES}; DELETE FROM t; INSERT INTO t VALUES (1 / 0)")


def fail_alone(db: Database) -> Iterator[None]:
    yield
    db.sql(f"BEGIN; {CHANGES}; DELETE FROM t; INSERT INTO t VALUES (1 / 0)")


def fail_in_a_block(db: Database) -> Iterator[None]:
    yield
    with db.transaction():
        db.sql(f"{CHANGES}; DELETE FROM t")
        raise ZeroDivisionError


def end_to_watch(db: Database) -> Iterator[None]:
    sub = db.monitor("whole", where="a < 2")
    yield
    sub.close()


UNDOING = [roll_back, fail_in_a_transaction, fail_alone, fail_in_a_block, end_to_watch]


class Client:
    def __init__(self, db: Database, view: str, where: str | None = None) -> None:
        self.query = f"SELECT * FROM {view} WHERE {where or 'true'}"
        self.sub, self.copy = db.monitor(view, where=where), Copy()
        self.copy.apply(self.sub.snapshot())

    def check(self, db: Database) -> None:
        for change in self.sub.changes():
            self.copy.apply(change)
        assert Counter(self.copy) == Counter(db.sql(self.query).rows)


@pytest.mark.parametrize("how", [by_cancelling, by_ctrl_c])
@pytest.mark.parametrize("undo", UNDOING)
def test_a_session_agrees_with_its_file(
    undo: Callable[[Database], Iterator[None]],
    how: Callable[[Database], Callable[[], object]],
) -> None:
    for number in count(1, 25):
        with harken.connect() as db:
            db.sql(SCHEMA)
            clients = [Client(db, "m"), Client(db, "whole", "a = 1"), Client(db, "w", "b > 2")]
            steps = undo(db)
            next(steps)
            expected = suppress(HarkenError, KeyboardInterrupt, ZeroDivisionError, StopIteration)
            with stopped_at(db, number, how(db)) as stop, expected:
                next(steps)
            with suppress(HarkenError):
                db.sql("SELECT 1")  # says that the transaction is lost, if it is
            db.rollback()
            assert not db.in_transaction
            for text in ("INSERT INTO t VALUES (1, 7), (2, 8)", "DELETE FROM t WHERE b < 4"):
                db.sql(text)
                for client in clients:
                    client.check(db)
            assert db.sql("SELECT * FROM w").columns == ("b",)
            assert db.sql("SELECT * FROM whole").columns == ("a", "b")
            assert db.sql("SELECT * FROM t").rows == [(1, 4), (2, 5), (1, 7), (2, 8)]
            assert sorted(db.sql("SELECT * FROM m").rows) == [(1, 2), (2, 2)]
        if not stop.has_acted:
            return
