"""What Harken adds to Datalog: facts that come and go, commits, queries, monitors."""

from __future__ import annotations

from pathlib import Path

import pytest

import harken

CLOSURE = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
edge("a", "b"). edge("b", "c").
"""


@pytest.fixture
def db() -> harken.Database:
    return harken.connect()


def lines(results: harken.database.results.Results) -> list[str]:
    return [line for result in results for line in result.lines()]


def test_facts_come_and_go(db: harken.Database) -> None:
    db.datalog(CLOSURE)
    assert db.datalog('?- path("a", x).').rows == [("b",), ("c",)]
    db.datalog('+edge("c", "d"). -edge("a", "b").')
    assert db.datalog("?- path(x, y).").rows == [("b", "c"), ("b", "d"), ("c", "d")]


def test_steps_are_done_in_their_order(db: harken.Database) -> None:
    program = ".decl p(x: number) ?- p(x). +p(1). ?- p(x). -p(1). +p(2). ?- p(x)."
    assert [result.rows for result in db.datalog(program)] == [[], [(1,)], [(2,)]]


def test_what_is_declared_later_is_there_from_the_first_step(db: harken.Database) -> None:
    assert db.datalog("?- p(x). p(1). .decl p(x: number)").rows == [(1,)]


def test_a_fact_is_a_set_s(db: harken.Database) -> None:
    db.datalog(".decl p(x: number) +p(1). +p(1). -p(2). -p(1).")
    assert db.datalog("?- p(x).").rows == []


def test_a_query_has_a_column_for_each_variable(db: harken.Database) -> None:
    db.datalog(CLOSURE)
    found = db.datalog('?- path(from, to), from != "b", n = strlen(to).')
    assert found.columns == ("from", "to", "n")
    assert found.rows == [("a", "b", 1), ("a", "c", 1)]


def test_a_query_without_variables_says_whether_it_holds(db: harken.Database) -> None:
    db.datalog(CLOSURE)
    results = db.datalog('?- path("a", "c"). ?- path("c", _).')
    assert [result.rows for result in results] == [[(True,)], [(False,)]]


def test_a_query_may_aggregate_negate_and_choose(db: harken.Database) -> None:
    db.datalog(CLOSURE)
    assert db.datalog("?- n = count : { path(_, _) }.").rows == [(3,)]
    assert db.datalog("?- edge(x, y), !edge(y, _).").rows == [("b", "c")]
    assert db.datalog('?- edge(x, "b"); edge("b", x).').rows == [("a",), ("c",)]


def test_a_monitor_tells_the_changes_of_each_commit(db: harken.Database) -> None:
    db.datalog(CLOSURE)
    found = db.datalog(
        """
        .monitor path
        +edge("c", "d").
        +edge("x", "y").
        -edge("x", "y").
        .commit
        -edge("b", "c").
        """
    )
    assert lines(found) == [
        '+path("a", "d")',
        '+path("b", "d")',
        '+path("c", "d")',
        '-path("a", "c")',
        '-path("a", "d")',
        '-path("b", "c")',
        '-path("b", "d")',
    ]
    assert [result.json_lines() for result in found][1] == [
        '{"kind":"change","view":"path","plus":[],'
        '"minus":[["a","c"],["a","d"],["b","c"],["b","d"]]}'
    ]


def test_a_monitor_continues_in_later_texts(db: harken.Database) -> None:
    db.datalog(CLOSURE + ".monitor path, edge")
    assert lines(db.datalog('+edge("c", "a").'))[:1] == ['+path("a", "a")']
    assert '-edge("a", "b")' in lines(db.datalog('-edge("a", "b").'))
    assert '+edge("q", "r")' in lines(db.sql("INSERT INTO edge VALUES ('q', 'r')"))


def test_what_a_failing_text_did_is_no_change(db: harken.Database) -> None:
    db.datalog(CLOSURE + ".monitor path")
    with pytest.raises(harken.HarkenError):
        db.datalog('+edge("c", "d"). +edge(1).')
    assert lines(db.datalog('+edge("b", "b").')) == ['+path("b", "b")']


def test_monitors_of_negation_and_aggregates(db: harken.Database) -> None:
    db.datalog(
        CLOSURE
        + """
        .decl lonely(x: symbol)
        lonely(x) :- edge(_, x), !edge(x, _).
        .decl reach(x: symbol, n: number)
        reach(x, n) :- edge(x, _), n = count : { path(x, _) }.
        .monitor lonely, reach
        """
    )
    assert lines(db.datalog('+edge("c", "d").')) == [
        '-lonely("c")',
        '+lonely("d")',
        '-reach("a", 2)',
        '-reach("b", 1)',
        '+reach("a", 3)',
        '+reach("b", 2)',
        '+reach("c", 1)',
    ]


def test_the_python_monitor_sees_the_same(db: harken.Database) -> None:
    db.datalog(CLOSURE)
    changes = db.monitor("path")
    db.datalog('+edge("c", "d").')
    (change,) = changes.changes()
    assert change.plus == [("a", "d"), ("b", "d"), ("c", "d")]


def test_a_commit_in_a_block_is_refused(db: harken.Database) -> None:
    with pytest.raises(harken.HarkenError) as caught, db.transaction():
        db.datalog(".decl p(x: number) .commit")
    assert caught.value.code == "transaction"


def test_a_text_in_a_block_is_part_of_it(db: harken.Database) -> None:
    db.datalog(".decl p(x: number)")
    with pytest.raises(harken.HarkenError), db.transaction():
        db.datalog("+p(1). ?- p(x). +q(1).")
    assert db.datalog("?- p(x).").rows == []
    with db.transaction():
        db.datalog("+p(1).")
        assert db.in_transaction
    assert db.datalog("?- p(x).").rows == [(1,)]


def test_rules_can_be_added_later(db: harken.Database) -> None:
    db.datalog(".decl p(x: number) .decl q(x: number) q(x) :- p(x). p(1).")
    db.datalog("q(x + 10) :- p(x).")
    assert db.datalog("?- q(x).").rows == [(1,), (11,)]


def test_a_relation_with_facts_can_be_given_rules(db: harken.Database) -> None:
    db.datalog(".decl p, q(x: number) p(1). q(7). .decl r(x: number) r(x) :- q(x).")
    db.datalog("q(x) :- p(x).")
    assert db.datalog("?- q(x).").rows == [(1,), (7,)]
    assert db.datalog("?- r(x).").rows == [(1,), (7,)]
    db.datalog("+q(8). -q(7).")
    assert db.datalog("?- r(x).").rows == [(1,), (8,)]


def test_a_fact_that_also_follows_from_rules_stays(db: harken.Database) -> None:
    db.datalog(".decl p, q(x: number) p(1). q(1). q(2). q(x) :- p(x).")
    db.datalog("-q(1). -q(2).")
    assert db.datalog("?- q(x).").rows == [(1,)]


def test_a_derived_relation_can_be_given_a_fact_first_later(db: harken.Database) -> None:
    db.datalog(".decl p, q, r(x: number) p(1). q(x) :- p(x). r(x) :- q(x).")
    db.datalog(".monitor r")
    assert lines(db.datalog("+q(5).")) == ["+r(5)"]
    assert lines(db.datalog("-q(5). +q(6).")) == ["-r(5)", "+r(6)"]


def test_a_rule_that_makes_a_cycle_later_is_refused(db: harken.Database) -> None:
    db.datalog(".decl s, p, q(x: number) p(x) :- s(x), !q(x). q(x) :- s(x), x > 1.")
    with pytest.raises(harken.HarkenError) as caught:
        db.datalog("q(x) :- p(x).")
    assert caught.value.code == "not-stratified"
    assert "q → p → !q" in caught.value.message
    db.datalog("+s(1). +s(2).")
    assert db.datalog("?- p(x).").rows == [(1,)]


def test_the_same_text_again_changes_nothing(db: harken.Database) -> None:
    db.datalog(CLOSURE)
    before = db.amosql("select definition(f) for each function f;").rows
    db.datalog(CLOSURE)
    assert sorted(db.amosql("select definition(f) for each function f;").rows) == sorted(before)


def test_a_database_that_is_opened_again_knows_its_relations(tmp_path: Path) -> None:
    place = tmp_path / "closure.db"
    with harken.connect(place) as db:
        db.datalog(".type Node <: symbol" + CLOSURE.replace("x: symbol", "x: Node"))
        db.datalog('+path("q", "r"). +edge("c", "d").')
    with harken.connect(place) as db:
        assert db.datalog('?- path("q", x); path("c", x).').rows == [("d",), ("r",)]
        db.datalog(".decl node(x: Node) node(x) :- path(x, _).")
        assert db.datalog("?- node(x).").rows == [("a",), ("b",), ("c",), ("q",)]
        with pytest.raises(harken.HarkenError):
            db.datalog(".decl path(x: symbol, y: symbol)")


def test_a_limit_ends_a_recursion(db: harken.Database) -> None:
    db.datalog(".decl up(x: number) up(0). up(x + 1) :- up(x). .limitsize up(n=100)")
    assert len(db.datalog("?- up(x).").rows) == 100
    assert db.datalog("?- up(7).").rows == [(True,)]


def test_a_limit_that_comes_later_is_a_change_of_what_is_monitored(db: harken.Database) -> None:
    db.datalog(
        ".decl up(x: number) up(1). up(x + 1) :- up(x), x < 5."
        ".decl ten(x: number) ten(10 * x) :- up(x)."
    )
    monitors = {name: db.monitor(name) for name in ("up", "ten")}
    held = {name: set(each.rows()) for name, each in monitors.items()}
    for text in (".limitsize up(n=2)", "+up(0).", ".limitsize up(n=4)", "-up(0).", "-up(1)."):
        db.datalog(text)
        for name, monitor in monitors.items():
            for change in monitor.changes():
                held[name] = held[name] - set(change.minus) | set(change.plus)
            assert held[name] == set(db.datalog(f"?- {name}(x).").rows), (text, name)


def test_output_and_size_come_last(db: harken.Database) -> None:
    results = db.datalog(".output p .printsize p .decl p(x: number) p(1). +p(2).")
    assert lines(results) == [
        "---------------",
        "p",
        "x",
        "===============",
        "1",
        "2",
        "===============",
        "p\t2",
    ]
    assert results[0].json_lines() == [
        '{"kind":"rows","relation":"p","columns":["x"],"types":["integer"],"rows":[[1],[2]]}'
    ]


def test_explain_shows_the_clauses(db: harken.Database) -> None:
    db.datalog(CLOSURE)
    assert "path_charstring,charstring(x, z) ←" in str(db.explain("path", verbose=True))


def test_a_monitor_asked_for_twice_tells_once(db: harken.Database) -> None:
    db.datalog(CLOSURE + ".monitor edge .monitor edge")
    db.datalog(CLOSURE + ".monitor edge")
    assert lines(db.datalog('+edge("x", "y").')) == ['+edge("x", "y")']


def test_a_monitor_of_a_relation_without_attributes(db: harken.Database) -> None:
    db.datalog(".decl p(x: number) .decl some() some() :- p(_). .monitor some")
    assert lines(db.datalog("+p(1). +p(2).")) == ["+some()"]
    assert lines(db.datalog("-p(1).")) == []
    assert lines(db.datalog("-p(2).")) == ["-some()"]


def test_a_database_that_is_only_read(tmp_path: Path) -> None:
    with harken.connect(tmp_path / "p.db") as db:
        db.datalog(CLOSURE)
    with harken.connect(tmp_path / "p.db", read_only=True) as db:
        assert len(db.datalog("?- path(x, y).").rows) == 3
        assert len(db.datalog(".output path").rows) == 3
        with pytest.raises(harken.HarkenError) as caught:
            db.datalog('+edge("x", "y").')
        assert caught.value.code == "read-only"


def test_a_text_joins_a_transaction_that_is_open(db: harken.Database) -> None:
    db.datalog(".decl p(x: number)")
    db.sql("BEGIN")
    db.datalog("+p(1).")
    db.sql("ROLLBACK")
    assert db.datalog("?- p(x).").rows == []


def test_a_relation_may_be_called_as_parts_of_harken_are(db: harken.Database) -> None:
    db.datalog(
        ".decl query, program, fact, p(x: number) p(1). query(x + 1) :- p(x)."
        " program(x + 1) :- query(x). fact(x + 1) :- program(x), !query(x)."
    )
    outputs = db.datalog("?- query(x). ?- fact(x). .output program, query, fact")
    assert [each.rows for each in outputs] == [[(2,)], [(4,)], [(3,)], [(2,)], [(4,)]]
    assert db.datalog("?- query(x), false.").rows == []


def test_a_fact_of_an_aggregate_follows_what_it_is_made_of() -> None:
    with harken.connect() as db:
        program = """
            .decl total(n: number)  total(sum x : { r(x) }).
            .decl low(n: number)    low(range(0, 3)).  low(7).
            .decl r(x: number)      r(1).  r(2).
        """
        db.datalog(program)
        assert db.datalog("?- total(n).").rows == [(3,)]
        assert db.datalog("?- low(n).").rows == [(0,), (1,), (2,), (7,)]
        told = db.monitor("total")
        db.datalog("+r(5).")
        db.datalog(program)
        db.datalog("-r(1). -r(2). -r(5).")
        changes = [(each.plus, each.minus) for each in told.changes()]
        assert changes == [([(8,)], [(3,)]), ([(0,)], [(8,)])]


def test_a_type_that_only_a_cast_names_is_kept(tmp_path: Path) -> None:
    """It stays with the relation, also when the database is opened again."""
    path = tmp_path / "types.db"
    program = (
        '.type T <: symbol .decl a(x: symbol) a("1"). .decl b(x: symbol) b(as(x, T)) :- a(x).'
        " .type N <: number .decl c(n: number)"
        " c(n) :- n = count : { a(as(x, T)) }, 0 < as(n, N). .output b"
    )
    with harken.connect(path) as db:
        assert db.datalog(program).rows == [("1",)]
    with harken.connect(path) as db:
        watching = db.monitor("b")
        db.datalog('+a("2"). .commit')
        assert [change.plus for change in watching.changes()] == [[("2",)]]
        assert db.datalog("?- c(n).").rows == [(2,)]
