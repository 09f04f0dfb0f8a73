"""The functions that SQLite calls, where it is not for a row."""

from __future__ import annotations

import datetime

import apsw

from harken.engines.sqlite.functions import register
from harken.limits import UNLIMITED, Watch

NOW = datetime.datetime(2001, 2, 3, tzinfo=datetime.UTC)


def test_planning_a_statement_may_call_a_function_with_arguments_of_another_type() -> None:
    """With statistics, SQLite guesses how many rows of an index equal a constant call: it calls
    the function with its arguments converted to the type of the index."""
    connection = apsw.Connection(":memory:")
    register(
        connection, lambda: datetime.datetime(2001, 2, 3, tzinfo=datetime.UTC), Watch(UNLIMITED)
    )
    connection.execute("CREATE TABLE t (a TEXT, b INTEGER)")
    connection.execute("CREATE INDEX i ON t (a)")
    names = [(str(number % 50), number) for number in range(1_000)]
    connection.executemany("INSERT INTO t VALUES (?, ?)", names)
    connection.execute("ANALYZE")
    statement = "SELECT count(*) FROM t WHERE a = harken_substring('x49', 2, 2)"
    assert connection.execute(statement).fetchall() == [(20,)]


def test_what_can_fail_is_not_called_before_it_is_needed() -> None:
    connection = apsw.Connection(":memory:")
    register(
        connection, lambda: datetime.datetime(2001, 2, 3, tzinfo=datetime.UTC), Watch(UNLIMITED)
    )
    connection.execute("CREATE TABLE t (a INTEGER)")
    connection.execute("INSERT INTO t VALUES (1), (2)")
    statement = "SELECT CASE WHEN a > 5 THEN harken_sqrt(-1.0) ELSE a END FROM t"
    assert connection.execute(statement).fetchall() == [(1,), (2,)]
