"""`db.check`: what is said of rules before they run, in Datalog and in AMOSQL."""

from collections.abc import Iterator

import pytest

import harken
from harken import Database, HarkenError
from tests.calculus.paper_program import PROGRAM

NUMBERS = ".decl a(x: number) .decl b(x: number) .decl c(x: number) a(1).\n"


@pytest.fixture
def db() -> Iterator[Database]:
    with harken.connect() as made:
        yield made


def found(db: Database, text: str, language: str = "datalog") -> set[tuple[str, tuple[str, ...]]]:
    return {(each.kind, each.rules) for each in db.check(text, language)}


def test_rules_that_undo_each_other_are_a_cycle_and_their_order_matters(db: Database) -> None:
    text = NUMBERS + "rule on: a(x), !b(x) -> b(x). rule off: b(x) -> !b(x)."
    assert found(db, text) == {("cycle", ("on", "off")), ("order", ("on", "off"))}


def test_a_priority_settles_the_order_and_not_the_cycle(db: Database) -> None:
    text = NUMBERS + "rule on: a(x), !b(x) -> b(x). rule off: b(x) -> !b(x).\n.priority on > off"
    assert found(db, text) == {("cycle", ("on", "off"))}


def test_rules_that_only_insert_known_values_settle(db: Database) -> None:
    text = NUMBERS + "rule there: a(x) -> b(x). rule back: b(x) -> a(x)."
    assert found(db, text) == set()
    grows = NUMBERS + "rule grow: a(x) -> a(x + 1)."
    assert found(db, grows) == {("cycle", ("grow",))}


def test_dead_rules(db: Database) -> None:
    text = NUMBERS + "rule same: a(x) -> a(x). rule wait: b(x) -> c(x). rule last: c(x) -> !a(x)."
    assert found(db, text) == {("dead", (name,)) for name in ("same", "wait", "last")}
    assert found(db, text + "b(1).") == {("dead", ("same",))}


def test_the_paper_s_program_has_cycles_of_r1_r2_r3(db: Database) -> None:
    kinds = {each.kind: each.rules for each in db.check(PROGRAM) if each.kind == "cycle"}
    assert kinds == {"cycle": ("r1", "r3")}


def test_nothing_of_the_text_stays(db: Database) -> None:
    db.check(NUMBERS + "rule r: a(x) -> b(x). .run")
    with pytest.raises(HarkenError, match="no relation a"):
        db.datalog("?- a(x).")


def test_an_error_of_the_text_has_its_place(db: Database) -> None:
    with pytest.raises(HarkenError) as caught:
        db.check(NUMBERS + "rule r: nothing(x) -> b(x).", source="x.dl")
    assert caught.value.code == "unknown-relation"
    assert (caught.value.source, caught.value.span is not None) == ("x.dl", True)


def test_amosql_rules_are_followed_into_procedures(db: Database) -> None:
    text = """
    create type item properties (quantity integer, least integer);
    create function fill(item i) -> boolean as set quantity(i) = least(i) + 1;
    create rule low() as for each item i when quantity(i) < least(i) do fill(i);
    create rule high() as for each item i when quantity(i) > least(i)
        do set quantity(i) = least(i);
    create rule say() as for each item i when least(i) > 5 do print(i);
    create item instances :a;
    activate low();
    commit;
    """
    assert found(db, text, "amosql") == {("cycle", ("low", "high")), ("order", ("low", "high"))}


def test_a_rule_that_only_reads_is_triggered_by_nobody(db: Database) -> None:
    text = """
    create type item properties (quantity integer);
    create rule say() as for each item i when quantity(i) > 5 do print(i);
    """
    assert found(db, text, "amosql") == set()


def test_sql_has_no_rules(db: Database) -> None:
    with pytest.raises(HarkenError, match="has no rules"):
        db.check("SELECT 1", "sql")
