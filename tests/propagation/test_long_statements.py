"""A statement for a change that is more than SQLite takes: the view is evaluated from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import apsw
import pytest

import harken
from harken import Database

JOINED = "SELECT t.a, u.b, v.c FROM t JOIN u ON t.k = u.k JOIN v ON v.k = u.k"
COUNTED = f"SELECT x.a, (SELECT count(*) FROM ({JOINED}) AS y WHERE y.a <= x.a) AS n FROM t AS x"


@pytest.fixture
def db() -> Iterator[Database]:
    with harken.connect() as db:
        for table, column in ("ta", "ub", "vc"):
            db.sql(f"CREATE TABLE {table} (k INT, {column} INT)")
            db.sql(f"INSERT INTO {table} VALUES (1, 1), (1, 1), (2, NULL)")
        yield db


@contextmanager
def alternatives(db: Database, most: int) -> Iterator[None]:
    """SQLite takes no statement with more in one UNION."""
    limit = partial(db.internals.connection.raw.limit, apsw.SQLITE_LIMIT_COMPOUND_SELECT)
    before = limit(most)
    yield
    limit(before)


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
@pytest.mark.parametrize("strategy", ["incremental", "adaptive"])
def test_what_is_too_long_goes_naive(db: Database, kind: str, strategy: str) -> None:
    """By differentials it takes more than 14 alternatives, and 8 from scratch."""
    db.monitoring(strategy)
    db.sql(f"CREATE {kind} w AS {COUNTED}")
    monitor = db.monitor("w")
    for value in (3, 4):
        before = Counter(db.sql(COUNTED).rows)
        with alternatives(db, 10):
            db.sql(f"""
                BEGIN;
                INSERT INTO t VALUES (1, {value}), (2, {value});
                DELETE FROM u WHERE b = 1; INSERT INTO u VALUES (1, {value}), (2, 1);
                INSERT INTO v VALUES (2, {value});
                COMMIT
            """)
        after = Counter(db.sql(COUNTED).rows)
        (change,) = monitor.changes()
        assert (Counter(change.plus), Counter(change.minus)) == (after - before, before - after)
        assert Counter(db.sql("SELECT * FROM w").rows) == after


CHANGED = """
    BEGIN;
    DELETE FROM u; INSERT INTO t VALUES (1, 3), (1, 3), (1, NULL); INSERT INTO u VALUES (1, 3);
    UPDATE v SET c = 2 WHERE k = 1;
    COMMIT
"""


@pytest.mark.parametrize("strategy", ["naive", "incremental", "adaptive"])
def test_what_is_too_long_for_both_states_is_evaluated_in_one_after_the_other(
    db: Database, strategy: str
) -> None:
    """The query itself has no alternatives. What was taken back meanwhile is there again."""
    db.monitoring(strategy)
    db.sql(f"CREATE VIEW w AS {COUNTED}")
    monitor = db.monitor("w")
    before = Counter(db.sql(COUNTED).rows)
    with alternatives(db, 1):
        db.sql(CHANGED)
    after = Counter(db.sql(COUNTED).rows)
    (change,) = monitor.changes()
    assert (Counter(change.plus), Counter(change.minus)) == (after - before, before - after)
    assert Counter(db.sql("SELECT k, b FROM u").rows) == {(1, 3): 1}
    db.sql("DELETE FROM t WHERE a = 3")  # the Δ-sets are empty again
    (change,) = monitor.changes()
    assert Counter(change.minus) == after - Counter(db.sql(COUNTED).rows)


def test_a_row_that_comes_back_takes_the_place_of_the_one_that_no_view_reads(
    db: Database,
) -> None:
    """Of the update, only the row that passes the test of the view is in the Δ-set."""
    db.sql("CREATE TABLE item (k INT PRIMARY KEY, n INT); INSERT INTO item VALUES (1, 10), (2, 1)")
    query = "SELECT k FROM item WHERE n > 5 UNION SELECT a FROM t WHERE a > 5"
    db.monitoring("naive")
    db.sql(f"CREATE VIEW w AS {query}")
    monitor = db.monitor("w")
    with alternatives(db, 2):
        db.sql("UPDATE item SET n = 12 - n")
    (change,) = monitor.changes()
    assert (change.plus, change.minus) == ([(2,)], [(1,)])
    assert sorted(db.sql("SELECT * FROM item").rows) == [(1, 2), (2, 11)]


def test_where_objects_change_what_is_too_long_is_an_error(db: Database) -> None:
    db.amosql("create type item properties (n integer); create item(n) instances :a(1); commit;")
    db.sql(f"CREATE VIEW w AS {COUNTED} UNION ALL SELECT n, n FROM item_n")
    db.monitor("w")
    with alternatives(db, 2), pytest.raises(harken.HarkenError) as caught:
        db.sql("BEGIN; INSERT INTO t VALUES (1, 3); INSERT INTO u VALUES (1, 3); COMMIT")
    assert caught.value.code == "too-complex"
    assert len(db.sql("SELECT * FROM t").rows) == 3
