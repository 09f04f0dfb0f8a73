"""A relation of Datalog is a table of SQL and a function of AMOSQL, and the other way round."""

from __future__ import annotations

from pathlib import Path

import pytest

import harken
from harken.engines.placement.query import refuse_resident
from harken.ir.assemble import assemble
from harken.planner.prepare import prepare


@pytest.fixture
def db() -> harken.Database:
    return harken.connect()


def test_a_relation_is_a_table(db: harken.Database) -> None:
    db.datalog('.decl Edge(From: symbol, weight: float) Edge("a", 1.5).')
    db.sql("INSERT INTO edge VALUES ('b', 2)")
    found = db.sql("SELECT weight, `from` FROM edge ORDER BY weight")
    assert found.columns == ("weight", "from")
    assert found.rows == [(1.5, "a"), (2.0, "b")]
    db.sql("UPDATE edge SET weight = 3 WHERE `from` = 'b'; DELETE FROM edge WHERE weight < 2")
    assert db.datalog("?- Edge(x, w).").rows == [("b", 3.0)]


def test_a_row_that_is_there_is_not_inserted_again(db: harken.Database) -> None:
    db.datalog(".decl p(x: number, y: number) p(1, 2). .monitor p")
    db.sql("INSERT INTO p VALUES (1, 2), (1, 3), (1, 3)")
    assert db.sql("SELECT * FROM p").rows == [(1, 2), (1, 3)]


def test_attributes_that_differ_in_case_only(db: harken.Database) -> None:
    """The one in lower case keeps its name in SQL, the others are numbered."""
    db.datalog(".decl r(X: number, x: number) r(1, 2). .decl s(y: number) s(x) :- r(x, _).")
    assert db.sql("SELECT x, x_2 FROM r").rows == [(2, 1)]
    db.sql("INSERT INTO r (x, x_2) VALUES (5, 3); UPDATE r SET x_2 = 7 WHERE x = 2")
    assert db.sql("SELECT * FROM r ORDER BY x_2").rows == [(3, 5), (7, 2)]
    assert db.datalog("?- r(X, x).").rows == [(3, 5), (7, 2)]


REFUSED = {
    "INSERT INTO ready VALUES (false)": "ready has no attributes: its column is true",
    "UPDATE ready SET ready = false": "ready has no attributes: its column is true",
    "INSERT INTO u VALUES (1, -1)": "u.n is unsigned, but -1 is below zero",
    "UPDATE u SET n = n - 5": "u.n is unsigned, but -3 is below zero",
    """MERGE INTO u USING (SELECT -7 AS n) AS s ON u.n = s.n
    WHEN NOT MATCHED THEN INSERT VALUES (0, s.n)""": "u.n is unsigned, but -7 is below zero",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_sql_stores_only_what_datalog_could_state(db: harken.Database, statement: str) -> None:
    db.datalog(
        ".type Count <: unsigned .decl u(x: number, n: Count) u(1, 2). .decl ready() ready()."
    )
    with pytest.raises(harken.HarkenError) as caught:
        db.sql(statement)
    assert caught.value.code == "bad-value"
    assert REFUSED[statement] in caught.value.message
    assert db.datalog("?- u(x, n), ready().").rows == [(1, 2)]


def test_rows_that_are_loaded_are_what_datalog_could_state(db: harken.Database) -> None:
    db.datalog(".decl u(n: unsigned) .decl ready()")
    for name in ("u", "ready"):
        with pytest.raises(harken.HarkenError) as caught:
            db.load(name, [(-1,)] if name == "u" else [(False,)])
        assert caught.value.code == "bad-value"
    db.load("u", [(1,)])
    db.load("ready", [(True,)])
    assert db.datalog("?- u(n), ready().").rows == [(1,)]


def test_names_that_sqlite_keeps_for_itself(db: harken.Database) -> None:
    db.datalog(".decl sqlite_master, sqlite_far(x: number, y: number) sqlite_master(1, 2).")
    db.datalog("sqlite_far(x, z) :- sqlite_master(x, y), sqlite_master(y, z).")
    far = db.monitor("sqlite_far")
    db.sql("INSERT INTO sqlite_master VALUES (2, 3)")
    assert [change.plus for change in far.changes()] == [[(1, 3)]]


def test_a_derived_relation_is_a_view(db: harken.Database) -> None:
    db.datalog(".decl p, q(x: number) p(1). p(2). q(x * 10) :- p(x).")
    assert db.sql("SELECT sum(x) FROM q").rows == [(30,)]
    with pytest.raises(harken.HarkenError) as caught:
        db.sql("INSERT INTO q VALUES (5)")
    assert caught.value.code == "not-updatable"


def test_a_view_of_sql_over_a_recursive_relation(db: harken.Database) -> None:
    db.datalog(
        ".decl e, path(x: number, y: number) e(1, 2). e(2, 3)."
        " path(x, y) :- e(x, y). path(x, z) :- path(x, y), e(y, z)."
    )
    db.sql("CREATE VIEW reach AS SELECT x, count(*) AS n FROM path GROUP BY x")
    changes = db.monitor("reach")
    db.datalog("+e(3, 4).")
    (change,) = changes.changes()
    assert change.plus == [(1, 3), (2, 2), (3, 1)]
    assert change.minus == [(1, 2), (2, 1)]


def test_a_materialized_view_over_a_recursive_relation(db: harken.Database) -> None:
    db.datalog(
        ".decl e, path(x: number, y: number) e(1, 2). e(2, 3)."
        " path(x, y) :- e(x, y). path(x, z) :- path(x, y), e(y, z)."
    )
    db.sql("CREATE MATERIALIZED VIEW reach AS SELECT x, count(*) AS n FROM path GROUP BY x")
    db.datalog("-e(1, 2).")
    assert db.sql("SELECT * FROM reach").rows == [(2, 1)]


def test_rules_read_tables_and_views(db: harken.Database) -> None:
    db.sql(
        """
        CREATE TABLE item (price DECIMAL(9, 2), name STRING PRIMARY KEY, stock INT);
        INSERT INTO item VALUES (1.50, 'pen', 3), (2.50, 'ink', NULL), (9.00, 'pad', 0);
        CREATE VIEW cheap AS SELECT name FROM item WHERE price < 5;
        """
    )
    db.datalog(
        """
        .decl sold_out(name: symbol)
        sold_out(n) :- item(_, n, s), s < 1.
        .decl known(name: symbol, stock: number)
        known(n, s) :- item(_, n, s).
        .decl named(name: symbol)
        named(n) :- item(_, n, _), !cheap(n).
        """
    )
    assert db.datalog("?- sold_out(x).").rows == [("pad",)]
    assert db.datalog("?- named(x).").rows == [("pad",)]
    assert db.datalog('?- item(p, n, _), n = "pen".').rows[0][1] == "pen"


def test_a_row_with_null_is_not_there_where_its_value_is_asked_for(db: harken.Database) -> None:
    db.sql("CREATE TABLE t (x INT, y INT); INSERT INTO t VALUES (1, NULL), (2, 3), (2, 3)")
    assert db.datalog("?- t(x, _).").rows == [(1,), (2,)]
    assert db.datalog("?- t(x, y).").rows == [(2, 3)]
    assert db.datalog("?- n = count : { t(x, y) }.").rows == [(1,)]
    assert db.datalog("?- t(x, _), !t(x, 3).").rows == [(1,)]


def test_facts_of_a_table(db: harken.Database) -> None:
    db.sql("CREATE TABLE t (x INT, y STRING, PRIMARY KEY (x)); CREATE TABLE b (x INT)")
    db.datalog('+t(1, "a"). +t(1, "a"). +b(7). +b(7). +t(2, "b"). -t(2, "b").')
    assert db.sql("SELECT * FROM t").rows == [(1, "a")]
    assert db.sql("SELECT * FROM b").rows == [(7,)]
    with pytest.raises(harken.HarkenError) as caught:
        db.datalog('+t(1, "z").')
    assert caught.value.code == "row-exists"


def test_a_view_takes_no_facts_and_no_rules(db: harken.Database) -> None:
    db.sql("CREATE TABLE t (x INT); CREATE VIEW v AS SELECT x FROM t")
    for program in ("+v(1).", "v(x) :- t(x).", "t(x) :- v(x)."):
        with pytest.raises(harken.HarkenError) as caught:
            db.datalog(program)
        assert caught.value.code == "not-updatable"


def test_a_table_can_be_declared_as_it_is(db: harken.Database) -> None:
    db.sql("CREATE TABLE t (x INT, y STRING)")
    db.datalog('.decl t(x: number, y: symbol) t(1, "a").')
    assert db.sql("SELECT * FROM t").rows == [(1, "a")]
    with pytest.raises(harken.HarkenError):
        db.datalog(".decl t(x: number)")


def test_functions_of_amosql_are_relations(db: harken.Database) -> None:
    db.amosql(
        """
        create type item properties (name charstring, quantity integer);
        create item(name, quantity) instances :pen("pen", 12), :ink("ink", 3);
        commit;
        """
    )
    db.datalog(".decl low(name: symbol) low(n) :- quantity(i, q), name(i, n), q < 10.")
    assert db.datalog("?- low(x).").rows == [("ink",)]
    assert db.amosql("low();").rows == [("ink",)]


def test_a_rule_of_amosql_acts_on_a_relation(db: harken.Database) -> None:
    db.datalog(".decl p, q(x: number) q(x) :- p(x), x > 5.")
    db.amosql(
        """
        create rule tell() as for each integer x when q() = x do print(x);
        activate tell();
        commit;
        """
    )
    printed = [result.rows for result in db.datalog("+p(3). +p(7).")]
    assert printed == [[(7,)]]


def test_what_a_relation_needs_cannot_be_dropped(db: harken.Database) -> None:
    db.datalog(".decl p, q, r(x: number) q(x) :- p(x), !s(x). .decl s(x: number) r(x) :- q(x).")
    for statement in ("DROP TABLE p", "DROP TABLE s", "DROP VIEW q"):
        with pytest.raises(harken.HarkenError) as caught:
            db.sql(statement)
        assert caught.value.code == "in-use"
    db.sql("DROP TABLE p CASCADE")
    with pytest.raises(harken.HarkenError):
        db.datalog("?- r(x).")


def test_relations_that_need_each_other_are_dropped_together(db: harken.Database) -> None:
    db.datalog(".decl a, b, c(x: number) a(x) :- b(x). b(x) :- a(x). b(x) :- c(x). +a(1).")
    db.sql("DROP VIEW a CASCADE")
    db.datalog(".decl a, b(x: number) a(x) :- b(x). b(x) :- c(x). +c(2).")
    assert db.datalog("?- a(x).").rows == [(2,)]


def test_a_view_keeps_a_relation_as_it_is(db: harken.Database) -> None:
    db.datalog(".decl p(x: number) p(1).")
    db.sql("CREATE VIEW v AS SELECT x + 1 AS y FROM p")
    db.datalog("p(x + 10) :- p(x), x < 10.")
    assert sorted(db.sql("SELECT y FROM v").rows) == [(2,), (12,)]


def test_names_may_differ_in_case_only(db: harken.Database) -> None:
    db.datalog(
        """
        .decl Edge(x: number, y: number)  .decl edge(x: number, y: number)  .decl EDGE()
        edge(x, y), edge(y, x) :- Edge(x, y).
        Edge(1, 2).
        """
    )
    assert db.datalog("?- Edge(x, y).").rows == [(1, 2)]
    assert db.datalog("?- edge(x, y).").rows == [(1, 2), (2, 1)]
    assert db.datalog("?- EDGE().").rows == [(False,)]
    told = {name: db.monitor(name) for name in ("Edge", "edge")}
    db.datalog("+Edge(2, 3).")
    assert [each.plus for each in told["Edge"].changes()] == [[(2, 3)]]
    assert [each.plus for each in told["edge"].changes()] == [[(2, 3), (3, 2)]]
    with pytest.raises(harken.HarkenError) as caught:
        db.datalog("?- eDge(x, y).")
    assert caught.value.code == "unknown-relation"


def test_sql_tells_case_apart_only_where_it_must(db: harken.Database) -> None:
    db.datalog(".decl Edge(x: number) .decl edge(x: number) .decl Node(x: number)")
    db.datalog("Edge(1). edge(2). Node(3).")
    assert db.sql("SELECT x FROM node").rows == [(3,)]
    assert db.sql("SELECT x FROM Edge").rows == db.sql('SELECT x FROM "Edge"').rows == [(1,)]
    assert db.sql("SELECT a.x, b.x FROM edge AS a, Edge AS b").rows == [(2, 1)]
    db.sql("INSERT INTO Edge VALUES (4); DELETE FROM edge")
    assert db.datalog("?- Edge(x).").rows == [(1,), (4,)]
    assert db.datalog("?- edge(x).").rows == []
    with pytest.raises(harken.HarkenError) as caught:
        db.sql("SELECT x FROM EDGE")
    assert caught.value.code == "ambiguous"
    assert caught.value.message == "EDGE may mean Edge or edge"
    db.sql("DROP TABLE Edge")
    assert db.sql("SELECT count(*) FROM EDGE").rows == [(0,)]


def test_a_view_of_sql_never_comes_to_mean_another_relation(db: harken.Database) -> None:
    db.datalog(".decl Edge(x: number) Edge(1).")
    db.sql("CREATE VIEW v AS SELECT x FROM edge")
    with pytest.raises(harken.HarkenError) as caught:
        db.datalog(".decl edge(x: number)")
    assert caught.value.code == "exists"
    assert "the SQL view v" in caught.value.message
    assert db.sql("SELECT x FROM v").rows == [(1,)]


def test_names_that_differ_in_case_are_kept_apart_in_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "names.db")
    program = ".decl A(x: number) .decl a(x: number) A(1). a(2). a(x + 1) :- A(x), a(x)."
    with harken.connect(path) as db:
        db.datalog(program)
        db.amosql("create function Size(integer) -> integer; set Size(1) = 5;")
        db.amosql("create function size(integer) -> integer; set size(1) = 6;")
    with harken.connect(path) as db:
        db.datalog("+A(2).")
        assert db.datalog("?- A(x).").rows == [(1,), (2,)]
        assert db.datalog("?- a(x).").rows == [(2,), (3,)]
        assert db.amosql("select Size(1), size(1);").rows == [(5, 6)]


def test_a_relation_may_be_called_as_something_built_in_is(db: harken.Database) -> None:
    db.datalog(
        """
        .decl name(x: symbol) .decl calls(f: symbol, g: symbol) .decl print(x: symbol)
        name("f"). name("g"). calls("f", "g").
        print(x) :- name(x), !calls(_, x).
        """
    )
    assert db.datalog("?- print(x).").rows == [("f",)]
    assert ("print",) in db.amosql("select name(f) for each function f;").rows
    assert db.sql("SELECT x FROM name ORDER BY x").rows == [("f",), ("g",)]


def test_a_relation_of_datalog_in_an_expression_of_amosql(db: harken.Database) -> None:
    db.datalog(".decl p, q(x: number) p(1). p(2). q(x) :- p(x), x > 1.")
    assert db.amosql("count(q());").rows == [(1,)]


def test_outputs_of_views_with_nulls(db: harken.Database) -> None:
    db.sql("CREATE TABLE t (x INT, y INT); INSERT INTO t VALUES (1, NULL), (2, 3), (2, 3)")
    db.sql("CREATE VIEW v AS SELECT y, x FROM t; CREATE VIEW w AS SELECT DISTINCT y FROM t")
    program = ".decl p, q(x: number) p(x) :- v(_, x). q(x) :- p(x). "
    outputs = db.datalog(program + ".output v, w, p, q .output t .printsize t")
    assert [each.rows for each in outputs] == [
        [(None, 1), (3, 2)],
        [(None,), (3,)],
        [(1,), (2,)],
        [(1,), (2,)],
        [(1, None), (2, 3)],
        [("t", 2)],
    ]


def test_relations_in_the_lake(tmp_path: Path) -> None:
    """As far as rows can be brought here, which takes no Spark."""
    program = """
        .decl edge(x: symbol, y: symbol)
        .decl path(x: symbol, y: symbol)
        path(x, y) :- edge(x, y).
        path(x, z) :- path(x, y), edge(y, z).
        edge("a", "b"). edge("b", "c"). edge("a", "b").
        .monitor path
        +edge("c", "d"). +path("q", "r").
        .commit
        -edge("a", "b").
    """
    with harken.connect(tmp_path / "lake.db", engine="lake") as db:
        first, second = db.datalog(program)
    assert first.rows == [("a", "d"), ("b", "d"), ("c", "d"), ("q", "r")]
    assert second.lines() == ['-path("a", "b")', '-path("a", "c")', '-path("a", "d")']
    with harken.connect(tmp_path / "lake.db") as db:
        found = db.datalog("?- path(x, y).").rows
    assert found == [("b", "c"), ("b", "d"), ("c", "d"), ("q", "r")]


def test_what_spark_cannot_compute_is_refused_by_name(db: harken.Database) -> None:
    db.datalog('.decl p(x: number) .decl q(x: number) q(x bshl 1) :- p(x), match("1", "1").')
    catalog = db.internals.catalog
    plan = prepare(assemble(catalog.function("q()").relation, (), catalog), catalog.hierarchy)
    with pytest.raises(harken.HarkenError) as caught:
        refuse_resident(plan)
    assert "matches_pattern, shift_left" in caught.value.message


def test_names_that_differ_in_case_need_an_alias_inside_of_each_other(db: harken.Database) -> None:
    """`Ee.x` could mean either, and SQL would take the inner one."""
    db.datalog(".decl Ee(x: number) .decl eE(x: number) Ee(1). Ee(3). eE(3).")
    for text in (
        "SELECT * FROM Ee WHERE EXISTS (SELECT 1 FROM eE WHERE eE.x = Ee.x)",
        "DELETE FROM Ee USING eE WHERE eE.x = Ee.x",
    ):
        with pytest.raises(harken.HarkenError, match="two items of FROM") as caught:
            db.sql(text)
        assert caught.value.code == "ambiguous"
    inside = "SELECT 1 FROM eE AS e WHERE e.x = Ee.x"
    assert db.sql(f"SELECT * FROM Ee WHERE EXISTS ({inside})").rows == [(3,)]
