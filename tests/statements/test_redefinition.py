"""What stands on a view, function, relation or table that is defined again comes along, is told, or
objects by name; and then nothing has changed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Database, HarkenError, Keep

Row = tuple[Any, ...]


def rows(db: Database, name: str) -> list[Row]:
    return sorted(db.sql(f"SELECT * FROM {name}").rows)


@pytest.fixture
def db() -> Database:
    db = harken.connect()
    db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2)")
    db.sql("CREATE VIEW v AS SELECT a FROM t; CREATE MATERIALIZED VIEW m AS SELECT a FROM v")
    return db


# --- views of SQL --------------------------------------------------------------------------


def test_a_materialized_view_follows_a_view_that_is_replaced(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n, sum(a) AS s FROM m")
    told, above = db.monitor("m"), db.monitor("total")
    db.sql("CREATE OR REPLACE VIEW v AS SELECT a FROM t WHERE a > 1")
    assert rows(db, "m") == [(2,)]
    assert rows(db, "total") == [(1, 2)]
    (change,) = told.changes()
    assert (change.plus, change.minus) == ([], [(1,)])
    (change,) = above.changes()
    assert (change.plus, change.minus) == ([(1, 2)], [(2, 3)])
    db.sql("INSERT INTO t VALUES (0), (5)")
    assert rows(db, "m") == [(2,), (5,)]
    assert rows(db, "total") == [(2, 7)]


def test_views_take_the_columns_of_what_they_read(db: Database) -> None:
    db.sql("CREATE VIEW top AS SELECT * FROM v; CREATE MATERIALIZED VIEW kept AS SELECT * FROM top")
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM kept")
    told = db.monitor("kept")
    db.sql("CREATE OR REPLACE VIEW v AS SELECT a, CAST(a AS STRING) AS s FROM t")
    assert rows(db, "top") == rows(db, "kept") == [(1, "1"), (2, "2")]
    (change,) = told.changes()
    assert (sorted(change.plus), sorted(change.minus)) == ([(1, "1"), (2, "2")], [(1,), (2,)])
    db.sql("DELETE FROM t WHERE a = 1; INSERT INTO t VALUES (3), (4)")
    assert rows(db, "kept") == [(2, "2"), (3, "3"), (4, "4")]
    assert rows(db, "n") == [(3,)]


def test_who_no_longer_compiles_is_named_and_nothing_changes(db: Database) -> None:
    db.sql("CREATE VIEW top AS SELECT a + 1 AS b FROM m")
    told = db.monitor("top")
    strict = db.monitor("top", where="b > 2")
    for what, who in (("VIEW v", "m"), ("MATERIALIZED VIEW m", "top"), ("TABLE t", "v")):
        with pytest.raises(HarkenError, match=f"would break {who}: there is no column a") as found:
            db.sql(f"CREATE OR REPLACE {what} AS SELECT 7 AS z")
        assert found.value.code == "in-use"
    with pytest.raises(HarkenError, match=r"would break the monitor of top.* no column b"):
        db.sql("CREATE OR REPLACE VIEW top AS SELECT 1 AS x")
    db.sql("INSERT INTO t VALUES (3)")
    assert rows(db, "top") == [(2,), (3,), (4,)]
    for each in (told, strict):
        (change,) = each.changes()
        assert (change.plus, change.minus) == ([(4,)], [])


def test_a_view_is_not_made_of_itself_through_others(db: Database) -> None:
    """It had no rows from then on."""
    db.sql("CREATE VIEW top AS SELECT a FROM m")
    for kind in ("VIEW", "MATERIALIZED VIEW"):
        with pytest.raises(
            HarkenError, match="v would be defined in terms of itself, through m, top"
        ):
            db.sql(f"CREATE OR REPLACE {kind} v AS SELECT a FROM top")
    assert rows(db, "top") == [(1,), (2,)]


PROJECT = """
CREATE TABLE IF NOT EXISTS sale (shop STRING, pieces INT);
CREATE OR REPLACE VIEW big AS SELECT * FROM sale WHERE pieces > 10;
CREATE OR REPLACE MATERIALIZED VIEW total AS SELECT shop, sum(pieces) AS n FROM big GROUP BY shop;
CREATE OR REPLACE MATERIALIZED VIEW top AS SELECT shop FROM total WHERE n > 20;
CREATE OR REPLACE VIEW shown AS SELECT t.shop, n FROM top AS t JOIN total ON t.shop = total.shop;
"""


def test_a_project_that_is_run_twice(tmp_path: Path) -> None:
    for times in (1, 2, 3):
        with harken.connect(tmp_path / "shop.db") as db:
            db.sql(PROJECT)
            told = db.monitor("shown")
            db.sql(PROJECT)
            assert told.changes() == []
            db.sql("INSERT INTO sale VALUES ('Oslo', 15), ('Rome', 15)")
            assert rows(db, "total") == [("Oslo", 15 * times), ("Rome", 15 * times)]
            assert len(rows(db, "shown")) == (2 if times > 1 else 0)
    with harken.connect(tmp_path / "shop.db") as db:
        db.sql(PROJECT.replace("n > 20", "n > 50"))
        assert rows(db, "shown") == []


def test_plain_becomes_materialized_and_back(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW top AS SELECT max(a) AS a FROM m")
    told = db.monitor("m")
    db.sql("CREATE OR REPLACE VIEW m AS SELECT a + 1 AS a FROM v")
    assert rows(db, "top") == [(3,)]
    db.sql("INSERT INTO t VALUES (5)")
    assert rows(db, "top") == [(6,)]
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT a + 2 AS a FROM v")
    assert rows(db, "top") == [(7,)]
    copy = Counter([(1,), (2,)])
    for change in told.changes():
        copy = copy - Counter(change.minus) + Counter(change.plus)
    assert sorted(copy.elements()) == rows(db, "m") == [(3,), (4,), (7,)]


def test_refresh_computes_a_materialized_view_again(db: Database) -> None:
    db.amosql("create function f() -> bag of integer as select 1; commit;")
    db.sql("CREATE MATERIALIZED VIEW k AS SELECT * FROM m")
    told = db.monitor("k")
    db.internals.connection.run(
        'DELETE FROM "m()"'
    )  # as a file that was damaged, or written by a bug
    assert rows(db, "m") == []
    db.sql("REFRESH MATERIALIZED VIEW m")
    assert rows(db, "m") == rows(db, "k") == [(1,), (2,)]
    assert told.changes() == []


def test_refresh_computes_what_is_kept_above_again(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n, sum(a) AS s FROM m")
    db.sql("INSERT INTO t VALUES (4)")
    db.internals.connection.run('DELETE FROM "m()"')
    db.sql("REFRESH MATERIALIZED VIEW m")
    assert rows(db, "total") == [(3, 7)]
    db.sql("INSERT INTO t VALUES (5)")
    assert rows(db, "total") == [(4, 12)]


# --- transactions and sessions -------------------------------------------------------------


def test_in_a_transaction_that_changes_rows_too(db: Database) -> None:
    told = db.monitor("m")
    db.sql("BEGIN; INSERT INTO t VALUES (3); CREATE OR REPLACE VIEW v AS SELECT a * 10 AS a FROM t")
    db.sql("DELETE FROM t WHERE a = 1; COMMIT")
    assert rows(db, "m") == [(20,), (30,)]
    (change,) = told.changes()
    assert (sorted(change.plus), sorted(change.minus)) == ([(20,), (30,)], [(1,), (2,)])


def test_a_rollback_takes_it_back(db: Database) -> None:
    told = db.monitor("m")
    db.sql("BEGIN; CREATE OR REPLACE VIEW v AS SELECT a, a AS b FROM t WHERE a > 1; ROLLBACK")
    db.sql("BEGIN; CREATE OR REPLACE VIEW v AS SELECT a FROM t WHERE a > 1")
    with pytest.raises(HarkenError):
        db.sql("CREATE OR REPLACE VIEW v AS SELECT nothing FROM t")
    db.sql("COMMIT")
    assert rows(db, "m") == [(2,)]
    db.sql("INSERT INTO t VALUES (0), (4)")
    assert rows(db, "m") == [(2,), (4,)]
    assert [(c.plus, c.minus) for c in told.changes()] == [([], [(1,)]), ([(4,)], [])]


def test_other_columns_with_changes_pending(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW all_of_it AS SELECT * FROM v")
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM all_of_it")
    told = db.monitor("all_of_it"), db.monitor("n")
    db.sql("BEGIN; INSERT INTO t VALUES (3); CREATE OR REPLACE VIEW v AS SELECT a, 0 AS z FROM t")
    assert rows(db, "all_of_it") == [(1, 0), (2, 0), (3, 0)]
    db.sql("DELETE FROM t WHERE a = 2; COMMIT")
    assert rows(db, "all_of_it") == [(1, 0), (3, 0)]
    assert rows(db, "n") == [(2,)]
    (change,) = told[0].changes()
    assert (sorted(change.plus), sorted(change.minus)) == ([(1, 0), (3, 0)], [(1,), (2,)])
    assert told[1].changes() == []


def test_another_session_defines_it_again(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with harken.connect(path) as one, harken.connect(path) as two:
        one.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2)")
        one.sql("CREATE VIEW v AS SELECT a FROM t; CREATE MATERIALIZED VIEW m AS SELECT a FROM v")
        one.sql("CREATE MATERIALIZED VIEW s AS SELECT a, count(*) AS n FROM v GROUP BY a")
        durable = one.monitor("m", durable="mine")
        kept = one.monitor("m", keep=Keep(seconds=60))
        one.sql("INSERT INTO t VALUES (2)")
        two.sql("CREATE OR REPLACE VIEW v AS SELECT a + 10 AS a FROM t")
        assert rows(one, "m") == rows(two, "m") == [(11,), (12,), (12,)]
        one.sql("INSERT INTO t VALUES (1); DELETE FROM t WHERE a = 2")
        two.sql("INSERT INTO t VALUES (4)")
        assert rows(one, "s") == rows(two, "s") == [(11, 2), (14, 1)]
        for told in (durable, kept):
            copy = Counter([(1,), (2,)])
            for change in told.changes():
                if change.fresh:
                    copy.clear()
                copy = copy - Counter(change.minus) + Counter(change.plus)
            assert sorted(copy.elements()) == rows(one, "m") == [(11,), (11,), (14,)]
    with harken.connect(path) as one:
        one.sql("INSERT INTO t VALUES (9)")
        assert rows(one, "m") == [(11,), (11,), (14,), (19,)]


# --- functions, relations, Python ----------------------------------------------------------


def test_a_function_of_amosql() -> None:
    db = harken.connect()
    db.amosql("""
        create function s() -> bag of <integer, integer> as stored;
        add s() = <1, 2>; add s() = <3, 4>;
        create function f() -> bag of <integer x, integer y> as
            select x, y for each integer x, integer y where s() = <x, y>;
        commit;
    """)
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT x, sum(y) AS n FROM f GROUP BY x")
    told = db.monitor("m")
    again = """create function f() -> bag of <integer {name}, integer y> as
        select x, y for each integer x, integer y where {source}() = <x, y> and x > 1; commit;"""
    db.amosql(again.format(name="x", source="s"))
    assert rows(db, "m") == [(3, 4)]
    (change,) = told.changes()
    assert (change.plus, change.minus) == ([], [(1, 2)])
    with pytest.raises(HarkenError, match="would break m: there is no column x"):
        db.amosql(again.format(name="z", source="s"))
    with pytest.raises(HarkenError, match="f would be defined in terms of itself, through m"):
        db.amosql(again.format(name="x", source="m"))
    db.amosql("add s() = <5, 6>; commit;")
    assert rows(db, "m") == [(3, 4), (5, 6)]


def test_an_overload_that_is_deleted() -> None:
    db = harken.connect()
    db.amosql("""
        create type base; create type sub subtype of base;
        create function worth(base) -> integer as stored;
        create base instances :b; create sub instances :s;
        set worth(:b) = 1; set worth(:s) = 2;
        create function worth(sub) -> integer as select 10;
        create function f() -> bag of integer as select worth(b) for each base b;
        commit;
    """)
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT * FROM f")
    assert rows(db, "m") == [(1,), (10,)]
    db.amosql("delete function sub.worth; commit;")
    assert rows(db, "m") == [(1,), (2,)]
    db.amosql("create function worth(sub) -> integer as select 20; commit;")
    assert rows(db, "m") == [(1,), (20,)]


def test_a_relation_of_datalog_gets_rules() -> None:
    db = harken.connect()
    db.datalog("""
        .decl e(x: number, y: number)
        e(1, 2). e(2, 3).
        .decl p(x: number, y: number)
        p(x, y) :- e(x, y).
    """)
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT * FROM p")
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM m")
    told = db.monitor("m")
    db.datalog("p(x, z) :- p(x, y), e(y, z).")
    assert rows(db, "m") == [(1, 2), (1, 3), (2, 3)]
    db.datalog("+p(9, 9).")
    db.datalog("e(4, y) :- e(3, y). e(3, 4).")
    assert rows(db, "n") == [(len(rows(db, "m")),)]
    assert (1, 4) in rows(db, "m")
    copy = Counter([(1, 2), (2, 3)])
    for change in told.changes():
        copy = copy - Counter(change.minus) + Counter(change.plus)
    assert sorted(copy.elements()) == rows(db, "m")
    direct = db.monitor("e")
    direct.close()
    db.datalog(".decl stored(x: number) stored(1).")
    direct = db.monitor("stored")
    with pytest.raises(HarkenError, match="would break the monitor of stored"):
        db.datalog("stored(x) :- e(x, _).")
    assert direct.rows() == [(1,)]


def test_a_table_that_refers_to_a_relation_objects() -> None:
    db = harken.connect()
    db.datalog(".decl e(x: number) e(1).")
    db.sql("CREATE TABLE c (x BIGINT REFERENCES e (x)); INSERT INTO c VALUES (1)")
    with pytest.raises(HarkenError, match="would break c"):
        db.datalog(".decl q(x: number) q(1). e(x) :- q(x).")
    with pytest.raises(HarkenError, match="FOREIGN KEY"):
        db.sql("INSERT INTO c VALUES (5)")


def add_one(x: int) -> int:
    return x + 1


def times_ten(x: int) -> int:
    return x * 10


def with_python(db: Database) -> None:
    db.amosql("""
        create function s() -> bag of integer as stored; add s() = 1; add s() = 3;
        create function f() -> bag of integer as select h(x) for each integer x where s() = x;
        commit;
    """)
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT f AS x FROM f")
    db.sql("CREATE VIEW total AS SELECT sum(f) AS n FROM f")


def test_other_python_behind_a_function() -> None:
    db = harken.connect()
    db.foreign("h", add_one)
    with_python(db)
    told, total = db.monitor("m"), db.monitor("total")
    db.amosql("add s() = 5; commit;")
    db.foreign("h", times_ten)
    assert rows(db, "m") == [(10,), (30,), (50,)]
    assert [sorted(each.plus) for each in told.changes()] == [[(6,)], [(10,), (30,), (50,)]]
    db.amosql("add s() = 7; commit;")
    assert [(each.plus, each.minus) for each in total.changes()] == [
        ([(12,)], [(6,)]),
        ([(90,)], [(12,)]),
        ([(160,)], [(90,)]),
    ]
    with db.transaction(), pytest.raises(HarkenError, match="something depends on h"):
        db.foreign("h", add_one)

    def fails(x: int) -> int:
        raise ValueError(x)

    with pytest.raises(HarkenError):
        db.foreign("h", fails)
    db.amosql("remove s() = 1; commit;")
    assert rows(db, "m") == [(30,), (50,), (70,)]


def test_python_that_is_declared_again() -> None:
    db = harken.connect()
    declared = 'create function h(integer x) -> integer as foreign "{}:{}"; commit;'
    db.amosql(declared.format(__name__, "add_one"))
    with_python(db)
    told = db.monitor("m")
    db.amosql(declared.format(__name__, "add_one"))
    assert told.changes() == []
    db.amosql(declared.format(__name__, "times_ten"))
    assert rows(db, "m") == [(10,), (30,)]
    (change,) = told.changes()
    assert (change.plus, change.minus) == ([(10,), (30,)], [(2,), (4,)])
    db.amosql(declared.format(__name__, "add_one").replace("commit", "rollback"))
    db.amosql("add s() = 2; commit;")
    assert rows(db, "m") == [(10,), (20,), (30,)]


# --- rules ---------------------------------------------------------------------------------


@pytest.mark.parametrize("is_change", [True, False])
def test_rules_act_on_a_redefinition_unless_told_otherwise(is_change: bool) -> None:
    db = harken.connect(settings={"redefinition_triggers": is_change})
    db.sql("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a FROM t")
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT a FROM v")
    said: list[Any] = []
    db.foreign("say", lambda *values: said.append(values))
    db.amosql("""
        create rule on_view() as when for each integer a where v() = a and a > 5 do say("v", a);
        create rule on_table() as when for each integer a where m() = a and a > 5 do say("m", a);
        activate on_view(); activate on_table(); commit;
    """)
    db.sql("INSERT INTO t VALUES (1), (7)")
    assert sorted(said) == [("m", 7), ("v", 7)]
    said.clear()
    db.sql("CREATE OR REPLACE VIEW v AS SELECT a + 5 AS a FROM t")
    of_view = [("v", 6), ("v", 12)] if is_change else []
    assert sorted(said) == [("m", 6), ("m", 12), *of_view]
    said.clear()
    db.sql("INSERT INTO t VALUES (2)")
    assert sorted(said) == [("m", 7), ("v", 7)]


def test_rules_over_a_table_that_is_altered() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a FROM t WHERE a > 5")
    said: list[Any] = []
    db.foreign("say", lambda *values: said.append(values))
    db.amosql("create rule r() as when for each integer a where v() = a do say(a);")
    db.amosql("activate r(); commit;")
    db.sql("INSERT INTO t VALUES (7), (1); ALTER TABLE t ADD COLUMN b INT DEFAULT 0")
    assert said == [(7,)]
    with pytest.raises(HarkenError, match="the rule r has not seen yet") as found:
        db.sql("BEGIN; INSERT INTO t VALUES (8, 0); ALTER TABLE t DROP COLUMN b")
    assert found.value.code == "transaction"
    if db.in_transaction:
        db.sql("ROLLBACK")
    db.sql("INSERT INTO t VALUES (9, 0)")
    assert said == [(7,), (9,)]
    with pytest.raises(HarkenError, match=r"would no longer work|would break the rule r"):
        db.sql("ALTER TABLE t DROP COLUMN a")


# --- ALTER TABLE ---------------------------------------------------------------------------


def test_alter_table_brings_everything_along(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW wide AS SELECT * FROM t")
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM wide")
    told = {name: db.monitor(name) for name in ("t", "m", "wide", "n")}
    db.sql("ALTER TABLE t ADD COLUMN b INT DEFAULT 3")
    assert rows(db, "wide") == [(1, 3), (2, 3)]
    assert [told[name].changes() for name in ("m", "n")] == [[], []]
    (change,) = told["wide"].changes()
    assert (sorted(change.plus), sorted(change.minus)) == ([(1, 3), (2, 3)], [(1,), (2,)])
    assert len(told["t"].changes()) == 1
    db.sql("ALTER TABLE t RENAME COLUMN b TO c; ALTER TABLE t ALTER COLUMN c SET DEFAULT 4")
    db.sql("INSERT INTO t (a) VALUES (9)")
    assert rows(db, "wide") == [(1, 3), (2, 3), (9, 4)]
    assert rows(db, "n") == [(3,)]
    with pytest.raises(HarkenError, match="v, m would no longer work"):
        db.sql("ALTER TABLE t DROP COLUMN a")
    with pytest.raises(HarkenError, match="cannot be renamed: the monitor of"):
        db.sql("ALTER TABLE t RENAME TO u")
    for each in told.values():
        each.close()
    with pytest.raises(HarkenError, match="t cannot be renamed: v, wide mention it"):
        db.sql("ALTER TABLE t RENAME TO u")
    db.sql("ALTER TABLE t DROP COLUMN a CASCADE")
    assert rows(db, "wide") == [(3,), (3,), (4,)]
    with pytest.raises(HarkenError, match="no table or view m"):
        rows(db, "m")


def test_alter_table_with_rows_pending(db: Database) -> None:
    told = db.monitor("m")
    db.sql("BEGIN; INSERT INTO t VALUES (3); ALTER TABLE t ADD COLUMN b INT; DELETE FROM t")
    db.sql("INSERT INTO t VALUES (4, 4); COMMIT")
    assert rows(db, "m") == [(4,)]
    (change,) = told.changes()
    assert (change.plus, sorted(change.minus)) == ([(4,)], [(1,), (2,)])
    db.sql("BEGIN; INSERT INTO t VALUES (5, 5); ALTER TABLE t DROP COLUMN b; ROLLBACK")
    db.sql("INSERT INTO t VALUES (6, 6)")
    assert rows(db, "m") == [(4,), (6,)]


def test_tables_that_refer_to_one_that_is_altered() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE parent (k INT PRIMARY KEY, u INT UNIQUE)")
    db.sql("CREATE TABLE child (k INT REFERENCES parent, u INT REFERENCES parent (u))")
    db.sql("INSERT INTO parent VALUES (1, 10), (2, 20); INSERT INTO child VALUES (1, 20)")
    db.sql("ALTER TABLE parent ADD COLUMN s STRING; INSERT INTO child VALUES (2, 10)")
    for wrong in ("INSERT INTO child VALUES (3, 10)", "DELETE FROM parent WHERE k = 1"):
        with pytest.raises(HarkenError, match="FOREIGN KEY"):
            db.sql(wrong)
    with pytest.raises(HarkenError, match="child would no longer work") as found:
        db.sql("ALTER TABLE parent DROP COLUMN u")
    assert found.value.code == "in-use"
    with pytest.raises(HarkenError, match="FOREIGN KEY"):
        db.sql("CREATE OR REPLACE TABLE parent (k INT PRIMARY KEY, u INT UNIQUE)")
    assert rows(db, "parent") == [(1, 10, None), (2, 20, None)]


def test_tables_may_refer_to_each_other() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE a (k INT PRIMARY KEY); CREATE TABLE b (k INT PRIMARY KEY REFERENCES a)")
    db.sql("CREATE VIEW v AS SELECT k FROM b; CREATE MATERIALIZED VIEW m AS SELECT * FROM v")
    db.sql("CREATE OR REPLACE TABLE a (k INT PRIMARY KEY REFERENCES b, n INT)")
    db.sql("BEGIN; INSERT INTO a VALUES (1, 1); INSERT INTO b VALUES (1); COMMIT")
    assert rows(db, "m") == [(1,)]
    with pytest.raises(HarkenError, match="FOREIGN KEY"):
        db.sql("INSERT INTO b VALUES (2)")
    db.sql("ALTER TABLE a DROP COLUMN n; ALTER TABLE b ADD COLUMN n INT")
    for table in ("a (k) VALUES (3)", "b (k) VALUES (3)"):
        with pytest.raises(HarkenError, match="FOREIGN KEY"):
            db.sql(f"INSERT INTO {table}")
    db.sql("BEGIN; INSERT INTO a VALUES (4); INSERT INTO b VALUES (4, 0); COMMIT")
    assert rows(db, "m") == [(1,), (4,)]


# --- two sessions --------------------------------------------------------------------------

PLAIN = "CREATE OR REPLACE VIEW v AS SELECT a, b FROM t"
STORED = "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a, b FROM t"
WIDER = "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a, b, a AS c FROM t"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ([PLAIN], [STORED]),
        ([PLAIN, STORED], [STORED]),
        ([PLAIN, WIDER], [STORED]),
        ([PLAIN], [WIDER]),
        ([WIDER], [STORED]),
    ],
)
@pytest.mark.parametrize("looks", [True, False])
def test_a_view_whose_table_another_session_drops_is_followed(
    tmp_path: Path, theirs: list[str], ours: list[str], looks: bool
) -> None:
    """The triggers that a session had on the table are out of its sight then."""
    path = str(tmp_path / "x.db")
    with harken.connect(path) as here, harken.connect(path) as there:
        here.sql("CREATE TABLE t (a INT, b INT)")
        here.sql("CREATE MATERIALIZED VIEW v AS SELECT a, b FROM t")
        here.sql("CREATE MATERIALIZED VIEW w AS SELECT a, count(*) AS n FROM v GROUP BY a")
        for session, texts in ((there, theirs), (here, ours)):
            for text in texts:
                session.sql(text)
                if looks:
                    here.sql("INSERT INTO t VALUES (1, 1)")
            session.sql("INSERT INTO t VALUES (2, 2)")
            here.sql("INSERT INTO t VALUES (3, 3)")
            for each in (here, there):
                asked = each.sql("SELECT a, count(*) AS n FROM t GROUP BY a").rows
                assert rows(each, "w") == sorted(asked)
        here.sql(f"BEGIN; {PLAIN}; ROLLBACK; INSERT INTO t VALUES (3, 3)")
        assert dict(rows(here, "w"))[3] == 3
