"""An expression that fails where nobody asks for it does not fail the transaction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken import Change, Database, HarkenError

PACKS = """
create type item properties (name charstring, quantity integer, pack integer);
create item(name, quantity, pack) instances :a("A", 10, 5), :b("B", 10, 2);
create function packs(item i) -> number as select quantity(i) / pack(i);
"""


@pytest.fixture
def db() -> Iterator[Database]:
    with harken.connect(":memory:") as db:
        yield db
        db.rollback()


def rows(db: Database, query: str) -> list[tuple[object, ...]]:
    (result,) = db.sql(query)
    return sorted(result.rows)


AVERAGE = "SELECT x FROM b WHERE x >= (SELECT 1 / count(*) FROM b)"


def test_rows_that_come_to_an_empty_table_do_not_divide_by_its_size(db: Database) -> None:
    db.sql(f"CREATE TABLE b (x INT); CREATE MATERIALIZED VIEW m AS {AVERAGE}")
    db.sql(f"CREATE VIEW v AS {AVERAGE}")
    monitor = db.monitor("v")
    db.sql("INSERT INTO b VALUES (1), (2)")
    assert rows(db, "SELECT * FROM m") == [(1,), (2,)]
    assert monitor.changes() == [Change("v", [(1,), (2,)], [], 1)]
    db.sql("DELETE FROM b")
    assert rows(db, "SELECT * FROM m") == []
    assert monitor.changes() == [Change("v", [], [(1,), (2,)], 2)]


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_a_state_that_fails_is_refused_and_leaves_all_as_it_was(db: Database, kind: str) -> None:
    db.sql("CREATE TABLE t (x INT); INSERT INTO t VALUES (2)")
    db.sql(f"CREATE {kind} v AS SELECT 6 / x AS q FROM t")
    monitor = db.monitor("v")
    with pytest.raises(HarkenError, match="division by zero") as caught:
        db.sql("INSERT INTO t VALUES (3), (0)")
    assert caught.value.code == "division-by-zero"
    assert rows(db, "SELECT * FROM v") == [(3.0,)]
    assert rows(db, "SELECT * FROM t") == [(2,)]
    assert monitor.changes() == []
    db.sql("INSERT INTO t VALUES (3)")
    assert monitor.changes() == [Change("v", [(2.0,)], [], 1)]


def test_a_row_of_both_states_together_is_in_neither(db: Database) -> None:
    db.sql("CREATE TABLE t (k INT, x INT); CREATE TABLE u (k INT, d INT)")
    db.sql("INSERT INTO t VALUES (1, 6); INSERT INTO u VALUES (1, 2)")
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT t.x / u.d AS q FROM t JOIN u ON t.k = u.k")
    db.sql("BEGIN; DELETE FROM t; INSERT INTO u VALUES (1, 0); COMMIT")
    assert rows(db, "SELECT * FROM m") == []


SHARES = (
    "SELECT u.g, (SELECT sum(CAST(600 / x AS INT)) FROM t WHERE t.g = u.g) AS s"
    " FROM (SELECT DISTINCT g FROM t WHERE g < 2) AS u"
)


def test_totals_that_no_view_asks_for_may_fail(db: Database) -> None:
    db.sql("CREATE TABLE t (g INT NOT NULL, x INT)")
    db.sql(f"INSERT INTO t VALUES {', '.join(f'({n % 3}, {n + 1})' for n in range(60))}")
    db.sql(f"CREATE MATERIALIZED VIEW m AS {SHARES}")
    db.sql("INSERT INTO t VALUES (2, 0)")
    for x in (600, 300, 200):
        db.sql(f"INSERT INTO t VALUES (1, {x})")
        assert rows(db, "SELECT * FROM m") == rows(db, SHARES)
    with pytest.raises(HarkenError, match="division by zero"):
        db.sql("INSERT INTO t VALUES (1, 0)")
    assert rows(db, "SELECT * FROM m") == rows(db, SHARES)


def test_what_a_rule_repairs_is_not_reported(db: Database) -> None:
    db.amosql(PACKS)
    db.amosql(
        "create rule repair() as for each item i when pack(i) = 0 do set pack(i) = 1;"
        "activate repair(); commit;"
    )
    monitor = db.monitor("packs")
    a, b = db.variables["a"], db.variables["b"]
    db.amosql("set pack(:a) = 0; set quantity(:b) = 20; commit;")
    (change,) = monitor.changes()
    assert change.plus == [(a, 10.0), (b, 10.0)]
    assert change.minus == [(a, 2.0), (b, 5.0)]
    assert not change.fresh


def test_a_condition_that_fails_at_the_end_fails_the_transaction(db: Database) -> None:
    db.amosql(PACKS)
    db.amosql(
        "create rule many() as for each item i when packs(i) > 3 do print(name(i));"
        "activate many(); commit;"
    )
    db.amosql("set pack(:a) = 0;")
    with pytest.raises(HarkenError, match="division by zero") as caught:
        db.amosql("commit;")
    assert caught.value.message == "in the condition of rule many: division by zero"
    db.rollback()
    assert [result.rows for result in db.amosql("set pack(:a) = 1; commit;")] == [[("A",)]]


def test_a_constraint_is_about_the_end_of_a_transaction(db: Database) -> None:
    db.sql("CREATE TABLE t (x INT, y INT CHECK (x / y > 1))")
    db.sql("BEGIN; INSERT INTO t VALUES (4, 0); UPDATE t SET y = 1; COMMIT")
    with pytest.raises(HarkenError, match="division by zero"):
        db.sql("INSERT INTO t VALUES (4, 0)")
    with pytest.raises(HarkenError, match="does not hold: x = 4, y = 9"):
        db.sql("BEGIN; INSERT INTO t VALUES (4, 0); UPDATE t SET y = 9 WHERE y = 0; COMMIT")
    db.rollback()
    assert rows(db, "SELECT * FROM t") == [(4, 1)]


def test_a_view_that_failed_when_it_was_first_watched_begins_with_all_its_rows(
    tmp_path: Path,
) -> None:
    with harken.connect(str(tmp_path / "t.db")) as db:
        db.sql("CREATE TABLE t (x INT); INSERT INTO t VALUES (0), (1)")
        db.sql("CREATE VIEW v AS SELECT 6 / x AS q FROM t")
        monitors = [
            db.monitor("v"),
            db.monitor("v", durable="d"),
            db.monitor("v", keep=True),
        ]
        db.sql("INSERT INTO t VALUES (2)")
        db.sql("DELETE FROM t WHERE x = 0")
        for monitor in monitors:
            *_, last = monitor.changes()
            assert (last.plus, last.minus, last.fresh) == ([(3.0,), (6.0,)], [], True)
        db.sql("DELETE FROM t WHERE x = 1")
        for monitor in monitors:
            (last,) = monitor.changes()
            assert (last.plus, last.minus, last.fresh) == ([], [(6.0,)], False)


def test_a_view_that_fails_can_be_defined_again(db: Database) -> None:
    db.sql("CREATE TABLE t (x INT); INSERT INTO t VALUES (0), (1)")
    db.sql("CREATE VIEW v AS SELECT 6 / x AS q FROM t")
    monitor = db.monitor("v")
    db.sql("CREATE OR REPLACE VIEW v AS SELECT 6 / (x + 1) AS q FROM t")
    (change,) = monitor.changes()
    assert (change.plus, change.minus, change.fresh) == ([(3.0,), (6.0,)], [], True)


def test_an_event_of_a_function_that_could_not_be_computed(db: Database) -> None:
    db.amosql(PACKS)
    db.amosql("set pack(:a) = 0; commit;")
    db.amosql(
        "create rule seen() on added(packs) as for each item i when quantity(i) > 1"
        " do print(name(i)); activate seen(); commit;"
    )
    results = db.amosql("set pack(:a) = 1; set quantity(:a) = 11; commit;")
    assert [row for result in results for row in result.rows] == []


def test_datalog_is_refused_only_at_the_end(db: Database) -> None:
    db.datalog(".decl e(x: number, y: number)\n.decl r(x: number)\nr(x / y) :- e(x, y).")
    monitor = db.monitor("r")
    db.datalog("e(4, 2).")
    with pytest.raises(HarkenError, match="division by zero"):
        db.datalog("e(1, 0).")
    db.datalog("e(9, 3).")
    assert [change.plus for change in monitor.changes()] == [[(2,)], [(3,)]]
