"""Running programs: the paper's example, priorities, options, limits, calls, other languages."""

from collections.abc import Iterator
from typing import Any

import pytest

import harken
from harken import Database, HarkenError
from tests.consumers.programs.paper import R1, STATE


@pytest.fixture
def db() -> Iterator[Database]:
    with harken.connect() as made:
        yield made


def rows(db: Database, relation: str) -> list[tuple[Any, ...]]:
    return sorted(db.sql(f"SELECT * FROM {relation}").rows)


def failure(db: Database, text: str) -> HarkenError:
    with pytest.raises(HarkenError) as caught:
        db.program(text).run(limit=50)
    return caught.value


# --- the paper's example ---------------------------------------------------------------------


def test_the_states_of_tables_1_to_3(db: Database) -> None:
    run = db.program(f"{STATE}{R1}\n.semantics instance").run(trace=True)
    assert list(run.trace) == [
        "cycle 1: conflict set r1(x=3, z=1, y=2, w=1), r1(x=2, z=0, y=0, w=3), "
        "r1(x=0, z=1, y=2, w=1)",
        "cycle 1: fires r1(x=3, z=1, y=2, w=1)",
        "cycle 1: effect -c('gamma', 2, 1), +c('gamma', 3, 1)",
        "cycle 2: conflict set r1(x=2, z=0, y=0, w=3)",
        "cycle 2: fires r1(x=2, z=0, y=0, w=3)",
        "cycle 2: effect +c('gamma', 2, 3)",
        "cycle 3: conflict set r1(x=3, z=1, y=2, w=3)",
        "cycle 3: fires r1(x=3, z=1, y=2, w=3)",
        "cycle 3: effect +c('gamma', 3, 3)",
    ]
    assert [row[1:] for row in rows(db, "c")] == [(0, 3), (2, 3), (3, 1), (3, 3)]


def test_set_oriented_it_fires_twice(db: Database) -> None:
    run = db.program(STATE + R1).run()
    assert (run.firings, run.by_rule) == (2, {"r1": 2})
    assert [row[1:] for row in rows(db, "c")] == [(0, 1), (0, 3), (2, 3), (3, 1), (3, 3)]


def test_the_smallest_tuple_first_never_settles_and_leaves_no_trace(db: Database) -> None:
    program = db.program(f"{STATE}{R1}\n.semantics instance")
    with pytest.raises(HarkenError) as caught:
        program.run(choose=lambda found: min(found, key=lambda each: each.values), limit=500)
    assert caught.value.code == "no-fixpoint"
    assert "the rule r1 fires without end" in caught.value.message
    assert "every 2 firings the same state is back" in caught.value.message
    assert "c('gamma', 2, 1)" in caught.value.message
    assert [row[1:] for row in rows(db, "c")] == [(0, 3), (2, 1)]


# --- semantics -------------------------------------------------------------------------------


def test_a_fact_inserted_and_deleted_by_one_firing_stays_as_it_was(db: Database) -> None:
    text = ".decl a(x: number) .decl b(x: number) a(1). a(2). b(1).\n"
    assert db.program(f"{text}rule r: a(x) -> b(x), !b(x).").run().firings == 0
    assert rows(db, "b") == [(1,)]


def test_set_oriented_an_insertion_and_a_deletion_of_two_instances_cancel(db: Database) -> None:
    text = ".decl a(x: number, y: number) .decl b(x: number) a(1, 2). a(2, 1).\n"
    assert db.program(f"{text}rule r: a(x, y) -> b(x), !b(y).").run().firings == 0


@pytest.mark.parametrize(
    ("order", "wins"),
    [
        ("", "r1"),
        (".priority r2 > r1", "r2"),
        (".priority r3, r2 > r1", "r2"),
        (".priority r3 > r2 > r1", "r3"),
    ],
)
def test_priority_and_the_order_of_the_text(db: Database, order: str, wins: str) -> None:
    rules = "\n".join(f'rule r{i}: a(x), !won(_) -> won("r{i}").' for i in (1, 2, 3))
    db.program(f".decl a(x: number) .decl won(r: symbol) a(1).\n{rules}\n{order}").run()
    assert rows(db, "won") == [(wins,)]


def test_a_higher_number_goes_first_and_no_number_is_0(db: Database) -> None:
    text = """
    .decl a(x: number) .decl won(r: symbol) a(1).
    rule low [priority -1]: a(x), !won(_) -> won("low").
    rule middle: a(x), !won(_) -> won("middle").
    rule high priority 2: a(x), !won(_) -> won("high").
    """
    assert db.program(text).run(trace=True).by_rule == {"high": 1}


def test_a_cycle_of_priorities_is_an_error(db: Database) -> None:
    rules = "rule r1 [priority 2]: a(x) -> a(1). rule r2 [priority 1]: a(x) -> a(2)."
    error = failure(db, f".decl a(x: number) {rules} .priority r2 > r1")
    assert error.code == "priority-cycle"
    assert "r1 > r2 > r1" in error.message or "r2 > r1 > r2" in error.message


def test_semantics_of_single_rules(db: Database) -> None:
    text = """
    .decl a(x: number) .decl b(x: number) .decl c(x: number) a(1). a(2). a(3).
    rule one [instance]: a(x), !b(x) -> b(x).
    rule all: a(x), !c(x) -> c(x).
    """
    assert db.program(text).run().by_rule == {"one": 3, "all": 1}
    assert db.program(
        "rule r1: a(x) -> !b(x). rule r2: a(x) -> !c(x).\n.semantics instance r2"
    ).run().by_rule == {"r1": 1, "r2": 3}


def test_bodies_have_aggregates_arithmetic_and_recursive_relations(db: Database) -> None:
    text = """
    .decl edge(x: number, y: number) edge(1, 2). edge(2, 3). edge(3, 4).
    .decl path(x: number, y: number)
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
    .decl far(x: number, n: number)
    rule cut [instance]: path(1, x), n = count : { path(1, _) }, n > 1, edge(y, x), x > 3
        -> !edge(y, x), far(x, n + 1).
    """
    assert db.program(text).run().firings == 1
    assert rows(db, "far") == [(4, 4)]
    assert rows(db, "path") == [(1, 2), (1, 3), (2, 3)]


def test_a_disjunction_is_one_rule(db: Database) -> None:
    text = ".decl a(x: number) .decl b(x: number) .decl c(x: number) a(1). b(2).\n"
    assert db.program(f"{text}rule r: a(x); b(x) -> c(x).").run().firings == 1
    assert rows(db, "c") == [(1,), (2,)]


def test_heads_without_a_body_and_relations_without_attributes(db: Database) -> None:
    text = ".decl on() .decl n(x: number) rule r: !on() -> on(), n(3)."
    assert db.program(text).run().firings == 1
    assert rows(db, "n") == [(3,)]


# --- choosing --------------------------------------------------------------------------------


def test_choose_picks_among_candidates(db: Database) -> None:
    text = ".decl a(x: number) .decl last(x: number) a(1). a(2). a(3).\n"
    rule = "rule r: a(x) -> !a(x), last(x)."
    seen: list[list[Any]] = []

    def smallest(found: Any) -> Any:
        seen.append([each.values for each in found])
        return found[-1]

    db.program(f"{text}{rule}\n.semantics instance").run(choose=smallest)
    assert seen == [[(3,), (2,), (1,)], [(3,), (2,)], [(3,)]]
    with pytest.raises(HarkenError, match="not one of the candidates"):
        db.program("rule r: last(x) -> !last(x).").run(choose=lambda _: "r")  # type: ignore[arg-type,return-value]


def test_refraction_lets_no_instance_fire_twice(db: Database) -> None:
    text = ".decl a(x: number) .decl b(x: number) a(1).\n"
    rules = "rule on [instance]: a(x), !b(x) -> b(x). rule off [instance]: a(x), b(x) -> !b(x)."
    assert failure(db, text + rules).code == "no-fixpoint"
    assert db.program(f"{rules}\n.refraction").run().by_rule == {"on": 1, "off": 1}


def test_with_timestamps_a_fact_that_is_inserted_again_fires_again(db: Database) -> None:
    text = """
    .decl go(x: number) .decl n(x: number) .decl log(x: number)
    go(1). n(1).
    rule count [instance]: go(x), n(k), k < 4 -> !n(k), n(k + 1), go(x).
    rule seen [instance]: go(x) -> log(x).
    .semantics instance
    .timestamps
    .refraction
    .resolution lex
    """
    run = db.program(text).run(limit=50)
    assert run.by_rule["count"] == 3
    assert run.by_rule["seen"] >= 1
    assert rows(db, "n") == [(4,)]


@pytest.mark.parametrize(
    ("resolution", "order"), [("lex", [2, 1, 3]), ("mea", [1, 2, 3]), ("salience", [2, 1, 3])]
)
def test_the_most_recent_facts_go_first(db: Database, resolution: str, order: list[int]) -> None:
    """goal(1) is the newest goal, item(2) the newest item."""
    text = f"""
    .decl goal(x: number) .decl item(x: number) .decl done(x: number, n: number)
    .decl turn(n: number)
    item(1). turn(0). goal(3). goal(2). item(3). goal(1). item(2).
    rule r [instance]: goal(x), item(x), n = count : {{ done(_, _) }}, !done(x, _) -> done(x, n).
    .semantics instance
    .timestamps
    .refraction
    .resolution {resolution}
    """
    db.program(text).run()
    found = [x for x, _ in sorted(rows(db, "done"), key=lambda row: row[1])]
    assert found == order


# --- acting ----------------------------------------------------------------------------------


def test_procedures_are_called_once_for_each_new_solution(db: Database) -> None:
    called: list[tuple[Any, ...]] = []
    db.foreign("tell", lambda *given: called.append(given))
    text = """
    .decl a(x: number) .decl b(x: number) a(1). a(2).
    rule r [instance]: a(x), !b(x) -> b(x), tell(x, "new", x * 2).
    rule again [instance]: b(1), a(2) -> !a(2).
    """
    db.program(text).run()
    assert sorted(called) == [(1, "new", 2), (2, "new", 4)]


def test_amosql_procedures_are_called(db: Database) -> None:
    db.amosql(
        "create function seen(integer x) -> integer; create function note(integer x) -> boolean as"
        " set seen(x) = x + 1;"
    )
    db.program(".decl a(x: number) a(4). rule r: a(x) -> note(x).").run()
    assert rows(db, "seen") == [(4, 5)]


def test_facts_can_be_tables_and_functions(db: Database) -> None:
    db.sql("CREATE TABLE stock (item TEXT, amount INT, PRIMARY KEY (item))")
    db.sql("INSERT INTO stock VALUES ('pen', 3), ('ink', 9)")
    db.amosql('create function least(charstring) -> integer; set least("pen") = 5; commit;')
    text = "rule fill [instance]: stock(i, n), least(i, m), n < m -> !stock(i, n), stock(i, m)."
    assert db.program(text).run().firings == 1
    assert rows(db, "stock") == [("ink", 9), ("pen", 5)]


def test_monitors_and_rules_see_the_net_change_of_a_run(db: Database) -> None:
    db.datalog(".decl a(x: number) .decl b(x: number) a(1).")
    told = db.monitor("b")
    db.program(
        "rule r [instance]: a(x), x < 5 -> b(x), !a(x), a(x + 1). rule s: b(3) -> !b(3)."
    ).run()
    (change,) = told.changes()
    assert sorted(change.plus) == [(1,), (2,), (4,)]
    assert list(change.minus) == []


def test_a_run_in_a_transaction_is_part_of_it(db: Database) -> None:
    db.datalog(".decl a(x: number) a(1). .decl b(x: number)")
    db.sql("BEGIN")
    db.program("rule r: a(x) -> b(x).").run()
    assert rows(db, "b") == [(1,)]
    db.sql("ROLLBACK")
    assert rows(db, "b") == []


def test_run_in_a_text_and_rules_of_earlier_texts(db: Database) -> None:
    db.datalog(".decl a(x: number) a(1). .decl b(x: number) rule r: a(x) -> b(x).")
    assert rows(db, "b") == []
    db.datalog(".run")
    assert rows(db, "b") == [(1,)]
    db.datalog("rule r: a(x) -> !b(x).\n.run limit 10")
    assert rows(db, "b") == []


# --- wrong input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("rule r: a(x) -> c(x).", "unknown-relation", "c"),
        ("rule r: a(x) -> b(y).", "unsafe", "y"),
        ("rule r: a(x) -> b(_).", "syntax", "_"),
        ("rule r: a(x) -> b(x, x).", "arity", "attribute"),
        ("rule r: a(x) -> p(x).", "not-updatable", "derived"),
        ('rule r: a(x) -> b("x").', "type-mismatch", ""),
        ("rule r: a(x) -> b(x). rule r: a(x) -> b(x).", "exists", "two rules r"),
        ("rule r: a(x) -> b(x). .priority r > s", "unknown-rule", "there is no rule s"),
        ("rule r: a(x) -> b(x).\n.semantics sett", "bad-value", "sett"),
        ("rule r [urgent]: a(x) -> b(x).", "syntax", "option"),
        ("rule r: a(x), b(x).", "syntax", "->"),
        ("rule r [priority 99999999999999999999]: a(x) -> b(x).", "bad-value", "priority"),
        ("rule r: a(x) -> b(x).\n.refraction", "unsupported", "instance"),
        ("a(2).", "unknown-rule", "no production rule"),
        ("rule r [instance]: a(x) -> !a(x), a(x + 1).", "no-fixpoint", "a("),
    ],
)
def test_what_is_wrong_with_a_program(db: Database, text: str, code: str, words: str) -> None:
    db.datalog(".decl a(x: number) a(1). .decl b(x: number) .decl p(x: number) p(x) :- a(x).")
    error = failure(db, text)
    assert (error.code, words in error.message) == (code, True), error.message


def test_a_program_that_grows_names_what_moves(db: Database) -> None:
    rule = "rule grow [instance]: a(x) -> a(x + 1)."
    error = failure(db, f".decl a(x: number) a(1). {rule}")
    assert "within 50 firings: the rule grow fires without end" in error.message
    assert "a(51)" in error.message or "more" in error.message
    assert rows(db, "a") == [(1,)]


def test_a_relation_may_be_called_rule(db: Database) -> None:
    (shown,) = db.datalog(
        ".decl rule(x: number) rule(1). rule(x) :- rule(y), x = y + 1, x < 4.\n.output rule"
    )
    assert sorted(shown.rows) == [(1,), (2,), (3,)]
